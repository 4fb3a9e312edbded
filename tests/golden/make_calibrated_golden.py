#!/usr/bin/env python3
"""Writes the golden files of Transformers with calibrated attention: what make_transformer_golden.py writes, and both passes of a step.

    python make_calibrated_golden.py

`masks` holds the objective of the mask models times the tokens, the loss with perturbed weights, and the mean of the mask. The gradients of
mask models are those of the objective, all others those of the loss.
"""
import json
import math
import pathlib

import torch

from make_transformer_golden import BASE, SMOOTHING, SOURCES, TARGETS, VOCABULARY, Layered, losses

CAP = 10
TGT_REAL = torch.tensor([[i < len(s) for i in range(max(map(len, TARGETS)))] for s in TARGETS])
# The attention of each golden file, by name: its options here and in YAML.
VARIANTS = {
    "calibrated_gate": {
        "norm": "pre", "step": 0,
        "attention": "{cross: {type: calibrated, combine: gate, mask_penalty: 0.5}}",
        "types": {f"decoder.layers.{i}.cross_attention": {"combine": "gate", "penalty": 0.5} for i in (0, 1)}},
    "calibrated_mixed": {
        "norm": "post", "step": 4,
        "attention": "{decoder_self: {layers: {1: {type: calibrated}}}, cross: {layers: {0: {type: calibrated, combine: fixed, "
                     "lambda: 0.7, mask_penalty: 2}, 1: {type: calibrated, combine: anneal, anneal_steps: 10, mask_penalty: 0.25}}}}",
        "types": {"decoder.layers.0.cross_attention": {"combine": "fixed", "lambda": 0.7, "penalty": 2},
                  "decoder.layers.1.self_attention": {"combine": "gate", "penalty": 1},
                  "decoder.layers.1.cross_attention": {"combine": "anneal", "anneal_steps": 10, "penalty": 0.25}}},
}


class Calibrated(Layered):
    """Runs the model; `perturbs` selects the mask pass, which stores penalties and mask means of each attention."""

    def __init__(self, o, types, step):
        super().__init__(o)
        self.types, self.step, self.perturbs = types, step, False
        self.penalties, self.means = [], []

    def self_attention(self, name, x, visible):
        if name not in self.types:
            return super().self_attention(name, x, visible)
        q, k, v = self.affine(name + ".qkv", x, 3 * x.shape[-1]).chunk(3, -1)
        return self.calibrated(name, x, x, q, k, v, visible)

    def cross_attention(self, name, x, memory, visible):
        if name not in self.types:
            return super().cross_attention(name, x, memory, visible)
        q = self.affine(name + ".query", x, x.shape[-1])
        k, v = self.affine(name + ".key_value", memory, 2 * x.shape[-1]).chunk(2, -1)
        return self.calibrated(name, x, memory, q, k, v, visible)

    def calibrated(self, name, x, y, q, k, v, visible):
        kind, heads, d = self.types[name], self.o["num_heads"], q.shape[-1]
        visible = visible.expand(q.shape[0], q.shape[1], k.shape[1])
        u, w = x @ self.get(name + ".mask.query.weight", d, d).T, y @ self.get(name + ".mask.key.weight", d, d).T
        gates = torch.sigmoid(self.affine(name + ".gate", q, heads)) if kind["combine"] == "gate" else None
        out, distances, means = [], [], []
        width = d // heads
        for h in range(heads):
            s = slice(h * width, (h + 1) * width)
            product = lambda a, b: torch.einsum("bid,bjd->bij", a[..., s], b[..., s]) / math.sqrt(width)
            weights = torch.softmax(product(q, k).masked_fill(~visible, float("-inf")), -1)
            mask, n = torch.sigmoid(product(u, w)), visible.sum(-1)
            distances.append(((1 - mask).square() * visible).sum(-1).sqrt() / n.sqrt())
            means.append((mask * visible).sum(-1) / n)
            out.append(self.weigh(kind, weights, mask, n, visible, gates[..., h, None] if gates is not None else None) @ v[..., s])
        self.penalties.append(kind["penalty"] * torch.stack(distances)[:, TGT_REAL].mean())
        self.means.append(torch.stack(means)[:, TGT_REAL].mean())
        return self.affine(name + ".output", torch.cat(out, -1), d)

    def weigh(self, kind, weights, mask, n, visible, gate):
        if self.perturbs:
            return (mask * weights + (1 - mask) * weights.sum(-1, keepdim=True) / n[..., None]) * visible
        calibrated = weights * torch.exp(1 - mask.detach())
        if kind["combine"] == "fixed":
            return torch.softmax((weights + kind["lambda"] * calibrated).masked_fill(~visible, float("-inf")), -1)
        share = gate if gate is not None else math.exp(-self.step / kind["anneal_steps"])
        return share * weights + (1 - share) * calibrated


def golden(variant):
    options = {**BASE, "norm": variant["norm"], "tie_embeddings": "all"}
    model = Calibrated(options, variant["types"], variant["step"])
    losses(model)  # creates the parameters
    tokens = sum(map(len, TARGETS))
    loss, nll, correct = losses(model)
    names, values = zip(*model.w.items())
    of_loss = torch.autograd.grad(loss, values, allow_unused=True)
    model.perturbs, model.penalties, model.means = True, [], []
    perturbed, _, _ = losses(model)
    objective = tokens * (torch.stack(model.penalties).mean() - torch.clamp(perturbed / tokens, max=CAP))
    of_objective = torch.autograd.grad(objective, values, allow_unused=True)
    parameters = {}
    for name, value, plain, masked in zip(names, values, of_loss, of_objective):
        is_mask = "/mask/" in name
        assert not (is_mask and plain is not None and plain.abs().max() > 0), name
        parameters[name.replace("/", ".")] = {"shape": list(value.shape), "values": value.flatten().tolist(),
                                              "gradient": (masked if is_mask else plain).flatten().tolist()}
    return {"options": {**options, "attention": variant["attention"]}, "step": variant["step"], "vocab_size": VOCABULARY, "src": SOURCES,
            "tgt": TARGETS, "label_smoothing": SMOOTHING, "loss": loss.item(), "nll": nll.item(), "correct": correct.item(),
            "masks": {"objective": objective.item(), "loss": perturbed.item(), "mean": torch.stack(model.means).mean().item()},
            "parameters": parameters}


def main():
    torch.set_default_dtype(torch.float64)
    for number, (name, variant) in enumerate(VARIANTS.items()):
        torch.manual_seed(100 + number)
        path = pathlib.Path(__file__).with_name(f"transformer_{name}.json")
        path.write_text(json.dumps(golden(variant)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
