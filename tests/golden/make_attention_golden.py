#!/usr/bin/env python3
"""Golden values of attention weights and their gradients, from PyTorch and the package `entmax`, in float64: writes attention.json beside it.

    pip install torch entmax==1.3 && python make_attention_golden.py

Each case is one row: type, options, scores, d loss / d weights, and what must come out: weights and d loss / d scores. A row that takes learned
numbers has these too (`numbers`), and d loss / d numbers. The keys stand at positions 0, 1, ..., the query at half their number.
"""
import json
import pathlib

import entmax
import torch


def topk(scores, k):
    threshold = torch.topk(scores, min(k, len(scores))).values[-1]
    return torch.softmax(scores.masked_fill(scores < threshold, float("-inf")), -1)


def alpha_entmax(alpha):
    return lambda z: entmax.entmax_bisect(z, alpha=alpha, dim=-1, n_iter=200)


TYPES = [
    ("softmax", "{}", lambda z: torch.softmax(z, -1)),
    ("topk", "{k: 1}", lambda z: topk(z, 1)),
    ("topk", "{k: 8}", lambda z: topk(z, 8)),
    ("rela", "{}", torch.relu),
    ("rela", "{activation: gelu}", torch.nn.functional.gelu),
    ("rela", "{activation: leaky_relu, slope: 0.01}", torch.nn.functional.leaky_relu),
    ("rela", "{activation: identity}", lambda z: z * 1),
    ("sparsemax", "{}", lambda z: entmax.sparsemax(z, dim=-1)),
    ("entmax15", "{}", lambda z: entmax.entmax15(z, dim=-1)),
    ("entmax", "{alpha: 1}", lambda z: torch.softmax(z, -1)),
    ("entmax", "{alpha: 1.1}", alpha_entmax(1.1)),
    ("entmax", "{alpha: 1.3}", alpha_entmax(1.3)),
    ("entmax", "{alpha: 1.5}", lambda z: entmax.entmax15(z, dim=-1)),
    ("entmax", "{alpha: 1.75}", alpha_entmax(1.75)),
    ("entmax", "{alpha: 2}", lambda z: entmax.sparsemax(z, dim=-1)),
]

LEARNED_ALPHAS = [1.015625, 1.25, 1.5, 1.875, 2]  # exact in float

RAMPS_AND_SPANS = [(4, 0.375), (4, 2.25), (2.5, 5.375), (8, 20.5)]  # exact in float, and no key where the mask has a kink


def span(scores, learned, ramp):
    distance = (torch.arange(len(scores)) - len(scores) // 2).abs()
    mask = ((ramp + learned - distance) / ramp).clamp(0, 1)
    weights = mask * torch.exp(scores - scores[mask > 0].max().detach())
    return weights / weights.sum()


def rows(generator):
    """Makes rows of several lengths and spreads: spiky on purpose, or every map looks like softmax."""
    for length, spread in [(1, 1), (2, 1), (5, 0.1), (15, 1.5), (17, 4), (40, 1), (70, 2)]:
        yield torch.randn(length, generator=generator, dtype=torch.float64) * spread


def main():
    generator = torch.Generator().manual_seed(3)
    cases = []
    for scores in rows(generator):
        # Exact in float, so that every precision starts from the same numbers.
        scores = scores.float().double()
        gradient = torch.randn(len(scores), generator=generator, dtype=torch.float64).float().double()
        for name, options, weigh in TYPES:
            z = scores.clone().requires_grad_()
            weights = weigh(z)
            weights.backward(gradient)
            cases.append({"type": name, "options": options, "scores": scores.tolist(), "weights_gradient": gradient.tolist(),
                          "weights": weights.tolist(), "scores_gradient": z.grad.tolist()})
        for alpha in LEARNED_ALPHAS:
            z, learned = scores.clone().requires_grad_(), torch.tensor([alpha], dtype=torch.float64, requires_grad=True)
            weights = entmax.entmax_bisect(z, alpha=learned, dim=-1, n_iter=200)
            weights.backward(gradient)
            cases.append({"type": "entmax", "options": "{alpha: learned}", "numbers": [alpha], "scores": scores.tolist(),
                          "weights_gradient": gradient.tolist(), "weights": weights.tolist(), "scores_gradient": z.grad.tolist(),
                          "numbers_gradient": learned.grad.tolist()})
        for ramp, value in RAMPS_AND_SPANS:
            z, learned = scores.clone().requires_grad_(), torch.tensor([value], dtype=torch.float64, requires_grad=True)
            weights = span(z, learned, ramp)
            weights.backward(gradient)
            cases.append({"type": "span", "options": "{ramp: %g}" % ramp, "numbers": [value], "scores": scores.tolist(),
                          "weights_gradient": gradient.tolist(), "weights": weights.tolist(), "scores_gradient": z.grad.tolist(),
                          "numbers_gradient": learned.grad.tolist()})
    path = pathlib.Path(__file__).with_name("attention.json")
    path.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
