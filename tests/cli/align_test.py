#!/usr/bin/env python3
"""align and aer with trained models, run as a user would: align_test.py PROGRAM"""
import json
import os
import random
import re
import unittest

import digit_models
import small_run
from program import FOLDER, Program, path, read, write


def train_in_pieces():
    """One whose corpus is cut into pieces; @@ joins a piece to the next one."""
    draw = random.Random(3)
    vocabulary = write("pieces.vocab", "".join(f"{digit}\n{digit}@@\n" for digit in range(10)))
    corpus = write("pieces.txt", "".join(f"{draw.randrange(10)}@@ {draw.randrange(10)} {draw.randrange(10)}\n" for _ in range(200)))
    return digit_models.train_briefly("in_pieces", configuration=write("in_pieces.yaml", f"""run: {path("in_pieces")}
data: {{train: [{{src: {corpus}, tgt: {corpus}}}], tokenizer: none, vocab: {vocabulary}}}
model: {{preset: tiny, d_model: 64, encoder_layers: 1, decoder_layers: 2}}
train: {{batch_tokens: 1024}}
translate: {{joiner: "@@"}}
"""))


def setUpModule():
    global SOFTMAX, RELA, TEXT, GOLD
    SOFTMAX, RELA, TEXT, GOLD = digit_models.train()


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
        ended = self.ends("align", "-m", SOFTMAX, "--reverse-model", SOFTMAX, "--symmetrize", "union", "--src", TEXT, "--tgt", TEXT, *other)
        self.assertEqual(ended.stderr.count("used here: cross: entmax15"), 2)
        lowest = ("--layer", "0", "--step", "shifted")
        self.assertNotEqual(self.aligned(*lowest, "--model.attention.cross", "{type: topk, k: 1}"), self.aligned(*lowest))

    def test_pieces_and_empty_lines(self):
        source = write("some", "1 2\n\n3\n")
        links = self.prints("align", "-m", SOFTMAX, "--src", source, "--tgt", source, "--level", "subword").split("\n")
        self.assertEqual((len(links), links[1]), (4, ""))
        said = self.ends("analyze", "-m", SOFTMAX, "--src", source, "--tgt", source, "-o", path("of_some")).stderr
        self.assertIn("1 of 3 pairs is left out: a side is empty", said)

    def test_a_line_that_is_too_long_gets_an_empty_one(self):
        source, target = write("long.src", "1 2\n3\n4 5\n"), write("long.tgt", "1 2\n" + "3 " * 5000 + "\n4 5\n")
        said = "1 of 3 pairs gets an empty line: a side has more than 4096 tokens"
        for models, count in ((("-m", SOFTMAX), 1), (("-m", SOFTMAX, "--reverse-model", RELA, "--symmetrize", "union"), 2)):
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

    def test_symmetrizes_files(self):
        """Line 1: 0-0 and 2-1 are in both files, and the others touch them. Line 3: 2-0 has no free target word, 4-3 only free words."""
        forward, backward = write("forward", "0-0 1-1 2-1\n\n0-0 2-0\n"), write("backward", "0-0 1-2 2-1\n\n0-0 3-4\n")
        for kind, first, third in (("intersection", "0-0 2-1", "0-0"), ("union", "0-0 1-1 1-2 2-1", "0-0 2-0 4-3"),
                                   ("grow-diag-final-and", "0-0 1-1 1-2 2-1", "0-0 4-3")):
            for flag in ("--symmetrize", "--symmetrise"):
                links = self.prints("align", "--forward", forward, "--backward", backward, flag, kind)
                self.assertEqual(links, f"{first}\n\n{third}\n", kind)

    def test_symmetrizes_models_as_their_files(self):
        small_run.write_digits(path("other.src"), 30, 7)
        small_run.write_digits(path("other.tgt"), 30, 8)
        src, tgt, results = path("other.src"), path("other.tgt"), set()
        forward = write("forward", self.prints("align", "-m", SOFTMAX, "--src", src, "--tgt", tgt))
        backward = write("backward", self.prints("align", "-m", RELA, "--src", tgt, "--tgt", src))
        for kind in ("intersection", "union", "grow-diag-final-and"):
            links = self.prints("align", "-m", SOFTMAX, "--reverse-model", RELA, "--src", src, "--tgt", tgt, "--symmetrize", kind)
            self.assertEqual(links, self.prints("align", "--forward", forward, "--backward", backward, "--symmetrize", kind), kind)
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
        both, choices = aligns(TEXT, longer, path("dev.gold"), SOFTMAX, "--reverse-model", RELA, "--symmetrize", "union")
        self.assertEqual((choices, len(choices)), (first + second, 2))
        files = ("--forward", write("forward", forward), "--backward", write("backward", backward))
        self.assertEqual(both, self.prints("align", *files, "--symmetrize", "union"))

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
            ((), "--src and --tgt are missing"),
            (("-m", SOFTMAX), "--src and --tgt are missing"),
            (("-m", SOFTMAX, *pair, "--layer", "2"), "the decoder's layers are 0 to 1"),
            (("-m", SOFTMAX, *pair, "--head", "64"), "the heads are 0 to"),
            (("-m", SOFTMAX, *pair, "--symmetrize", "union"), "--reverse-model and --symmetrize go together"),
            (("-m", SOFTMAX, *pair, "--dev-src", TEXT), "--dev-src, --dev-tgt and --dev-gold go together"),
            (("-m", SOFTMAX, *pair, "--dev-src", TEXT, "--dev-tgt", TEXT, "--dev-gold", ""), "--dev-gold is empty"),
            (("-m", SOFTMAX, *pair, "--dev-gold", ""), "--dev-gold is empty"),
            (("-m", SOFTMAX, *pair, "--layer", "0", "--dev-src", TEXT, "--dev-tgt", TEXT, "--dev-gold", GOLD), "a development set chooses"),
            (("-m", SOFTMAX, *pair, "--translate.beam_size", "3"), "--translate.beam_size has no meaning for align"),
            (("-m", SOFTMAX, *pair, "--model.d_ff", "7"), "a trained model keeps that"),
            (("-m", SOFTMAX, *pair, "--heads", "1"), "--heads is not a flag"),
            (("--forward", GOLD), "--forward and --backward go together"),
            (("--forward", GOLD, "--backward", GOLD, "--symmetrize", "union", "--model.attention", "softmax"), "no meaning with files of links"),
            (("--forward", GOLD, "--backward", GOLD), "need --symmetrize"),
            (("--forward", GOLD, "--backward", write("one", "0-0\n"), "--symmetrize", "union"), "expected as many lines"),
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


if __name__ == "__main__":
    unittest.main()
