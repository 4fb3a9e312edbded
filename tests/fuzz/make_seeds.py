#!/usr/bin/env python3
"""Writes the first inputs of the fuzz targets, a folder for each: make_seeds.py FOLDER"""
import gzip
import io
import json
import os
import struct
import sys
import zipfile

import checkpoints


def varint(value):
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def field(number, data):
    """A field of a protobuf message: bytes, or a number."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def character_map(rules):
    """A SentencePiece model's map of texts to replacements: a double-array trie in which each node has a block of 256 units to itself."""
    nothing = 1 << 31  # a value, which no byte leads to
    units, replacements, blocks = [nothing] * 512, b"", {b"": 256}
    units[0] = 256 << 10
    for text, replacement in rules.items():
        for end in range(1, len(text) + 1):
            unit = blocks[text[:end - 1]] + text[end - 1]
            if text[:end] not in blocks:
                blocks[text[:end]] = len(units)
                units[unit] = (unit ^ len(units)) << 10 | text[end - 1]
                units += [nothing] * 256
        units[unit] |= 1 << 8
        units[blocks[text]] = 1 << 31 | len(replacements)
        replacements += replacement + b"\0"
    return struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + replacements


def spm_model(model_type, rules):
    """A SentencePiece model of some pieces."""
    pieces = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3), ("\u2581", -1, 1), ("\u2581a", -2, 1), ("ab", -3, 1), ("a", -4, 1), ("b", -5, 1), ("c", -6, 1),
              ("fi", -7, 1), ("<x>", 0, 4)]
    text = b"".join(field(1, field(1, piece.encode()) + b"\x15" + struct.pack("<f", score) + field(3, kind)) for piece, score, kind in pieces)
    text += field(2, field(3, model_type) + field(4, len(pieces)))
    return text + field(3, field(1, b"own") + (field(2, character_map(rules)) if rules else b"") + field(3, 1) + field(4, 1) + field(5, 1))


def listed(model, pieces, start=b""):
    """A SentencePiece model with a list of pieces."""
    return model + b"".join(field(201, piece.encode()) for piece in pieces) + (field(203, start) if start else b"")


def npz():
    """A zip archive of two arrays."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, descr, shape, data in (("special:model.yml", "|i1", "(4,)", b"a: 1"), ("Wemb", "<f4", "(2, 1)", bytes(8))):
            header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
            archive.writestr(zipfile.ZipInfo(name + ".npy"), b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + data)
    return file.getvalue()


def safetensors(tensors):
    """A file of float tensors."""
    header, data = {}, b""
    for name, shape, values in tensors:
        begin, data = len(data), data + struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def zstd(data):
    """A zstd frame of one raw block."""
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(data)]) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def manifest():
    value = {"format_version": 1, "program_version": "0.1.0", "files": {"config.yaml": {"bytes": 8, "xxh3_128": checkpoints.xxh3(b"seed: 1\n")}}}
    value["xxh3_128"] = checkpoints.xxh3(json.dumps(value, separators=(",", ":")).encode())
    return json.dumps(value, indent=2).encode() + b"\n"


def shortlist():
    words = "a\nb\nc\n"
    digest = checkpoints.xxh3(f"{len(words)} {words}{words}".encode())
    return f"lacuna-shortlist 1 {digest} 2 1\n3\n\n\n\n3 4\n4 5\n5\n".encode()


CONFIG = b"""run: r
seed: 3
data: {train: [{src: a.de, tgt: a.en, weight: 0.5}, {tsv: b.tsv, columns: [2, 1]}], vocab_size: 100, spm_symbols: ["<x>"]}
model:
  preset: tiny
  attention: {default: {type: topk, k: 4}, cross: {layers: {1: entmax15}}}
train: {batch_tokens: auto, lr: 1e-3, schedule: plateau}
translate: {beam_size: 4, block_tokens: [a, "b"]}
"""
LINES = "a\tb\nGr\u00f6\u00dfe\t\u6e29\u5ea6\r\n\t\n".encode()
RULES = {"\ufb01".encode(): b"fi", "a\u0301".encode(): "\u00e1".encode(), b"\t": b" "}
SEEDS = {
    "yaml": [CONFIG, b"a: &x [1, 2]\nb: *x\n", b"{}", b'run: "a\\0\\x04"\n', b"run: a\0b\n"],
    "lines": [LINES, gzip.compress(LINES, mtime=0), zstd(LINES), gzip.compress(b"a\tb\n", mtime=0) + gzip.compress(b"c\td\n", mtime=0)],
    "alignments": [b"0-0 1-2 3?3\n\n2p1\n", b"1-1 2-2\n"],
    "shortlist": [shortlist(), gzip.compress(shortlist(), mtime=0)],
    "spm_model": [spm_model(kind, rules) for kind in (1, 2, 3, 4) for rules in (RULES, {})]
    + [listed(spm_model(kind, {}), ["<unk>", "<pad>", "</s>", "__de__", "ab", "c", ">>a<<"], b"__de__") for kind in (1, 2)],
    "npz": [npz()],
    "yaml_ids": [b'"a": 0\n"\\"": 1\n\u00e9: 2\n', b"{a: 0, b: 1}\n", b"a\0b: 0\nc: 1\n"],
    "html": [b"<!DOCTYPE html><p id=1>A <b>red</b> <a href=\"x?a&amp;b\">big car</a>. Two &lt;<br>\n<!-- c --><script>a<b</script><code>x</code> {name}.</p>",
             b"<ul><li translate=no>One<li>two <b>x<i>y</b>z</i></ul><pre> a\n b</pre>"],
    "subtitles": [b"1\r\n00:00:01,000 --> 00:00:02,500\r\nThe man who\r\ncame\r\n\r\n2\r\n00:00:02,600 --> 00:00:04,000\r\n<i>was my father.</i>\r\n- Yes.\r\n",
                  b"WEBVTT\n\nNOTE x\n\nid\n00:01.000 --> 00:02.000 align:start\n<v Anna>Hello <c.loud>you</c>.</v>\n\nSTYLE\na\n"],
    "texts": ["One. Two, at 10:30 with Dr. X!  \"Three?\"\n\n {name} https://a.b/c?d %s `e f` 3. Mai\t\u4e00\u4e8c\u3002\u4e09\n".encode()],
    "form": [b"q=a+b%20%c3%a9&source=de&target=en&q=", b"=&&x"],
    "token_cache": [b"\0" + struct.pack("<5i", 3, 4, 2, 5, 2), b"\1" + struct.pack("<3Q", 0, 3, 5), b"\2" + struct.pack("<5i", 4, 2, 5, 3, 2),
                    b"\3" + struct.pack("<3Q", 0, 2, 5), b'\4{"kept": 2}'],
    "manifest": [manifest()],
    "safetensors": [safetensors([("a", [2, 2], [1, 2, 3, 4]), ("b", [1], [5])]), safetensors([])],
    "json_lines": [b'{"text": "a b", "prefix": "c", "id": 7, "more": [1, {"x": null}]}', b'{"text": "\\u00e9"}', b""],
}

if __name__ == "__main__":
    for target, seeds in SEEDS.items():
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        for number, seed in enumerate(seeds):
            with open(os.path.join(folder, str(number)), "wb") as file:
                file.write(seed)
