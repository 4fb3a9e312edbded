"""A Transformer in plain PyTorch whose batches have no padding: tokens of all sentences stand end to end, and attention is LibTorch's variable-length
flash attention. What one would write today for speed on a GPU, in little code. On the CPU, which lacks that attention, sentences attend one by one."""
import math

import torch
import torch.nn.functional as F

import corpus


class Lengths:
    """The borders between sentences, for attention."""

    def __init__(self, lengths, device):
        self.list, self.longest = lengths, max(lengths)
        self.borders = F.pad(torch.tensor(lengths, dtype=torch.int32).cumsum(0, dtype=torch.int32), (1, 0)).to(device)
        self.positions = torch.cat([torch.arange(length) for length in lengths]).to(device)


def attend(q, k, v, queries, keys, causal):
    """q, k, v: [tokens, heads, features]."""
    if q.is_cuda:
        from torch.nn.attention.varlen import varlen_attn

        return varlen_attn(q, k, v, queries.borders, keys.borders, queries.longest, keys.longest, window_size=(-1, 0) if causal else (-1, -1))
    rows = zip(*(x.transpose(0, 1).split(lengths.list, 1) for x, lengths in ((q, queries), (k, keys), (v, keys))))
    return torch.cat([F.scaled_dot_product_attention(*of_sentence, is_causal=causal) for of_sentence in rows], 1).transpose(0, 1)


class Attention(torch.nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.q, self.kv, self.out = torch.nn.Linear(d, d), torch.nn.Linear(d, 2 * d), torch.nn.Linear(d, d)

    def forward(self, x, memory, queries, keys, causal=False):
        q = self.q(x).unflatten(1, (self.heads, -1))
        k, v = self.kv(memory).unflatten(1, (2, self.heads, -1)).unbind(1)
        return self.out(attend(q, k, v, queries, keys, causal).flatten(1))


class Layer(torch.nn.Module):
    """Pre-norm, as Lacuna's presets are."""

    def __init__(self, shape, is_decoder):
        super().__init__()
        d = shape["d_model"]
        self.own, self.cross = Attention(d, shape["heads"]), Attention(d, shape["heads"]) if is_decoder else None
        self.inner, self.outer = torch.nn.Linear(d, shape["d_ff"]), torch.nn.Linear(shape["d_ff"], d)
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(d) for _ in range(3 if is_decoder else 2))
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, x, lengths, memory=None, memory_lengths=None):
        normed = self.norms[0](x)
        x = x + self.dropout(self.own(normed, normed, lengths, lengths, causal=self.cross is not None))
        if self.cross is not None:
            x = x + self.dropout(self.cross(self.norms[1](x), memory, lengths, memory_lengths))
        return x + self.dropout(self.outer(self.dropout(F.relu(self.inner(self.norms[-1](x))))))


class RaggedTransformer(torch.nn.Module):
    def __init__(self, shape, vocab_size):
        super().__init__()
        d = shape["d_model"]
        self.scale, self.dropout = math.sqrt(d), torch.nn.Dropout(0.1)
        self.embedding = torch.nn.Embedding(vocab_size, d)
        torch.nn.init.normal_(self.embedding.weight, std=d**-0.5)
        angles = torch.arange(512)[:, None] * torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], 1))
        self.encoder, self.decoder = (torch.nn.ModuleList(Layer(shape, is_decoder) for _ in range(shape["layers"])) for is_decoder in (False, True))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(d) for _ in range(2))

    def embed(self, ids, lengths):
        return self.dropout(self.embedding(ids) * self.scale + self.positions[lengths.positions])

    def forward(self, src, tgt):
        (src_ids, src_lengths), (tgt_ids, tgt_lengths) = src, tgt
        memory = self.embed(src_ids, src_lengths)
        for layer in self.encoder:
            memory = layer(memory, src_lengths)
        memory = self.norms[0](memory)
        x = self.embed(tgt_ids, tgt_lengths)
        for layer in self.decoder:
            x = layer(x, tgt_lengths, memory, src_lengths)
        return F.linear(self.norms[1](x), self.embedding.weight)


def packed(rows, device):
    ids = torch.tensor([token for row in rows for token in row])
    if device != "cpu":
        ids = ids.pin_memory()
    return ids.to(device, non_blocking=True), Lengths([len(row) for row in rows], device)


def tensors(batch, device):
    """As corpus.tensors, without padding: ids and lengths of src and of what the decoder reads, what it must say, and the target tokens."""
    src = packed([s + [corpus.EOS] for s, _ in batch], device)
    tgt_in = packed([[corpus.BOS] + t for _, t in batch], device)
    tgt_out, _ = packed([t + [corpus.EOS] for _, t in batch], device)
    return src, tgt_in, tgt_out, tgt_out.numel()
