#!/usr/bin/env python3
"""analyze, align, aer and score --filter with trained models, run as a user would: analyze_test.py PROGRAM SOURCE_FOLDER REPORT_FOLDER

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
import xml.etree.ElementTree as ElementTree

import small_run
from program import FOLDER, PROGRAM, Program, path, read, write

SOURCE, REPORT_FOLDER = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))


def train_briefly(name, *flags, configuration=None):
    """The run folder of a model that has learned nothing yet."""
    small_run.run(PROGRAM, "train", "-c", configuration or small_run.configuration(FOLDER, name), "--train.max_steps", "2", *flags)
    return path(name)


def train_in_pieces():
    """One whose corpus is cut into pieces; @@ joins a piece to the next one."""
    draw = random.Random(3)
    vocabulary = write("pieces.vocab", "".join(f"{digit}\n{digit}@@\n" for digit in range(10)))
    corpus = write("pieces.txt", "".join(f"{draw.randrange(10)}@@ {draw.randrange(10)} {draw.randrange(10)}\n" for _ in range(200)))
    return train_briefly("in_pieces", configuration=write("in_pieces.yaml", f"""run: {path("in_pieces")}
data: {{train: [{{src: {corpus}, tgt: {corpus}}}], tokenizer: none, vocab: {vocabulary}}}
model: {{preset: tiny, d_model: 64, encoder_layers: 1, decoder_layers: 2}}
train: {{batch_tokens: 1024}}
translate: {{joiner: "@@"}}
"""))


def setUpModule():
    """Two models that copy digits: every word's gold link is with the word at its own place."""
    global SOFTMAX, RELA, TEXT, GOLD
    SOFTMAX = small_run.train(PROGRAM, FOLDER)
    small_run.run(PROGRAM, "train", "-c", small_run.configuration(FOLDER, "rela"), "--model.attention", "rela")
    RELA = path("rela")
    TEXT = path("text")
    small_run.write_digits(TEXT, 30, 5)
    lengths = [len(line.split()) for line in read("text").splitlines()]
    GOLD = write("gold", "".join(" ".join(f"{i}-{i}" for i in range(length)) + "\n" for length in lengths))


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

    def test_pictures_are_drawn_of_it(self):
        self.analyzes("--gold", GOLD, "--shuffle-references", models=[SOFTMAX, RELA])
        script = [sys.executable, os.path.join(SOURCE, "scripts/attention_pictures.py"), "--out", path("pictures"), "--title", "Digits"]
        subprocess.run([*script, f"softmax,rela={path('out/analysis.json')}"], check=True, capture_output=True)
        drawn = [name for name in os.listdir(path("pictures")) if name.endswith(".svg")]
        self.assertEqual(len(drawn), 5)
        for name in drawn:
            texts = " ".join(element.text or "" for element in ElementTree.fromstring(read(f"pictures/{name}")).iter())
            self.assertIn("softmax", texts)
            self.assertIn("rela", texts)

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
        said = ("1 of 4 pairs are left out: a side has more than 4096 tokens (the model's table of positions, or what can be looked at) or 4096 words; "
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
        learns = train_briefly("learns", "--model.attention.cross", "{type: entmax, alpha: learned}")
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
        flat = train_briefly("flat", "--model.decoder_layers", "1")
        for model, flags, message in ((path("none"), (), "does not exist"), (FOLDER, (), "is neither a checkpoint"),
                                      (flat, ("--save-weights", "1", "--save-layers", "0-1"), f"from 0 to 0, such as 1-3,7, for {flat}")):
            said = self.refuses("analyze", "-m", SOFTMAX, "-m", model, "--src", TEXT, "--tgt", TEXT, "-o", path("not_made"), *flags)
            self.assertIn(message, said)
            self.assertNotIn("not measured", said)  # which is said of a model once it is analysed
            self.assertFalse(os.path.exists(path("not_made")))
        for model, flags, message in ((path("none"), ("--dev-src", TEXT, "--dev-tgt", TEXT, "--dev-gold", GOLD), "does not exist"),
                                      (flat, ("--layer", "1"), f"the decoder's layers are 0 to 0 in {flat}")):
            said = self.refuses("align", "-m", SOFTMAX, "--reverse-model", model, "--symmetrise", "union", "--src", TEXT, "--tgt", TEXT, *flags)
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


class Align(Program):
    def aligned(self, *flags):
        links = self.prints("align", "-m", SOFTMAX, "--src", TEXT, "--tgt", TEXT, *flags)
        self.assertEqual(links.count("\n"), 30)
        return links

    def test_links_words_in_range(self):
        for flags in ((), ("--layer", "0", "--head", "1", "--step", "normal")):
            aligned = self.aligned(*flags).splitlines()
            self.assertTrue(all(aligned))
            for links, line in zip(aligned, read("text").splitlines()):
                for link in links.split():
                    self.assertTrue(all(int(word) < len(line.split()) for word in link.split("-")), link)

    def test_takes_the_best_on_a_development_set(self):
        write("best", self.aligned("--dev-src", TEXT, "--dev-tgt", TEXT, "--dev-gold", GOLD))
        found = json.loads(self.prints("aer", "-i", path("best"), "--gold", GOLD, "--src", TEXT, "--tgt", TEXT, "--json"))["aer"]
        self.prints("analyze", "-m", SOFTMAX, "--src", TEXT, "--tgt", TEXT, "--gold", GOLD, "-o", path("aligned"))
        layers = json.loads(read("aligned/analysis.json"))["models"][0]["alignment"]["layers"]
        rates = [system["aer"] for layer in layers for step in ("normal", "shifted") for system in layer[step]["heads"] + [layer[step]["average"]]]
        self.assertAlmostEqual(found, min(rates), delta=1e-9)

    def test_by_another_attention_than_the_checkpoints(self):
        other = ("--model.attention.cross", "entmax15")
        ended = self.ends("align", "-m", SOFTMAX, "--reverse-model", SOFTMAX, "--symmetrise", "union", "--src", TEXT, "--tgt", TEXT, *other)
        self.assertEqual(ended.stderr.count("used here: cross: entmax15"), 2)
        lowest = ("--layer", "0", "--step", "shifted")
        self.assertNotEqual(self.aligned(*lowest, "--model.attention.cross", "{type: topk, k: 1}"), self.aligned(*lowest))

    def test_pieces_and_empty_lines(self):
        source = write("some", "1 2\n\n3\n")
        links = self.prints("align", "-m", SOFTMAX, "--src", source, "--tgt", source, "--level", "subword").split("\n")
        self.assertEqual((len(links), links[1]), (4, ""))
        said = self.ends("analyze", "-m", SOFTMAX, "--src", source, "--tgt", source, "-o", path("of_some")).stderr
        self.assertIn("1 of 3 pairs are left out: a side is empty", said)

    def test_a_line_that_is_too_long_gets_an_empty_one(self):
        source, target = write("long.src", "1 2\n3\n4 5\n"), write("long.tgt", "1 2\n" + "3 " * 5000 + "\n4 5\n")
        said = "1 of 3 pairs get an empty line: a side has more than 4096 tokens"
        for models, count in ((("-m", SOFTMAX), 1), (("-m", SOFTMAX, "--reverse-model", RELA, "--symmetrise", "union"), 2)):
            ended = self.ends("align", *models, "--src", source, "--tgt", target)
            first, second, third, end = ended.stdout.split("\n")
            self.assertTrue(first and third)
            self.assertEqual(second + end, "")
            self.assertEqual(ended.stderr.count(said), count, ended.stderr)
            self.assertIn("the first is line 2", ended.stderr)

    def test_words_are_whole_where_pieces_are_joined(self):
        model, text = train_in_pieces(), write("joined", "1@@ 2 3\n4 5@@ 6@@ 7 8@@ 9\n")
        pair = ("-m", model, "--src", text, "--tgt", text)
        for flags, counts in ((("--level", "word"), (2, 3)), (("--level", "subword"), (3, 6))):
            for links, count in zip(self.prints("align", *pair, *flags).splitlines(), counts):
                self.assertEqual([int(link.split("-")[1]) for link in links.split()], list(range(count)))
                self.assertLess(max(int(link.split("-")[0]) for link in links.split()), count)
        gold = write("joined.gold", "0-0 1-1\n0-0 1-1 2-2\n")
        self.prints("align", *pair, "--dev-src", text, "--dev-tgt", text, "--dev-gold", gold)
        self.prints("analyze", *pair, "--gold", gold, "-o", path("of_joined"))
        found = json.loads(read("of_joined/analysis.json"))["models"][0]["alignment"]["layers"][0]["normal"]["average"]
        self.assertEqual(found["links"], 5)  # softmax links every target word
        beyond = write("pieces.gold", "0-0 2-2\n0-0\n")
        for verb in ("analyze", "align"):
            flags = ("--gold", beyond, "-o", path("refused")) if verb == "analyze" else ("--dev-src", text, "--dev-tgt", text, "--dev-gold", beyond)
            self.assertIn("the sentences have 2 and 2 words", self.refuses(verb, *pair, *flags))

    def test_symmetrises_files(self):
        """Line 1: 0-0 and 2-1 are in both files, and the others touch them. Line 3: 2-0 has no free target word, 4-3 only free words."""
        forward, backward = write("forward", "0-0 1-1 2-1\n\n0-0 2-0\n"), write("backward", "0-0 1-2 2-1\n\n0-0 3-4\n")
        for kind, first, third in (("intersection", "0-0 2-1", "0-0"), ("union", "0-0 1-1 1-2 2-1", "0-0 2-0 4-3"),
                                   ("grow-diag-final-and", "0-0 1-1 1-2 2-1", "0-0 4-3")):
            links = self.prints("align", "--forward", forward, "--backward", backward, "--symmetrise", kind)
            self.assertEqual(links, f"{first}\n\n{third}\n", kind)

    def test_symmetrises_models_as_their_files(self):
        small_run.write_digits(path("other.src"), 30, 7)
        small_run.write_digits(path("other.tgt"), 30, 8)
        src, tgt, results = path("other.src"), path("other.tgt"), set()
        forward = write("forward", self.prints("align", "-m", SOFTMAX, "--src", src, "--tgt", tgt))
        backward = write("backward", self.prints("align", "-m", RELA, "--src", tgt, "--tgt", src))
        for kind in ("intersection", "union", "grow-diag-final-and"):
            links = self.prints("align", "-m", SOFTMAX, "--reverse-model", RELA, "--src", src, "--tgt", tgt, "--symmetrise", kind)
            self.assertEqual(links, self.prints("align", "--forward", forward, "--backward", backward, "--symmetrise", kind), kind)
            results.add(links)
        self.assertEqual(len(results), 3)

    def test_takes_the_best_of_each_direction_on_a_development_set(self):
        lines = read("text").splitlines()
        longer = write("longer", "".join(f"0 {line}\n" for line in lines))  # a word before those of the other side

        def gold(name, link):
            return write(name, "".join(" ".join(link.format(i, i + 1) for i in range(len(line.split()))) + "\n" for line in lines))

        def aligns(src, tgt, gold, *models):
            ended = self.ends("align", "-m", *models, "--src", src, "--tgt", tgt, "--dev-src", src, "--dev-tgt", tgt, "--dev-gold", gold)
            return ended.stdout, re.findall(r"info (.* aligns best, error rate .*)", ended.stderr)

        forward, first = aligns(TEXT, longer, gold("dev.gold", "{}-{}"), SOFTMAX)
        backward, second = aligns(longer, TEXT, gold("dev.turned", "{1}-{0}"), RELA)
        both, choices = aligns(TEXT, longer, path("dev.gold"), SOFTMAX, "--reverse-model", RELA, "--symmetrise", "union")
        self.assertEqual((choices, len(choices)), (first + second, 2))
        files = ("--forward", write("forward", forward), "--backward", write("backward", backward))
        self.assertEqual(both, self.prints("align", *files, "--symmetrise", "union"))

    def test_does_not_write_over_the_development_set(self):
        names = ("dev.own.src", "dev.own.tgt", "dev.own.gold")
        files = [write(name, read(other)) for name, other in zip(names, ("text", "text", "gold"))]
        flags = [word for flag, file in zip(("--dev-src", "--dev-tgt", "--dev-gold"), files) for word in (flag, file)]
        for name, file in zip(names, files):
            before = read(name)
            said = self.refuses("align", "-m", SOFTMAX, "--src", TEXT, "--tgt", TEXT, *flags, "-o", file)
            self.assertIn(f"{file} is read, and would be written over", said)
            self.assertEqual(read(name), before)

    def test_notices_before_a_development_set_that_links_cannot_be_written(self):
        pair = ("-m", SOFTMAX, "--src", TEXT, "--tgt", TEXT, "--dev-src", TEXT, "--dev-tgt", TEXT, "--dev-gold", GOLD)
        for output, message in ((FOLDER, "is a folder; expected a file"), (path("nowhere/links"), "there is no folder")):
            said = self.refuses("align", *pair, "-o", output)
            self.assertIn(message, said)
            self.assertNotIn("aligns best", said)

    def test_refuses_gold_links_that_tell_no_head_from_another(self):
        long = write("dev.long", "1 2\n" + "1 " * 5000 + "\n")  # the line with gold links is left out
        for name, links, message in (("dev.none", "\n\n", "none of its 2 lines has a link"), ("dev.other", "\n0-0\n", "finds any of these links")):
            said = self.refuses("align", "-m", SOFTMAX, "--src", TEXT, "--tgt", TEXT, "--dev-src", long, "--dev-tgt", long, "--dev-gold", write(name, links))
            self.assertIn(message, said)
            self.assertIn(path(name), said)
            self.assertNotIn("aligns best, error rate", said)

    def test_refuses_what_makes_no_sense(self):
        pair = ("--src", TEXT, "--tgt", TEXT)
        for flags, message in (
            ((), "-m MODEL is missing"),
            (("-m", SOFTMAX), "--src and --tgt are missing"),
            (("-m", SOFTMAX, *pair, "--layer", "2"), "the decoder's layers are 0 to 1"),
            (("-m", SOFTMAX, *pair, "--head", "64"), "the heads are 0 to"),
            (("-m", SOFTMAX, *pair, "--symmetrise", "union"), "--reverse-model and --symmetrise go together"),
            (("-m", SOFTMAX, *pair, "--dev-src", TEXT), "--dev-src, --dev-tgt and --dev-gold go together"),
            (("-m", SOFTMAX, *pair, "--dev-src", TEXT, "--dev-tgt", TEXT, "--dev-gold", ""), "--dev-gold is empty"),
            (("-m", SOFTMAX, *pair, "--dev-gold", ""), "--dev-gold is empty"),
            (("-m", SOFTMAX, *pair, "--layer", "0", "--dev-src", TEXT, "--dev-tgt", TEXT, "--dev-gold", GOLD), "a development set chooses"),
            (("-m", SOFTMAX, *pair, "--translate.beam_size", "3"), "--translate.beam_size has no meaning for align"),
            (("-m", SOFTMAX, *pair, "--model.d_ff", "7"), "a trained model keeps that"),
            (("-m", SOFTMAX, *pair, "--heads", "1"), "--heads is not a flag"),
            (("--forward", GOLD), "--forward and --backward go together"),
            (("--forward", GOLD, "--backward", GOLD, "--symmetrise", "union", "--model.attention", "softmax"), "no meaning with files of links"),
            (("--forward", GOLD, "--backward", GOLD), "need --symmetrise"),
            (("--forward", GOLD, "--backward", write("one", "0-0\n"), "--symmetrise", "union"), "expected as many lines"),
        ):
            self.assertIn(message, self.refuses("align", *flags, "-o", path("refused.links")))
        self.assertEqual([name for name in os.listdir(FOLDER) if name.startswith("refused.links")], [])


class Aer(Program):
    def test_of_the_gold_links_is_zero(self):
        self.assertRegex(self.prints("aer", "-i", GOLD, "--gold", GOLD), r"^AER 0\.00 \(95 % from 0\.00 to 0\.00\), precision 100\.00, recall 100\.00")

    def test_is_worked_out_by_hand(self):
        links, gold = write("links", "0-0 1-2\n2-2\n"), write("hand", "0-0 1-1 1?2\n0-0\n")
        found = json.loads(self.prints("aer", "-i", links, "--gold", gold, "--json"))
        self.assertAlmostEqual(found["aer"], 1 - (1 + 2) / (3 + 3))
        self.assertEqual((found["links"], found["sure"], found["sentences"]), (3, 3, 2))

    def test_counts_words_of_pieces_that_are_joined(self):
        pieces = write("aer_pieces", "1@@ 2 3\n4\n")
        flags = ("aer", "-i", write("beyond", "0-0 2-2\n0-0\n"), "--gold", write("joined_gold", "0-0 1-1\n0-0\n"), "--src", pieces, "--tgt", pieces)
        self.assertRegex(self.prints(*flags), "^AER ")
        self.assertIn("2 and 2 words", self.refuses(*flags, "--joiner", "@@"))
        self.assertIn('--joiner is "@@ "; expected what pieces end with', self.refuses(*flags, "--joiner", "@@ "))

    def test_refuses_files_that_do_not_fit(self):
        short = write("short_gold", "0-0\n")
        self.assertIn("expected as many lines", self.refuses("aer", "-i", GOLD, "--gold", short))
        from_one = write("from_one_too", re.sub(r"\d+", lambda number: str(int(number[0]) + 1), read("gold")))
        self.assertIn("say --gold-base 1", self.refuses("aer", "-i", GOLD, "--gold", from_one))
        self.assertIn("say --input-base 1", self.refuses("aer", "-i", from_one, "--gold", GOLD, "--src", TEXT, "--tgt", TEXT))
        self.assertIn("AER 0.00", self.prints("aer", "-i", from_one, "--gold", GOLD, "--input-base", "1"))
        self.assertIn("--src requires --tgt", self.refuses("aer", "-i", GOLD, "--gold", GOLD, "--src", TEXT))
        self.assertIn("--tgt is empty", self.refuses("aer", "-i", GOLD, "--gold", GOLD, "--src", TEXT, "--tgt", ""))

    def test_says_what_a_few_lines_that_never_name_word_zero_are_taken_for(self):
        few, zero = write("few", "1-1 2-2\n\n1-1\n"), write("few_from_zero", "0-0 1-1\n\n0-0\n")
        said = "few: no link in 3 lines names word 0; so few may count from 0 or from 1, and are taken to count from 0: say {0} 1 if they do not, {0} 0 if they do"
        ended = self.ends("aer", "-i", zero, "--gold", few)
        self.assertIn(said.format("--gold-base"), ended.stderr)
        self.assertEqual(ended.stderr.count("names word 0"), 1)
        self.assertIn(said.format("--input-base"), self.ends("aer", "-i", few, "--gold", zero).stderr)
        for base, rate in (("0", r"^AER 66\.67"), ("1", r"^AER 0\.00")):
            ended = self.ends("aer", "-i", zero, "--gold", few, "--gold-base", base)
            self.assertNotIn("names word 0", ended.stderr)
            self.assertRegex(ended.stdout, rate)

    def test_needs_a_gold_link(self):
        links, none = write("two_links", "0-0\n0-0\n"), write("no_links", "\n\n")
        self.assertIn("no_links: none of its 2 lines has a link", self.refuses("aer", "-i", links, "--gold", none))
        self.assertRegex(self.prints("aer", "-i", none, "--gold", links), r"^AER 100\.00")


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
