"""What the scripts of this folder share: text to padded batches, and the speed of some steps."""
import gzip
import random
import resource
import statistics
import time

SHAPES = {"tiny": {"d_model": 32, "heads": 2, "d_ff": 64, "layers": 1}, "small": {"d_model": 256, "heads": 4, "d_ff": 1024, "layers": 3}, "base": {"d_model": 512, "heads": 8, "d_ff": 2048, "layers": 6}}
UNK, BOS, EOS = 0, 1, 2  # as in Lacuna's vocabularies


def read_lines(path):
    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"  # whatever it is called, as Lacuna reads it
    with (gzip.open if is_gzip else open)(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def load_pairs(spm_model, src, tgt, max_length=128):
    """Pairs of lists of token ids without eos, and the size of the vocabulary."""
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=spm_model)
    pairs = zip(model.encode(read_lines(src)), model.encode(read_lines(tgt)))
    return [pair for pair in pairs if all(0 < len(side) <= max_length for side in pair)], model.get_piece_size()


def make_batches(pairs, tokens, seed=1):
    """Lists of pairs of like length, at most `tokens` padded tokens on either side, in random order."""
    draw = random.Random(seed)
    order = list(pairs)
    draw.shuffle(order)
    order.sort(key=lambda pair: (len(pair[1]), len(pair[0])))
    batches, batch, longest = [], [], 0
    for pair in order:
        width = max(len(side) + 1 for side in pair)
        if batch and max(longest, width) * (len(batch) + 1) > tokens:
            batches.append(batch)
            batch, longest = [], 0
        batch.append(pair)
        longest = max(longest, width)
    batches.append(batch)
    draw.shuffle(batches)
    return batches


def padded(rows, pad, device, multiple=1):
    import torch

    width = -(-max(map(len, rows)) // multiple) * multiple
    return torch.tensor([row + [pad] * (width - len(row)) for row in rows]).to(device)


def tensors(batch, pad, start, device, multiple=1):
    """src with eos, what the decoder reads, what it must say; and the target tokens, eos counted, padding not. Widths are a multiple of `multiple`."""
    src = padded([s + [EOS] for s, _ in batch], pad, device, multiple)
    tgt_in = padded([[start] + t for _, t in batch], pad, device, multiple)
    tgt_out = padded([t + [EOS] for _, t in batch], pad, device, multiple)
    return src, tgt_in, tgt_out, sum(len(t) + 1 for _, t in batch)


class Meter:
    """Speed of steps after a warm-up: each alone, or, with a function that waits for a GPU, of all together, so that the GPU need not wait between them."""

    def __init__(self, warmup, steps, wait=None):
        self.warmup, self.steps, self.wait = warmup, steps, wait
        self.done, self.tokens, self.rates = 0, 0, []

    def step(self, tokens, work):
        if self.done == self.warmup or self.wait is None:
            if self.wait:
                self.wait()
            self.begin, self.tokens = time.perf_counter(), 0
        work()
        self.done += 1
        self.tokens += tokens
        if self.done > self.warmup and (self.wait is None or self.is_done()):
            if self.wait:
                self.wait()
            self.rates.append(self.tokens / (time.perf_counter() - self.begin))

    def is_done(self):
        return self.done >= self.warmup + self.steps

    def report(self, device, **facts):
        return {"tgt_tokens_per_second": statistics.median(self.rates), "peak_mebibytes": peak_mebibytes(device), **facts}


def peak_mebibytes(device="cpu"):
    """Of this process; of a GPU's memory, what its tensors took."""
    if device != "cpu":
        import torch

        return torch.cuda.max_memory_allocated(device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
