#!/usr/bin/env python3
"""The other verbs that use a trained model, run as a user would: verbs_test.py PROGRAM"""
import collections
import json
import math
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

import small_run
from program import FOLDER, PROGRAM, path, read, read_bytes, write
from verbs import AVERAGED, LINES, RUN, Verbs, setUpModule


class Score(Verbs):
    def test_gives_what_translating_gave(self):
        source = write("score.src", "1 2 3\n\n4 5\n")
        best = self.translates("--json", lines=[json.dumps({"text": text}) for text in ("1 2 3", "4 5")])
        score = ("score", "-m", AVERAGED, "--src", source, "--tgt", source)
        scores = self.prints(*score, "--tokens").split("\n")
        self.assertEqual(len(scores), 4)
        self.assertEqual(scores[1], "0.000000\t")
        self.assertEqual(self.prints(*score), "".join(line.split("\t")[0] + "\n" for line in scores[:-1]))
        for line, translation in ((scores[0], best[0]), (scores[2], best[1])):
            total, tokens = line.split("\t")
            self.assertAlmostEqual(float(total), json.loads(translation)["log_prob"], delta=1e-3)
            self.assertAlmostEqual(float(total), sum(map(float, tokens.split())), delta=1e-4)

    def test_of_an_empty_side(self):
        files = ("--src", write("sides.src", "1 2\n\n\n"), "--tgt", write("sides.tgt", "\n1 2\n\n"))
        ended, impossible, empty = (line.split("\t") for line in self.prints("score", "-m", AVERAGED, *files, "--tokens").splitlines())
        self.assertLess(float(ended[0]), 0)
        self.assertEqual(ended[0], ended[1], "that of the end of the sentence")
        self.assertEqual((impossible, empty), (["nan", ""], ["0.000000", ""]))
        self.assertIsNone(json.loads(self.prints("score", "-m", AVERAGED, *files, "--json").splitlines()[1])["log_prob"])

    def test_is_a_mean_if_it_is_normalized(self):
        source = write("score.src", "1 2 3\n\n4 5\n")
        score = ("score", "-m", AVERAGED, "--src", source, "--tgt", source)
        lines = [[line.split("\t") for line in self.prints(*score, "--tokens", *flags).splitlines()] for flags in ((), ("--normalize",))]
        for (total, tokens), (mean, same) in zip(*lines):
            self.assertAlmostEqual(float(mean) * len(tokens.split()), float(total), delta=1e-4)
            self.assertEqual(tokens, same)

    def test_in_each_precision(self):
        source = write("score.src", "1 2 3\n4 5\n")
        exact, *others = ([float(line) for line in self.prints("score", "-m", AVERAGED, "--src", source, "--tgt", source,
                                                               "--precision", precision).splitlines()]
                          for precision in ("fp32", "bf16", "int8"))
        for rounded in others:
            self.assertNotEqual(rounded, exact)
            for one, other in zip(rounded, exact):
                self.assertAlmostEqual(one, other, delta=0.1)
        self.assertIn("int4", self.refuses("score", "-m", AVERAGED, "--src", source, "--tgt", source, "--precision", "int4"))

    def test_scores_nothing_where_a_flag_is_empty(self):
        source = write("score.src", "1 2 3\n")
        for flag, message in (("--precision", "translate.precision is empty; expected one of auto"),
                              ("--filter", "--filter is empty; expected a folder to write to")):
            self.assertIn(message, self.refuses("score", "-m", AVERAGED, "--src", source, "--tgt", source, flag, ""))

    def test_names_pieces_in_json(self):
        source = write("score.src", "1 2\n")
        line = json.loads(self.prints("score", "-m", AVERAGED, "--src", source, "--tgt", source, "--json"))
        self.assertEqual(line["tokens"][-1]["piece"], "</s>")
        self.assertIn("excludes", self.refuses("score", "-m", AVERAGED, "--src", source, "--tgt", source, "--json", "--tokens"))

    def test_of_an_ensemble_is_the_mean_of_its_probabilities(self):
        source, last = write("score.src", "1 2 3\n"), os.path.join(RUN, "last")

        def tokens(*models):
            flags = [word for model in models for word in ("-m", model)]
            line = json.loads(self.prints("score", *flags, "--src", source, "--tgt", source, "--json"))
            return [math.exp(token["log_prob"]) for token in line["tokens"]]

        for together, first, second in zip(tokens(AVERAGED, last), tokens(AVERAGED), tokens(last)):
            self.assertAlmostEqual(together, (first + second) / 2, delta=1e-5)

    def test_guards_as_translating_does(self):
        source, target = write("score.src", "1 2 3\n\n7 7 1 0 3 2\n"), write("score.tgt", "1 2 3\n\n7 7 1 0 3 2\n")
        for models in ((AVERAGED,), (AVERAGED, os.path.join(RUN, "last"))):
            flags = [word for model in models for word in ("-m", model)]
            scored = [json.loads(line)["guard"] for line in self.prints("score", *flags, "--src", source, "--tgt", target, "--json", "--guard").splitlines()]
            text = "".join(json.dumps({"text": line}) + "\n" for line in ("1 2 3", "7 7 1 0 3 2"))
            found = [json.loads(line)["guard"] for line in self.prints("translate", *flags, "--json", "--guard", text=text).splitlines()]
            self.assertIsNone(scored.pop(1))
            for one, other in zip(scored, found):
                self.assertEqual((one["flags"], one["loop"]), (other["flags"], other["loop"]))
                for measure in ("length_ratio", "unattended", "null_rate", "token_log_prob", "risk"):
                    self.assertAlmostEqual(one[measure], other[measure], delta=1e-3, msg=measure)
        loop = write("loop.tgt", "1 2 3 1 2 3 1 2 3 1 2 3\n\n1\n")
        first, _, third = (json.loads(line)["guard"]["flags"] if json.loads(line)["guard"] else None
                           for line in self.prints("score", "-m", AVERAGED, "--src", source, "--tgt", loop, "--json", "--guard").splitlines())
        self.assertTrue({"loop", "length_ratio"} <= set(first), first)
        self.assertIn("length_ratio", third)
        self.assertIn("--guard requires --json", self.refuses("score", "-m", AVERAGED, "--src", source, "--tgt", source, "--guard"))

    def test_refuses_a_line_that_is_no_sentence(self):
        long, short = write("long", "1\n" + "1 " * 20000 + "\n"), write("short", "1\n1\n")
        for src, tgt in ((long, short), (short, long)):
            message = self.ends("score", "-m", AVERAGED, "--src", src, "--tgt", tgt, code=2).stderr
            self.assertRegex(message, r"long:2: has \d+ tokens; expected at most 16384 .*split the line")

    def test_refuses_sides_of_other_lengths(self):
        ended = self.ends("score", "-m", AVERAGED, "--src", write("a", "1\n2\n"), "--tgt", write("b", "1\n"), code=2)
        self.assertEqual(len(ended.stdout.splitlines()), 1)  # the pair before
        self.assertRegex(ended.stderr, r"\b2\b.*\b1\b|\b1\b.*\b2\b")


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
        self.assertIn("--paired-bootstrap changes nothing for a single --hyp", self.refuses(*(word for word in words if word != "--confidence")))
        self.assertRegex(self.prints(*words), r"(?m)^chrF2\+\+ +[\d.]+ \([\d.]+ ± [\d.]+\)  nrefs:1\|bs:50\|.*nw:2\|")
        scores = json.loads(self.prints(*words, "--json"))["scores"]
        for metric in ("bleu", "chrf", "ter"):
            self.assertGreater(scores[metric]["interval"], 0)
            self.assertAlmostEqual(scores[metric]["mean"], scores[metric]["score"], delta=scores[metric]["interval"])

    def test_does_not_take_chinese_sentences_for_words(self):
        reference = write("zh.ref", "两个男人在街上走路。\n一只狗在跑。\n")
        words = ("evaluate", "--hyp", reference, "--ref", reference, "--metrics", "bleu")
        self.assertIn(f"--ref is {reference}, which has no spaces between words; expected --tgt-lang zh or ja", self.refuses(*words))
        self.assertIn("tok:zh", self.prints(*words, "--tgt-lang", "zh"))
        self.assertIn("tok:13a", self.prints(*words, "--tokenize", "13a"))
        self.assertIn("chrF2", self.prints(*words[:-1], "chrf"))  # which looks at characters

    def test_does_not_take_thai_sentences_for_words(self):
        hypotheses, reference = write("th.hyp", "แมวนั่งอยู่บนเสื่อ\n"), write("th.ref", "แมวนอนอยู่บนเสื่อ\n")
        words = ("evaluate", "--hyp", hypotheses, "--ref", reference)
        self.assertIn("which has no spaces between words; expected --tgt-lang th", self.refuses(*words))
        ended = self.ends(*words, "--tgt-lang", "tha_Thai")
        self.assertIn("tok:char", ended.stdout)
        self.assertIn("TER counts words between spaces, which tha_Thai does not have", ended.stderr)

    def test_does_not_score_a_byte_order_mark(self):
        self.assertEqual(self.evaluates(hypotheses="\ufeffThe Cats sat on 3 mats\n"), self.evaluates())

    def test_finds_no_difference_where_there_is_none(self):
        hypotheses = "".join(f"{i} {i + 1} {i + 2} {i + 3} x\n" for i in range(20))
        words = ["evaluate", "--hyp", write("one", hypotheses), write("same", hypotheses.replace("\n", " \r\n")[:-2]), "--ref", write("ref", hypotheses.replace("x", "y")),
                 "--metrics", "bleu", "--paired-bootstrap", "100"]
        self.assertIn("same does not differ from the baseline in bleu: p is 1 there", self.prints(*words))
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
        self.prints("average", "-o", path("new", "named"), *named)  # in a folder that is not there yet
        self.prints("average", "-o", path("last_2"), "--last", "2", RUN)
        for file in (os.path.join("new", "named"), "last_2"):
            self.assertEqual(read_bytes(file, "model.safetensors"), read_bytes(AVERAGED, "model.safetensors"), file)

    def test_of_the_last_says_which_it_leaves_out(self):
        command = [PROGRAM, "train", "-c", small_run.configuration(FOLDER, "stopped"), "--train.max_steps", "100000"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as training:
            while not os.path.exists(path("stopped", "step_80")) and training.poll() is None:
                time.sleep(0.01)
            training.send_signal(signal.SIGTERM)
        self.assertEqual(training.returncode, 143)
        newest = max(int(name[5:]) for name in os.listdir(path("stopped")) if name.startswith("step_"))
        said = self.ends("average", "-o", path("of_stopped"), "--last", "1", path("stopped")).stderr
        self.assertEqual(f"step_{newest} is left out: it was saved for an interruption" in said, newest % 80 != 0, said)

    def test_refuses_what_is_no_checkpoint(self):
        self.assertIn("nowhere", self.refuses("average", "-o", path("x"), path("nowhere")))
        self.assertIn(f"{RUN} is a run, not a checkpoint; say which of its checkpoints: --last N or --best N",
                      self.refuses("average", "-o", path("x"), RUN))


class Quantize(Verbs):
    def quantized(self, precision):
        folder = path("rounded", precision)
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
        step = os.path.realpath(path("run", "last"))
        self.assertIn("holds the state of a training run; name another folder", self.refuses("quantize", "-m", AVERAGED, "-o", step))


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

    def test_refuses_what_only_one_way_reads(self):
        flags = ("shortlist", "-m", RUN, "--src", path("train.txt"), "--tgt", path("train.txt"), "-o", path("x"))
        self.assertIn("--level requires --alignments", self.refuses(*flags, "--level", "subword"))
        self.assertIn("--alignments excludes --iterations", self.refuses(*flags, "--alignments", "links", "--iterations", "2"))

    def test_refuses_texts_without_a_line(self):
        message = self.refuses("shortlist", "-m", RUN, "--src", "/dev/null", "--tgt", "/dev/null", "-o", path("x"))
        self.assertIn("/dev/null and /dev/null: no pair to make a shortlist of: there is no line", message)
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
            for verb, line, expected in ((informs, "info of the first 1 pair: ", informed), (self.WARNS, "warning --prefix is longer", warned)):
                said = self.ends(*verb, *flags, text="1 2\n").stderr
                self.assertEqual(bool(said), expected, said)
                self.assertRegex(said, rf"(?m)^\[[\d: -]+\] {line}" if expected else "^$")
        self.assertIn("does not exist", self.refuses("translate", "-m", path("none"), "--log-level", "off"))

    def said_on_a_terminal(self, *words, **environment):
        terminal, its_end = pty.openpty()
        plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        self.ends(*words, text="1 2\n", stderr=its_end, env={**plain, "TERM": "xterm", **environment})
        os.write(its_end, b".")  # or reading might wait for something to be said
        os.close(its_end)
        text = os.read(terminal, 1 << 16).decode()
        os.close(terminal)
        return text

    def warns_on_a_terminal(self, **environment):
        text = self.said_on_a_terminal(*self.WARNS, **environment)
        self.assertIn("warning", text)
        return text

    def test_is_coloured_on_a_terminal_unless_colour_is_not_wanted(self):
        self.assertIn("\x1b[", self.warns_on_a_terminal())
        self.assertIn("\x1b[", self.warns_on_a_terminal(NO_COLOR=""))
        self.assertNotIn("\x1b[", self.warns_on_a_terminal(NO_COLOR="1"))

    def test_shows_on_a_terminal_how_far_the_lines_of_a_file_are_translated(self):
        source, out = write("shown.src", "1 2\n\n4 5\n"), path("shown.out")
        translate, bar, end = ("translate", "-m", AVERAGED, "-i", source), r"\r\[#+\.+\] 1 line, [\d.]+ lines/s", r"translated 3 lines in [\d.]+ s"
        self.assertRegex(self.said_on_a_terminal(*translate, "-o", out), rf"{bar}(?s:.*){end}")
        seen = self.said_on_a_terminal(*translate)  # translations may stand on the terminal, too
        self.assertNotRegex(seen, bar)
        self.assertRegex(seen, end)
        self.assertRegex(self.said_on_a_terminal("translate", "-m", AVERAGED, "-o", out), r"\r1 line, [\d.]+ lines/s")
        self.assertEqual(self.said_on_a_terminal(*translate, "-o", out, "--quiet"), ".")
        self.assertEqual(self.ends(*translate, "-o", out).stderr, "")  # which is no terminal
        bad = write("shown.bad", b"1 2\n3 \xff\n4 5\n")
        terminal, its_end = pty.openpty()
        self.assertEqual(self.start("translate", "-m", AVERAGED, "-i", bad, "-o", out, stderr=its_end).returncode, 2)
        os.close(its_end)
        self.assertRegex(os.read(terminal, 1 << 16).decode(), r"1 line, .*\r\x1b\[K(?s:.*)lacuna translate: error: .*shown.bad:2")
        os.close(terminal)

    def test_tells_whoever_types_that_it_is_ready(self):
        translator, terminal = pty.fork()
        if translator == 0:
            os.execv(PROGRAM, [PROGRAM, "translate", "-m", AVERAGED])
        said = b""
        while b"Ctrl-D ends" not in said:
            said += os.read(terminal, 1 << 16)
        os.write(terminal, b"1 2\n\x04")
        try:
            while text := os.read(terminal, 1 << 16):
                said += text
        except OSError:  # Linux's way to say that the other end is closed
            pass
        os.close(terminal)
        self.assertEqual(os.waitpid(translator, 0)[1], 0)
        self.assertRegex(said.decode(), r"one sentence a line; Ctrl-D ends\r\n(?s:.*)translated 1 line in")


class Train(Verbs):
    def test_that_has_ended_says_hours_with_the_digits_that_they_have(self):
        ended = self.ends("train", "-c", small_run.configuration(FOLDER), "--train.max_steps", "300", "--train.max_hours", "1e-7")
        self.assertRegex(ended.stderr, r"already finished: (?!0\.00 )\S+ of 1e-07 hours \(train\.max_hours\); nothing to do")

    def test_passes_over_records_that_are_none_of_its_own(self):
        shutil.copytree(RUN, path("noted"), symlinks=True)
        with open(path("noted", "metrics.jsonl"), "a", encoding="utf-8") as file:
            file.write('{"step":240,"kind":7}\n{"step":240,"kind":"test","set":7}\n')
        tested = write("tested.txt", "1 2 3\n4 5\n")
        command = ["train", "-c", small_run.configuration(FOLDER, "noted"), "--data.test", f"[{{src: {tested}, tgt: {tested}}}]"]
        self.assertIn("test set tested", self.ends(*command).stderr)
        self.assertIn("nothing to do", self.ends(*command).stderr)


class Columns(Verbs):
    """One file for both sides."""
    BRIEF = ("--train.max_steps", "20", "--train.log_every", "5", "--train.average_last", "0", "--train.valid_every", "10",
             "--train.valid_translate", "false", "--train.metric", "loss")

    def sets(self, part):
        """Flags that name a training corpus and a validation set of pairs, as two files each and as one."""
        files, columns = [], []
        for key, seed in (("train", 3), ("valid", 4)):
            small_run.write_digits(path(f"{key}_of_{part}.src"), 600, seed)
            sources = read(f"{key}_of_{part}.src").splitlines()
            targets = [" ".join(reversed(line.split())) for line in sources]
            tgt = write(f"{key}_of_{part}.tgt", "".join(line + "\n" for line in targets))
            tsv = write(f"{key}_of_{part}.tsv", "".join(f"{target}\t0.5\t{source}\n" for source, target in zip(sources, targets)))
            files += [f"--data.{key}", f"[{{src: {path(f'{key}_of_{part}.src')}, tgt: {tgt}}}]"]
            columns += [f"--data.{key}", f"[{{tsv: {tsv}, columns: [3, 1]}}]"]
        return files, columns

    def losses(self, run):
        records = [json.loads(line) for line in read(run, "metrics.jsonl").splitlines()]
        return [(record["kind"], record["step"], record["loss"]) for record in records if record["kind"] in ("train", "valid")]

    def test_train_as_two_files_do(self):
        files, columns = self.sets("same")
        for run, corpora in (("of_files", files), ("of_columns", columns)):
            self.ends("train", "-c", small_run.configuration(FOLDER, run), *self.BRIEF, *corpora)
        self.assertEqual(self.losses("of_columns"), self.losses("of_files"))
        self.assertEqual({kind for kind, _, _ in self.losses("of_files")}, {"train", "valid"})
        self.assertEqual(read_bytes("of_columns/spm.model"), read_bytes("of_files/spm.model"))

    def test_are_checked_as_two_files_are(self):
        said = [self.prints("check", "-c", small_run.configuration(FOLDER, "checked"), *self.BRIEF, *corpora) for corpora in self.sets("checked")]
        of_files, of_columns = ([line for line in text.splitlines() if line.startswith(("training data", "source lengths", "target lengths", "valid"))]
                                for text in said)
        self.assertEqual(len(of_files), 4)
        self.assertEqual(of_columns, of_files)

    def test_that_are_missing_are_refused_before_long_work(self):
        files, _ = self.sets("cut")
        cut = write("cut.tsv", "1 2\t3\n1 2 3\n")
        for key in ("train", "valid"):
            flags = [*files, f"--data.{key}", f"[{{tsv: {cut}}}]"]
            message = self.refuses("train", "-c", small_run.configuration(FOLDER, f"cut_{key}"), *self.BRIEF, *flags)
            self.assertIn("cut.tsv:2: the line has 1 column; expected the source in column 1 and the target in column 2", message)
            self.assertNotIn("training a SentencePiece model", message)

    def test_go_with_no_other_file(self):
        message = self.refuses("check", "-c", small_run.configuration(FOLDER, "twice"), "--data.valid", "{src: a, tgt: b, tsv: c}")
        self.assertIn('command line (--data.valid): data.valid: tsv is "c", which stands in place of src and tgt; remove it', message)


class SourcePrefix(Verbs):
    def test_is_put_before_the_sources_of_its_corpus(self):
        flags = ["--train.max_steps", "2", "--train.average_last", "0", "--data.spm_symbols", "[<bt>]", "--data.vocab_size", "22"]
        tagged = f"[{{src: {path('train.txt')}, tgt: {path('train.txt')}, src_prefix: <bt>}}]"
        self.ends("train", "-c", small_run.configuration(FOLDER, "tagged"), *flags, "--data.train", tagged)
        plain = self.prints("check", "-c", small_run.configuration(FOLDER, "plain"), *flags)
        text = self.prints("check", "-c", path("plain.yaml"), *flags, "--data.train", tagged)
        pairs, src, tgt = map(int, re.search(r"(?m)^training data +(\d+) pairs .*; (\d+) source and (\d+) target tokens", text).groups())
        self.assertEqual(pairs, 1500)
        self.assertGreaterEqual(src, tgt + pairs)  # by the tag, and what the model has between a tag and a word
        self.assertRegex(plain, rf"(?m)^training data +{pairs} pairs .*; (\d+) source and \1 target tokens")


class Vocab(Verbs):
    def test_trains_a_model_that_training_takes(self):
        self.prints("vocab", "-i", path("train.txt"), "-o", path("my.model"), "--vocab-size", "24", "--type", "bpe")
        self.prints("train", "-c", small_run.configuration(FOLDER, "vocab"), "--data.spm_model", path("my.model"),
                    "--train.max_steps", "2", "--train.save_every", "2", "--train.average_last", "0")

    def trains(self, *flags):
        text = write("vocab.txt", "aaa bbb ccc aab bba cca abcd dcba\n" * 400 + "aé\n" + "".join(f"{number:b}\n" for number in range(99)))
        self.prints("vocab", "-i", text, "-o", path("of_text.model"), "--type", "bpe", *(flags if "--vocab-size" in flags else ("--vocab-size", "24", *flags)))
        return read_bytes("of_text.model")

    def test_keeps_text_that_is_not_to_be_normalized(self):
        for rule, pieces in (("identity", "½"), ("nmt_nfkc", "1⁄2")):
            text = write("odd.txt", "½ Liter\n" * 20 + "Liter\n" * 20)
            ended = self.ends("vocab", "-i", text, "-o", path("odd.model"), "--vocab-size", "40", "--normalization", rule)
            self.assertRegex(ended.stderr, "--vocab-size is 40, and this text gives [0-9]+ pieces")
            for piece in pieces:
                self.assertIn(piece.encode(), read_bytes("odd.model"))

    def test_is_that_of_training(self):
        text = path("train.txt")
        self.prints("vocab", "--src", text, "--tgt", text, "-o", path("same.model"), "--vocab-size", "24", "--type", "bpe")
        self.assertEqual(read_bytes("same.model"), read_bytes("run/spm.model"))

    def test_keeps_targets_unless_told(self):
        text = write("odd.txt", "½ Liter\n" * 20 + "Liter\n" * 20)
        for flags, rules in ((("-i", text), (b"nmt_nfkc", b"identity")), (("--src", text), (b"nmt_nfkc",)), (("--tgt", text), (b"identity",)),
                             (("--src", text, "--tgt", text), (b"nmt_nfkc", b"identity"))):
            self.ends("vocab", *flags, "-o", path("odd.model"), "--vocab-size", "40")
            model = read_bytes("odd.model")
            self.assertEqual([rule for rule in (b"nmt_nfkc", b"identity") if rule in model], list(rules), flags)
            self.assertEqual("½".encode() in model, b"identity" in rules, flags)
        self.assertIn("--input excludes --src", self.refuses("vocab", "-i", text, "--src", text, "-o", path("odd.model")))

    def test_samples_lines(self):
        whole = self.trains()
        self.assertEqual(self.trains("--sample-lines", "500"), whole)
        self.assertNotEqual(self.trains("--sample-lines", "50"), whole)

    def test_has_symbols_and_bytes_that_are_asked_for(self):
        self.assertIn(b"<bt>", self.trains("--symbols", "<bt>,<2de>"))
        self.assertIn(b"<0x41>", self.trains("--byte-fallback", "--vocab-size", "300"))
        self.assertIn('--symbols holds "<s>"', self.refuses("vocab", "-i", path("vocab.txt"), "-o", path("no.model"), "--symbols", "<s>"))

    def test_leaves_rare_characters_out(self):
        every, frequent = (self.trains("--character-coverage", coverage).count("é".encode()) for coverage in ("1", "0.99"))
        self.assertLess(frequent, every)


if __name__ == "__main__":
    unittest.main()
