"""Uses the installed package, in a folder that holds a small model: uses.py PROGRAM SOURCE_FOLDER"""
import ast
import importlib.util
import json
import logging
import math
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import unittest

import lacuna_nmt
import numpy as np
from lacuna_nmt import CheckpointError, ConfigError, DataError, Translator

PROGRAM, SOURCE = (os.path.abspath(word) for word in (sys.argv.pop(1), sys.argv.pop(1)))
MODEL = "run/averaged"


def digits(lines, seed=3):
    draw = random.Random(seed)
    return [" ".join(str(draw.randrange(10)) for _ in range(draw.randint(1, 9))) for _ in range(lines)]


def write(name, lines):
    pathlib.Path(name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return name


def lacuna(*words, text=""):
    return subprocess.run([PROGRAM, *words], input=text, text=True, capture_output=True, check=True).stdout


def saved_weights(path):
    """The tensors of a file of safetensors, all of float."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
    return tensors


def in_new_python(code, **settings):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **settings)


class Uses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.translator = Translator(MODEL, threads=2)

    def test_the_lines_of_the_readme_run(self):
        readme = pathlib.Path(SOURCE, "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
        self.assertEqual(len(blocks), 1)
        ended = in_new_python(blocks[0])
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"\(\d+, \d+, \d+, \d+\)")

    def test_a_thousand_lines_are_the_programs(self):
        lines = digits(1000) + [""]
        text = "".join(line + "\n" for line in lines)
        told = [json.loads(line) for line in lacuna("translate", "-m", MODEL, "--json", "--alignment", "word", text=json_lines(lines)).splitlines()]
        found = self.translator.translate(lines, alignment=True)
        self.assertEqual([one.text for one in found], [one["translation"] for one in told])
        self.assertEqual([one.score for one in found], [one["score"] for one in told])
        self.assertEqual([links_text(one) for one in found], [one["alignment"] for one in told])
        int8 = Translator(MODEL, precision="int8", threads=1)
        self.assertEqual([one.text for one in int8.translate(lines)], lacuna("translate", "-m", MODEL, "--precision", "int8", text=text).splitlines())

    def test_n_best_prefix_and_options_are_the_programs(self):
        lines = digits(20)
        told = lacuna("translate", "-m", MODEL, "--n-best", "3", "--beam-size", "4", "--prefix", "7", text="".join(line + "\n" for line in lines))
        found = self.translator.translate(lines, n_best=3, beam_size=4, prefix="7")
        texts = [[one.text for one in (best, *best.alternatives)] for best in found]
        self.assertEqual([text for best in texts for text in best], [line.split(" ||| ")[1] for line in told.splitlines()])
        drawn = [one.text for one in self.translator.translate(lines, sampling="full", seed=5)]
        self.assertEqual(drawn, lacuna("translate", "-m", MODEL, "--sampling", "full", "--seed", "5", text="".join(line + "\n" for line in lines)).splitlines())
        each = self.translator.translate(["1 2", "3 4"], prefix=["5", "6"])
        self.assertEqual([one.text[0] for one in each], ["5", "6"])

    def test_scores_are_the_programs(self):
        src, tgt = digits(50, 4), digits(50, 5)
        write("src", src), write("tgt", tgt)
        told = [json.loads(line) for line in lacuna("score", "-m", MODEL, "--src", "src", "--tgt", "tgt", "--json").splitlines()]
        found = self.translator.score(src, tgt)
        self.assertEqual([one.tokens for one in found], [[token["piece"] for token in one["tokens"]] for one in told])
        for one, other in zip(found, told):
            np.testing.assert_allclose(one.token_log_probs, [token["log_prob"] for token in other["tokens"]], rtol=1e-6)
            self.assertAlmostEqual(one.log_prob, other["log_prob"], places=4)
        best = self.translator.translate(src)[0]
        [scored] = self.translator.score(src[:1], [best.text])
        self.assertEqual(scored.tokens, best.tokens)
        np.testing.assert_allclose(scored.token_log_probs, best.token_log_probs, atol=1e-5)
        self.assertTrue(math.isnan(self.translator.score([""], ["1"])[0].log_prob))
        self.assertEqual(self.translator.score([""], [""])[0].log_prob, 0)

    def test_attention_is_that_of_analyze(self):
        src, tgt = digits(8, 6), digits(8, 7)
        lacuna("analyze", "-m", MODEL, "--src", write("src", src), "--tgt", write("tgt", tgt), "-o", "analysis", "--save-weights", "1-8")
        saved = saved_weights("analysis/attention.safetensors")
        for number, pair in enumerate(self.translator.attention(src, tgt), 1):
            for site in ("encoder_self", "decoder_self", "cross"):
                weights = getattr(pair, site)
                self.assertEqual(weights.dtype, np.float32)
                for layer in range(weights.shape[0]):
                    np.testing.assert_array_equal(weights[layer], saved[f"line.{number}.{site}.{layer}"])
            self.assertEqual(pair.cross.shape, (self.translator.decoder_layers, self.translator.num_heads, len(pair.tokens), len(pair.src_tokens)))

    def test_attention_of_a_translation_is_that_of_forced_decoding(self):
        lines = digits(6, 8)
        found = self.translator.translate(lines, attention=True, n_best=2)
        forced = self.translator.attention(lines, [one.text for one in found])
        for one, pair in zip(found, forced):
            self.assertEqual((one.tokens, one.src_tokens), (pair.tokens, pair.src_tokens))
            np.testing.assert_array_equal(one.attention, pair.cross)
            self.assertEqual(one.alternatives[0].attention.shape[2], len(one.alternatives[0].tokens))
        [head] = self.translator.translate(lines[:1], attention=(1, 2))
        np.testing.assert_array_equal(head.attention, found[0].attention[1, 2])
        [mean] = self.translator.translate(lines[:1], attention=(1, None))
        np.testing.assert_allclose(mean.attention, found[0].attention[1].mean(axis=0))
        self.assertIsNone(self.translator.translate(lines[:1])[0].attention)
        [empty] = self.translator.translate([""], attention=True)
        self.assertEqual((empty.text, empty.tokens, empty.attention), ("", [], None))

    def test_encoder_output_has_a_row_for_each_piece(self):
        [states, none] = self.translator.encode(["1 2 3", ""])
        self.assertEqual(states.shape, (len(self.translator.tokenize("1 2 3")) + 1, self.translator.d_model))
        self.assertEqual(none.shape, (0, self.translator.d_model))
        together = self.translator.encode(["4 5 6 7 8", "1 2 3"])[1]
        np.testing.assert_array_equal(together, states)

    def test_threads_translate_at_once(self):
        lines = digits(400, 9)
        wanted = [one.text for one in self.translator.translate(lines)]
        other = Translator(MODEL, threads=1)
        found = {}

        def work(name, translator):
            found[name] = [one.text for one in translator.translate(lines)]

        threads = [threading.Thread(target=work, args=(number, self.translator if number < 2 else other)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([found[number] for number in range(4)], [wanted] * 4)

    def test_other_threads_run_while_it_translates(self):
        counted = [0]
        ended = threading.Event()

        def count():
            while not ended.is_set():
                counted[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        while counted[0] == 0:
            time.sleep(0.001)
        before = counted[0]
        self.translator.translate(digits(3000, 10))
        self.assertGreater(counted[0], before + 2)
        ended.set()
        thread.join()

    def test_ctrl_c_ends_a_translation_and_the_translator_serves_on(self):
        code = f"""
import threading, os, signal, time
from lacuna_nmt import Translator
translator = Translator({MODEL!r}, threads=2)
lines = ["1 2 3 4 5 6 7 8 9"] * 1000000
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    translator.translate(lines, beam_size=10)
    print("not interrupted")
except KeyboardInterrupt:
    print(translator.translate(["1 2"])[0].text)
"""
        ended = in_new_python(code, timeout=300)
        self.assertEqual((ended.returncode, ended.stdout.strip()), (0, self.translator.translate(["1 2"])[0].text), ended.stderr)

    def test_leaves_no_thread_and_no_file_behind(self):
        code = f"""
import os
import numpy  # which starts threads of its own
def state():
    return len(os.listdir("/proc/self/task")), sorted(os.readlink(f"/proc/self/fd/{{fd}}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{{fd}}"))
before = sorted(os.listdir(".")), state()
from lacuna_nmt import Translator
translator = Translator({MODEL!r}, threads=1)
translator.translate(["1 2 3"], attention=True)
del translator
after = sorted(os.listdir(".")), state()
assert before == after, (before, after)
"""
        ended = in_new_python(code)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(ended.stdout + ended.stderr, "")

    def test_brings_neither_an_allocator_nor_flags_of_a_log_into_the_process(self):
        code = f"""
import ctypes
from lacuna_nmt import Translator
Translator({MODEL!r}).translate(["1 2 3"])
everybody = ctypes.CDLL(None)
assert not hasattr(everybody, "FLAGS_minloglevel")
assert "jemalloc" not in open("/proc/self/maps").read()
"""
        self.assertEqual(in_new_python(code).stderr, "")

    def test_works_before_and_after_others_that_bring_the_same_libraries(self):
        use = f"from lacuna_nmt import Translator; print(Translator({MODEL!r}).translate(['1 2 3'])[0].text)\n"
        wanted = self.translator.translate(["1 2 3"])[0].text + "\n"
        others = [name for name in ("torch", "sentencepiece") if importlib.util.find_spec(name)]
        if in_new_python("import torch").returncode != 0:  # the slim set of libraries
            others.remove("torch")
        for name in others:
            imports = f"import {name}\n"
            if name == "sentencepiece":
                imports += f"assert sentencepiece.SentencePieceProcessor(model_file='{MODEL}/spm.model').encode('1 2', out_type=str)\n"
            for code in (imports + use, use + imports, imports + use + imports):
                ended = in_new_python(code)
                self.assertEqual((ended.returncode, ended.stdout), (0, wanted), ended.stderr)

    def test_does_not_import_torch_nor_change_its_threads(self):
        code = f"""
import sys
from lacuna_nmt import Translator
Translator({MODEL!r}, threads=1).translate(["1 2"])
assert "torch" not in sys.modules
"""
        self.assertEqual(in_new_python(code).stderr, "")

    def test_mistakes_are_exceptions_with_the_programs_messages(self):
        translate = self.translator.translate
        for error, message, call in (
            (CheckpointError, "no-such-run", lambda: Translator("no-such-run")),
            (CheckpointError, "lacuna import", lambda: Translator(os.path.join(SOURCE, "tests/cli/imports/marian"))),
            (ConfigError, 'device is "gpu"; expected cpu, cuda or cuda:N', lambda: Translator(MODEL, device="gpu")),
            (ConfigError, 'precision is "fp8"; expected one of auto, fp32, bf16, int8', lambda: Translator(MODEL, precision="fp8")),
            (ConfigError, "threads is -1; expected a number from 0 to 1024", lambda: Translator(MODEL, threads=-1)),
            (ConfigError, 'beam_size is "0"; expected a number from 1 to 10000', lambda: translate(["1"], beam_size=0)),
            (ConfigError, "unknown key beam_sise; did you mean beam_size?", lambda: translate(["1"], beam_sise=3)),
            (ConfigError, "translate.n_best is 9; at most translate.beam_size", lambda: translate(["1"], n_best=9)),
            (ConfigError, "precision is of the whole model", lambda: translate(["1"], precision="int8")),
            (ConfigError, "expected True, \"word\" or \"subword\"", lambda: translate(["1"], alignment="words")),
            (ConfigError, r"the decoder's layers are 0 to 1, their heads 0 to ", lambda: translate(["1"], attention=(2, 0))),
            (DataError, "texts[1] holds a line break", lambda: translate(["1", "2\n3"])),
            (DataError, "texts[0] holds a NUL", lambda: translate(["1\0"])),
            (DataError, "prefix has 1 texts, and texts 2", lambda: translate(["1", "2"], prefix=["1"])),
            (DataError, "src has 1 texts and tgt 2", lambda: self.translator.score(["1"], ["1", "2"])),
            (DataError, "src[0] has", lambda: self.translator.score(["1 " * 20000], ["1"])),
            (DataError, "attention is given of 4096 at most", lambda: self.translator.attention(["1 " * 5000], ["1"])),
            (TypeError, "texts is a str; expected a list of str", lambda: translate("1")),
            (TypeError, "texts[0] is a int; expected str", lambda: translate([1])),
        ):
            with self.assertRaises(error) as raised:
                call()
            self.assertIn(message, str(raised.exception))
            if error is not TypeError:
                self.assertIsInstance(raised.exception, lacuna_nmt.Error)

    def test_a_text_without_a_form_in_utf_8_is_refused(self):
        with self.assertRaises((TypeError, UnicodeEncodeError)):
            self.translator.translate(["\ud800"])

    def test_warnings_go_to_pythons_log(self):
        with self.assertLogs("lacuna_nmt", logging.WARNING) as log:
            self.translator.translate(["1 2"], prefix="é")
        self.assertIn("the unknown token stands for it", log.output[0])

    def test_stubs_name_what_the_module_has(self):
        folder = pathlib.Path(lacuna_nmt.__file__).parent
        self.assertTrue((folder / "py.typed").exists())
        [stub] = [node for node in ast.parse((folder / "_lacuna.pyi").read_text()).body if isinstance(node, ast.ClassDef)]
        from lacuna_nmt._lacuna import Model

        methods = {node.name for node in stub.body}
        self.assertEqual(methods, {name for name in vars(Model) if not name.startswith("__") or name == "__init__"})

    def test_a_missing_or_another_torch_is_an_error_that_says_what_to_do(self):
        code = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "torch" else found(name)
import lacuna_nmt
"""
        self.assertRegex(in_new_python(code).stderr, r"ImportError: lacuna_nmt: .* has no package torch.* expected 2\.11.*pip install")


def json_lines(lines):
    return "".join(json.dumps({"text": line}) + "\n" for line in lines)


def links_text(translation):
    return " ".join(f"{src}-{tgt}" for src, tgt in translation.alignment)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main()
