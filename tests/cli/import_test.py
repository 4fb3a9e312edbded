"""`lacuna import`: small models of transformers and Marian, held against what those programs said; and files that lie."""
import io
import json
import os
import re
import shutil
import struct
import zipfile
import zlib

from program import FOLDER, FreshFolder, path, read, read_bytes, write
from small_run import configuration, run
import unittest

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "imports")
TAGS = {"m2m100": ("--src-tag", "__de__", "--tgt-tag", "__en__"), "nllb": ("--src-tag", "deu_Latn", "--tgt-tag", "eng_Latn")}


def copy(name):
    shutil.copytree(os.path.join(MODELS, name), path(name))
    return path(name)


def change(name, file, **keys):
    """Sets keys of a JSON file of a copied model; those that are None go."""
    said = json.loads(read(name, file))
    said.update(keys)
    write(os.path.join(name, file), json.dumps({key: value for key, value in said.items() if value is not None}))


def npy(shape, data, descr="<f4", order="False"):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    header += b" " * (-(10 + len(header) + 1) % 16) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def npz(members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name + ".npy", data)
    return file.getvalue()


class Import(FreshFolder):
    def imported(self, name, *words, place=None):
        self.ends("import", place or os.path.join(MODELS, name), "-o", path("model"), "--quiet", *words, *TAGS.get(name, ()))
        return path("model")

    def translated(self, model, lines, *words):
        return self.prints("translate", "-m", model, "--beam-size", "1", "--max-length-ratio", "1000", "--log-level", "error", *words,
                           text="".join(f"{line}\n" for line in lines)).splitlines()

    def scored(self, model, src, tgt, *words):
        for name, lines in (("src", src), ("tgt", tgt)):
            write(name, "".join(f"{line}\n" for line in lines))
        return [float(score) for score in self.prints("score", "-m", model, "--src", path("src"), "--tgt", path("tgt"), *words).splitlines()]

    def check(self, name, most_tokens=None):
        expected = json.loads(read(MODELS, name, "expected.json"))
        model = self.imported(name)
        limit = ("--max-length", str(most_tokens)) if most_tokens else ()
        self.assertEqual([line.strip() for line in self.translated(model, expected["src"], *limit)], [line.strip() for line in expected["greedy"]])
        for ours, theirs in zip(self.scored(model, expected["src"], expected["tgt"]), expected["scores"], strict=True):
            self.assertAlmostEqual(ours, theirs, delta=1e-3)
        return model

    def test_marian_of_transformers_says_what_it_says_there(self):
        model = self.check("marian", 16)
        said = json.loads(read(model, "checkpoint.json"))["origin"]
        self.assertEqual((said["kind"], said["license"]), ("Hugging Face transformers, marian", "apache-2.0"))
        self.assertEqual(said["place"], os.path.join(MODELS, "marian"))
        self.assertEqual(sorted(said["sha256"]), ["README.md", "config.json", "generation_config.json", "model.safetensors", "source.spm",
                                                  "target.spm", "tokenizer_config.json", "vocab.json"])
        self.assertRegex(said["sha256"]["model.safetensors"], "^[0-9a-f]{64}$")
        self.assertIn("beam_size: 4", read(model, "config.yaml"))
        shown = self.prints("info", "-m", model)
        self.assertIn("license          apache-2.0", shown)
        pieces = len(json.loads(read(MODELS, "marian", "vocab.json")))
        self.assertIn(f"{pieces} source, {pieces} target pieces, shared", shown)

    def test_positions_may_be_those_that_marian_trains_with(self):
        expected = json.loads(read(MODELS, "marian", "expected.json"))
        model = self.imported("marian", "--positions", "marian")
        self.assertIn("position_spacing: tensor2tensor", read(model, "config.yaml"))
        scores = self.scored(model, expected["src"], expected["tgt"])
        self.assertGreater(max(abs(a - b) for a, b in zip(scores, expected["scores"])), 1e-3)

    def test_two_vocabularies_and_fp16_are_read(self):
        self.check("marian_two", 16)

    def test_m2m100_begins_with_the_tags_of_its_languages(self):
        self.check("m2m100", 16)

    def test_nllb_begins_with_the_tags_of_its_languages(self):
        self.check("nllb", 16)

    def test_marian_says_what_it_says_there(self):
        model = self.check("marian_npz")
        self.assertIn("max_length_ratio: 3", read(model, "config.yaml"))
        self.ends("quantize", "-m", model, "-o", path("int8"), "--precision", "int8")
        self.assertEqual(json.loads(read("int8", "checkpoint.json"))["origin"]["kind"], "Marian")

    def test_a_tag_in_the_line_takes_the_place_of_the_usual_one(self):
        expected = json.loads(read(MODELS, "m2m100", "expected.json"))
        self.ends("import", os.path.join(MODELS, "m2m100"), "-o", path("plain"), "--quiet")
        tagged = [f"__de__ {line}" for line in expected["src"]]
        self.assertEqual([line.strip() for line in self.translated(path("plain"), tagged, "--max-length", "16", "--prefix", "__en__")],
                         expected["greedy"])

    def test_export_and_import_give_the_same_model(self):
        configuration(FOLDER)
        sizes = ["--model.d_model", "8", "--model.num_heads", "2", "--model.d_ff", "12", "--train.max_steps", "1", "--train.valid_every", "0"]
        for norm, tie in (("pre", "all"), ("pre", "decoder"), ("post", "none")):
            run(self.PROGRAM, "train", "-c", path("run.yaml"), *sizes, "--run", path(norm + tie), "--model.norm", norm, "--model.tie_embeddings", tie,
                "--model.position_layout", "concatenated", "--data.tgt_normalization", "nfkc")
            self.ends("export", "-m", path(norm + tie), "--to", "hf", "-o", path("hf"), "--quiet", "--overwrite")
            model = self.imported("", place=path("hf"))
            self.assertEqual(read_bytes(model, "spm.model"), read_bytes(norm + tie, "spm.model"))
            if tie != "decoder":  # where two tables become one, rows that are never read do not come back
                self.assertEqual(read_bytes(model, "model.safetensors"), read_bytes(norm + tie, "averaged", "model.safetensors"))
            lines = ["1 2 3", "4 5", "7 7 7 8"]
            self.assertEqual(self.scored(model, lines, lines), self.scored(path(norm + tie), lines, lines))

    def test_an_import_trains_on_and_leaves_again(self):
        model = self.imported("marian")
        expected = json.loads(read(MODELS, "marian", "expected.json"))
        for side in ("src", "tgt"):
            write(side, "".join(f"{line}\n" for line in expected[side] * 4))
        run(self.PROGRAM, "train", "-c", os.path.join(model, "config.yaml"), "-c", write("tune.yaml", f"""
run: {path("tuned")}
data: {{train: [{{src: {path("src")}, tgt: {path("tgt")}}}], valid: [{{src: {path("src")}, tgt: {path("tgt")}}}]}}
train: {{init_from: {model}, reset: [optimizer, lr, data, best], batch_tokens: 400, lr: 0.003, warmup_steps: 5, max_steps: 30, valid_every: 15, valid_translate: false, metric: loss}}
"""))
        before = sum(self.scored(model, expected["src"], expected["tgt"]))
        self.assertGreater(sum(self.scored(path("tuned"), expected["src"], expected["tgt"])), before)
        self.assertEqual(len(self.translated(path("tuned"), expected["src"], "--model.attention.cross", "topk")), len(expected["src"]))
        self.ends("analyze", "-m", model, "--src", path("src"), "--tgt", path("tgt"), "-o", path("analysis"), "--quiet")
        self.ends("export", "-m", model, "--to", "hf", "-o", path("hf"), "--quiet")
        self.assertEqual(json.loads(read("hf", "vocab.json"))[">>eng<<"], json.loads(read(MODELS, "marian", "vocab.json"))[">>eng<<"] + 1)
        again = self.imported("", place=path("hf"))
        self.assertEqual(self.scored(again, expected["src"], expected["tgt"]), self.scored(model, expected["src"], expected["tgt"]))

    def test_a_model_of_another_program_is_to_be_imported_first(self):
        copy("marian")
        write("text", "1\n")
        shutil.copytree(path("marian"), path("pickled"))
        os.rename(path("pickled", "model.safetensors"), path("pickled", "pytorch_model.bin"))
        npz_folder = os.path.join(MODELS, "marian_npz")
        [npz_file] = [name for name in os.listdir(npz_folder) if name.endswith(".npz")]
        for place, what in ((path("marian"), "of transformers: it has config.json and model.safetensors"), (path("pickled"), "pytorch_model.bin"),
                            (npz_folder, f"of Marian: it has {npz_file}"), (os.path.join(npz_folder, npz_file), "of Marian: its name ends in .npz")):
            said = self.refuses("translate", "-m", place, text="1\n")
            self.assertIn(what, said)
            self.assertIn(f"expected a checkpoint or a run folder. Make one of it: lacuna import {place} -o DIR", said)
        os.rename(path("pickled"), path("a model"))
        self.assertIn(f"lacuna import '{path('a model')}' -o DIR", self.refuses("info", "-m", path("a model")))
        os.rename(path("a model"), path("pickled"))
        pair = ("--src", path("text"), "--tgt", path("text"))
        for words in (("score", *pair), ("align", *pair), ("analyze", *pair, "-o", path("out")), ("info",),
                      ("quantize", "-o", path("out")), ("export", "--to", "hf", "-o", path("out")), ("serve", "--listen", "127.0.0.1:0"),
                      ("shortlist", *pair, "-o", path("out")), ("bench", "translate", "-i", path("text"))):
            self.assertIn(f"lacuna import {path('marian')} -o DIR", self.ends(*words, "-m", path("marian"), code=2).stderr, words)
        self.assertIn(f"lacuna import {path('marian')} -o DIR", self.ends("check", "-c", configuration(FOLDER), "--train.init_from", path("marian"), code=2).stderr)

    def test_languages_that_are_not_set_are_told_of_by_a_token_that_is_there(self):
        for name, token in (("nllb", "_Latn"), ("m2m100", "__")):
            said = self.ends("import", os.path.join(MODELS, name), "-o", path(name)).stderr
            self.assertRegex(said, rf"no language is set: lines begin with the token of theirs, such as \S*{token} \(of \d+ languages?\)")
        self.assertIn("no token of the model; expected one of its languages': ", self.refuses("import", os.path.join(MODELS, "nllb"), "-o", path("model"), "--src-tag", "__de__"))

    def says_no(self, *words, place=None):
        said = self.refuses("import", place or path("marian"), "-o", path("model"), *words)
        self.assertFalse(os.path.exists(path("model")))
        self.assertEqual(said.strip().count("\n"), 0, said)
        return said

    def test_what_transformers_models_cannot_be_is_refused_by_its_key(self):
        for key, value, expected in (("model_type", "bart", 'model_type is "bart"'), ("scale_embedding", False, "scale_embedding is false"),
                                     ("activation_function", "gelu_new", "expected relu, gelu, swish"), ("d_model", -1, "d_model is -1"),
                                     ("d_model", 10**12, "by the configuration expected"), ("encoder_layers", 10**9, "is missing"),
                                     ("encoder_attention_heads", 3, "decoder_attention_heads"), ("encoder_ffn_dim", None, "encoder_ffn_dim is missing"),
                                     ("decoder_start_token_id", 999, "decoder_start_token_id is 999"), ("normalize_before", True, "normalize_before"),
                                     ("decoder_layers", 1, "no part of such a model takes")):
            shutil.rmtree(path("marian"), ignore_errors=True)
            copy("marian")
            change("marian", "config.json", **{key: value})
            self.assertIn(expected, self.says_no())

    def test_damaged_folders_are_refused(self):
        def fresh():
            shutil.rmtree(path("marian"), ignore_errors=True)
            copy("marian")

        ids = json.loads(read(MODELS, "marian", "vocab.json"))
        weights = read_bytes(MODELS, "marian", "model.safetensors")
        some = sorted(ids, key=ids.get)[50]
        for file, text, expected in (
                ("vocab.json", json.dumps({piece: i for piece, i in ids.items() if piece != some}), "no piece has the id 50"),
                ("vocab.json", json.dumps({**ids, some: 49}), "have one id, 49"), ("vocab.json", json.dumps({**ids, some: -1}), "is none"),
                ("vocab.json", json.dumps({**ids, "new": len(ids)}), "use the files that belong together"), ("vocab.json", "[" * 100000, "64 levels deep"), ("vocab.json", '{"a": 1', "is not JSON"),
                ("config.json", '{"a":' * 50000, "64 levels deep"), ("config.json", "[]", "no JSON object"),
                ("source.spm", b"\x0a\xff\xff\xff\xff\x0f", "is not a SentencePiece model"),
                ("source.spm", re.sub(rb"\x0a\x01[a-z]", b"\x0a\x01\0", read_bytes(MODELS, "marian", "source.spm"), count=1), "is not a SentencePiece model"), ("target.spm", "", "is not a SentencePiece model"),
                ("model.safetensors", weights[:-10], "is it cut short"), ("model.safetensors", struct.pack("<Q", 2**62) + weights[8:], "header")):
            fresh()
            write(os.path.join("marian", file), text)
            self.assertIn(expected, self.says_no(), file)
        fresh()
        os.rename(path("marian", "model.safetensors"), path("marian", "pytorch_model.bin"))
        self.assertIn("save_pretrained", self.says_no())
        os.remove(path("marian", "source.spm"))
        self.assertIn("source.spm is missing", self.says_no())
        self.assertIn("does not exist", self.says_no(place=path("nowhere")))
        self.assertIn("--tgt-tag is \"__xy__\"", self.says_no("--tgt-tag", "__xy__"))
        self.assertIn("--license is", self.says_no("--license", "a b"))

    def test_damaged_archives_are_refused(self):
        settings = "type: transformer\ndim-emb: 4\n"
        yml = npy((len(settings),), settings.encode(), "|i1")
        good = npz({"special:model.yml": yml, "Wemb": npy((2, 4), bytes(32))})
        bomb = npz({"special:model.yml": yml, "Wemb": npy((2500, 4096), bytes(4 * 2500 * 4096))}, zipfile.ZIP_DEFLATED)
        place = good.index(b"PK\x01\x02")
        aliased = good[:-22] * 1 + good[-22:-14] + struct.pack("<HH", 2, 2) + good[-10:]
        deep = "a: " + "[" * 5000
        aliases = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9))
        for data, expected in (
                (b"", "no list of members"), (good[:-30], "no list of members"), (bomb, "is compressed"),
                (good[:40] + b"\0" + good[41:], ""), (good[:place] + b"XX" + good[place + 2:], "list of members is damaged"),
                (npz({"Wemb": npy((2, 4), bytes(32))}), "has no array special:model.yml"),
                (npz({"special:model.yml": npy((10**15, 10**15), b"", "|i1")}), "shape too large"),
                (npz({"special:model.yml": npy((5,), b"abcd", "|i1")}), "another size than its shape"),
                (npz({"special:model.yml": npy((4,), b"abcd", "|i1")[:9]}), "is no array"),
                (npz({"special:model.yml": b"\x93NUMPY\x01\x00\xff\xff{}"}), "header longer than itself"),
                (npz({"special:model.yml": npy((4,), b"abcd", "|i1", "True")}), "not in the order of C"),
                (npz({"special:model.yml": npy((1,), bytes(8), "<f8")}), "is of type"),
                (npz({"special:model.yml": npy((len(deep),), deep.encode(), "|i1")}), "not YAML"),
                (npz({"special:model.yml": npy((len(aliases),), aliases.encode(), "|i1")}), "more than 100000 values"),
                (aliased, "")):
            write("model.npz", data)
            said = self.says_no(place=path("model.npz"))
            self.assertIn(expected, said)
        write("model.npz", b"PK\x05\x06" + b"\xff" * 18)
        self.says_no(place=path("model.npz"))
        self.assertIn("is a file", self.says_no(place=write("model.txt", "a")))

    def test_vocabularies_of_marian_are_checked(self):
        settings = "type: transformer\ndim-emb: 4\ntransformer-heads: 2\nenc-depth: 1\ndec-depth: 1\ntransformer-dim-ffn: 4\n" \
            "transformer-postprocess: dan\ntransformer-ffn-activation: swish\n"

        def model(text=settings):
            write("model.npz", npz({"special:model.yml": npy((len(text) + 2,), text.encode() + b"\0\0", "|i1")}))

        def refused(vocabulary):
            write("vocab.yml", vocabulary)
            return self.says_no(place=path("model.npz"))

        model()
        shutil.copy(os.path.join(MODELS, "marian", "source.spm"), path("source.spm"))
        shutil.copy(os.path.join(MODELS, "marian", "target.spm"), path("target.spm"))
        self.assertIn("no piece has the id 2", refused("</s>: 0\n<unk>: 1\na: 3\n"))
        self.assertIn("have one id, 1", refused("</s>: 0\n<unk>: 1\na: 1\n"))
        self.assertIn("vocab.yml:2: is not a vocabulary", refused("</s>: 0\n<unk>: [1]\n"))
        self.assertIn("is not a vocabulary", refused("- a\n"))
        self.assertIn("is not a vocabulary", refused("a: &x 1\nb: *x\n"))
        self.assertIn("is not a vocabulary", refused('"a: 1\n'))
        for control in "\0\x04":
            self.assertIn("vocab.yml:2: byte 2 is", refused(f"</s>: 0\na{control}b: 1\n"))
        self.assertIn("no piece </s>", refused("<unk>: 0\na: 1\nb: 2\nc: 3\n"))
        self.assertIn("is missing", refused("</s>: 0\n<unk>: 1\na: 2\nb: 3\n"))
        for key, value in (("type", "s2s"), ("transformer-decoder-autoreg", "average-attention"), ("transformer-ffn-activation", "tanh"),
                           ("transformer-postprocess", "hn"), ("transformer-no-projection", "true"), ("transformer-heads", "two"),
                           ("transformer-tied-layers", "[1, 1]"), ("ulr", "true")):
            model("\n".join(line for line in settings.splitlines() if not line.startswith(key + ":")) + f"\n{key}: {value}\n")
            self.assertRegex(self.says_no(place=path("model.npz")), rf"special:model\.yml: {key} is ")


if __name__ == "__main__":
    unittest.main()
