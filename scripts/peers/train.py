#!/usr/bin/env python3
"""Training speed of a plain PyTorch Transformer, of one without padding (ragged.py), or of transformers' MarianMT, written as a user of these would;
prints one JSON line.

    train.py --peer torch|ragged|marian --spm runs/bench/spm.model --src train.de.gz --tgt train.en.gz [--bf16] [--shape base]

Embeddings tied, dropout 0.1 everywhere, label smoothing 0.1, Adam, as `lacuna bench train` is run beside it.
"""
import argparse
import json
import math

import torch
import torch.nn.functional as F

import corpus
import ragged


class PlainTransformer(torch.nn.Module):
    """torch.nn.Transformer with tied embeddings and sinusoidal positions."""

    def __init__(self, shape, vocab_size, pad):
        super().__init__()
        d = shape["d_model"]
        self.pad, self.scale = pad, math.sqrt(d)
        self.embedding = torch.nn.Embedding(vocab_size, d)
        torch.nn.init.normal_(self.embedding.weight, std=d**-0.5)
        angles = torch.arange(512)[:, None] * torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], 1))
        self.dropout = torch.nn.Dropout(0.1)
        self.body = torch.nn.Transformer(d, shape["heads"], shape["layers"], shape["layers"], shape["d_ff"], 0.1, batch_first=True)

    def embed(self, ids):
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.size(1)])

    def forward(self, src, tgt):
        future = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=tgt.device).triu(1)
        masks = {"tgt_mask": future, "src_key_padding_mask": src == self.pad, "tgt_key_padding_mask": tgt == self.pad,
                 "memory_key_padding_mask": src == self.pad}
        return F.linear(self.body(self.embed(src), self.embed(tgt), **masks), self.embedding.weight)


def marian(shape, vocab_size, pad):
    from transformers import MarianConfig, MarianMTModel

    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder")
             for name, value in (("layers", shape["layers"]), ("attention_heads", shape["heads"]), ("ffn_dim", shape["d_ff"]))}
    config = MarianConfig(vocab_size=vocab_size, d_model=shape["d_model"], dropout=0.1, attention_dropout=0.1, activation_dropout=0.1,
                          activation_function="relu", scale_embedding=True, max_position_embeddings=512, pad_token_id=pad,
                          bos_token_id=corpus.BOS, eos_token_id=corpus.EOS, decoder_start_token_id=pad, forced_eos_token_id=None,
                          share_encoder_decoder_embeddings=True, tie_word_embeddings=True, init_std=shape["d_model"] ** -0.5, **sizes)
    model = MarianMTModel._from_config(config, attn_implementation="sdpa")
    return model, lambda src, tgt: model(input_ids=src, attention_mask=(src != pad).long(), decoder_input_ids=tgt, use_cache=False).logits


def main():
    flags = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flags.add_argument("--peer", choices=["torch", "ragged", "marian"], required=True)
    flags.add_argument("--spm", required=True, help="SentencePiece model: the one that Lacuna trained")
    flags.add_argument("--src", required=True)
    flags.add_argument("--tgt", required=True)
    flags.add_argument("--shape", choices=corpus.SHAPES, default="small")
    flags.add_argument("--bf16", action="store_true", help="under autocast")
    flags.add_argument("--compile", action="store_true", help="by torch.compile, with lengths that are multiples of 16")
    flags.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    flags.add_argument("--threads", type=int, default=2)
    flags.add_argument("--steps", type=int, default=30)
    flags.add_argument("--warmup", type=int, default=5)
    flags.add_argument("--batch-tokens", type=int, default=4096)
    flags = flags.parse_args()
    torch.set_num_threads(flags.threads)
    torch.manual_seed(1)
    if flags.device != "cpu":  # where cuDNN's attention is compiled anew for every shape of a batch: 20 times slower
        torch.backends.cuda.enable_cudnn_sdp(False)
    pairs, vocab_size = corpus.load_pairs(flags.spm, flags.src, flags.tgt)
    pad, shape = vocab_size, corpus.SHAPES[flags.shape]  # one more piece, which Lacuna does without
    if flags.peer == "marian":
        model, logits_of = marian(shape, vocab_size + 1, pad)
        start = pad
    elif flags.peer == "ragged":
        model = logits_of = ragged.RaggedTransformer(shape, vocab_size)
        start = corpus.BOS
    else:
        model = logits_of = PlainTransformer(shape, vocab_size + 1, pad)
        start = corpus.BOS
    model.to(flags.device).train()
    if flags.compile:
        logits_of = torch.compile(logits_of, dynamic=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.98), fused=True)
    meter = corpus.Meter(flags.warmup, flags.steps, None if flags.device == "cpu" else lambda: torch.cuda.synchronize(flags.device))

    def step(src, tgt_in, tgt_out):
        with torch.autocast(flags.device.split(":")[0], torch.bfloat16, enabled=flags.bf16):
            logits = logits_of(src, tgt_in)
            loss = F.cross_entropy(logits.flatten(0, -2), tgt_out.flatten(), ignore_index=pad, label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def tensors(batch):
        if flags.peer == "ragged":
            return ragged.tensors(batch, flags.device)
        return corpus.tensors(batch, pad, start, flags.device, multiple=16 if flags.compile else 1)

    while not meter.is_done():
        for batch in corpus.make_batches(pairs, flags.batch_tokens):
            *given, tokens = tensors(batch)
            meter.step(tokens, lambda: step(*given))
            if meter.is_done():
                break
    print(json.dumps(meter.report(flags.device, peer=flags.peer, compiled=flags.compile, precision="bf16" if flags.bf16 else "fp32", torch=torch.__version__)))


if __name__ == "__main__":
    main()
