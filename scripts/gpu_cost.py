#!/usr/bin/env python3
"""What an update of training costs on a GPU, or a step of decoding, by arithmetic: gpu_cost.py --d-model 512 --batch-tokens 4096

  scripts/gpu_cost.py                                  # the base model, 8,000 pieces, batches of 4,096 target tokens
  scripts/gpu_cost.py --d-model 1024 --d-ff 4096 --vocab 32000 --batch-tokens 16384
  scripts/gpu_cost.py --decode 200 --beam 5            # a step of 200 sentences of the base model at once, with beams of 5

Lists every kernel of an update in bf16 as src/kernels and src/attention start them, with the operations it does and the bytes it reads and
writes, and adds up. A kernel takes as long as the slower of the two, at the given ceilings; the host starts kernels one after the other. The
update takes as long as the slower of kernels and host. What small products lose is left out: no update is faster than this. A step of
decoding is a queue of kernels too, and then the host chooses hypotheses, which is left out.

With --check it exits with 1 where a feed-forward layer with its norm moves more than 1.3 times the bytes that it has to.
"""
import argparse
import dataclasses
import sys

FLOAT, BF16 = 4, 2
MOST_SHORT_KEYS, D_HEAD = 128, 64  # src/attention/gpu/kernels.h; columns of a head
ADAM_BYTES = 8 * FLOAT + BF16  # value, two moments and an average read and written, the gradient read twice (its norm), bf16 written


@dataclasses.dataclass
class Kernel:
    part: str
    flops: float
    bytes: float
    launches: float = 1

    def seconds(self, asked):
        return max(self.flops / (asked.tflops * 1e12), self.bytes / (asked.gigabytes * 1e9))


def product(rows, depth, columns, result=BF16, part="products"):
    """[rows, depth] x [depth, columns]."""
    return Kernel(part, 2 * rows * depth * columns, BF16 * (rows * depth + depth * columns) + result * rows * columns)


def linear(rows, inputs, outputs, wants_bias_sums=True):
    """Forward, and the gradients of rows, weight and bias."""
    forward = [product(rows, inputs, outputs)]
    backward = [product(rows, outputs, inputs), product(outputs, rows, inputs, result=FLOAT)]
    if wants_bias_sums:
        backward.append(Kernel("bias sums", rows * outputs, BF16 * rows * outputs))
    return forward, backward


def norm(rows, features):
    """Residual, dropout and norm. The residual stream is float, what enters and leaves it bf16."""
    all_of = rows * features
    forward = [Kernel("norms", 10 * all_of, all_of * (BF16 + FLOAT + FLOAT + BF16))]
    sums = 3 * rows / 8 * features * FLOAT  # of each 8 rows: kernels/gpu/kernels.h
    backward = [Kernel("norms", 20 * all_of, all_of * (BF16 + FLOAT + FLOAT + FLOAT + BF16) + sums), Kernel("norms", 0, sums)]
    return forward, backward


def feed_forward(rows, features, hidden):
    forward = [product(rows, features, hidden), product(rows, hidden, features)]
    backward = [product(rows, features, hidden), Kernel("activation", 2 * rows * hidden, 3 * BF16 * rows * hidden), Kernel("activation", 0, 0),
                product(features, rows, hidden, result=FLOAT), product(rows, hidden, features), product(hidden, rows, features, result=FLOAT)]
    of_norm = norm(rows, features)
    return forward + of_norm[0], backward + of_norm[1]


def least_bytes_of_feed_forward(rows, features, hidden):
    """What a feed-forward layer with its norm cannot do without, where every product does what follows it in its own kernel."""
    of_hidden, of_features, of_weights = BF16 * rows * hidden, BF16 * rows * features, BF16 * features * hidden
    of_norm = rows * features * (2 * BF16 + 2 * FLOAT + 2 * BF16 + 3 * FLOAT)
    return 6 * of_hidden + 6 * of_features + 4 * of_weights + 2 * FLOAT * features * hidden + of_norm


def attention(queries, keys, sentence, asked):
    """Of short sentences: a kernel each way, which reads queries, keys and values once. Of long ones: one forward and two backward, whose
    blocks of 16 queries read all keys from the cache, and make passes over rows of scores in shared memory."""
    features = asked.d_model
    pairs, all_of = queries * sentence, BF16 * features * (2 * queries + 2 * keys)
    if sentence <= MOST_SHORT_KEYS:
        return ([Kernel("attention", 4 * pairs * features, all_of)],
                [Kernel("attention", 14 * pairs * features, 2 * all_of)])
    heads = features / D_HEAD

    def long(products, matrices, passes, shared_by, of_memory):
        cached = matrices * BF16 * pairs * features / shared_by
        rows = passes * FLOAT * pairs * heads
        in_time = max(cached / (asked.cache_gigabytes * 1e9), rows / (asked.shared_gigabytes * 1e9))
        return Kernel("attention", 2 * products * pairs * features, max(of_memory, in_time * asked.gigabytes * 1e9))

    numbers = queries * heads
    return ([long(2, 2, 2 + asked.row_passes, 16, all_of + 4 * FLOAT * numbers)],
            [long(3, 3, 8, 16, all_of + 20 * FLOAT * numbers), long(4, 2, 0, 64, all_of + 16 * FLOAT * numbers)])


def site(queries, keys, sentence, asked, is_self):
    d = asked.d_model
    projections = [linear(queries, d, 3 * d)] if is_self else [linear(queries, d, d), linear(keys, d, 2 * d)]
    parts = projections + [attention(queries, keys, sentence, asked), linear(queries, d, d, wants_bias_sums=False), norm(queries, d)]
    forward, backward = (sum((part[i] for part in parts), []) for i in (0, 1))
    if not is_self:
        backward.append(Kernel("attention", 0, 3 * FLOAT * keys * d))  # layers' gradients of the encoder's result, added up
    return forward, backward


def layer(asked, is_decoder):
    source, target, sentence = asked.source_tokens, asked.batch_tokens, asked.sentence
    rows = target if is_decoder else source
    parts = [site(rows, rows, sentence, asked, is_self=True)]
    if is_decoder:
        parts.append(site(target, source, sentence, asked, is_self=False))
    parts.append(feed_forward(rows, asked.d_model, asked.d_ff))
    return [kernel for part in parts for kernels in part for kernel in kernels]


def number_of_parameters(asked):
    d, f = asked.d_model, asked.d_ff
    return asked.layers * ((4 * d * d + 2 * d * f) + (8 * d * d + 2 * d * f)) + asked.vocab * d


def around_layers(asked):
    d, v, source, target = asked.d_model, asked.vocab, asked.source_tokens, asked.batch_tokens
    weights = number_of_parameters(asked)
    tables = 2 * v * d * FLOAT
    last_norms = [kernel for rows in (source, target) for kernels in norm(rows, d) for kernel in kernels]
    return [*last_norms,
            Kernel("loss", 0, 0, 13),  # sums of losses, zeros and lists; tests/train/gpu_work_test.cpp counts what is here
            Kernel("embedding", 0, 2 * FLOAT * d * (source + target), 2),
            Kernel("embedding", 0, 2 * FLOAT * d * (source + target) + tables, 8),
            Kernel("attention", 0, source * d * (FLOAT + BF16)),  # the encoder's result is rounded for all layers' keys and values
            product(target, d, v, result=FLOAT, part="loss"),
            Kernel("loss", 10 * target * v, target * v * (2 * FLOAT + BF16)),
            product(target, v, d, result=FLOAT, part="loss"), product(v, target, d, result=FLOAT, part="loss"),
            Kernel("loss", 0, 3 * tables, 4),  # by the loss's own gradient, and added to the embeddings'
            Kernel("optimizer", 15 * weights, (ADAM_BYTES + 2 * FLOAT) * weights, 10)]


def one_query(asked, keys_read, keys, writes_newest):
    """Attention of one query a row: reads queries and keys, writes the context, and of self attention the newest keys and values."""
    rows, d = asked.decode * asked.beam, asked.d_model
    return Kernel("attention", 4 * rows * keys * d, BF16 * d * (rows * (6 if writes_newest else 2) + 2 * keys_read))


def kernels_of_step(asked):
    """A step in the middle of the sentences."""
    rows, d, f, v, keys = asked.decode * asked.beam, asked.d_model, asked.d_ff, asked.vocab, asked.sentence / 2
    of_norm = norm(rows, d)[0]
    layer_kernels = [product(rows, d, 3 * d), one_query(asked, rows * keys, keys, writes_newest=True), product(rows, d, d), *of_norm,
                     product(rows, d, d), one_query(asked, asked.decode * asked.sentence, asked.sentence, writes_newest=False),
                     product(rows, d, d), *of_norm, product(rows, d, f), product(rows, f, d), *of_norm]
    around = [Kernel("slots", 0, 2 * FLOAT * rows * keys), Kernel("embedding", 0, 2 * FLOAT * rows * d), *of_norm,
              Kernel("best tokens", 0, (FLOAT + BF16) * rows * d), product(rows, d, v, result=FLOAT, part="best tokens"),
              Kernel("best tokens", 10 * rows * v, 3 * FLOAT * rows * v)]
    return asked.layers * layer_kernels + around


def report_step(asked):
    kernels, rows = kernels_of_step(asked), asked.decode * asked.beam
    table(kernels, "step", asked)
    device, host = sum(k.seconds(asked) for k in kernels), sum(k.launches for k in kernels) * asked.launch_us * 1e-6
    there, back = 24 * rows, FLOAT * rows * (4 * asked.beam + 1)  # model/device_slots.cpp, kernels/best_tokens.cpp
    print(f"one copy there of {there:,} bytes, one back of {back:,}, one wait")
    print(f"GPU {1e3 * device:.2f} ms, host {1e3 * host:.2f} ms at {asked.launch_us} us a launch: at most "
          f"{asked.decode / max(device, host):,.0f} tokens/s, without the search")


def kernels_of(asked):
    return [kernel for _ in range(asked.layers) for is_decoder in (False, True) for kernel in layer(asked, is_decoder)] + around_layers(asked)


def table(kernels, whole, asked):
    print(f"{'part':<12}{'launches':>10}{'GFLOP':>10}{'GB':>8}{'ms':>8}")
    rows = {}
    for kernel in kernels:
        rows.setdefault(kernel.part, []).append(kernel)
    for part, all_of in [*rows.items(), (whole, kernels)]:
        print(f"{part:<12}{sum(k.launches for k in all_of):>10.0f}{sum(k.flops for k in all_of) / 1e9:>10.1f}"
              f"{sum(k.bytes for k in all_of) / 1e9:>8.2f}{1e3 * sum(k.seconds(asked) for k in all_of):>8.2f}")


def report(asked):
    kernels = kernels_of(asked)
    table(kernels, "update", asked)
    device, host = sum(k.seconds(asked) for k in kernels), sum(k.launches for k in kernels) * asked.launch_us * 1e-6
    slower = max(device, host)
    encoder, decoder = (sum(k.launches for k in layer(asked, is_decoder)) for is_decoder in (False, True))
    print(f"launches of an encoder layer {encoder:.0f}, of a decoder layer {decoder:.0f}")
    print(f"GPU {1e3 * device:.2f} ms, host {1e3 * host:.2f} ms at {asked.launch_us} us a launch: {asked.batch_tokens / slower:,.0f} target tokens/s")


def bytes_ratio(asked):
    rows = asked.batch_tokens
    moved = sum(kernel.bytes for kernels in feed_forward(rows, asked.d_model, asked.d_ff) for kernel in kernels)
    return moved / least_bytes_of_feed_forward(rows, asked.d_model, asked.d_ff)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--d-model", type=int, default=512)
    parser.add_argument("--d-ff", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=6, help="of encoder and decoder each")
    parser.add_argument("--vocab", type=int, default=8000)
    parser.add_argument("--batch-tokens", type=int, default=4096, help="target tokens of an update")
    parser.add_argument("--source-tokens", type=int, help="default: as many")
    parser.add_argument("--sentence", type=int, default=15, help="tokens of a sentence")
    parser.add_argument("--tflops", type=float, default=790, help="products' ceiling: a large one in bf16 on an H100 or H200, as measured")
    parser.add_argument("--gigabytes", type=float, default=4300, help="memory's ceiling, a second: an H200's, as measured; an H100's is 3000")
    parser.add_argument("--cache-gigabytes", type=float, default=5500, help="the L2 cache's ceiling, a second, as others have measured it on an H100")
    parser.add_argument("--shared-gigabytes", type=float, default=30000, help="shared memory's, a second: 128 bytes a cycle of 132 multiprocessors")
    parser.add_argument("--row-passes", type=float, default=10, help="over a row of more than 128 scores, until they are weights: 3 of softmax, "
                        "10 and more of types that search a threshold")
    parser.add_argument("--launch-us", type=float, default=20, help="what the host takes to start a kernel")
    parser.add_argument("--decode", type=int, metavar="SENTENCES", help="a step of decoding so many sentences at once, in place of an update")
    parser.add_argument("--beam", type=int, default=5, help="hypotheses of a sentence")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a feed-forward layer moves too many bytes")
    asked = parser.parse_args()
    asked.source_tokens = asked.source_tokens or asked.batch_tokens
    if asked.decode:
        report_step(asked)
        return
    report(asked)
    ratio = bytes_ratio(asked)
    print(f"a feed-forward layer with its norm moves {ratio:.2f} times the bytes that it has to")
    if asked.check and ratio > 1.3:
        sys.exit("gpu_cost.py: expected at most 1.3 times")


if __name__ == "__main__":
    main()
