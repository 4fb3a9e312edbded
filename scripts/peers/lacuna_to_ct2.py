#!/usr/bin/env python3
"""A Lacuna checkpoint as a CTranslate2 model: the same weights in both engines.

    lacuna_to_ct2.py --checkpoint runs/multi30k/small/averaged --out small.ct2

Softmax attention in every layer and LayerNorm; CTranslate2 has no other attention. Needs the packages ctranslate2, sentencepiece and numpy.
"""
import argparse
import json
import os
import struct
import sys

import numpy as np
import yaml
from ctranslate2.specs import common_spec, transformer_spec

ACTIVATIONS = {"relu": common_spec.Activation.RELU, "gelu": common_spec.Activation.GELU}
MOST_POSITIONS = 1024


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            sys.exit(f"{path}: {name} is {entry['dtype']}; expected F32")
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
    return tensors


def sinusoids(d_model, layout):
    angles = np.arange(MOST_POSITIONS)[:, None] * 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    table = np.empty((MOST_POSITIONS, d_model), np.float32)
    sines, cosines = (slice(0, None, 2), slice(1, None, 2)) if layout == "interleaved" else (slice(d_model // 2), slice(d_model // 2, None))
    table[:, sines], table[:, cosines] = np.sin(angles), np.cos(angles)
    return table


class Writer:
    """Copies named weights into the parts of a specification."""

    def __init__(self, weights):
        self.weights = weights

    def linear(self, spec, name):
        spec.weight, spec.bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]

    def norm(self, spec, name):
        spec.gamma, spec.beta = self.weights[f"{name}.gain"], self.weights[f"{name}.bias"]

    def self_attention(self, spec, layer):
        self.norm(spec.layer_norm, f"{layer}.self_attention_norm")
        self.linear(spec.linear[0], f"{layer}.self_attention.qkv")
        self.linear(spec.linear[1], f"{layer}.self_attention.output")

    def cross_attention(self, spec, layer):
        self.norm(spec.layer_norm, f"{layer}.cross_attention_norm")
        self.linear(spec.linear[0], f"{layer}.cross_attention.query")
        self.linear(spec.linear[1], f"{layer}.cross_attention.key_value")
        self.linear(spec.linear[2], f"{layer}.cross_attention.output")

    def feed_forward(self, spec, layer):
        self.norm(spec.layer_norm, f"{layer}.feed_forward_norm")
        self.linear(spec.linear_0, f"{layer}.feed_forward.inner")
        self.linear(spec.linear_1, f"{layer}.feed_forward.outer")

    def stack(self, spec, name, model):
        for i, layer in enumerate(spec.layer):
            self.self_attention(layer.self_attention, f"{name}.layers.{i}")
            if name == "decoder":
                self.cross_attention(layer.attention, f"{name}.layers.{i}")
            self.feed_forward(layer.ffn, f"{name}.layers.{i}")
        if model["norm"] == "pre":
            self.norm(spec.layer_norm, f"{name}.norm")

    def positions(self, side, model):
        if model["positions"] == "learned":
            return self.weights[f"{side}_positions.weight"]
        return sinusoids(model["d_model"], model["position_layout"])

    def embedding(self, *names):
        return next(self.weights[name] for name in names if name in self.weights)


def require_what_ct2_has(model):
    attention = model.get("attention")
    if attention not in (None, "softmax") or model["norm_type"] != "layer" or model["positions"] == "none":
        sys.exit(f"CTranslate2 has softmax attention, LayerNorm and positions; this model has attention {attention}, "
                 f"norm_type {model['norm_type']}, positions {model['positions']}")


def pieces_of(checkpoint, names):
    import sentencepiece

    path = next(os.path.join(checkpoint, name) for name in names if os.path.exists(os.path.join(checkpoint, name)))
    processor = sentencepiece.SentencePieceProcessor(model_file=path)
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def main():
    flags = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flags.add_argument("--checkpoint", required=True)
    flags.add_argument("--out", required=True, help="folder to be made")
    flags = flags.parse_args()
    with open(os.path.join(flags.checkpoint, "config.yaml"), encoding="utf-8") as file:
        model = yaml.safe_load(file)["model"]
    require_what_ct2_has(model)
    with open(os.path.join(flags.checkpoint, "checkpoint.json"), encoding="utf-8") as file:
        weights_file = "ema.safetensors" if json.load(file).get("uses_ema") else "model.safetensors"
    writer = Writer(read_safetensors(os.path.join(flags.checkpoint, weights_file)))
    spec = transformer_spec.TransformerSpec.from_config(
        (model["encoder_layers"], model["decoder_layers"]), model["num_heads"], pre_norm=model["norm"] == "pre",
        activation=ACTIVATIONS[model["activation"]])
    writer.stack(spec.encoder, "encoder", model)
    writer.stack(spec.decoder, "decoder", model)
    spec.encoder.embeddings[0].weight = writer.embedding("embedding.weight", "src_embedding.weight")
    spec.decoder.embeddings.weight = writer.embedding("embedding.weight", "tgt_embedding.weight")
    spec.decoder.projection.weight = writer.embedding("output.weight", "embedding.weight", "tgt_embedding.weight")
    spec.encoder.position_encodings.encodings = writer.positions("src", model)
    spec.decoder.position_encodings.encodings = writer.positions("tgt", model)
    spec.register_source_vocabulary(pieces_of(flags.checkpoint, ["spm.model", "spm.src.model"]))
    spec.register_target_vocabulary(pieces_of(flags.checkpoint, ["spm.model", "spm.tgt.model"]))
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize()
    os.makedirs(flags.out)
    spec.save(flags.out)


if __name__ == "__main__":
    main()
