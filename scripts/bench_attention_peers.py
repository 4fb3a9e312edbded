#!/usr/bin/env python3
"""The attention operation alone in eager PyTorch, with the package `entmax`: what `lacuna-bench attention` is held against.

    bench_attention_peers.py [--lengths 32,128,512,2048] [--dtype fp32,bf16] [--threads 2] [--device cpu]      one JSON object, as lacuna's
    bench_attention_peers.py --beside ours.json                                                               the same cells as a table of ratios, in Markdown

A cell is forward and backward of 64 rows (batch x heads) of one length with heads of 64 features, from q, k, v to their gradients. Types have the
names that `lacuna-bench attention` gives them. `rela` is ReLU with an RMSNorm of each head. Needs torch and entmax. On a GPU, and if the package
adasplash is there, `adasplash-v1` and (causal) `adasplash-v2` are its kernels for entmax with alpha 1.5.
"""
import argparse
import importlib.util
import json
import math
import statistics
import sys
import time

import entmax
import torch
import torch.nn.functional as F

FULL = "full"
HEADS = 8  # of a sentence, where a package wants to know
QUEUED = 20  # calls between two events


def topk(scores, k):
    threshold = scores.topk(min(k, scores.size(-1)), -1).values[..., -1:]
    return scores.masked_fill(scores < threshold, -math.inf).softmax(-1)


def bisect(alpha):
    return lambda scores: entmax.entmax_bisect(scores, alpha=alpha, dim=-1)


def learned_alpha(rows, dtype, device):
    return torch.full((rows, 1, 1), 1.5, dtype=dtype, device=device, requires_grad=True)


def mappings(length, rows, dtype, device):
    """Type and pattern of each, scores to weights."""
    places = torch.arange(length, device=device)
    near = (places[:, None] - places).abs() <= 32
    return {
        ("softmax", FULL): lambda z: z.softmax(-1),
        ("softmax", "local-window=32"): lambda z: z.masked_fill(~near, -math.inf).softmax(-1),
        ("topk-k=8", FULL): lambda z: topk(z, 8),
        ("topk-ratio=4-floor=8", FULL): lambda z: topk(z, max(8, math.ceil(length / 4))),
        ("rela", FULL): F.relu,
        ("sparsemax", FULL): lambda z: entmax.sparsemax(z, dim=-1),
        ("entmax15", FULL): lambda z: entmax.entmax15(z, dim=-1),
        ("entmax-alpha=1.5", FULL): bisect(1.5),
        ("entmax-alpha=1.3", FULL): bisect(1.3),
        ("entmax-alpha=learned", FULL): bisect(learned_alpha(rows, dtype, device)),
    }


class Cell:
    """Rows of one length and type of numbers."""

    def __init__(self, length, dtype, flags):
        self.length, self.causal = length, flags.causal
        sizes = (flags.rows, length, flags.d_head)
        self.q, self.k, self.v = (torch.randn(sizes).to(flags.device, dtype).requires_grad_() for _ in range(3))
        self.gradient = torch.randn(sizes).to(flags.device, dtype)
        self.future = torch.ones(length, length, dtype=torch.bool, device=flags.device).triu(1)

    def clear(self):
        self.q.grad = self.k.grad = self.v.grad = None

    def run(self, name, mapping):
        self.clear()
        scores = self.q @ self.k.transpose(1, 2) / math.sqrt(self.q.size(-1))
        if self.causal:
            scores = scores.masked_fill(self.future, 0 if name == "rela" else -1e4)  # entmax's sorting meets no infinity
        context = mapping(scores) @ self.v
        if name == "rela":
            context = F.rms_norm(context, (context.size(-1),), None, 1e-6)
        context.backward(self.gradient)

    def run_fused(self):
        self.clear()
        F.scaled_dot_product_attention(self.q[None], self.k[None], self.v[None], is_causal=self.causal)[0].backward(self.gradient)


    def run_adasplash(self, version):
        import adasplash

        self.clear()
        heads = [x.view(-1, HEADS, *x.shape[1:]) for x in (self.q, self.k, self.v)]
        context = adasplash.adasplash_v2(*heads) if version == 2 else adasplash.adasplash_v1(*heads, alpha=1.5, is_causal=self.causal)
        context.flatten(0, 1).backward(self.gradient)


def has_adasplash(flags):
    return flags.device != "cpu" and flags.rows % HEADS == 0 and importlib.util.find_spec("adasplash") is not None


def until_done(work, device, queued):
    """What `work` does, and on a GPU the wait until it is done, but where calls are queued."""
    if device == "cpu" or queued:
        return work

    def run():
        work()
        torch.cuda.synchronize(device)

    return run


def seconds_of(work, queued):
    if not queued:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(QUEUED):
        work()
    end.record()
    end.synchronize()
    return 1e-3 * begin.elapsed_time(end) / QUEUED


def time_in_turn(works, rounds, budget, queued):
    """Median milliseconds of each; one that has taken more than `budget` seconds is measured no more, and one that fails not at all."""
    seconds = {name: [] for name in works}
    for name, work in works.items():
        try:
            work()
        except Exception as error:  # a kernel of a package that does not compile here
            print(f"left out: {name}: {error}", file=sys.stderr)
            del seconds[name]
    for _ in range(rounds):
        for name, taken in seconds.items():
            if not taken or sum(taken) < budget:
                taken.append(seconds_of(works[name], queued))
    return {name: 1e3 * statistics.median(values) for name, values in seconds.items()}


def measure(flags):
    lines = []
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        for length in flags.lengths if name in flags.dtype else []:
            cell = Cell(length, dtype, flags)
            works = {key: lambda key=key, mapping=mapping: cell.run(key[0], mapping)
                     for key, mapping in mappings(length, flags.rows, dtype, flags.device).items() if flags.types is None or key[0] in flags.types}
            works["aten"] = cell.run_fused
            if has_adasplash(flags):
                for version in (1, 2) if flags.causal else (1,):
                    works[f"adasplash-v{version}", FULL] = lambda cell=cell, version=version: cell.run_adasplash(version)
            works = {key: until_done(work, flags.device, flags.queued) for key, work in works.items()}
            times = time_in_turn(works, flags.rounds, flags.budget, flags.queued)
            aten = times.pop("aten", None)
            for (type_name, pattern), ms in times.items():
                lines.append({"length": length, "dtype": name, "type": type_name, "pattern": pattern, "ms": ms, "aten_ms": aten})
    return {"device": flags.device, "threads": flags.threads, "rows": flags.rows, "d_head": flags.d_head, "causal": flags.causal, "torch": torch.__version__, "lines": lines}


def key_of(line):
    return line["dtype"], line["length"], line["type"], line["pattern"]


def shown(ms):
    return "–" if ms is None else f"{ms:.0f}" if ms >= 1000 else f"{ms:.3g}"


def print_ratios(ours, theirs):
    """Ours over theirs, cell by cell: below 1 we are faster."""
    peers = {key_of(line): line["ms"] for line in theirs["lines"]}
    device = ours.get("device", "cpu")
    where = f"{ours['threads']} threads" if device == "cpu" else torch.cuda.get_device_name(device)
    print(f"{where}, {ours['sentences']} x {ours['heads']} rows, d_head {ours['d_head']}, PyTorch {theirs['torch']}; times in ms, "
          "ratios are Lacuna's time over the other's.\n")
    print("| dtype | length | type | pattern | Lacuna | the same, eager | ratio | over eager softmax | over fused softmax (ATen) |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for line in ours["lines"]:
        dtype, length, type_name, pattern = key_of(line)
        ms, eager = line["ms"], peers.get(key_of(line))
        softmax = peers.get((dtype, length, "softmax", FULL))
        ratio = lambda other: f"{ms / other:.2f}" if other else "–"
        print(f"| {dtype} | {length} | {type_name} | {pattern} | {shown(ms)} | {shown(eager)} | {ratio(eager)} | {ratio(softmax)} | "
              f"{ratio(line['aten_ms'])} |")


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--lengths", default="32,128,512,2048", help="tokens of a row (default: %(default)s); 2048 takes some 10 GiB")
    flags.add_argument("--rows", type=int, default=64)
    flags.add_argument("--d-head", type=int, default=64)
    flags.add_argument("--dtype", default="fp32", help="fp32, bf16 or fp32,bf16")
    flags.add_argument("--types", help="only these, with a ; between them")
    flags.add_argument("--causal", action="store_true")
    flags.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    flags.add_argument("--threads", type=int, default=2)
    flags.add_argument("--rounds", type=int, default=7)
    flags.add_argument("--queued", action="store_true", help="on a GPU, by events around many calls, without waiting for each")
    flags.add_argument("--budget", type=float, default=30, help="seconds after which a type is measured no more at a length")
    flags.add_argument("--beside", help="what `lacuna-bench attention --json` printed")
    flags = flags.parse_args()
    flags.lengths = [int(length) for length in flags.lengths.split(",")]
    flags.dtype = flags.dtype.split(",")
    flags.types = flags.types and [name.strip() for name in flags.types.split(";")]
    if flags.queued and flags.device == "cpu":
        sys.exit("bench_attention_peers.py: --queued is of a GPU's queue; leave it out, or use --device cuda")
    torch.set_num_threads(flags.threads)
    torch.manual_seed(1)
    report = measure(flags)
    if flags.beside:
        with open(flags.beside, encoding="utf-8") as file:
            print_ratios(json.load(file), report)
    else:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
