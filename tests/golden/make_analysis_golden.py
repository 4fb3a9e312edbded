"""Writes analysis.json: the measures of src/analysis/README.md on random attention, by NumPy and straight from their definitions.

    python tests/golden/make_analysis_golden.py

Weights are [heads][queries][keys] with null where a query does not see a key.
"""
import itertools
import json
import math
import pathlib

import numpy as np

TEMPERATURES = (1, 0.5, 0.25, 0.1)
random = np.random.default_rng(20)


def entropy(p):
    p = np.asarray(p, dtype=np.float64)
    return float(-np.sum(p[p > 0] * np.log(p[p > 0])))


def single(values):
    """Rounds weights to float, as the program sees them."""
    return np.float32(values).astype(np.float64)


# --- rows of weights ---


def softmax_rows(shape):
    scores = np.exp(random.normal(0, 2, shape))
    return single(scores / scores.sum(-1, keepdims=True))


def rectified_rows(shape, shift):
    return single(np.maximum(random.normal(0, 1, shape) - shift, 0))


def sparse_rows(shape):
    kept = np.exp(random.normal(0, 2, shape)) * (random.random(shape) < 0.5)
    kept[..., 0] += 1e-3
    return single(kept / kept.sum(-1, keepdims=True))


def causal(weights):
    hidden = np.triu(np.ones(weights.shape[-2:], dtype=bool), 1)
    return np.where(hidden, np.nan, weights)


def head_measures(head):
    rows = [row[~np.isnan(row)] for row in head]
    known = np.concatenate(rows)
    nulls = [not row.any() for row in rows]
    entropies = [entropy(row / row.sum()) for row, null in zip(rows, nulls) if not null]
    return {
        "rows": len(rows),
        "sparsity": float(np.mean(known == 0)),
        "null_rate": float(np.mean(nulls)),
        "entropy": float(np.mean(entropies)) if entropies else None,
        "support": float(np.mean([np.count_nonzero(row) for row in rows])),
    }


def distribution(row, temperature):
    """Rows as distributions over the keys and one more key, which takes the mass of null rows."""
    visible = ~np.isnan(row)
    p = np.zeros(len(row) + 1)
    if not row[visible].any():
        p[-1] = 1
    elif temperature is None:
        p[:-1][visible] = row[visible] / row[visible].sum()
    else:
        p[:-1][visible] = np.exp(temperature * row[visible])
        p /= p.sum()
    return p


def divergence(heads, temperature):
    found = []
    for query in range(heads.shape[1]):
        each = [distribution(head[query], temperature) for head in heads]
        found.append(entropy(np.mean(each, axis=0)) - np.mean([entropy(p) for p in each]))
    return float(np.mean(found))


def place_case(heads, is_rectified):
    temperatures = TEMPERATURES if is_rectified else (None,)
    return {
        "is_rectified": is_rectified,
        "weights": listed(heads),
        "heads": [head_measures(head) for head in heads],
        "divergence": [divergence(heads, temperature) for temperature in temperatures],
    }


def listed(weights):
    return [[[None if math.isnan(value) else value for value in row] for row in head] for head in weights.tolist()]


def place_cases():
    return [
        place_case(softmax_rows((4, 6, 9)), False),
        place_case(causal(softmax_rows((2, 5, 5))), False),
        place_case(sparse_rows((3, 7, 8)), False),
        place_case(rectified_rows((4, 8, 6), 0.5), True),
        place_case(rectified_rows((3, 5, 7), 1.4), True),  # many null rows
        place_case(causal(rectified_rows((2, 6, 6), 0.8)), True),
    ]


# --- alignment ---


def random_words(pieces):
    """Returns the word of each piece."""
    return np.cumsum(np.concatenate([[0], random.random(pieces - 1) < 0.7])).astype(int).tolist()


def word_weights(weights, src_words, tgt_words, step):
    """Weights between words as a product of matrices: (tgt pieces -> words, averaged) x weights x (src pieces -> words, summed)."""
    rows = weights[1:] if step == "shifted" else weights[:-1]
    columns = np.eye(max(src_words) + 1)[src_words]
    averaging = np.eye(max(tgt_words) + 1)[tgt_words]
    averaging = averaging / averaging.sum(0, keepdims=True)
    return averaging.T @ rows[:, :-1] @ columns


def links_of(word_matrix):
    return [(int(row.argmax()), target) for target, row in enumerate(word_matrix) if row.max() > 0]


def gold_links(src_count, tgt_count):
    sure = {(int(random.integers(src_count)), target) for target in range(tgt_count) if random.random() < 0.8}
    possible = {(int(random.integers(src_count)), int(random.integers(tgt_count))) for _ in range(3)}
    return sure, possible - sure


def alignment_case():
    sentences, totals = [], {}
    for kind in (softmax_rows, sparse_rows, lambda shape: rectified_rows(shape, 1.5)):
        src_words, tgt_words = random_words(int(random.integers(4, 9))), random_words(int(random.integers(3, 8)))
        heads = kind((2, len(tgt_words) + 1, len(src_words) + 1))
        links = {}
        sure, possible = gold_links(max(src_words) + 1, max(tgt_words) + 1)
        for step in ("normal", "shifted"):
            words = [word_weights(head, src_words, tgt_words, step) for head in heads]
            for system, matrix in enumerate(words + [np.mean(words, axis=0)]):
                found = set(links_of(matrix))
                links.setdefault(step, []).append([list(link) for link in links_of(matrix)])
                counts = np.array([len(found), len(sure), len(found & sure), len(found & (sure | possible))])
                totals[step, system] = totals.get((step, system), 0) + counts
        gold = " ".join([f"{s}-{t}" for s, t in sorted(sure)] + [f"{s}?{t}" for s, t in sorted(possible)])
        sentences.append({"weights": listed(heads), "src_words": src_words, "tgt_words": tgt_words, "gold": gold, "links": links})
    rates = {step: [1 - (c[2] + c[3]) / (c[0] + c[1]) for (s, _), c in sorted(totals.items()) if s == step] for step in ("normal", "shifted")}
    return {"sentences": sentences, "error_rates": rates}


# --- calibration ---


def calibration_case(original, masks):
    rows = []
    for a, m in zip(original, masks):
        if not a.any():
            continue
        p, c = a / a.sum(), a * np.exp(1 - m)
        c = c / c.sum()
        jsd = entropy((p + c) / 2) - (entropy(p) + entropy(c)) / 2
        rows.append((jsd, entropy(c) - entropy(p), float(m.mean()), entropy(p)))
    bins = {}
    for jsd, _, _, h in rows:
        bins.setdefault(min(int(h / 0.5), 9), []).append(jsd)
    jsd, change, mask, _ = np.mean(rows, axis=0)
    return {
        "original": original.tolist(),
        "masks": masks.tolist(),
        "rows": len(rows),
        "divergence": float(jsd),
        "entropy_change": float(change),
        "mask": float(mask),
        "bins": {str(index): [len(values), float(np.mean(values))] for index, values in bins.items()},
    }


# --- rank correlation ---


def tau_b(x, y):
    """Kendall 1945: (C - D) / sqrt((n0 - n1)(n0 - n2)), by the signs of all differences."""
    upper = np.triu_indices(len(x), 1)
    a, b = np.sign(np.subtract.outer(x, x))[upper], np.sign(np.subtract.outer(y, y))[upper]
    untied = math.sqrt(np.count_nonzero(a) * np.count_nonzero(b))
    return float((a * b).sum() / untied) if untied else None


def rank_cases():
    pairs = [(random.normal(size=8), random.normal(size=8)), (random.integers(0, 3, 10), random.normal(size=10))]
    pairs += [(random.integers(0, 2, 9), random.integers(0, 3, 9)), (np.zeros(4), np.arange(4)), (np.arange(5), np.arange(5)[::-1])]
    return [{"x": [float(v) for v in x], "y": [float(v) for v in y], "tau_b": tau_b(x, y)} for x, y in pairs]


# --- gradient importance ---


class NumpyTransformer:
    """The post-norm model of transformer_post_norm.json, one sentence at a time. Every step is analytic, so complex numbers pass through it."""

    def __init__(self, golden):
        self.o = golden["options"]
        self.w = {name: np.reshape(one["values"], one["shape"]) for name, one in golden["parameters"].items()}
        self.cross = {}  # by layer: [heads][Tt][Ts]

    def affine(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * self.w[name + ".gain"] + self.w[name + ".bias"]

    def attend(self, name, q, k, v, visible):
        heads = []
        for part in np.split(np.arange(self.o["d_model"]), self.o["num_heads"]):
            scores = np.exp(q[:, part] @ k[:, part].T / math.sqrt(len(part))) * visible
            heads.append(scores / scores.sum(-1, keepdims=True))
        parts = np.split(v, self.o["num_heads"], axis=1)
        return self.affine(name + ".output", np.concatenate([head @ part for head, part in zip(heads, parts)], 1)), np.array(heads)

    def self_attention(self, name, x, visible):
        return self.attend(name, *np.split(self.affine(name + ".qkv", x), 3, axis=1), visible)[0]

    def feed_forward(self, name, x):
        inner = self.affine(name + ".inner", x)
        return self.affine(name + ".outer", np.where(inner.real > 0, inner, 0))

    def embed(self, ids):
        d = self.o["d_model"]
        angles = np.arange(len(ids))[:, None] / 10000 ** (np.arange(0, d, 2) / d)
        return self.w["embedding.weight"][ids] * math.sqrt(d) + np.stack([np.sin(angles), np.cos(angles)], -1).reshape(len(ids), d)

    def encode(self, src):
        x = self.embed(src)
        for i in range(self.o["encoder_layers"]):
            name = f"encoder.layers.{i}."
            x = self.norm(name + "self_attention_norm", x + self.self_attention(name + "self_attention", x, 1))
            x = self.norm(name + "feed_forward_norm", x + self.feed_forward(name + "feed_forward", x))
        return x

    def probabilities(self, memory, tgt):
        """Returns p(y_t) of each target token."""
        x = self.embed([1, *tgt[:-1]])
        for i in range(self.o["decoder_layers"]):
            name = f"decoder.layers.{i}."
            x = self.norm(name + "self_attention_norm", x + self.self_attention(name + "self_attention", x, np.tri(len(tgt))))
            q, (k, v) = self.affine(name + "cross_attention.query", x), np.split(self.affine(name + "cross_attention.key_value", memory), 2, axis=1)
            context, self.cross[i] = self.attend(name + "cross_attention", q, k, v, 1)
            x = self.norm(name + "cross_attention_norm", x + context)
            x = self.norm(name + "feed_forward_norm", x + self.feed_forward(name + "feed_forward", x))
        exps = np.exp(x @ self.w["embedding.weight"].T)
        return exps[np.arange(len(tgt)), tgt] / exps.sum(-1)


def importance_case(model, src, tgt):
    """Derivatives by a step in the imaginary direction: p(h + i e).imag / e, exact to the last digits."""
    memory, step = model.encode(src), 1e-30
    gradient = np.zeros((len(tgt), *memory.shape))
    for place in np.ndindex(memory.shape):
        moved = memory.astype(complex)
        moved[place] += 1j * step
        gradient[(slice(None), *place)] = model.probabilities(moved, tgt).imag / step
    norms = np.sqrt((gradient**2).sum(-1))
    model.probabilities(memory, tgt)  # and the weights where nothing is moved
    averages = [np.mean(heads, 0) for _, heads in sorted(model.cross.items())]
    taus = [float(np.mean([tau_b(row, norm) for row, norm in zip(average, norms)])) for average in averages]
    return {"src": src, "tgt": tgt, "norms": norms.tolist(), "tau_b": taus}


def importance_cases():
    golden = json.loads(pathlib.Path(__file__).with_name("transformer_post_norm.json").read_text(encoding="utf-8"))
    model, pairs = NumpyTransformer(golden), list(zip(golden["src"], golden["tgt"]))
    nll = -sum(np.log(model.probabilities(model.encode(src), tgt)).sum() for src, tgt in pairs)
    assert abs(nll - golden["nll"]) < 1e-9  # it is that model
    return [importance_case(model, src, tgt) for src, tgt in pairs]


# --- learned numbers and intervals ---


def numbers_case():
    """Numbers of each head, averaged over batches with different numbers of queries."""
    queries, values = random.integers(1, 50, 6), random.random((6, 3))
    return {"queries": queries.tolist(), "values": values.tolist(), "mean": np.average(values, axis=0, weights=queries).tolist()}


def interval_case():
    sentences = [[8, 9, right, right + int(random.integers(0, 3))] for right in random.integers(0, 6, 60).tolist()]
    links, sure, in_sure, in_possible = np.array(sentences).T
    times = random.poisson(1, (100000, len(sentences)))
    rates = 1 - times @ (in_sure + in_possible) / (times @ (links + sure))
    return {"sentences": sentences, "interval": np.quantile(rates, [0.025, 0.975]).tolist()}


# --- symmetrization ---


NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def source_has_link(links, f):
    return any(source == f for source, _ in links)


def target_has_link(links, e):
    return any(target == e for _, target in links)


def grow_diag_final_and(forward, backward, sources, targets):
    """The pseudo-code of Koehn et al., e the target and f the source."""
    links, union, grown = forward & backward, forward | backward, True
    while grown:
        grown = False
        for e, f in itertools.product(range(targets), range(sources)):
            for de, df in NEIGHBOURS:
                new = (f + df, e + de)
                is_free = not source_has_link(links, new[0]) or not target_has_link(links, new[1])
                if (f, e) in links and is_free and new in union:
                    links, grown = links | {new}, True
    for direction in (forward, backward):
        for e, f in itertools.product(range(targets), range(sources)):
            if (f, e) in direction and not source_has_link(links, f) and not target_has_link(links, e):
                links = links | {(f, e)}
    return links


def symmetrize_cases():
    cases = []
    for _ in range(20):
        sources, targets = int(random.integers(2, 9)), int(random.integers(2, 9))
        forward = {(int(random.integers(sources)), t) for t in range(targets) if random.random() < 0.9}
        backward = {(s, int(random.integers(targets))) for s in range(sources) if random.random() < 0.9}
        forward |= {link for link in backward if random.random() < 0.4}
        case = {"forward": forward, "backward": backward, "intersection": forward & backward, "union": forward | backward,
                "grow-diag-final-and": grow_diag_final_and(forward, backward, sources, targets)}
        cases.append({name: [list(link) for link in sorted(links)] for name, links in case.items()})
    return cases


def main():
    masks = single(random.random((12, 7)))
    golden = {
        "places": place_cases(),
        "alignment": alignment_case(),
        "calibration": [calibration_case(softmax_rows((12, 7)), masks), calibration_case(rectified_rows((12, 7), 1.2), masks)],
        "ranks": rank_cases(),
        "symmetrize": symmetrize_cases(),
        "importance": importance_cases(),
        "numbers": numbers_case(),
        "interval": interval_case(),
    }
    path = pathlib.Path(__file__).with_name("analysis.json")
    path.write_text(json.dumps(golden) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
