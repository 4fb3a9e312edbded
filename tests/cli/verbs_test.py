#!/usr/bin/env python3
"""The verbs that use a trained model, run as a user would: verbs_test.py PROGRAM"""
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest

import small_run

PROGRAM = ""
LINES = ["1 2 3", "", "4 5", "7 7 1 0 3 2", "9 8"]


def setUpModule():
    global FOLDER, RUN, AVERAGED
    FOLDER = tempfile.TemporaryDirectory()
    RUN = small_run.train(PROGRAM, FOLDER.name)
    AVERAGED = os.path.join(RUN, "averaged")


def tearDownModule():
    FOLDER.cleanup()


def path(name):
    return os.path.join(FOLDER.name, name)


def write(name, text):
    with open(path(name), "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path(name)


def start(*arguments, text=""):
    return subprocess.run([PROGRAM, *arguments], input=text, capture_output=True, text=True, timeout=120, check=False)


class Verbs(unittest.TestCase):
    def prints(self, *arguments, text=""):
        ended = start(*arguments, text=text)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def translates(self, *flags, lines=LINES):
        out = self.prints("translate", "-m", AVERAGED, *flags, text="".join(line + "\n" for line in lines))
        self.assertTrue(out.endswith("\n"))
        return out[:-1].split("\n")

    def refuses(self, *arguments, text="", code=2):
        ended = start(*arguments, text=text)
        self.assertEqual(ended.returncode, code, ended.stderr)
        return ended.stderr


class Translate(Verbs):
    def test_gives_a_line_for_each_line_in_order(self):
        self.assertEqual(self.translates(), LINES)

    def test_says_the_same_whatever_is_beside_a_line(self):
        for batch in ("1", "40", "5000"):
            self.assertEqual(self.translates("--batch-tokens", batch), LINES)
        self.assertEqual([self.translates(lines=[line])[0] for line in LINES], LINES)

    def test_reads_a_last_line_without_its_end_and_windows_line_ends(self):
        self.assertEqual(self.prints("translate", "-m", AVERAGED, text="1 2\r\n3 4"), "1 2\n3 4\n")

    def test_of_nothing_is_nothing(self):
        self.assertEqual(self.prints("translate", "-m", AVERAGED, text=""), "")

    def test_reads_gzip_and_writes_a_file_that_is_whole(self):
        with gzip.open(path("in.gz"), "wt") as file:
            file.write("3 1 4\n")
        self.assertEqual(self.prints("translate", "-m", RUN, "-i", path("in.gz"), "-o", path("out")), "")
        with open(path("out"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "3 1 4\n")

    def test_answers_each_line_while_the_pipe_stays_open(self):
        with subprocess.Popen([PROGRAM, "translate", "-m", AVERAGED], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as program:
            for line in LINES:
                program.stdin.write(line + "\n")
                program.stdin.flush()
                self.assertEqual(program.stdout.readline(), line + "\n")
            program.stdin.close()
            self.assertEqual(program.wait(60), 0)

    def test_ends_quietly_when_nobody_reads(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        ended = subprocess.run([PROGRAM, "translate", "-m", AVERAGED], input="1 2\n", stdout=write_end, stderr=subprocess.PIPE, text=True,
                               timeout=60, check=False)
        os.close(write_end)
        self.assertEqual(ended.returncode, 141)
        self.assertNotIn("error", ended.stderr)

    def test_writes_n_best_lists_as_moses_does(self):
        lines = self.translates("--n-best", "3", "--beam-size", "4", lines=["1 2 3", "4 5"])
        self.assertEqual(len(lines), 6)
        fields = [line.split(" ||| ") for line in lines]
        self.assertEqual([field[0] for field in fields], ["0"] * 3 + ["1"] * 3)
        self.assertEqual((fields[0][1], fields[3][1]), ("1 2 3", "4 5"))
        for first, second in zip(fields[:2], fields[1:3]):
            self.assertGreaterEqual(float(first[3]), float(second[3]))
        self.assertRegex(fields[0][2], r"^F0= -[\d.e-]+$")

    def test_begins_lines_with_scores(self):
        for line, text in zip(self.translates("--scores"), LINES):
            score, translation = line.split("\t")
            self.assertEqual(translation, text)
            self.assertLessEqual(float(score), 0)

    def test_passes_the_fields_of_json_through(self):
        lines = [json.dumps({"id": 7, "text": "1 2", "tags": ["a"]}), json.dumps({"text": ""})]
        first, second = (json.loads(line) for line in self.translates("--json", lines=lines))
        self.assertEqual((first["id"], first["tags"], first["text"], first["translation"]), (7, ["a"], "1 2", "1 2"))
        self.assertLess(first["log_prob"], 0)
        self.assertEqual(second["translation"], "")

    def test_begins_with_a_prefix(self):
        self.assertTrue(self.translates("--prefix", "5", lines=["1 2 3"])[0].startswith("5"))
        line = json.dumps({"text": "1 2", "prefix": "6"})
        self.assertTrue(json.loads(self.translates("--json", "--prefix", "5", lines=[line])[0])["translation"].startswith("6"))

    def test_aligns_words_and_pieces(self):
        line, empty = self.translates("--alignment", "word", lines=["1 2 3", ""])
        text, links = line.split(" ||| ")
        self.assertEqual(text, "1 2 3")
        self.assertRegex(links, r"^\d+-\d+( \d+-\d+)*$")
        self.assertTrue(all(int(number) < 3 for link in links.split() for number in link.split("-")))
        self.assertEqual(empty, " ||| ")
        self.assertIn(" ||| 0-", self.translates("--alignment", "subword", lines=["1 2 3"])[0])

    def test_draws_the_same_for_the_same_seed(self):
        draws = [self.translates("--sampling", "full", "--temperature", "3", "--seed", seed) for seed in ("1", "1", "2")]
        self.assertEqual(draws[0], draws[1])
        self.assertNotEqual(draws[0], draws[2])

    def test_in_each_precision(self):
        for precision in ("auto", "fp32", "bf16x3", "bf16", "int8"):
            self.assertEqual(self.translates("--precision", precision), LINES, precision)

    def test_refuses_a_precision_that_is_none(self):
        message = self.refuses("translate", "-m", AVERAGED, "--precision", "int4", text="1\n")
        self.assertIn("int4", message)
        self.assertIn("auto, fp32, bf16x3, bf16, int8", message)

    def test_by_an_ensemble_of_checkpoints(self):
        self.assertEqual(self.prints("translate", "-m", AVERAGED, "-m", os.path.join(RUN, "last"), text="1 2 3\n"), "1 2 3\n")

    def test_gives_the_lines_before_one_that_is_no_text(self):
        ended = start("translate", "-m", AVERAGED, "-i", write("bad.txt", b"1 2\n4 5\n3 \xff 4\n"))
        self.assertEqual((ended.returncode, ended.stdout), (2, "1 2\n4 5\n"))

    def test_names_the_line_that_is_no_text(self):
        bad = write("bad.txt", b"1 2\n3 \xff 4\n")
        message = self.refuses("translate", "-m", AVERAGED, "-i", bad)
        self.assertIn("bad.txt:2", message)
        self.assertIn("UTF-8", message)
        self.assertIn(":2: is not a JSON object", self.refuses("translate", "-m", AVERAGED, "--json", text='{"text": "1"}\n1 2\n'))

    def test_refuses_a_layer_that_is_not_there(self):
        message = self.refuses("translate", "-m", AVERAGED, "--alignment", "word", "--alignment-layer", "9", text="1\n")
        self.assertIn("--alignment-layer is 9; the decoder's layers are 0 to 1", message)


class Score(Verbs):
    def test_gives_what_translating_gave(self):
        source = write("score.src", "1 2 3\n\n4 5\n")
        best = self.translates("--json", lines=[json.dumps({"text": text}) for text in ("1 2 3", "4 5")])
        scores = self.prints("score", "-m", AVERAGED, "--src", source, "--tgt", source).split("\n")
        self.assertEqual(len(scores), 4)
        self.assertEqual(scores[1], "0.000000\t")
        for line, translation in ((scores[0], best[0]), (scores[2], best[1])):
            total, tokens = line.split("\t")
            self.assertAlmostEqual(float(total), json.loads(translation)["log_prob"], delta=1e-3)
            self.assertAlmostEqual(float(total), sum(map(float, tokens.split())), delta=1e-4)

    def test_names_pieces_in_json(self):
        source = write("score.src", "1 2\n")
        line = json.loads(self.prints("score", "-m", AVERAGED, "--src", source, "--tgt", source, "--json"))
        self.assertEqual(line["tokens"][-1]["piece"], "</s>")

    def test_refuses_sides_of_other_lengths(self):
        message = self.refuses("score", "-m", AVERAGED, "--src", write("a", "1\n2\n"), "--tgt", write("b", "1\n"))
        self.assertRegex(message, r"\b2\b.*\b1\b|\b1\b.*\b2\b")


class Evaluate(Verbs):
    def test_prints_bleu_with_its_signature(self):
        reference = write("ref", "".join(f"{i} {i + 1} {i + 2} {i + 3} {i + 4}\n" for i in range(20)))
        text = self.prints("evaluate", "--hyp", reference, "--ref", reference, "--tgt-lang", "en")
        self.assertIn("100.0", text)
        self.assertIn("tok:13a", text)
        scores = json.loads(self.prints("evaluate", "--hyp", reference, "--ref", reference, "--tgt-lang", "en", "--json"))
        self.assertIn("bleu", json.dumps(scores).lower())


class Average(Verbs):
    def test_of_named_checkpoints_and_of_the_last(self):
        steps = sorted((name for name in os.listdir(RUN) if name.startswith("step_")), key=lambda name: int(name[5:]))
        self.assertGreaterEqual(len(steps), 2)
        named = [os.path.join(RUN, name) for name in steps[-2:]]
        self.prints("average", "-o", path("named"), *named)
        self.prints("average", "-o", path("last_2"), "--last", "2", RUN)
        for file in ("named", "last_2"):
            with open(os.path.join(path(file), "model.safetensors"), "rb") as ours, \
                    open(os.path.join(AVERAGED, "model.safetensors"), "rb") as theirs:
                self.assertEqual(ours.read(), theirs.read(), file)

    def test_refuses_what_is_no_checkpoint(self):
        self.assertIn("nowhere", self.refuses("average", "-o", path("x"), path("nowhere")))


class Look(Verbs):
    def test_info_says_what_a_model_is(self):
        text = self.prints("info", "-m", AVERAGED)
        for fact in ("step             240", "averaged from    2 checkpoints", "d_model: 64"):
            self.assertIn(fact, text)

    def test_check_finds_nothing_and_writes_nothing(self):
        before = sorted(os.listdir(FOLDER.name))
        text = self.prints("check", "-c", small_run.configuration(FOLDER.name, "checked"))
        self.assertIn("nothing stands in the way", text)
        self.assertEqual(sorted(os.listdir(FOLDER.name)), sorted({*before, "checked.yaml"}))

    def test_bench_measures_training_and_translating(self):
        measured = json.loads(self.prints("bench", "train", "-c", small_run.configuration(FOLDER.name, "measured"), "--steps", "3",
                                          "--folder", path("bench"), "--json"))
        source = write("bench.src", "1 2 3\n4 5\n")
        translated = json.loads(self.prints("bench", "translate", "-m", AVERAGED, "-i", source, "--rounds", "1", "--json",
                                            "--translate.precision", "bf16"))
        self.assertEqual(translated["precision"], "bf16")
        for report, rate in ((measured, "tgt_tokens_per_second"), (translated, "output_tokens_per_second")):
            self.assertGreater(report[rate], 0)
            self.assertGreater(report["matrix_product_share"], 0)
            self.assertLess(report["matrix_product_share"], 1)


class Vocab(Verbs):
    def test_trains_a_model_that_training_takes(self):
        self.prints("vocab", "-i", path("train.txt"), "-o", path("my.model"), "--vocab-size", "24", "--type", "bpe")
        self.prints("train", "-c", small_run.configuration(FOLDER.name, "vocab"), "--data.spm_model", path("my.model"),
                    "--train.max_steps", "2", "--train.save_every", "2", "--train.average_last", "0")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
