#!/usr/bin/env python3
"""Speed of transformers' generate() at translating a text, from a folder of `lacuna export --to hf` (MarianMT, or Pegasus of a pre-norm model); prints
one JSON line.

    translate_transformers.py --model small.hf --spm spm.model --src test2016.de.gz [--device cuda --bf16 --batch 128 --limit 1000 --length 30]
"""
import argparse
import json
import statistics
import time

import sentencepiece
import torch
import transformers

import corpus


def main():
    flags = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flags.add_argument("--model", required=True)
    flags.add_argument("--spm", required=True)
    flags.add_argument("--src", required=True)
    flags.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    flags.add_argument("--bf16", action="store_true")
    flags.add_argument("--threads", type=int, default=2)
    flags.add_argument("--beam-size", type=int, default=5)
    flags.add_argument("--batch", type=int, default=64, help="sentences, of like length; 1 = one after the other")
    flags.add_argument("--length", type=int, default=0, help="steps of each translation, whatever the model would say; 0 = as the model ends it")
    flags.add_argument("--limit", type=int, default=0, help="only the first so many lines; 0 = all")
    flags.add_argument("--rounds", type=int, default=1)
    flags = flags.parse_args()
    torch.set_num_threads(flags.threads)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(flags.model, dtype=torch.bfloat16 if flags.bf16 else torch.float32,
                                                               attn_implementation="sdpa")
    model.to(flags.device).eval()
    spm = sentencepiece.SentencePieceProcessor(model_file=flags.spm)
    lines = [line for line in corpus.read_lines(flags.src) if line][: flags.limit or None]
    sources = sorted(([*ids, corpus.EOS] for ids in spm.encode(lines)), key=len, reverse=True)
    pad = model.config.pad_token_id
    settings = {"num_beams": flags.beam_size, "length_penalty": 1.0, "do_sample": False, "max_new_tokens": flags.length or 256, "min_new_tokens": flags.length or 1}

    def translate(rows):
        ids = corpus.padded(rows, pad, flags.device)
        with torch.inference_mode():
            found = model.generate(input_ids=ids, attention_mask=(ids != pad).long(), **settings)
        return int((found[:, 1:] != pad).sum())

    translate(sources[:8])
    seconds = []
    for _ in range(flags.rounds):
        begin = time.perf_counter()
        tokens = sum(translate(sources[first : first + flags.batch]) for first in range(0, len(sources), flags.batch))
        seconds.append(time.perf_counter() - begin)
    median = statistics.median(seconds)
    print(json.dumps({"output_tokens_per_second": tokens / median, "sentences_per_second": len(sources) / median, "peak_mebibytes": corpus.peak_mebibytes(flags.device),
                      "precision": "bf16" if flags.bf16 else "fp32", "transformers": transformers.__version__}))


if __name__ == "__main__":
    main()
