#!/usr/bin/env python3
"""The verbs that use a trained model, run as a user would: verbs_test.py PROGRAM"""
import collections
import gzip
import json
import math
import os
import pty
import random
import stat
import subprocess
import time
import unittest

import small_run
from program import FOLDER, PROGRAM, path, read, read_bytes, write
from verbs import AVERAGED, LINES, RUN, Verbs, setUpModule


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
        self.assertEqual(read("out"), "3 1 4\n")

    def test_answers_each_line_while_the_pipe_stays_open(self):
        for output in ("-", "/dev/stdout"):
            with subprocess.Popen([PROGRAM, "translate", "-m", AVERAGED, "-o", output], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True) as program:
                for line in LINES:
                    program.stdin.write(line + "\n")
                    program.stdin.flush()
                    self.assertEqual(program.stdout.readline(), line + "\n")
                program.stdin.close()
                self.assertEqual(program.wait(60), 0)

    def test_ends_quietly_when_nobody_reads(self):
        with subprocess.Popen([PROGRAM, "translate", "-m", AVERAGED, "-o", "/dev/stdout"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as program:
            program.stdin.write("1 2\n")
            program.stdin.flush()
            self.assertEqual(program.stdout.readline(), "1 2\n")
            program.stdout.close()
            program.stdin.write("1 2\n")
            program.stdin.close()
            self.assertEqual(program.wait(60), 141)
            self.assertNotIn("error", program.stderr.read())
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

    def test_writes_an_n_best_list_of_one(self):
        self.assertRegex(self.translates("--n-best", "1", lines=["1 2"])[0], r"^0 \|\|\| 1 2 \|\|\| F0= -[\d.e-]+ \|\|\| -[\d.e-]+$")
        self.assertEqual(self.translates("--translate.n_best", "1", lines=["1 2"]), ["1 2"])
        self.assertEqual(len(json.loads(self.translates("--json", "--n-best", "1", lines=['{"text": "1 2"}'])[0])["translations"]), 1)

    def test_says_that_translations_are_cut(self):
        cut = ("translate", "-m", AVERAGED, "--max-length", "4")
        said = self.ends(*cut, text="1\n1 2 3\n4 5\n6 7 8\n").stderr
        self.assertIn("warning line 2: its translation ends where it met a limit (--max-length, ", said)
        self.assertRegex(said, r"warning [23] translations end where they met a limit")
        self.assertEqual(said.count("\n"), 2)
        self.assertEqual(self.ends(*cut, text="1\n").stderr, "")

    def test_has_flags_for_keys_of_the_configuration(self):
        def scored(*flags):
            return self.translates("--scores", *flags, lines=["7 7 1 0 3 2", "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0"])

        endless, default = ("--translate.repetition_penalty", "0.05"), scored()
        for flag, value, *others in (("--length-penalty", "0.2"), ("--length-penalty-type", "gnmt"), ("--max-length-ratio", "0.1", *endless),
                                     ("--no-repeat-ngram-size", "1"), ("--repetition-penalty", "3")):
            found = scored(flag, value, *others)
            self.assertEqual(found, scored("--translate." + flag[2:].replace("-", "_"), value, *others), flag)
            self.assertNotEqual(found, scored(*others) if others else default, flag)

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

    def test_replaces_the_fields_of_an_earlier_translation(self):
        line = json.dumps({"text": "1 2", "id": 7, "translation": "x", "score": "x", "log_prob": "x", "alignment": "0-0", "truncated": True,
                           "translations": []})
        one = json.loads(self.translates("--json", lines=[line])[0])
        self.assertEqual(list(one), ["text", "id", "translation", "score", "log_prob"])
        self.assertEqual(one["translation"], "1 2")
        several = json.loads(self.translates("--json", "--n-best", "2", lines=[line])[0])
        self.assertEqual((list(several), len(several["translations"])), (["text", "id", "translations"], 2))

    def test_takes_an_empty_line_of_json_for_an_empty_text(self):
        first, second, third = (json.loads(line) for line in self.translates("--json", lines=[json.dumps({"text": "1 2"}), "", "  "]))
        self.assertEqual([first["translation"], second["translation"], third["translation"]], ["1 2", "", ""])

    def test_refuses_json_that_goes_too_deep(self):
        for line in ('{"text": "1", "x": ' + "[" * 400000 + "]" * 400000 + "}", '{"text": ' + "[" * 400000):
            self.assertIn("nested more than 100 deep", self.refuses("translate", "-m", AVERAGED, "--json", text=line + "\n"))

    def test_writes_into_what_is_no_file(self):
        self.assertEqual(self.prints("translate", "-m", AVERAGED, "-o", "/dev/stdout", text="1 2\n"), "1 2\n")
        self.assertEqual(self.prints("translate", "-m", AVERAGED, "-o", "/dev/null", text="1 2\n"), "")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        os.symlink(path("target.out"), path("link.out"))
        write("target.out", "")
        self.prints("translate", "-m", AVERAGED, "-o", path("link.out"), text="1 2\n")
        self.assertTrue(os.path.islink(path("link.out")))
        self.assertEqual(read("target.out"), "1 2\n")

    def test_adds_to_what_a_redirected_file_holds(self):
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            for mode in ("a", "w"):
                with open(path("redirected"), mode, encoding="utf-8") as file:
                    if mode == "w":
                        file.write("before\n")
                        file.flush()
                    self.ends("translate", "-m", AVERAGED, "-o", name, text="1 2\n", stdout=file)
                self.assertTrue(read("redirected").endswith("1 2\n"))
                self.assertTrue(mode == "a" or read("redirected") == "before\n1 2\n", name)

    def test_leaves_a_file_its_permissions_and_its_links(self):
        os.chmod(write("private.out", "x"), 0o600)
        self.prints("translate", "-m", AVERAGED, "-o", path("private.out"), text="1 2\n")
        self.assertEqual((stat.S_IMODE(os.stat(path("private.out")).st_mode), read("private.out")), (0o600, "1 2\n"))
        os.symlink("to_come.out", path("dangling.out"))
        self.prints("translate", "-m", AVERAGED, "-o", path("dangling.out"), text="1 2\n")
        self.assertTrue(os.path.islink(path("dangling.out")))
        self.assertEqual(read("to_come.out"), "1 2\n")

    def test_does_not_write_over_what_it_reads(self):
        text = write("both", "1 2\n")
        for words in (("translate", "-m", AVERAGED, "-i", text), ("score", "-m", AVERAGED, "--src", text, "--tgt", text), ("vocab", "-i", text)):
            self.assertIn(f"{text} is read, and would be written over; name another", self.refuses(*words, "-o", text))
        kept = write("kept.src", "1 2\n")
        message = self.refuses("score", "-m", AVERAGED, "--src", kept, "--tgt", text, "--filter", FOLDER)
        self.assertIn(f"{kept} is read, and would be written over", message)
        self.assertEqual((read("both"), read("kept.src")), ("1 2\n", "1 2\n"))

    def test_refuses_a_device_that_is_none(self):
        self.assertIn('device is "gpu"; expected cpu, cuda or cuda:N', self.refuses("translate", "-m", AVERAGED, "--device", "gpu"))

    def test_removes_what_a_killed_one_left_beside_its_output(self):
        out = path("killed.out")
        with subprocess.Popen([PROGRAM, "translate", "-m", AVERAGED, "-o", out], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as killed:
            while not os.path.exists(f"{out}.tmp{killed.pid}"):
                time.sleep(0.01)
            killed.kill()
        self.assertTrue(os.path.exists(f"{out}.tmp{killed.pid}"))
        self.prints("translate", "-m", AVERAGED, "-o", out, text="1 2\n")
        self.assertEqual([name for name in os.listdir(FOLDER) if name.startswith("killed.out")], ["killed.out"])

    def test_begins_with_a_prefix(self):
        self.assertTrue(self.translates("--prefix", "5", lines=["1 2 3"])[0].startswith("5"))
        line = json.dumps({"text": "1 2", "prefix": "6"})
        self.assertTrue(json.loads(self.translates("--json", "--prefix", "5", lines=[line])[0])["translation"].startswith("6"))

    def test_begins_with_a_prefix_longer_than_the_source_lets_a_translation_be(self):
        prefix = " ".join(["7"] * 20)
        self.assertTrue(self.translates("--prefix", prefix, lines=["1"])[0].startswith(prefix))

    def test_says_which_prefix_is_longer_than_a_translation_may_be(self):
        ended = self.ends("translate", "-m", AVERAGED, "--max-length", "4", "--prefix", "5 5 5 5 5 5", text="1 2\n3\n")
        self.assertEqual(ended.stderr.count("--prefix is longer than a translation may be"), 1, "of all lines")
        line = json.dumps({"text": "1 2", "prefix": "5 5 5 5 5 5"})
        ended = self.ends("translate", "-m", AVERAGED, "--json", "--max-length", "4", text=line + "\n")
        self.assertIn("line 1: its prefix is longer than a translation may be", ended.stderr)

    def test_refuses_a_prefix_that_is_no_text(self):
        self.assertIn("--prefix: byte 3 is not UTF-8", self.refuses("translate", "-m", AVERAGED, "--prefix", b"5 \xff"))

    def test_says_that_a_line_is_longer_than_the_model_can_read(self):
        positions = ("--model.positions", "learned", "--model.max_positions", "16", "--data.max_length", "15")
        self.prints("train", "-c", small_run.configuration(FOLDER, "learned"), *positions, "--train.max_steps", "2", "--train.average_last", "0")
        ended = self.ends("translate", "-m", path("learned/last"), "--max-length", "1", text="2\n" + "1 " * 20 + "\n")
        self.assertEqual(ended.stdout.count("\n"), 2)
        self.assertIn("warning line 2 is longer than the model can read; its end is left out\n", ended.stderr)
        self.assertNotIn("line 1 is longer", ended.stderr)

    def test_says_that_a_prefix_cannot_be_written(self):
        ended = self.ends("translate", "-m", AVERAGED, "--prefix", "\u65e5", text="1 2\n3\n")
        self.assertEqual(ended.stderr.count("--prefix has what the vocabulary cannot write"), 1)

    def test_has_the_minimum_length_whatever_the_source(self):
        text = self.translates("--min-length", "40", lines=["1"])[0]
        self.assertGreater(len(text.replace(" ", "")), 14)  # the ratio alone would end it after 14 tokens

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

    def test_names_the_line_that_is_no_text_and_gives_those_before(self):
        bad = write("bad.txt", b"1 2\n4 5\n3 \xff 4\n")
        self.assertRegex(self.refuses("translate", "-m", AVERAGED, "-i", bad, stdout="1 2\n4 5\n"), "bad.txt:3.*UTF-8")

    def test_refuses_json_that_is_no_sentence(self):
        before = '{"text":"","translation":"","score":0.0,"log_prob":0.0}\n'
        for line, message in (("1 2", "is not a JSON object"),
                              ('{"id": 1}', 'is not a JSON object with "text"'),
                              ('{"text": 5}', '"text" is 5; expected a string'),
                              (r'{"text": "a\nb"}', '"text" holds a line break; expected one sentence'),
                              ('{"text": "1", "prefix": []}', '"prefix" is []; expected a string')):
            said = self.refuses("translate", "-m", AVERAGED, "--json", text=f'{{"text": ""}}\n{line}\n', stdout=before)
            self.assertIn(f":2: {message}", said)

    def test_refuses_a_layer_that_is_not_there(self):
        message = self.refuses("translate", "-m", AVERAGED, "--alignment", "word", "--alignment-layer", "9", text="1\n")
        self.assertIn("--alignment-layer is 9; the decoder's layers are 0 to 1", message)

    def test_takes_no_file_after_the_model_for_a_second_model(self):
        self.assertIn('"input.de" is not understood', self.refuses("translate", "-m", AVERAGED, "input.de", text="1\n"))


class OtherAttention(Verbs):
    """Attention that is not the checkpoint's."""

    def test_is_said_in_one_line(self):
        ended = self.start("translate", "-m", AVERAGED, "--model.attention.cross", "{type: topk, k: 1}", text="1 2\n")
        self.assertEqual((ended.returncode, ended.stdout.count("\n")), (0, 1), ended.stderr)
        self.assertEqual(ended.stderr.count("\n"), 1)
        self.assertIn("averaged: attention of the checkpoint: cross: softmax; used here: cross: {type: topk, k: 1, sparsify: always}",
                      ended.stderr)

    def test_that_is_the_same_says_nothing_and_changes_nothing(self):
        for words in (["--model.attention", "softmax"], ["--model.attention.cross.pattern", "full"]):
            ended = self.start("translate", "-m", AVERAGED, *words, text="1 2\n")
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "1 2\n", ""))

    def test_for_training_only_is_softmax_here(self):
        source = write("other.src", "1 2 3\n7 7 1 0\n")
        sparse = ["--model.attention.default", "{type: topk, k: 1}"]

        def scores(*flags):
            lines = self.prints("score", "-m", AVERAGED, "--src", source, "--tgt", source, *flags).splitlines()
            return [float(line.split("\t")[0]) for line in lines]

        for masked, dense in zip(scores(*sparse, "--model.attention.default.sparsify", "train"), scores()):
            self.assertAlmostEqual(masked, dense, delta=1e-4)
        self.assertNotEqual(scores(*sparse), scores())

    def test_scores_and_is_measured(self):
        source = write("other.src", "1 2 3\n")
        score = ["score", "-m", AVERAGED, "--src", source, "--tgt", source]
        self.assertNotEqual(self.prints(*score, "--model.attention.cross", "entmax15"), self.prints(*score))
        ended = self.ends("bench", "translate", "-m", AVERAGED, "-i", source, "--rounds", "1", "--model.attention.encoder_self", "sparsemax")
        self.assertIn("used here: encoder_self: sparsemax", ended.stderr)

    def test_that_the_checkpoint_has_no_parameters_for_is_refused(self):
        message = self.refuses("translate", "-m", AVERAGED, "--model.attention.encoder_self", "{type: entmax, alpha: learned}", text="1\n")
        self.assertIn("needs: encoder.layers.0.self_attention.numbers.alpha_logit", message)
        source = write("other.src", "1\n")
        message = self.refuses("score", "-m", AVERAGED, "--src", source, "--tgt", source, "--model.attention.cross", "rela")
        self.assertIn("needs: decoder.layers.0.cross_attention.norm.gain", message)

    def test_is_all_that_can_be_changed(self):
        message = self.refuses("translate", "-m", AVERAGED, "--model.d_ff", "7", text="1\n")
        self.assertIn('model.d_ff is "7"; a trained model keeps that', message)
        message = self.refuses("translate", "-m", AVERAGED, "--model.attention.cross.pattern", "local", text="1\n")
        self.assertIn("looks at the distance", message)
        source = write("other.src", "1\n")
        message = self.refuses("score", "-m", AVERAGED, "--src", source, "--tgt", source, "--translate.beam_size", "3")
        self.assertIn("--translate.beam_size has no meaning for score", message)


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

    def test_of_an_empty_side(self):
        files = ("--src", write("sides.src", "1 2\n\n\n"), "--tgt", write("sides.tgt", "\n1 2\n\n"))
        ended, impossible, empty = (line.split("\t") for line in self.prints("score", "-m", AVERAGED, *files).splitlines())
        self.assertLess(float(ended[0]), 0)
        self.assertEqual(ended[0], ended[1], "that of the end of the sentence")
        self.assertEqual((impossible, empty), (["nan", ""], ["0.000000", ""]))
        self.assertIsNone(json.loads(self.prints("score", "-m", AVERAGED, *files, "--json").splitlines()[1])["log_prob"])

    def test_is_a_mean_if_it_is_normalized(self):
        source = write("score.src", "1 2 3\n\n4 5\n")
        score = ("score", "-m", AVERAGED, "--src", source, "--tgt", source)
        lines = [[line.split("\t") for line in self.prints(*score, *flags).splitlines()] for flags in ((), ("--normalize",))]
        for (total, tokens), (mean, same) in zip(*lines):
            self.assertAlmostEqual(float(mean) * len(tokens.split()), float(total), delta=1e-4)
            self.assertEqual(tokens, same)

    def test_in_each_precision(self):
        source = write("score.src", "1 2 3\n4 5\n")
        exact, *others = ([float(line.split("\t")[0]) for line in self.prints("score", "-m", AVERAGED, "--src", source, "--tgt", source,
                                                                              "--precision", precision).splitlines()]
                          for precision in ("fp32", "bf16", "int8"))
        for rounded in others:
            self.assertNotEqual(rounded, exact)
            for one, other in zip(rounded, exact):
                self.assertAlmostEqual(one, other, delta=0.1)
        self.assertIn("int4", self.refuses("score", "-m", AVERAGED, "--src", source, "--tgt", source, "--precision", "int4"))

    def test_names_pieces_in_json(self):
        source = write("score.src", "1 2\n")
        line = json.loads(self.prints("score", "-m", AVERAGED, "--src", source, "--tgt", source, "--json"))
        self.assertEqual(line["tokens"][-1]["piece"], "</s>")

    def test_of_an_ensemble_is_the_mean_of_its_probabilities(self):
        source, last = write("score.src", "1 2 3\n"), os.path.join(RUN, "last")

        def tokens(*models):
            flags = [word for model in models for word in ("-m", model)]
            line = json.loads(self.prints("score", *flags, "--src", source, "--tgt", source, "--json"))
            return [math.exp(token["log_prob"]) for token in line["tokens"]]

        for together, first, second in zip(tokens(AVERAGED, last), tokens(AVERAGED), tokens(last)):
            self.assertAlmostEqual(together, (first + second) / 2, delta=1e-5)

    def test_refuses_a_line_that_is_no_sentence(self):
        long, short = write("long", "1\n" + "1 " * 20000 + "\n"), write("short", "1\n1\n")
        for src, tgt in ((long, short), (short, long)):
            message = self.refuses("score", "-m", AVERAGED, "--src", src, "--tgt", tgt)
            self.assertRegex(message, r"long:2: has \d+ tokens; expected at most 16384 .*split the line")

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

    def evaluates(self, *flags, hypotheses="The Cats sat on 3 mats\n", text=""):
        reference = write("ref", "the Cats sat on 3 maps\n")
        files = ("--hyp", write("hyp", hypotheses)) if hypotheses else ()
        return self.prints("evaluate", *files, "--ref", reference, "--metrics", "bleu", *flags, text=text)

    def test_reads_standard_input(self):
        hypotheses = "the Cats sat on 4 mats\n"
        self.assertEqual(self.evaluates(hypotheses="", text=hypotheses), self.evaluates(hypotheses=hypotheses))

    def test_with_words_in_chrf_and_with_intervals(self):
        reference = write("several.ref", "".join(f"{i} {i + 1} {i + 2} {i + 3} {i + 4}\n" for i in range(20)))
        words = ("evaluate", "--hyp", write("several.hyp", read("several.ref").replace("9", "x")), "--ref", reference, "--chrf-word-order", "2",
                 "--confidence", "--paired-bootstrap", "50")
        self.assertRegex(self.prints(*words), r"(?m)^chrF2\+\+ +[\d.]+ \([\d.]+ ± [\d.]+\)  nrefs:1\|bs:50\|.*nw:2\|")
        scores = json.loads(self.prints(*words, "--json"))["scores"]
        for metric in ("bleu", "chrf", "ter"):
            self.assertGreater(scores[metric]["interval"], 0)
            self.assertAlmostEqual(scores[metric]["mean"], scores[metric]["score"], delta=scores[metric]["interval"])

    def test_does_not_score_a_byte_order_mark(self):
        self.assertEqual(self.evaluates(hypotheses="\ufeffThe Cats sat on 3 mats\n"), self.evaluates())

    def test_finds_no_difference_where_there_is_none(self):
        hypotheses = "".join(f"{i} {i + 1} {i + 2} {i + 3} x\n" for i in range(20))
        words = ["evaluate", "--hyp", write("one", hypotheses), write("same", hypotheses.replace("\n", " \r\n")[:-2]), "--ref", write("ref", hypotheses.replace("x", "y")),
                 "--metrics", "bleu", "--paired-bootstrap", "100"]
        self.assertIn("same has the translations of the baseline: there is no difference", self.prints(*words))
        self.assertEqual(json.loads(self.prints(*words, "--json"))["systems"][1]["scores"]["bleu"]["p_value"], 1)

    def test_refuses_what_is_no_code_of_a_language(self):
        for code, meant in (("chinese", "a language's code of two or three letters"), ("jp", 'a language\'s code, "ja"')):
            self.assertIn(f'--tgt-lang is "{code}"; expected {meant}', self.refuses("evaluate", "--ref", "x", "--tgt-lang", code))

    def test_without_case_and_with_another_tokenizer(self):
        plain, lower, characters = (json.loads(self.evaluates("--json", *flags))["scores"]["bleu"]
                                    for flags in ((), ("--lowercase",), ("--tokenize", "char")))
        self.assertLess(plain["score"], lower["score"])
        self.assertLess(plain["score"], characters["score"])
        for bleu, case, tokenizer in ((plain, "mixed", "13a"), (lower, "lc", "13a"), (characters, "mixed", "char")):
            self.assertIn(f"case:{case}|", bleu["signature"])
            self.assertIn(f"tok:{tokenizer}|", bleu["signature"])


class Average(Verbs):
    def test_of_named_checkpoints_and_of_the_last(self):
        steps = sorted((name for name in os.listdir(RUN) if name.startswith("step_")), key=lambda name: int(name[5:]))
        self.assertGreaterEqual(len(steps), 2)
        named = [os.path.join(RUN, name) for name in steps[-2:]]
        self.prints("average", "-o", path("named"), *named)
        self.prints("average", "-o", path("last_2"), "--last", "2", RUN)
        for file in ("named", "last_2"):
            self.assertEqual(read_bytes(file, "model.safetensors"), read_bytes(AVERAGED, "model.safetensors"), file)

    def test_refuses_what_is_no_checkpoint(self):
        self.assertIn("nowhere", self.refuses("average", "-o", path("x"), path("nowhere")))


class Quantize(Verbs):
    def quantized(self, precision):
        folder = path("rounded_to_" + precision)
        self.prints("quantize", "-m", RUN, "-o", folder, "--precision", precision)
        return folder

    def test_translates_as_rounding_at_load_does(self):
        text = "".join(line + "\n" for line in LINES)
        for precision in ("int8", "bf16"):
            expected = self.prints("translate", "-m", AVERAGED, "--precision", precision, "--scores", text=text)
            self.assertEqual(self.prints("translate", "-m", self.quantized(precision), "--scores", text=text), expected, precision)

    def test_is_smaller_and_info_says_so(self):
        folder = self.quantized("int8")
        sizes = [os.path.getsize(os.path.join(model, "model.safetensors")) for model in (folder, AVERAGED)]
        self.assertLess(sizes[0], 0.35 * sizes[1])
        text = self.prints("info", "-m", folder)
        self.assertIn("weights          rounded to int8, ", text)
        self.assertIn("precision: int8", text)

    def test_scores_and_is_measured(self):
        folder = self.quantized("bf16")
        source = write("rounded.src", "1 2 3\n4 5\n")
        self.assertEqual(len(self.prints("score", "-m", folder, "--src", source, "--tgt", source).splitlines()), 2)
        measured = json.loads(self.prints("bench", "translate", "-m", folder, "-i", source, "--rounds", "1", "--json"))
        self.assertEqual(measured["precision"], "bf16")

    def test_neither_averages_nor_trains(self):
        folder = self.quantized("int8")
        self.assertIn("cannot average " + folder, self.refuses("average", "-o", path("x"), folder, AVERAGED))
        self.assertIn("cannot train on " + folder, self.refuses(
            "train", "-c", small_run.configuration(FOLDER, "on_rounded"), "--train.init_from", folder,
            "--train.reset", "[optimizer, lr, data, best]"))
        self.assertIn("cannot round " + folder, self.refuses("quantize", "-m", folder, "-o", path("x")))

    def test_replaces_nothing_but_a_rounded_model(self):
        self.assertIn("name another folder", self.refuses("quantize", "-m", RUN, "-o", AVERAGED))
        self.assertIn("is no checkpoint", self.refuses("quantize", "-m", AVERAGED, "-o", FOLDER))


class Align(Verbs):
    def test_refuses_a_pipe(self):
        self.assertIn("is read more than once", self.refuses("align", "-m", RUN, "--src", "/dev/stdin", "--tgt", path("train.txt"), text="1 2\n"))


class Shortlist(Verbs):
    def shortlist(self, name, *flags):
        corpus = path("train.txt")
        self.prints("shortlist", "-m", RUN, "--src", corpus, "--tgt", corpus, "-o", path(name), *flags)
        return path(name)

    def test_lets_the_right_translations_through(self):
        for flags in ((), ("--best", "1", "--frequent", "0")):
            self.assertEqual(self.translates("--shortlist", self.shortlist("list", *flags)), LINES, flags)

    def test_does_not_depend_on_the_batch_or_on_threads(self):
        listed = self.shortlist("list", "--best", "2", "--frequent", "1", "--threads", "1")
        self.assertEqual(read(self.shortlist("list_2", "--best", "2", "--frequent", "1", "--threads", "2")), read(listed))
        together = self.translates("--shortlist", listed, "--scores", "--precision", "int8")
        self.assertEqual(self.translates("--shortlist", listed, "--scores", "--precision", "int8", "--batch-tokens", "1"), together)

    def test_takes_links(self):
        links = [" ".join(f"{i}-{i}" for i in range(len(line.split()))) for line in read("train.txt").splitlines()]
        linked = self.shortlist("linked", "--alignments", write("links", "\n".join(links) + "\n"), "--best", "3", "--frequent", "0")
        self.assertEqual(self.translates("--shortlist", linked), LINES)
        flags = ("shortlist", "-m", RUN, "--src", path("train.txt"), "--tgt", path("train.txt"), "-o", path("x"), "--alignments")
        self.assertIn("short:2: is the last line of links", self.refuses(*flags, write("short", "\n".join(links[:2]) + "\n")))
        self.assertIn("far:1: link 0-99 is out of range", self.refuses(*flags, write("far", "\n".join(["0-99", *links[1:]]) + "\n")))
        self.assertRegex(self.refuses(*flags, write("more", "\n".join([*links, "0-0"]) + "\n")), r"more:1501: is there, but \S+ has no such line")
        self.assertFalse(os.path.exists(path("x")))

    def test_refuses_texts_without_a_line(self):
        message = self.refuses("shortlist", "-m", RUN, "--src", "/dev/null", "--tgt", "/dev/null", "-o", path("x"))
        self.assertIn("/dev/null and /dev/null hold no pairs of sentences", message)
        self.assertFalse(os.path.exists(path("x")))

    def best(self, src, tgt, *flags):
        """The candidates of each source token that has some, by a shortlist of these texts."""
        texts = ("--src", write("list.src", src), "--tgt", write("list.tgt", tgt))
        self.prints("shortlist", "-m", RUN, *texts, "-o", path("of_texts"), "--frequent", "0", *flags)
        return [line.split() for line in read("of_texts").splitlines()[2:] if line.strip()]

    def test_pairs_source_tokens_with_target_tokens(self):
        draw = random.Random(1)
        lines = [[draw.randrange(10) for _ in range(draw.randint(2, 7))] for _ in range(200)]
        src = "".join(" ".join(map(str, line)) + "\n" for line in lines)
        tgt = "".join(" ".join(str(int(digit < 3)) for digit in line[1:] + line[:1]) + "\n" for line in lines)
        links = "".join(" ".join(f"{i}-{(i - 1) % len(line)}" for i in range(len(line))) + "\n" for line in lines)
        for flags in (("--best", "1"), ("--alignments", write("links", links))):
            found = self.best(src, tgt, *flags)
            self.assertEqual([len(ids) for ids in found], [1] * 10, flags)
            self.assertEqual(sorted(collections.Counter(ids[0] for ids in found).values()), [3, 7], flags)

    def test_takes_links_of_words_and_of_pieces(self):
        by_words = self.best("34\n", "56\n", "--alignments", write("links", "0-0\n"))  # each digit of these words is a piece
        self.assertEqual([len(ids) for ids in by_words], [2, 2])
        by_pieces = self.best("34\n", "56\n", "--alignments", write("links", "0-1 1-0\n"), "--level", "subword")
        self.assertEqual([len(ids) for ids in by_pieces], [1, 1])
        self.assertEqual({ids[0] for ids in by_pieces}, set(by_words[0]))

    def test_of_the_first_pairs_is_one_of_a_shorter_text(self):
        first = self.best("1\n", "5\n")
        self.assertEqual(self.best("1\n2\n", "5\n6\n", "--max-pairs", "1"), first)
        self.assertEqual(self.best("1\n2\n", "5\n6\n", "--max-pairs", "1", "--alignments", write("links", "0-0\n0-0\n")), first)
        self.assertNotEqual(self.best("1\n2\n", "5\n6\n"), first)

    def test_of_more_iterations_finds_what_a_frequent_word_hides(self):
        texts = ("1 2\n1 2\n1\n1\n", "5 5 6\n5 5 6\n5\n5\n", "--best", "1")
        (one,), (two,) = self.best(*texts, "--iterations", "1")
        self.assertEqual(one, two)  # of 5, which is there twice as often as 6
        (one,), (two,) = self.best(*texts)
        self.assertNotEqual(one, two)

    def test_is_refused_before_the_work_where_it_cannot_be_written(self):
        flags = ("shortlist", "-m", RUN, "--src", path("train.txt"), "--tgt", write("short", "1\n"), "-o")  # of other lengths
        self.assertIn("-o is empty", self.refuses(*flags, ""))
        self.assertIn("there is no folder " + path("none"), self.refuses(*flags, path("none/list")))

    def test_of_other_vocabularies_or_no_shortlist_is_refused(self):
        text = "lacuna-shortlist 1 " + "0" * 32 + " 1 1\n"
        for name, content, message in (("other", text, "other:1: the shortlist was made for other vocabularies"),
                                       ("none", "1 2 3\n", "none:1: is no shortlist")):
            self.assertIn(message, self.refuses("translate", "-m", AVERAGED, "--shortlist", write(name, content), text="1\n"))


class Look(Verbs):
    def test_info_says_what_a_model_is(self):
        text = self.prints("info", "-m", AVERAGED)
        for fact in ("step             240", "averaged from    2 checkpoints", "d_model: 64"):
            self.assertIn(fact, text)

    def test_bench_measures_training_and_translating(self):
        measured = json.loads(self.prints("bench", "train", "-c", small_run.configuration(FOLDER, "measured"), "--steps", "3",
                                          "--folder", path("bench"), "--json"))
        source = write("bench.src", "1 2 3\n4 5\n")
        translated = json.loads(self.prints("bench", "translate", "-m", AVERAGED, "-i", source, "--rounds", "1", "--json",
                                            "--translate.precision", "bf16"))
        self.assertEqual((translated["precision"], translated["device"]), ("bf16", "cpu"))
        self.assertIn('device is "cuda:99"', self.refuses("bench", "translate", "-m", AVERAGED, "-i", source, "--device", "cuda:99"))
        self.assertIn('device is "cuda:99"', self.refuses("bench", "attention", "--device", "cuda:99"))
        for report, rate in ((measured, "tgt_tokens_per_second"), (translated, "output_tokens_per_second")):
            self.assertGreater(report[rate], 0)
            self.assertGreater(report["matrix_product_share"], 0)
            self.assertLess(report["matrix_product_share"], 1)


class Log(Verbs):
    WARNS = ("translate", "-m", AVERAGED, "--max-length", "4", "--prefix", "5 5 5 5 5 5")

    def test_has_the_lines_of_its_level(self):
        source = write("log.src", "1 2\n")
        informs = ("shortlist", "-m", RUN, "--src", source, "--tgt", source, "-o", path("log.list"))
        for flags, informed, warned in (((), True, True), (("--quiet",), False, True), (("--log-level", "warning"), False, True),
                                        (("--log-level", "error"), False, False), (("--log-level", "off"), False, False)):
            for verb, line, expected in ((informs, "info of the first 1 pairs", informed), (self.WARNS, "warning --prefix is longer", warned)):
                said = self.ends(*verb, *flags, text="1 2\n").stderr
                self.assertEqual(bool(said), expected, said)
                self.assertRegex(said, rf"(?m)^\[[\d: -]+\] {line}" if expected else "^$")
        self.assertIn("does not exist", self.refuses("translate", "-m", path("none"), "--log-level", "off"))

    def said_on_a_terminal(self, **environment):
        terminal, its_end = pty.openpty()
        plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        self.ends(*self.WARNS, text="1 2\n", stderr=its_end, env={**plain, "TERM": "xterm", **environment})
        os.close(its_end)
        text = os.read(terminal, 1 << 16).decode()
        os.close(terminal)
        self.assertIn("warning", text)
        return text

    def test_is_coloured_on_a_terminal_unless_colour_is_not_wanted(self):
        self.assertIn("\x1b[", self.said_on_a_terminal())
        self.assertIn("\x1b[", self.said_on_a_terminal(NO_COLOR=""))
        self.assertNotIn("\x1b[", self.said_on_a_terminal(NO_COLOR="1"))


class Vocab(Verbs):
    def test_trains_a_model_that_training_takes(self):
        self.prints("vocab", "-i", path("train.txt"), "-o", path("my.model"), "--vocab-size", "24", "--type", "bpe")
        self.prints("train", "-c", small_run.configuration(FOLDER, "vocab"), "--data.spm_model", path("my.model"),
                    "--train.max_steps", "2", "--train.save_every", "2", "--train.average_last", "0")

    def trains(self, *flags):
        text = write("vocab.txt", "aaa bbb ccc aab bba cca abcd dcba\n" * 400 + "aé\n" + "".join(f"{number:b}\n" for number in range(99)))
        self.prints("vocab", "-i", text, "-o", path("of_text.model"), "--vocab-size", "24", "--type", "bpe", *flags)
        return read_bytes("of_text.model")

    def test_samples_lines(self):
        whole = self.trains()
        self.assertEqual(self.trains("--sample-lines", "500"), whole)
        self.assertNotEqual(self.trains("--sample-lines", "50"), whole)

    def test_leaves_rare_characters_out(self):
        every, frequent = (self.trains("--character-coverage", coverage).count("é".encode()) for coverage in ("1", "0.99"))
        self.assertLess(frequent, every)


if __name__ == "__main__":
    unittest.main()
