#!/usr/bin/env python3
"""analyze and score --filter with trained models, run as a user would: analyze_test.py PROGRAM SOURCE_FOLDER REPORT_FOLDER

Leaves the report of two models in REPORT_FOLDER, for report_test.py.
"""
import csv
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import unittest

import digit_models
import small_run
from program import FOLDER, PROGRAM, Program, path, read, write

SOURCE, REPORT_FOLDER = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))


def setUpModule():
    global SOFTMAX, RELA, TEXT, GOLD
    SOFTMAX, RELA, TEXT, GOLD = digit_models.train()


class Analyze(Program):
    def analyzes(self, *flags, models=None):
        arguments = [word for model in models or [SOFTMAX] for word in ("-m", model)]
        self.prints("analyze", *arguments, "--src", TEXT, "--tgt", TEXT, "-o", path("out"), *flags)
        return json.loads(read("out/analysis.json"))

    def refuses_analysis(self, *flags, src=None, tgt=None, model=None):
        return self.refuses("analyze", "-m", model or SOFTMAX, "--src", src or TEXT, "--tgt", tgt or TEXT, "-o", path("refused"), *flags)

    def test_of_two_models_is_one_report_with_both(self):
        analysis = self.analyzes("--gold", GOLD, "--shuffle-references", "--importance-sentences", "3", models=[SOFTMAX, RELA])
        softmax, rela = analysis["models"]
        self.assertEqual((softmax["pairs"], len(softmax["places"])), (30, 1 + 2 + 2))
        self.assertTrue(all(place["sparsity"] == 0 and place["null_rate"] == 0 for place in softmax["places"]))
        self.assertTrue(any(place["sparsity"] > 0.1 for place in rela["places"]))
        for model in (softmax, rela):
            self.assertEqual(len(model["alignment"]["layers"]), 2)
            self.assertEqual(model["importance"]["pairs"], 3)
            for layer in model["alignment"]["layers"]:
                for step in ("normal", "shifted"):
                    best = layer[step]["heads"][layer[step]["best_head"]]
                    self.assertEqual(best["aer"], min(head["aer"] for head in layer[step]["heads"]))
                    self.assertLessEqual(best["interval"][0], best["aer"])
                    self.assertGreaterEqual(best["interval"][1], best["aer"])
        self.assertEqual(set(rela["places"][0]["diversity"]), {"1.0", "0.5", "0.25", "0.1"})
        self.assertLessEqual({"sparsity", "null_rate", "entropy", "support"}, set(rela["places"][0]["shuffled"]))
        html = read("out/report.html")
        for text in (SOFTMAX, RELA, "prefers-color-scheme: dark", "</html>"):
            self.assertIn(text, html)
        self.assertLess(len(html), 3_000_000)
        shutil.copy(path("out/report.html"), REPORT_FOLDER)

    def test_tables_hold_what_the_json_holds(self):
        analysis = self.analyzes("--gold", GOLD)
        rows = list(csv.DictReader(read("out/measures.csv").splitlines()))
        pooled = {(row["site"], int(row["layer"]), row["measure"]): float(row["value"]) for row in rows if row["head"] == "all"}
        for place in analysis["models"][0]["places"]:
            self.assertAlmostEqual(pooled[place["site"], place["layer"], "entropy"], place["entropy"], delta=1e-4)
        self.assertEqual({row["step"] for row in csv.DictReader(read("out/alignment.csv").splitlines())}, {"normal", "shifted"})

    def test_only_leaves_the_rest_out_and_says_what_is_missing(self):
        model = self.analyzes("--only", "sparsity,alpha")["models"][0]
        self.assertEqual([note.split(":")[0] for note in model["notes"]], ["alpha"])
        self.assertNotIn("entropy", model["places"][0])

    def test_of_another_attention_than_the_checkpoints(self):
        small_run.run(PROGRAM, "train", "-c", small_run.configuration(FOLDER, "topk"), "--model.attention", "{type: topk, k: 2, sparsify: train}")
        for flags, sites in (((), set()), (("--model.attention.cross.sparsify", "always"), {"cross"})):
            analysis = self.analyzes(*flags, models=[path("topk")])
            self.assertEqual({place["site"] for place in analysis["models"][0]["places"] if place["sparsity"] > 0}, sites)
            self.assertEqual(analysis.get("overrides"), " ".join(flags) or None)

    def test_refuses_other_keys_and_words(self):
        self.assertIn("--translate.beam_size has no meaning for analyze", self.refuses_analysis("--translate.beam_size", "3"))
        self.assertIn('model.d_ff is "7"; a trained model keeps that', self.refuses_analysis("--model.d_ff", "7"))
        self.assertIn("needs: decoder.layers.0.cross_attention.norm.gain", self.refuses_analysis("--model.attention.cross", "rela"))
        self.assertIn("--explor is not a flag", self.refuses_analysis("--explor", "3"))
        self.assertIn('"more" is not understood', self.refuses_analysis("more"))
        for verb in ("analyze", "align"):
            self.assertIn("--model.attention.cross.sparsify always", self.prints(verb, "--help"))

    def test_saves_weights(self):
        self.analyzes("--save-weights", "2-3", "--save-layers", "0", "--save-heads", "1")
        with open(path("out/attention.safetensors"), "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        self.assertEqual({name for name in header if name != "__metadata__"},
                         {f"line.{line}.{site}.0" for line in (2, 3) for site in ("encoder_self", "decoder_self", "cross")})
        pieces = json.loads(read("out/attention.json"))
        self.assertEqual(header["line.2.cross.0"]["shape"], [1, len(pieces["2"]["tgt"]), len(pieces["2"]["src"])])

    def test_leaves_nothing_of_an_earlier_one_in_its_folder(self):
        self.analyzes("--gold", GOLD, "--save-weights", "1", "--importance-sentences", "2", models=[SOFTMAX, RELA])
        self.assertTrue(os.path.exists(path("out/attention.1.safetensors")))
        self.analyzes("--gold", GOLD, "--save-weights", "1")
        write("out/notes.txt", "mine")
        self.assertEqual(set(os.listdir(path("out"))), {"analysis.json", "measures.csv", "report.html", "alignment.csv", "attention.safetensors",
                                                        "attention.json", "notes.txt"})
        self.analyzes()
        self.assertEqual(set(os.listdir(path("out"))), {"analysis.json", "measures.csv", "report.html", "notes.txt"})
        os.remove(path("out/notes.txt"))

    def test_shows_and_resamples_as_many_as_wanted(self):
        analysis = self.analyzes("--gold", GOLD, "--explore", "2", "--bootstrap", "1")
        found = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', read("out/report.html"), re.S)
        self.assertEqual([sentence["line"] for sentence in json.loads(found[1])["sentences"]], [0, 1])
        for head in analysis["models"][0]["alignment"]["layers"][0]["normal"]["heads"]:
            self.assertEqual(*head["interval"])  # of one resample

    def test_refuses_gold_links_that_do_not_fit(self):
        lines = read("gold").splitlines()
        message = self.refuses_analysis("--gold", write("short", "\n".join(lines[:-1]) + "\n"))
        self.assertRegex(message, r"short has 29 lines and .*text has 30")
        message = self.refuses_analysis("--gold", write("far", "\n".join(["0-99"] + lines[1:]) + "\n"))
        self.assertIn("far:1: link 0-99 is out of range", message)
        message = self.refuses_analysis("--gold", write("odd", "\n".join(["0:0"] + lines[1:]) + "\n"))
        self.assertIn('odd:1: "0:0" is not a link', message)
        message = self.refuses_analysis("--gold", write("none.gold", "\n" * len(lines)))
        self.assertIn("none.gold: none of its 30 lines has a link", message)
        message = self.refuses_analysis("--gold", write("hostile", "\x1b[2J" + "x" * 900000 + "\n" * len(lines)))
        self.assertIn(r'hostile:1: "\u001b[2Jxxx', message)
        self.assertLess(len(message), 5000)

    def test_says_that_gold_links_count_from_one(self):
        from_one = write("from_one", re.sub(r"\d+", lambda number: str(int(number[0]) + 1), read("gold")))
        self.assertIn("say --gold-base 1", self.refuses_analysis("--gold", from_one))
        best = [min(head["aer"] for head in self.analyzes(*flags)["models"][0]["alignment"]["layers"][1]["shifted"]["heads"])
                for flags in (("--gold", from_one, "--gold-base", "1"), ("--gold", GOLD))]
        self.assertEqual(*best)

    def test_leaves_out_and_counts_a_line_that_is_too_long(self):
        text = write("long", "1 2\n" + "1 " * 5000 + "\n" + "\n3\n")
        ended = self.ends("analyze", "-m", SOFTMAX, "-m", RELA, "--src", text, "--tgt", text, "--importance-sentences", "4", "-o", path("of_long"))
        said = ("1 of 4 pairs is left out: a side has more than 4096 tokens (the model's table of positions, or what can be looked at) or 4096 words; "
                "the first is line 2")
        for model in (SOFTMAX, RELA):
            self.assertEqual(ended.stderr.count(f"{model}: {said}"), 1, ended.stderr)
        for model in json.loads(read("of_long/analysis.json"))["models"]:
            self.assertEqual([model[key] for key in ("pairs", "empty_pairs", "long_pairs")], [2, 1, 1])

    def test_leaves_out_a_line_of_words_that_have_no_token(self):
        text = write("no_tokens", "1 2\n" + "\x01 " * 100000 + "1 2\n3\n")
        for flags in (("analyze", "-o", path("of_no_tokens"), "--gold", write("no_tokens.gold", "0-0\n0-0\n0-0\n")), ("align",)):
            ended = self.ends(*flags, "-m", SOFTMAX, "--src", text, "--tgt", text)
            self.assertIn("1 of 3 pairs", ended.stderr)
            self.assertIn("or 4096 words; the first is line 2", ended.stderr)

    def test_notices_before_the_first_model_that_a_file_cannot_be_written(self):
        for name in ("report.html", "analysis.json", "alignment.csv", "attention.safetensors"):
            os.makedirs(path("taken", name))
            said = self.refuses("analyze", "-m", SOFTMAX, "--src", TEXT, "--tgt", TEXT, "-o", path("taken"), "--gold", GOLD, "--save-weights", "1")
            self.assertIn(f"{name}: is a folder; expected a file to write to", said)
            self.assertNotIn("not measured", said)
            self.assertEqual(os.listdir(path("taken")), [name])
            os.rmdir(path("taken", name))
        text = write("taken/measures.csv", read("text"))
        self.assertIn("is read, and would be written over", self.refuses("analyze", "-m", SOFTMAX, "--src", text, "--tgt", TEXT, "-o", path("taken")))
        self.assertEqual(read("taken/measures.csv"), read("text"))

    def test_measures_that_one_of_two_models_has(self):
        learns = digit_models.train_briefly("learns", "--model.attention.cross", "{type: entmax, alpha: learned}")
        both = ("analyze", "-m", SOFTMAX, "-m", learns, "--src", TEXT, "--tgt", TEXT)
        first, second = self.analyzes("--only", "alpha", models=[SOFTMAX, learns])["models"]
        self.assertEqual((first["notes"], second["notes"]), (["alpha: no head learns one"], []))
        self.assertTrue(any("numbers" in place for place in second["places"]))
        said = self.refuses(*both, "--only", "span,calibration", "-o", path("of_none"))
        self.assertIn(f"{SOFTMAX}, {learns}: nothing to analyse: span: no head learns one; calibration: no layer is calibrated", said)
        self.assertNotIn("not measured", said)
        self.assertFalse(os.path.exists(path("of_none")))

    def test_refuses_flags_that_would_do_nothing(self):
        self.assertIn("--bootstrap requires --gold", self.refuses_analysis("--bootstrap", "50"))
        for flag in ("--gold", "--save-weights"):
            self.assertIn(f"{flag} is empty; expected a value", self.refuses_analysis(flag, ""))
        for flag in ("--save-layers", "--save-heads"):
            self.assertIn(f"{flag} is empty; expected a value", self.refuses_analysis("--save-weights", "1", flag, ""))
        self.assertIn('--save-weights is "1,"; expected numbers', self.refuses_analysis("--save-weights", "1,"))
        pair = ("--src", TEXT, "--tgt", TEXT)
        self.assertIn("-o is empty; expected a folder", self.refuses("analyze", "-m", SOFTMAX, *pair, "-o", ""))
        for again in (SOFTMAX, SOFTMAX + "/"):
            said = self.refuses("analyze", "-m", SOFTMAX, "-m", again, *pair, "-o", path("of_twins"))
            self.assertIn(f"-m is {again} more than once", said)
        checkpoint = os.path.realpath(os.path.join(SOFTMAX, "last"))
        before = sorted(os.listdir(checkpoint))
        self.assertIn("which is a checkpoint; name another folder", self.refuses("analyze", "-m", SOFTMAX, *pair, "-o", checkpoint))
        self.assertEqual(sorted(os.listdir(checkpoint)), before)

    def test_notices_a_wrong_second_model_before_it_looks_at_the_first(self):
        flat = digit_models.train_briefly("flat", "--model.decoder_layers", "1")
        for model, flags, message in ((path("none"), (), "does not exist"), (FOLDER, (), "is neither a checkpoint"),
                                      (flat, ("--save-weights", "1", "--save-layers", "0-1"), f"from 0 to 0, such as 1-3,7, for {flat}")):
            said = self.refuses("analyze", "-m", SOFTMAX, "-m", model, "--src", TEXT, "--tgt", TEXT, "-o", path("not_made"), *flags)
            self.assertIn(message, said)
            self.assertNotIn("not measured", said)  # which is said of a model once it is analysed
            self.assertFalse(os.path.exists(path("not_made")))
        for model, flags, message in ((path("none"), ("--dev-src", TEXT, "--dev-tgt", TEXT, "--dev-gold", GOLD), "does not exist"),
                                      (flat, ("--layer", "1"), f"the decoder's layers are 0 to 0 in {flat}")):
            said = self.refuses("align", "-m", SOFTMAX, "--reverse-model", model, "--symmetrize", "union", "--src", TEXT, "--tgt", TEXT, *flags)
            self.assertIn(message, said)
            self.assertNotIn("aligns best", said)

    def test_refuses_what_makes_no_sense(self):
        self.assertIn("--only alignment needs gold links", self.refuses_analysis("--only", "alignment"))
        for measure in ("alpha", "span", "gate"):
            self.assertIn(f"nothing to analyse: {measure}: no head learns one", self.refuses_analysis("--only", measure))
        self.assertIn("nothing to analyse: calibration: no layer is calibrated", self.refuses_analysis("--only", "calibration"))
        self.assertIn("no sentence was sampled", self.refuses_analysis("--only", "importance", "--importance-sentences", "0"))
        self.assertIn("--only leaves alignment out", self.refuses_analysis("--gold", GOLD, "--only", "sparsity"))
        self.assertIn("--only leaves importance out", self.refuses_analysis("--importance-sentences", "3", "--only", "sparsity"))
        self.assertIn("--only leaves sparsity, null_rate", self.refuses_analysis("--shuffle-references", "--only", "diversity"))
        self.assertIn("--gold-base requires --gold", self.refuses_analysis("--gold-base", "1"))
        self.assertIn("cannot become one", self.refuses("analyze", "-m", SOFTMAX, "--src", TEXT, "--tgt", TEXT, "-o", TEXT))
        self.assertIn("entropi", self.refuses_analysis("--only", "entropi"))
        self.assertIn("from 1 to 30", self.refuses_analysis("--save-weights", "31"))
        self.assertIn("from 0 to 1", self.refuses_analysis("--save-weights", "1", "--save-layers", "2"))
        self.assertIn("from 0 to", self.refuses_analysis("--save-weights", "1", "--save-heads", "64"))
        nothing = write("nothing", "")
        self.assertIn("is empty", self.refuses_analysis(src=nothing, tgt=nothing))
        empty = write("empty_lines", "\n\n")
        self.assertIn("nothing to analyse", self.refuses_analysis(src=empty, tgt=empty))
        self.assertRegex(self.refuses_analysis(tgt=empty), r"30 lines and .* 2 lines|has 30 .*has 2")
        self.assertIn("does not exist", self.refuses_analysis(model=path("none")))


class Filter(Program):
    def filtering(self, *flags, model=None):
        """The words that rank pairs. Of 60 pairs every fourth has the target of another; two have an empty side."""
        small_run.write_digits(path("clean"), 60, 9)
        lines, draw = read("clean").splitlines(), random.Random(4)
        labels = ["mismatched" if i % 4 == 0 else "clean" for i in range(60)]
        targets = ["9 " + " ".join(str(draw.randrange(10)) for _ in range(5)) if label != "clean" else line for line, label in zip(lines, labels)]
        source, target = write("noisy.src", "\n".join(lines + ["", "1 2"]) + "\n"), write("noisy.tgt", "\n".join(targets + ["3", ""]) + "\n")
        write("labels", "\n".join(labels + ["clean", "clean"]) + "\n")
        return ["score", "-m", model or SOFTMAX, "--src", source, "--tgt", target, "--filter", path("filtered"), *flags]

    def test_ranks_mismatched_pairs_last(self):
        self.prints(*self.filtering("--keep", "0.7"))
        rows = list(csv.DictReader(read("filtered/scores.tsv").splitlines(), delimiter="\t"))
        self.assertEqual([row["line"] for row in rows], [str(i + 1) for i in range(62)])
        self.assertEqual(sum(row["kept"] == "1" for row in rows), 43)  # 0.7 of 62
        self.assertEqual([row["null_rate"] for row in rows[60:]], ["nan", "nan"])
        for side in ("src", "tgt"):
            kept, dropped, noisy = (read(name).splitlines() for name in (f"filtered/kept.{side}", f"filtered/dropped.{side}", f"noisy.{side}"))
            self.assertEqual(kept, [line for line, row in zip(noisy, rows) if row["kept"] == "1"])
            self.assertEqual(dropped, [line for line, row in zip(noisy, rows) if row["kept"] == "0"])
        self.assertIn("The worst pairs, the worst first:", read("filtered/report.txt"))
        script = [sys.executable, os.path.join(SOURCE, "scripts/filter_auc.py"), path("filtered/scores.tsv"), path("labels")]
        report = subprocess.run(script, check=True, capture_output=True, text=True).stdout
        area = float(re.search(r"(?m)^mismatched +15 +\S+ +nan +(\S+)", report)[1])
        self.assertGreater(area, 0.9)

    def test_by_null_rate_needs_a_model_with_null_rows(self):
        message = self.refuses(*self.filtering("--by", "null_rate"))
        self.assertIn("no cross attention of this model can attend to nothing", message)
        for flags in ((), ("--by", "null_contrast"), ("--by", "both")):
            self.prints(*self.filtering(*flags, model=RELA))
        self.assertIn("62 pairs ranked by both", read("filtered/report.txt"))

    def test_parts_are_ranked_as_the_whole(self):
        for by in ("null_rate", "null_contrast"):
            self.prints(*self.filtering("--by", by, model=RELA))
            whole = {name: read("filtered", name) for name in os.listdir(path("filtered"))}
            self.prints(*self.filtering("--by", by, "-o", path("parts_" + by), "--part-lines", "13", model=RELA))
            self.assertEqual({name: read("filtered", name) for name in os.listdir(path("filtered"))}, whole)
        message = self.refuses(*self.filtering("--by", "null_rate", "-o", path("parts_null_contrast"), "--part-lines", "13", model=RELA))
        self.assertIn('filter is "null rates, null contrasts, log-probabilities" there, and "null rates, log-probabilities" here', message)

    def test_a_contrast_needs_two_pairs(self):
        source, target = write("one.src", "1 2\n\n"), write("one.tgt", "3 4\n5\n")
        flags = ("--filter", path("too_few"), "--by", "null_contrast")
        message = self.refuses("score", "-m", RELA, "--src", source, "--tgt", target, *flags)
        self.assertIn(source, message)
        self.assertIn("1 of 2 pairs can be scored; expected 2 or more", message)

    def test_refuses_flags_that_do_not_fit(self):
        pair = ("--src", TEXT, "--tgt", TEXT)
        for value in ("nan", "1.5", "x"):
            self.assertIn(f'"{value}" is not a number from 0 to 1', self.refuses("score", "-m", SOFTMAX, *pair, "--filter", path("f"), "--keep", value))
        self.assertIn("--keep requires --filter", self.refuses("score", "-m", SOFTMAX, *pair, "--keep", "0.5"))
        self.assertIn("--json", self.refuses("score", "-m", SOFTMAX, *pair, "--filter", path("f"), "--json"))
        self.assertIn("is not a folder", self.refuses("score", "-m", SOFTMAX, *pair, "--filter", TEXT))


if __name__ == "__main__":
    unittest.main()
