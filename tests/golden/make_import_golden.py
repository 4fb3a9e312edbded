#!/usr/bin/env python3
"""Makes the folders of transformers' models that tests/cli/import_test.py imports, with what transformers says to some sentences.

    python3 tests/golden/make_import_golden.py --corpus data/bundled --out tests/cli/imports

Weights are drawn, not trained. Needs transformers 4 (whose NllbTokenizer reads a SentencePiece model), torch, sentencepiece, sacremoses.
"""
import argparse
import json
import pathlib
import re
import shutil

import sentencepiece
import torch
from transformers import (M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer, MarianConfig, MarianMTModel, MarianTokenizer,
                          NllbTokenizer)

LINES, MOST_TOKENS = 12, 16
SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
         "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 96, "scale_embedding": True, "init_std": 0.3,
         "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0}


def train_spm(text, prefix, size, **more):
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(prefix), vocab_size=size, normalization_rule_name="identity",
                                             input_sentence_size=4000, minloglevel=2, num_threads=1, **more)
    return sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")


def draw(model):
    """Makes every parameter other than it is at first: biases and norms too."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed" not in name and "shared" not in name and "lm_head" not in name:
                parameter.add_(0.6 * torch.randn_like(parameter))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_(0, 0.5)
    return model.eval()


def sentences(corpus):
    return [(corpus / f"test.{lang}").read_text(encoding="utf-8").splitlines()[:LINES] for lang in ("de", "en")]


def scores(model, tokenizer, src, tgt):
    sums = []
    for source, target in zip(src, tgt):
        batch = tokenizer(source, return_tensors="pt")
        labels = tokenizer(text_target=target, return_tensors="pt").input_ids
        with torch.no_grad():
            log_probs = model(**batch, labels=labels).logits.double().log_softmax(-1)
        sums.append(log_probs.gather(2, labels.unsqueeze(2)).sum().item())
    return sums


def save(model, tokenizer, src, tgt, folder, dtype=torch.float32, **generate):
    model = model.to(dtype)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model = type(model).from_pretrained(folder, dtype=torch.float32).eval()  # as whoever has the folder loads it
    greedy = []
    for line in src:
        ids = model.generate(**tokenizer(line, return_tensors="pt"), num_beams=1, do_sample=False, max_length=MOST_TOKENS + 1, **generate)
        text = tokenizer.batch_decode(ids, skip_special_tokens=True)[0]
        greedy.append(re.sub("__[a-z]+__", "", text).strip())  # language codes, which M2M100Tokenizer shows
    expected = {"src": src, "tgt": tgt, "greedy": greedy, "scores": scores(model, tokenizer, src, tgt)}
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_ids(folder, name, pieces):
    (folder / name).write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}, ensure_ascii=False), encoding="utf-8")


def marian(corpus, folder, separate, activation, dtype):
    """One list for both sides and one table; or a list and tables for each, and fp16."""
    models = [train_spm(corpus / f"train.{lang}", folder / f"{side}", 90) for side, lang in (("source", "de"), ("target", "en"))]
    pieces = [[model.id_to_piece(i) for i in range(3, model.get_piece_size())] for model in models]
    for side in ("source", "target"):
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        (folder / f"{side}.vocab").unlink()
    if separate:
        lists = [["</s>", "<unk>", *pieces[0], ">>eng<<", "<pad>"], ["</s>", "<unk>", *pieces[1]]]
        lists[1] += [f"filler{i}" for i in range(len(lists[0]) - len(lists[1]) - 1)] + ["<pad>"]  # <pad> has one id on both sides
    else:
        both = ["</s>", "<unk>", *dict.fromkeys(pieces[0] + pieces[1]), ">>eng<<", "<pad>"]
        lists = [both, both]
    write_ids(folder, "vocab.json", lists[0])
    if separate:
        write_ids(folder, "target_vocab.json", lists[1])
    tokenizer = MarianTokenizer(str(folder / "source.spm"), str(folder / "target.spm"), str(folder / "vocab.json"),
                                str(folder / "target_vocab.json") if separate else None, source_lang="de", target_lang="en",
                                separate_vocabs=separate)
    pad = len(lists[0]) - 1
    config = MarianConfig(vocab_size=len(lists[0]), decoder_vocab_size=len(lists[1]), pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=0,
                          forced_eos_token_id=0, activation_function=activation, share_encoder_decoder_embeddings=not separate, **SIZES)
    torch.manual_seed(2)
    model = draw(MarianMTModel(config))
    model.generation_config.bad_words_ids = [[pad], [1]]
    model.generation_config.num_beams = 4
    src, tgt = sentences(corpus)
    src = [f">>eng<< {line}" if i % 3 == 0 else line for i, line in enumerate(src)]
    save(model, tokenizer, src, tgt, folder, dtype)
    (folder / "README.md").write_text("---\nlanguage:\n- de\n- en\nlicense: apache-2.0\n---\n\n# A drawn model\n", encoding="utf-8")


def m2m100(corpus, folder, is_nllb):
    joint = folder / "both.txt"
    joint.write_text("".join((corpus / f"train.{lang}").read_text(encoding="utf-8") for lang in ("de", "en")), encoding="utf-8")
    model = train_spm(joint, folder / "sentencepiece.bpe", 110)
    joint.unlink()
    (folder / "sentencepiece.bpe.vocab").unlink()
    spm = str(folder / "sentencepiece.bpe.model")
    if is_nllb:
        codes = ["deu_Latn", "eng_Latn", "fra_Latn"]
        tokenizer = NllbTokenizer(spm, src_lang="deu_Latn", tgt_lang="eng_Latn", additional_special_tokens=codes)
        size, forced = model.get_piece_size() + 1 + len(codes) + 1 + 2, "eng_Latn"  # <mask>, and two rows without a token
    else:
        write_ids(folder, "vocab.json", ["<s>", "<pad>", "</s>", "<unk>", *[model.id_to_piece(i) for i in range(3, model.get_piece_size())]])
        tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), spm, src_lang="de", tgt_lang="en")
        size, forced = len(tokenizer.encoder) + len(tokenizer.lang_code_to_id) + 8, "__en__"
    config = M2M100Config(vocab_size=size, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, activation_function="relu", **SIZES)
    torch.manual_seed(3)
    network = draw(M2M100ForConditionalGeneration(config))
    made_up = range(size - (2 if is_nllb else 8), size)
    network.generation_config.suppress_tokens = [0, 1, 3, *([tokenizer.mask_token_id] if is_nllb else []), *made_up]
    src, tgt = sentences(corpus)
    save(network, tokenizer, src, tgt, folder, forced_eos_token_id=2, forced_bos_token_id=tokenizer.convert_tokens_to_ids(forced))
    for name in ("tokenizer.json",):
        (folder / name).unlink(missing_ok=True)


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--corpus", type=pathlib.Path, required=True, help="folder of the bundled corpus")
    flags.add_argument("--out", type=pathlib.Path, required=True)
    flags = flags.parse_args()
    for name, make in (("marian", lambda folder: marian(flags.corpus, folder, False, "swish", torch.float32)),
                       ("marian_two", lambda folder: marian(flags.corpus, folder, True, "relu", torch.float16)),
                       ("m2m100", lambda folder: m2m100(flags.corpus, folder, False)),
                       ("nllb", lambda folder: m2m100(flags.corpus, folder, True))):
        folder = flags.out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)


if __name__ == "__main__":
    main()
