#!/usr/bin/env python3
"""Writes the golden files of the Transformer: weights, inputs, loss and every gradient, in double.

An implementation of its own, from the papers and padded, batched and masked as is usual in PyTorch: it shares neither code nor layout with
src/model. Needs PyTorch; run it in this folder, then commit what it wrote:

    python make_transformer_golden.py

A golden file is JSON: options, sentences, label_smoothing, loss, nll, correct, and for each parameter by its name in a checkpoint its shape,
values and gradient (of the summed loss).
"""
import json
import math
import pathlib

import torch
from torch import nn

BOS, EOS = 1, 2
SOURCES = [[7, 4, 9, EOS], [3, EOS], [5, 8, 8, 6, 10, 3, EOS]]
TARGETS = [[6, 5, EOS], [4, 9, 9, 7, EOS], [8, EOS]]
VARIANTS = {
    "post_norm": {"norm": "post", "tie_embeddings": "all"},
    "pre_norm": {"norm": "pre", "tie_embeddings": "all"},
    "pre_rms_learned": {"norm": "pre", "norm_type": "rms", "positions": "learned", "max_positions": 9, "tie_embeddings": "decoder",
                        "activation": "gelu"},
    "post_concatenated_untied": {"norm": "post", "position_layout": "concatenated", "tie_embeddings": "none", "encoder_layers": 1,
                                 "decoder_d_ff": 10},
    "post_rela": {"norm": "post", "tie_embeddings": "all",
                  "attention": {"encoder_self": {"type": "rela", "norm": "gated_rms"}, "decoder_self": {"type": "rela", "norm": "rms"},
                                "cross": {"type": "softmax", "norm": "layer"}}},
    "marian": {"norm": "post", "tie_embeddings": "all", "position_layout": "concatenated", "position_spacing": "tensor2tensor",
               "activation": "swish", "norm_epsilon": 0.01, "output_bias": True, "decoder_start": "zero"},
    "m2m100": {"norm": "pre", "tie_embeddings": "none", "position_layout": "concatenated", "position_spacing": "tensor2tensor",
               "position_start": 2, "norm_type": "rms", "norm_epsilon": 0.02, "output_bias": True},
    "rope_swiglu": {"norm": "pre", "tie_embeddings": "all", "norm_type": "rms", "positions": "rope", "activation": "swiglu"},
    "rope_of_halves": {"norm": "post", "tie_embeddings": "decoder", "positions": "rope", "position_layout": "concatenated"},
}
BASE = {"d_model": 8, "num_heads": 2, "d_ff": 12, "encoder_layers": 2, "decoder_layers": 2, "norm_type": "layer", "positions": "sinusoidal",
        "position_layout": "interleaved", "activation": "relu", "dropout": 0}
VOCABULARY, SMOOTHING = 11, 0.1


class Layered(nn.Module):
    """A model whose parameters are created on first use, by the checkpoint's names."""

    def __init__(self, o):
        super().__init__()
        self.o = o
        self.w = nn.ParameterDict()  # "." is not allowed in its keys: "/" stands for it

    def get(self, name, *shape, scale=None):
        key = name.replace(".", "/")
        if key not in self.w:
            value = torch.randn(*shape) * (scale or 0.4)
            if name.endswith("gain"):
                value = 1 + 0.3 * value
            self.w[key] = nn.Parameter(value)
        return self.w[key]

    def affine(self, name, x, n):
        return x @ self.get(name + ".weight", n, x.shape[-1]).T + self.get(name + ".bias", n)

    def norm(self, name, x):
        if self.o["norm_type"] == "rms":
            return self.rms_norm(name, x, self.o.get("norm_epsilon", 1e-6))
        return self.layer_norm(name, x, self.o.get("norm_epsilon", 1e-5))

    def rms_norm(self, name, x, epsilon):  # Zhang & Sennrich 2019, eq. 4
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * self.get(name + ".gain", x.shape[-1])

    def layer_norm(self, name, x, epsilon=1e-5):
        gain = self.get(name + ".gain", x.shape[-1])
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + epsilon) * gain + self.get(name + ".bias", x.shape[-1])

    def attention_norm(self, name, kind, x):
        """Normalizes the concatenated heads (Zhang, Titov & Sennrich 2021, arXiv:2104.07012, section 3.2)."""
        if kind == "rms":
            return self.rms_norm(name, x, 1e-8)
        if kind == "gated_rms":
            return self.rms_norm(name, x, 1e-8) * torch.sigmoid(self.get(name + ".gate", x.shape[-1], scale=1.5) * x)
        return self.layer_norm(name, x) if kind == "layer" else x

    def attend(self, name, q, k, v, visible):
        """Scaled dot-product attention with several heads; visible [B, 1 or Tq, Tk]."""
        heads, out = self.o["num_heads"], []
        site = "cross" if name.endswith("cross_attention") else name.split(".")[0] + "_self"
        choice = self.o.get("attention", {}).get(site, {"type": "softmax", "norm": "none"})
        width = q.shape[-1] // heads
        for h in range(heads):
            s = slice(h * width, (h + 1) * width)
            scores = torch.einsum("bid,bjd->bij", q[..., s], k[..., s]) / math.sqrt(width)
            if choice["type"] == "rela":
                weights = torch.relu(scores) * visible
            else:
                weights = torch.softmax(scores.masked_fill(~visible, float("-inf")), -1)
            out.append(weights @ v[..., s])
        normed = self.attention_norm(name + ".norm", choice["norm"], torch.cat(out, -1))
        return self.affine(name + ".output", normed, q.shape[-1])

    def self_attention(self, name, x, visible):
        q, k, v = self.affine(name + ".qkv", x, 3 * x.shape[-1]).chunk(3, -1)
        if self.o["positions"] == "rope":
            q, k = self.turned(q), self.turned(k)
        return self.attend(name, q, k, v, visible)

    def turned(self, x):
        """Rotary positions (Su et al. 2021, arXiv:2104.09864, section 3.2.1): pairs of a head's features as complex numbers."""
        length, width = x.shape[1], x.shape[-1] // self.o["num_heads"]
        angles = torch.arange(length)[:, None] / 10000 ** (2 * torch.arange(width // 2) / width)
        heads = x.view(*x.shape[:2], -1, width)
        if self.o["position_layout"] == "interleaved":
            real, imaginary = heads[..., 0::2], heads[..., 1::2]
        else:
            real, imaginary = heads.chunk(2, -1)
        pairs = torch.complex(real, imaginary) * torch.exp(1j * angles)[:, None]
        if self.o["position_layout"] == "interleaved":
            return torch.view_as_real(pairs).reshape(x.shape)
        return torch.cat([pairs.real, pairs.imag], -1).reshape(x.shape)

    def cross_attention(self, name, x, memory, visible):
        q = self.affine(name + ".query", x, x.shape[-1])
        k, v = self.affine(name + ".key_value", memory, 2 * x.shape[-1]).chunk(2, -1)
        return self.attend(name, q, k, v, visible)

    def feed_forward(self, name, x, width):
        if self.o["activation"] == "swiglu":
            gate, value = self.affine(name + ".inner", x, 2 * width).chunk(2, -1)
            return self.affine(name + ".outer", gate * torch.sigmoid(gate) * value, x.shape[-1])
        inner = self.affine(name + ".inner", x, width)
        if self.o["activation"] == "swish":
            inner = inner / (1 + torch.exp(-inner))
        else:
            inner = torch.relu(inner) if self.o["activation"] == "relu" else nn.functional.gelu(inner)
        return self.affine(name + ".outer", inner, x.shape[-1])

    def residual(self, norm_name, x, sublayer):
        if self.o["norm"] == "post":
            return self.norm(norm_name, x + sublayer(x))
        return x + sublayer(self.norm(norm_name, x))

    def positions(self, name, length):
        d = self.o["d_model"]
        if self.o["positions"] == "rope":
            return 0
        if self.o["positions"] == "learned":
            return self.get(name + ".weight", self.o["max_positions"], d)[:length]
        table, start = torch.zeros(length, d), self.o.get("position_start", 0)
        frequencies = d // 2 - 1 if self.o.get("position_spacing") == "tensor2tensor" else d // 2
        for position in range(length):
            for i in range(d // 2):
                angle = (start + position) / 10000 ** (i / frequencies)
                interleaved = self.o["position_layout"] == "interleaved"
                table[position, 2 * i if interleaved else i] = math.sin(angle)
                table[position, 2 * i + 1 if interleaved else d // 2 + i] = math.cos(angle)
        return table

    def embed(self, side, ids):
        name = "embedding" if self.o["tie_embeddings"] == "all" else side + "_embedding"
        d = self.o["d_model"]
        table = self.get(name + ".weight", VOCABULARY, d, scale=d**-0.5)
        x = table[ids] * math.sqrt(d)
        if side == "tgt" and self.o.get("decoder_start") == "zero":
            x = x * (ids != BOS)[..., None]
        return x + self.positions(side + "_positions", ids.shape[1])

    def encode(self, ids, visible):
        x = self.embed("src", ids)
        for i in range(self.o["encoder_layers"]):
            name = f"encoder.layers.{i}."
            x = self.residual(name + "self_attention_norm", x, lambda y: self.self_attention(name + "self_attention", y, visible))
            x = self.residual(name + "feed_forward_norm", x, lambda y: self.feed_forward(name + "feed_forward", y, self.o["d_ff"]))
        return self.norm("encoder.norm", x) if self.o["norm"] == "pre" else x

    def decode(self, ids, memory, memory_visible):
        length = ids.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool).tril()[None]
        width = self.o.get("decoder_d_ff", self.o["d_ff"])
        x = self.embed("tgt", ids)
        for i in range(self.o["decoder_layers"]):
            name = f"decoder.layers.{i}."
            x = self.residual(name + "self_attention_norm", x, lambda y: self.self_attention(name + "self_attention", y, causal))
            x = self.residual(name + "cross_attention_norm", x,
                              lambda y: self.cross_attention(name + "cross_attention", y, memory, memory_visible))
            x = self.residual(name + "feed_forward_norm", x, lambda y: self.feed_forward(name + "feed_forward", y, width))
        return self.norm("decoder.norm", x) if self.o["norm"] == "pre" else x

    def output_weight(self):
        name = {"all": "embedding", "decoder": "tgt_embedding", "none": "output"}[self.o["tie_embeddings"]]
        return self.get(name + ".weight", VOCABULARY, self.o["d_model"], scale=0.3)

    def logits(self, hidden):
        products = hidden @ self.output_weight().T
        return products + self.get("output.bias", VOCABULARY) if self.o.get("output_bias") else products


def padded(sentences):
    length = max(len(s) for s in sentences)
    return torch.tensor([s + [0] * (length - len(s)) for s in sentences])


def losses(model):
    src, tgt = padded(SOURCES), padded(TARGETS)
    src_real = torch.tensor([[i < len(s) for i in range(src.shape[1])] for s in SOURCES])
    tgt_real = torch.tensor([[i < len(s) for i in range(tgt.shape[1])] for s in TARGETS])
    shifted = torch.cat([torch.full((len(TARGETS), 1), BOS), tgt[:, :-1]], 1)
    hidden = model.decode(shifted, model.encode(src, src_real[:, None, :]), src_real[:, None, :])
    log_probs = torch.log_softmax(model.logits(hidden), -1)
    wanted = (1 - SMOOTHING) * nn.functional.one_hot(tgt, VOCABULARY) + SMOOTHING / VOCABULARY
    loss = -(wanted * log_probs).sum(-1)[tgt_real].sum()
    nll = -log_probs.gather(-1, tgt[..., None])[..., 0][tgt_real].sum()
    return loss, nll, (log_probs.argmax(-1) == tgt)[tgt_real].sum()


def golden(options):
    model = Layered({**BASE, **options})
    losses(model)  # creates the parameters
    loss, nll, correct = losses(model)
    loss.backward()
    parameters = {key.replace("/", "."): {"shape": list(p.shape), "values": p.flatten().tolist(), "gradient": p.grad.flatten().tolist()}
                  for key, p in model.w.items()}
    written = {**BASE, **options}
    if "attention" in options:
        written["attention"] = json.dumps(options["attention"])  # which is YAML too
    return {"options": written, "vocab_size": VOCABULARY, "src": SOURCES, "tgt": TARGETS, "label_smoothing": SMOOTHING,
            "loss": loss.item(), "nll": nll.item(), "correct": correct.item(), "parameters": parameters}


def main():
    torch.set_default_dtype(torch.float64)
    for number, (name, options) in enumerate(VARIANTS.items()):
        torch.manual_seed(number)
        path = pathlib.Path(__file__).with_name(f"transformer_{name}.json")
        path.write_text(json.dumps(golden(options)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
