"""`lacuna export`: files for other programs, read here by readers of their own and held against the checkpoint's weights."""
import array
import json
import math
import os
import struct
import unittest
import zipfile

from program import FOLDER, FreshFolder, Program, path, read, read_bytes, write
from small_run import configuration, run

TINY = ["--model.d_model", "8", "--model.num_heads", "2", "--model.d_ff", "12", "--train.max_steps", "1", "--train.valid_every", "0"]
CONFIG = {
    "architectures": ["PegasusForConditionalGeneration"], "model_type": "pegasus", "is_encoder_decoder": True, "vocab_size": 24,
    "tie_word_embeddings": True, "d_model": 8, "encoder_layers": 1, "num_hidden_layers": 1, "decoder_layers": 2,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 12, "decoder_ffn_dim": 12, "activation_function": "relu",
    "max_position_embeddings": 1024, "scale_embedding": True, "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0,
    "pad_token_id": 1, "decoder_start_token_id": 1, "eos_token_id": 2, "forced_eos_token_id": 2}
SEARCH = {
    "pad_token_id": 1, "decoder_start_token_id": 1, "eos_token_id": 2, "forced_eos_token_id": 2, "suppress_tokens": [0, 1],
    "max_length": 257, "num_beams": 5, "length_penalty": 1.0, "early_stopping": False}


def floats(data):
    return array.array("f", data)


class Matrix:
    """Rows of floats; a vector is one row."""

    def __init__(self, shape, data):
        self.shape = list(shape)
        values, width = floats(data), self.shape[-1]
        self.rows = [list(values[i:i + width]) for i in range(0, len(values), width)]


def read_safetensors(name):
    data = read_bytes(name)
    (length,) = struct.unpack("<Q", data[:8])
    header, data = json.loads(data[8:8 + length]), data[8 + length:]
    return {key: Matrix(entry["shape"], data[slice(*entry["data_offsets"])]) for key, entry in header.items() if entry["dtype"] == "F32"}


def read_model_bin(data):
    """Variables of CTranslate2's format as (shape, type, bytes), and aliases."""
    place = 0

    def take(code):
        nonlocal place
        (value,) = struct.unpack_from("<" + code, data, place)
        place += struct.calcsize(code)
        return value

    def text():
        nonlocal place
        size = take("H")
        value = data[place:place + size]
        place += size
        assert value.endswith(b"\0")
        return value[:-1].decode()

    head, variables = (take("I"), text(), take("I")), {}
    for _ in range(take("I")):
        name = text()
        shape = [take("I") for _ in range(take("B"))]
        kind, size = take("B"), take("I")
        variables[name] = (shape, kind, data[place:place + size])
        place += size
    aliases = {text(): text() for _ in range(take("I"))}
    assert place == len(data)
    return head, variables, aliases


def trained(name, *overrides):
    run(Program.PROGRAM, "train", "-c", configuration(FOLDER, name), *TINY, *overrides)
    return path(name)


def weights_of(run_folder):
    return read_safetensors(os.path.join(run_folder, "averaged", "model.safetensors"))


def reordered(matrix, order, by_rows):
    rows = [matrix.rows[i] for i in order] if by_rows else [[row[i] for i in order] for row in matrix.rows]
    return rows


class Export(FreshFolder):
    EVEN_FIRST = [0, 2, 4, 6, 1, 3, 5, 7]

    def export(self, model, kind, name, *words):
        self.ends("export", "-m", model, "--to", kind, "-o", path(name), "--quiet", *words)

    def test_pre_norm_is_pegasus_with_its_features_in_another_order(self):
        model = trained("run")
        self.export(model, "hf", "hf")
        self.assertEqual(json.loads(read("hf", "config.json")), CONFIG)
        self.assertEqual(json.loads(read("hf", "generation_config.json")), SEARCH)
        ours, theirs, order = weights_of(model), read_safetensors("hf/model.safetensors"), self.EVEN_FIRST
        self.assertEqual(theirs["model.shared.weight"].rows, reordered(ours["embedding.weight"], order, by_rows=False))
        qkv = reordered(ours["decoder.layers.1.self_attention.qkv.weight"], order, by_rows=False)
        for i, part in enumerate("qkv"):
            self.assertEqual(theirs[f"model.decoder.layers.1.self_attn.{part}_proj.weight"].rows, qkv[8 * i:8 * i + 8])
            self.assertEqual(theirs[f"model.decoder.layers.1.self_attn.{part}_proj.bias"].rows[0],
                             ours["decoder.layers.1.self_attention.qkv.bias"].rows[0][8 * i:8 * i + 8])
        key_value = reordered(ours["decoder.layers.0.cross_attention.key_value.weight"], order, by_rows=False)
        self.assertEqual(theirs["model.decoder.layers.0.encoder_attn.v_proj.weight"].rows, key_value[8:])
        output = ours["encoder.layers.0.self_attention.output.weight"]
        self.assertEqual(theirs["model.encoder.layers.0.self_attn.out_proj.weight"].rows, reordered(output, order, by_rows=True))
        self.assertEqual(theirs["model.encoder.layers.0.fc1.weight"].rows,
                         reordered(ours["encoder.layers.0.feed_forward.inner.weight"], order, by_rows=False))
        self.assertEqual(theirs["model.encoder.layers.0.fc2.weight"].rows,
                         reordered(ours["encoder.layers.0.feed_forward.outer.weight"], order, by_rows=True))
        self.assertEqual(theirs["model.encoder.layers.0.fc2.bias"].rows,
                         reordered(ours["encoder.layers.0.feed_forward.outer.bias"], order, by_rows=False))
        self.assertEqual(theirs["model.encoder.layers.0.fc1.bias"].rows, ours["encoder.layers.0.feed_forward.inner.bias"].rows)
        for stack in ("encoder", "decoder"):
            self.assertEqual(theirs[f"model.{stack}.layer_norm.weight"].rows, reordered(ours[f"{stack}.norm.gain"], order, by_rows=False))
            table = theirs[f"model.{stack}.embed_positions.weight"]
            self.assertEqual(table.shape, [1024, 8])
            expected = [f(7 / 10000 ** (2 * i / 8)) for f in (math.sin, math.cos) for i in range(4)]
            self.assertEqual(table.rows[7], list(floats(array.array("f", expected).tobytes())))
        self.assertEqual(len(theirs), 1 + 1 + 2 + 2 * 2 + 16 + 2 * 26)  # embedding, bias, positions, last norms, layers

    def test_the_tokenizer_has_the_pieces_by_our_ids(self):
        self.export(trained("run", "--data.tgt_normalization", "nmt_nfkc"), "hf", "hf")
        ids = json.loads(read("hf", "vocab.json"))
        self.assertEqual((ids["<unk>"], ids["<s>"], ids["</s>"], sorted(ids.values())), (0, 1, 2, list(range(24))))
        said = json.loads(read("hf", "tokenizer_config.json"))
        self.assertEqual((said["tokenizer_class"], said["pad_token"], said["separate_vocabs"]), ("MarianTokenizer", "<s>", False))
        self.assertEqual(read_bytes("hf", "source.spm"), read_bytes("run", "spm.model"))
        self.assertEqual(read_bytes("hf", "target.spm"), read_bytes("run", "spm.model"))

    def test_post_norm_is_marian_with_its_features_as_they_are(self):
        model = trained("run", "--model.norm", "post", "--model.position_layout", "concatenated", "--model.tie_embeddings", "none",
                        "--data.shared_vocab", "false", "--model.activation", "gelu", "--model.decoder_d_ff", "6")
        self.export(model, "hf", "hf", "--translate.beam_size", "1", "--translate.allow_unk", "true")
        said = json.loads(read("hf", "config.json"))
        self.assertEqual({key: said[key] for key in ("model_type", "share_encoder_decoder_embeddings", "tie_word_embeddings", "decoder_ffn_dim",
                                                     "activation_function")},
                         {"model_type": "marian", "share_encoder_decoder_embeddings": False, "tie_word_embeddings": False, "decoder_ffn_dim": 6,
                          "activation_function": "gelu"})
        search = json.loads(read("hf", "generation_config.json"))
        self.assertEqual((search["num_beams"], search["suppress_tokens"], "length_penalty" in search), (1, [1], False))
        ours, theirs = weights_of(model), read_safetensors("hf/model.safetensors")
        for name, other in (("src_embedding.weight", "model.encoder.embed_tokens.weight"), ("output.weight", "lm_head.weight"),
                            ("tgt_embedding.weight", "model.decoder.embed_tokens.weight"),
                            ("decoder.layers.1.cross_attention_norm.bias", "model.decoder.layers.1.encoder_attn_layer_norm.bias"),
                            ("decoder.layers.1.feed_forward.outer.weight", "model.decoder.layers.1.fc2.weight")):
            self.assertEqual(theirs[other].rows, ours[name].rows)
        self.assertNotIn("model.encoder.layer_norm.weight", theirs)
        self.assertEqual(read_bytes("hf", "target.spm"), read_bytes("run", "spm.tgt.model"))

    def test_the_smaller_of_two_vocabularies_is_filled_up_for_marian(self):
        configuration(FOLDER)
        models = []
        for side, size in (("src", "24"), ("tgt", "21")):
            run(self.PROGRAM, "vocab", "-i", path("train.txt"), "-o", path(side), "--vocab-size", size, "--type", "bpe")
            models += [f"--data.{side}_spm_model", path(side)]
        model = trained("run", *models, "--model.norm", "post", "--model.position_layout", "concatenated", "--model.tie_embeddings", "decoder")
        self.export(model, "hf", "hf")
        ours, theirs = weights_of(model)["tgt_embedding.weight"].rows, read_safetensors("hf/model.safetensors")
        self.assertEqual(theirs["model.decoder.embed_tokens.weight"].rows, [*ours, *[[0] * 8] * 3])
        self.assertEqual(theirs["final_logits_bias"].rows[0], [0] * 21 + [floats(array.array("f", [-1e9]))[0]] * 3)
        said = json.loads(read("hf", "config.json"))
        self.assertEqual((said["vocab_size"], said["decoder_vocab_size"]), (24, 24))
        self.assertEqual(max(json.loads(read("hf", "target_vocab.json")).values()), 20)

    def test_two_embeddings_of_a_pre_norm_model_are_one_table(self):
        model = trained("run", "--model.position_layout", "concatenated", "--model.tie_embeddings", "decoder")
        self.export(model, "hf", "hf")
        ours, theirs = weights_of(model), read_safetensors("hf/model.safetensors")
        src, tgt = ours["src_embedding.weight"].rows, ours["tgt_embedding.weight"].rows
        self.assertEqual(theirs["model.shared.weight"].rows, [src[0], tgt[1], *src[2:], tgt[0], *tgt[3:]])
        self.assertEqual(theirs["lm_head.weight"].rows, [[0] * 8, tgt[1], tgt[2], *[[0] * 8] * 21, tgt[0], *tgt[3:]])
        never = floats(array.array("f", [-1e9]))[0]
        self.assertEqual(theirs["final_logits_bias"].rows, [[never, 0, 0, *[never] * 21, *[0] * 22]])
        src_ids, tgt_ids = json.loads(read("hf", "vocab.json")), json.loads(read("hf", "target_vocab.json"))
        self.assertEqual(json.loads(read("hf", "config.json"))["vocab_size"], 46)
        self.assertEqual((tgt_ids["<unk>"], tgt_ids["<s>"], tgt_ids["</s>"]), (24, 1, 2))
        self.assertEqual({piece: place + 22 for piece, place in src_ids.items() if place > 2},
                         {piece: place for piece, place in tgt_ids.items() if piece not in ("<unk>", "<s>", "</s>")})
        self.assertEqual(json.loads(read("hf", "generation_config.json"))["suppress_tokens"], [1, 24])

    def test_ctranslate2_has_the_weights_as_they_are(self):
        model = trained("run", "--model.norm_type", "rms", "--model.positions", "learned", "--model.max_positions", "300")
        self.export(model, "ctranslate2", "ct2")
        head, variables, aliases = read_model_bin(read_bytes("ct2", "model.bin"))
        self.assertEqual(head, (6, "TransformerSpec", 7))
        ours = weights_of(model)
        for name, other in (("embedding.weight", "decoder/embeddings/weight"), ("src_positions.weight", "encoder/position_encodings/encodings"),
                            ("encoder.layers.0.self_attention.qkv.weight", "encoder/layer_0/self_attention/linear_0/weight"),
                            ("decoder.layers.1.cross_attention.key_value.bias", "decoder/layer_1/attention/linear_1/bias"),
                            ("decoder.layers.1.cross_attention_norm.gain", "decoder/layer_1/attention/layer_norm/gamma"),
                            ("decoder.layers.0.feed_forward.outer.weight", "decoder/layer_0/ffn/linear_1/weight")):
            shape, kind, data = variables[other]
            self.assertEqual((shape, kind, Matrix(shape, data).rows), (ours[name].shape, 0, ours[name].rows), name)
        self.assertNotIn("encoder/layer_norm/beta", list(variables))
        self.assertEqual(variables["encoder/num_heads"], ([], 2, b"\2\0"))
        self.assertEqual(variables["decoder/pre_norm"], ([], 1, b"\1"))
        self.assertEqual(aliases, {"decoder/projection/weight": "decoder/embeddings/weight",
                                   "encoder/embeddings_0/weight": "decoder/embeddings/weight"})
        self.assertEqual(json.loads(read("ct2", "config.json")),
                         {"add_source_bos": False, "add_source_eos": True, "bos_token": "<s>", "decoder_start_token": "<s>",
                          "eos_token": "</s>", "unk_token": "<unk>"})
        self.assertEqual(len(json.loads(read("ct2", "shared_vocabulary.json"))), 24)

    def test_a_bias_of_logits_leaves_and_swish(self):
        one = trained("one", "--model.norm", "post", "--model.activation", "swish", "--model.output_bias", "true")
        self.export(one, "hf", "hf")
        self.assertEqual(json.loads(read("hf", "config.json"))["activation_function"], "swish")
        bias = weights_of(one)["output.bias"].rows
        self.assertNotEqual(bias, [[0] * 24])
        self.assertEqual(read_safetensors("hf/model.safetensors")["final_logits_bias"].rows, bias)
        two = trained("two", "--model.tie_embeddings", "decoder", "--model.output_bias", "true")
        self.export(two, "hf", "joint")
        (ours,), never = weights_of(two)["output.bias"].rows, floats(array.array("f", [-1e9]))[0]
        self.assertEqual(read_safetensors("joint/model.safetensors")["final_logits_bias"].rows,
                         [[never, *ours[1:3], *[never] * 21, ours[0], *ours[3:]]])

    def test_what_marian_has_in_another_way_leaves_for_ctranslate2_alone(self):
        model = trained("run", "--model.activation", "swish", "--model.output_bias", "true", "--model.norm_epsilon", "0.001",
                        "--model.position_spacing", "tensor2tensor", "--model.position_start", "2", "--model.decoder_start", "zero")
        self.export(model, "ctranslate2", "ct2")
        _, variables, _ = read_model_bin(read_bytes("ct2", "model.bin"))
        shape, _, data = variables["decoder/projection/bias"]
        self.assertEqual((shape, Matrix(shape, data).rows), ([24], weights_of(model)["output.bias"].rows))
        self.assertEqual((variables["decoder/activation"][2], variables["decoder/start_from_zero_embedding"][2]), (b"\2", b"\1"))
        shape, _, data = variables["decoder/position_encodings/encodings"]
        expected = [f(9 / 10000 ** (i / 3)) for i in range(4) for f in (math.sin, math.cos)]
        for value, ours in zip(expected, Matrix(shape, data).rows[7]):
            self.assertAlmostEqual(value, ours, delta=1e-6)
        self.assertEqual(json.loads(read("ct2", "config.json"))["layer_norm_epsilon"], 0.001)
        for key, value, said in (("position_spacing", "tensor2tensor", "tensor2tensor"), ("position_start", "2", "2"),
                                 ("norm_epsilon", "0.001", "0.001"), ("decoder_start", "zero", "zero, but the embedding of bos is not")):
            other = trained(key, f"--model.{key}", value)
            refused = self.refuses("export", "-m", other, "--to", "hf", "-o", path("hf"))
            self.assertIn(f"model.{key} of the model is {said}, which transformers cannot hold; --to ctranslate2 can", refused)

    def test_int8_is_bytes_by_rows(self):
        model = trained("run")
        self.export(model, "ctranslate2", "new/ct2", "--precision", "int8")
        _, variables, _ = read_model_bin(read_bytes("new", "ct2", "model.bin"))
        ours = weights_of(model)["decoder.layers.0.feed_forward.inner.weight"].rows
        shape, kind, data = variables["decoder/layer_0/ffn/linear_0/weight"]
        scales = floats(variables["decoder/layer_0/ffn/linear_0/weight_scale"][2])
        self.assertEqual((shape, kind, len(scales)), ([12, 8], 1, 12))
        for row, whole in enumerate(ours):
            for value, byte in zip(whole, array.array("b", data[8 * row:8 * row + 8])):
                self.assertAlmostEqual(value * scales[row], byte, delta=0.5001)
        self.assertIn("decoder/embeddings/weight_scale", list(variables))

    def test_argos_is_a_sound_archive(self):
        model = trained("run", "--data.src_lang", "de", "--data.tgt_lang", "en")
        self.export(model, "argos", "new/de_en.argosmodel", "--license", "cc-by-4.0", "--attribution", "trained by N. N.")
        self.export(model, "ctranslate2", "ct2")
        with zipfile.ZipFile(path("new", "de_en.argosmodel")) as package:
            self.assertIsNone(package.testzip())
            folder = "translate-de_en-1_0/"
            self.assertEqual(sorted(package.namelist()), [folder + name for name in (
                "README.md", "metadata.json", "model/config.json", "model/model.bin", "model/shared_vocabulary.json", "sentencepiece.model")])
            said = json.loads(package.read(folder + "metadata.json"))
            self.assertEqual((said["from_code"], said["from_name"], said["to_code"], said["to_name"]), ("de", "German", "en", "English"))
            self.assertEqual(package.read(folder + "model/model.bin"), read_bytes("ct2", "model.bin"))
            self.assertIn("license: cc-by-4.0\n", package.read(folder + "README.md").decode())
            self.assertIn("Attribution: trained by N. N.\n", package.read(folder + "README.md").decode())

    def test_what_a_format_cannot_hold_is_refused_by_its_key(self):
        def refused(model, kind, name="out"):
            said = self.refuses("export", "-m", model, "--to", kind, "-o", path(name))
            self.assertFalse(os.path.exists(path(name)))
            return said

        sparse = trained("sparse", "--model.attention.cross", "topk")
        self.assertIn("model.attention is cross: ", refused(sparse, "ctranslate2"))
        self.assertIn("--model.attention softmax", refused(sparse, "hf"))
        self.export(sparse, "hf", "dense", "--model.attention", "softmax")
        self.assertIn("model.norm_type of the model is rms", refused(trained("rms", "--model.norm_type", "rms"), "hf"))
        self.assertIn("model.positions of the model is learned", refused(trained("learned", "--model.positions", "learned"), "hf"))
        rope = trained("rope", "--model.positions", "rope")
        for kind in ("hf", "ctranslate2"):
            self.assertIn("model.positions of the model is rope", refused(rope, kind))
        self.assertIn("model.activation of the model is swiglu", refused(trained("swiglu", "--model.activation", "swiglu"), "hf"))
        self.export(path("swiglu"), "ctranslate2", "gated")
        _, variables, _ = read_model_bin(read_bytes("gated", "model.bin"))
        inner = weights_of(path("swiglu"))["encoder.layers.0.feed_forward.inner.weight"].rows
        for name, rows in (("linear_0", inner[:12]), ("linear_0_noact", inner[12:])):
            shape, _, data = variables[f"encoder/layer_0/ffn/{name}/weight"]
            self.assertEqual((shape, Matrix(shape, data).rows), ([12, 8], rows))
        self.assertIn("model.positions of the model is none", refused(trained("none", "--model.positions", "none"), "hf"))
        two = trained("two", "--data.shared_vocab", "false", "--model.tie_embeddings", "decoder")
        self.assertIn("data.shared_vocab of the model is false", refused(two, "argos", "a.argosmodel"))
        self.assertIn("data.src_lang of the model is empty", refused(plain := trained("run"), "argos", "a.argosmodel"))
        self.export(plain, "argos", "a.argosmodel", "--src-lang", "de", "--tgt-lang", "en")
        write("vocab", "".join(f"{digit}\n" for digit in range(10)))
        listed = trained("listed", "--data.tokenizer", "none", "--data.vocab", path("vocab"))
        self.assertIn("data.tokenizer of the model is none", refused(listed, "hf"))
        self.export(listed, "ctranslate2", "ct2")
        self.assertEqual(json.loads(read("ct2", "shared_vocabulary.json")), ["<unk>", "<s>", "</s>", *"0123456789"])

    def test_nothing_is_replaced_unless_told(self):
        model = trained("run", "--data.src_lang", "de", "--data.tgt_lang", "en")
        self.export(model, "hf", "hf")
        before = read_bytes("hf", "model.safetensors")
        self.assertIn("give --overwrite", self.refuses("export", "-m", model, "--to", "hf", "-o", path("hf")))
        self.export(model, "hf", "hf", "--overwrite")
        self.assertEqual(read_bytes("hf", "model.safetensors"), before)
        os.mkdir(path("mine"))
        for place in (path("mine"), path("run", "averaged"), path("run")):
            self.assertIn("is no earlier export", self.refuses("export", "-m", model, "--to", "hf", "-o", place, "--overwrite"))
        os.symlink(path("hf"), path("link"))
        self.assertIn("which is a link", self.refuses("export", "-m", model, "--to", "hf", "-o", path("link"), "--overwrite"))
        self.export(model, "argos", "a.argosmodel")
        self.assertIn("give --overwrite", self.refuses("export", "-m", model, "--to", "argos", "-o", path("a.argosmodel")))
        self.export(model, "argos", "a.argosmodel", "--overwrite")
        self.assertEqual([name for name in os.listdir(FOLDER) if "lacuna-tmp" in name], [])

    def test_wrong_flags_are_refused(self):
        def refused(*words):
            return self.refuses("export", "-m", path("none"), *words)

        self.assertIn("--to", refused("--to", "onnx", "-o", path("x")))
        self.assertIn("it ends in .argosmodel", refused("--to", "argos", "-o", path("x")))
        self.assertIn("--license is \"MIT License\"", refused("--to", "hf", "-o", path("x"), "--license", "MIT License"))
        self.assertIn("--attribution", refused("--to", "hf", "-o", path("x"), "--attribution", "a\nb"))
        self.assertIn("--tgt-lang is \"jp\"", refused("--to", "argos", "-o", path("x.argosmodel"), "--tgt-lang", "jp"))
        self.assertIn("--precision is int8", refused("--to", "hf", "-o", path("x"), "--precision", "int8"))
        self.assertIn(path("none"), refused("--to", "hf", "-o", path("x")))


if __name__ == "__main__":
    unittest.main()
