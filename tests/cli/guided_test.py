#!/usr/bin/env python3
"""Guided alignment and terms, as a user meets them: guided_test.py PROGRAM"""
import json
import unittest

import small_run
from program import FOLDER, PROGRAM, Program, path, read, read_bytes, write


def shifted(lines):
    """Links of each target word with the source word behind its own: none that a model learns by itself."""
    return "".join(" ".join(f"{i + 1}-{i}" for i in range(len(line.split()) - 1)) + "\n" for line in lines.splitlines())


def corpus(**others):
    """The training corpus, with links, for the command line."""
    values = {"src": path("train.txt"), "tgt": path("train.txt"), "links": path("train.links"), **others}
    return "{" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"


def command(run, *words, **others):
    return ["train", "-c", small_run.configuration(FOLDER, run), "--data.train", corpus(**others), "--train.average_last", "0", *words]


def setUpModule():
    global TEXT
    small_run.configuration(FOLDER)
    write("train.links", shifted(read("train.txt")))
    small_run.run(PROGRAM, *command("guided"))
    small_run.run(PROGRAM, "train", "-c", small_run.configuration(FOLDER, "plain"), "--train.average_last", "0")
    TEXT = path("text")
    small_run.write_digits(TEXT, 40, 5)
    write("gold", shifted(read("text")))


class GuidedAlignment(Program):
    def aer(self, links):
        return json.loads(self.prints("aer", "-i", write("found", links), "--gold", path("gold"), "--src", TEXT, "--tgt", TEXT, "--json"))["aer"]

    def test_a_guided_head_links_words(self):
        links = self.prints("align", "-m", path("guided"), "--src", TEXT, "--tgt", TEXT)
        self.assertLess(self.aer(links), 0.2)
        self.assertGreater(self.aer(self.prints("align", "-m", path("plain"), "--src", TEXT, "--tgt", TEXT)), 0.8)
        self.assertEqual(self.prints("align", "-m", path("guided"), "--src", TEXT, "--tgt", TEXT, "--layer", "0", "--head", "0"), links)

    def test_translations_are_linked_by_the_guided_head(self):
        words = ("translate", "-m", path("guided"), "-i", TEXT, "--alignment", "word")
        linked = self.prints(*words)
        self.assertEqual(self.prints(*words, "--alignment-layer", "0", "--alignment-head", "0"), linked)
        self.assertNotEqual(self.prints(*words, "--alignment-layer", "1"), linked)
        self.assertLess(self.aer("".join(line.split(" ||| ")[1] + "\n" for line in linked.splitlines())), 0.3)
        self.assertIn("the heads are 0 to 3", self.refuses(*words, "--alignment-head", "4"))

    def test_logs_its_loss_and_lowers_it(self):
        lines = [json.loads(line) for line in read("guided/metrics.jsonl").splitlines()]
        losses = [line["penalty"] for line in lines if line["kind"] == "train"]
        self.assertGreater(losses[0], 2 * losses[-1])
        self.assertTrue(all("penalty" not in json.loads(line) for line in read("plain/metrics.jsonl").splitlines()))

    def test_goes_on_bit_by_bit(self):
        brief = ("--train.max_steps", "40", "--train.save_every", "20", "--train.update_freq", "2")
        self.ends(*command("whole", *brief))
        self.ends(*command("parts", *brief, "--train.max_steps", "20"))
        self.ends(*command("parts", *brief))
        self.ends("launch", "-n", "2", "--", *command("ranks", *brief, "--train.update_freq", "1"))
        for run in ("parts", "ranks"):
            for file in ("model.safetensors", "trainer.safetensors"):
                self.assertEqual(read_bytes(run, "last", file), read_bytes("whole", "last", file), run)

    def test_weight_0_is_training_without_links(self):
        brief = ("--train.max_steps", "10")
        self.ends(*command("off", *brief, "--train.guided_alignment.weight", "0"))
        self.ends("train", "-c", small_run.configuration(FOLDER, "without"), "--train.average_last", "0", *brief)
        self.assertEqual(read_bytes("off/last/model.safetensors"), read_bytes("without/last/model.safetensors"))

    def test_a_column_and_sampled_pieces(self):
        lines = zip(read("train.txt").splitlines(), read("train.links").splitlines())
        write("train.tsv", "".join(f"{line}\t{line}\t{links}\n" for line, links in lines))
        self.ends("train", "-c", small_run.configuration(FOLDER, "column"), "--data.train", f"{{tsv: {path('train.tsv')}, links_column: 3}}",
                  "--train.average_last", "0", "--train.max_steps", "4", "--data.spm_alpha", "0.1", "--model.attention.cross", "entmax15")
        self.assertIn('"penalty"', read("column/metrics.jsonl"))

    def test_refuses_what_makes_no_sense(self):
        brief = ("--train.max_steps", "2")
        without = ("check", "-c", small_run.configuration(FOLDER, "without_links"))
        for words, message in (
            (command("wrong", *brief, "--train.guided_alignment.layer", "2"), "train.guided_alignment.layer is 2; the decoder's layers are 0 to 1"),
            (command("wrong", *brief, "--train.guided_alignment.head", "4"), "train.guided_alignment.head is 4; the heads of a layer are 0 to 3"),
            (command("wrong", *brief, "--model.attention.cross", "{type: rela, activation: gelu}"), "no alignment loss for the weights of rela"),
            (command("wrong", *brief, "--model.attention.cross", "calibrated"), "changed by a mask"),
            (command("wrong", *brief, links=path("none")), "none"),
            (command("wrong", *brief, links_column="3"), "links_column"),
            (command("wrong", *brief, "--data.valid", corpus()), "training alone reads links"),
            (command("wrong", *brief, links=write("short.links", "0-0\n")), "short.links has 1 line and"),
            (command("wrong", *brief, links=write("bad.links", "0-99\n" + read("train.links").split("\n", 1)[1])), "bad.links:1: link 0-99 is out of range"),
            ((*without, "--train.guided_alignment.weight", "0.2"), "train.guided_alignment needs links between words, and no corpus of data.train has any"),
            ((*without, "--train.guided_alignment.head", "0"), "or set its weight to 0"),
        ):
            self.assertIn(message, self.refuses(*words))

    def test_a_configuration_with_every_key_asks_for_no_links(self):
        dumped = write("dumped.yaml", self.prints("check", "-c", small_run.configuration(FOLDER, "without_links"), "--dump-config"))
        self.assertIn("guided_alignment", read("dumped.yaml"))
        self.ends("check", "-c", dumped)
        self.ends("check", "-c", dumped, "--train.guided_alignment.weight", "0")


class AlignWithoutAModel(Program):
    def test_links_words_by_how_often_they_occur_together(self):
        diagonal = "".join(" ".join(f"{i}-{i}" for i in range(len(line.split()))) + "\n" for line in read("train.txt").splitlines())
        links = self.prints("align", "--src", path("train.txt"), "--tgt", path("train.txt"))
        found = json.loads(self.prints("aer", "-i", write("counted", links), "--gold", write("diagonal", diagonal), "--json"))
        self.assertLess(found["aer"], 0.02)
        self.assertEqual(links.count("\n"), 1500)
        self.assertEqual(self.ends("align", "--src", path("train.txt"), "--tgt", path("train.txt")).stderr, "")

    def test_keeps_a_line_for_each_pair(self):
        source, target = write("some.src", "a b\n\nb c\n" + "x " * 300 + "\n"), write("some.tgt", "A B\nC\nB C\n" + "y " * 300 + "\n")
        ended = self.ends("align", "--src", source, "--tgt", target, "--symmetrize", "union")
        self.assertEqual([bool(line) for line in ended.stdout.split("\n")], [True, False, True, False, False])
        self.assertIn("1 pair gets an empty line: a side has more than 250 words", ended.stderr)
        self.assertIn("warning 4 pairs are few to align words by how often they occur together", ended.stderr)

    def test_refuses_what_needs_a_model(self):
        words = ("align", "--src", path("train.txt"), "--tgt", path("train.txt"))
        for flags in (("--layer", "0"), ("--level", "subword"), ("--reverse-model", path("plain"))):
            self.assertIn(f"{flags[0]} has no meaning without a model: -m is missing", self.refuses(*words, *flags))
        self.assertIn("--src and --tgt are missing", self.refuses("align"))


class Terms(Program):
    def translated(self, *flags, text):
        return self.prints("translate", "-m", path("plain"), *flags, text=text)

    def test_come_out_as_they_are_given(self):
        terms = write("terms.tsv", "# digits\n2\ttwo and\n5 6\tfifty-six\n")
        found = self.translated("--terms", terms, text="1 2 3\n3 4\n5 6 7\n2\n22 5\n")
        self.assertEqual(found.splitlines()[:4], ["1 two and 3", self.translated(text="3 4\n").strip(), "fifty-six 7", "two and"])
        self.assertNotIn("two", found.splitlines()[4])

    def test_of_a_line_go_before_those_of_the_file(self):
        terms = write("terms.tsv", "2\ttwo\n3\tthree\n")
        lines = [{"text": "1 2 3 4", "terms": {"2": "zwei"}}, {"text": "1 2 3 4"}, {"text": "8 1 4 9", "terms": {}}]
        given = "".join(json.dumps(line) + "\n" for line in lines)
        found = [json.loads(line) for line in self.translated("--json", "--terms", terms, text=given).splitlines()]
        self.assertEqual([line["translation"] for line in found[:2]], ["1 zwei three 4", "1 two three 4"])
        self.assertNotIn("alignment", found[0])
        self.assertEqual(found[0]["terms"], {"2": "zwei"})
        self.assertEqual(found[2]["translation"], self.translated(text="8 1 4 9\n").strip())
        linked = json.loads(self.translated("--json", "--alignment", "word", text=json.dumps(lines[0]) + "\n"))
        self.assertEqual(linked["alignment"], "0-0 1-1 2-2 3-3")

    def test_beside_other_kept_parts_and_sentences(self):
        terms = write("terms.tsv", "2\ttwo\n")
        found = self.translated("--split", "--terms", terms, text="1 2 {name} 3\n")
        self.assertEqual((found.count("two"), found.count("{name}")), (1, 1))

    def test_make_no_text_of_an_n_best_list_come_twice(self):
        terms = write("terms.tsv", "2\ttwo\n3\tthree\n")
        many = ("-b", "40", "--n-best", "40", "--terms", terms)
        found, drawn = (self.translated(*many, *flags, text="a 2 3\na 2\n2 a\n").splitlines() for flags in ((), ("--sampling", "full")))
        self.assertEqual(len({tuple(line.split(" ||| ")[:2]) for line in found}), len(found))
        self.assertEqual(len(drawn), 3 * 40)

    def test_refuses_wrong_terms(self):
        for text, message in (("2 two\n", ":1: the line has 1 column; expected two"), ("\ttwo\n", ":1: the source of a term is empty"),
                              ("2\t two\n", ":1: the target of a term is empty, or has spaces around it"),
                              ("2\ttwo\n2\tzwei\n", ':2: the term "2" is "zwei" here and "two" in'), ("# none\n", ": there is no term"),
                              ("a" * 1001 + "\tb\n", "has 1001 bytes, and at most 1000"), (b"\xff\tb\n", "not UTF-8")):
            file = write("wrong.tsv", text)
            self.assertIn(message, self.refuses("translate", "-m", path("plain"), "--terms", file, text="1\n"))
        for line, message in (({"terms": ["2"]}, '"terms" is ["2"]; expected an object'), ({"terms": {"2": 2}}, "expected a string, its translation"), ({"terms": {"": "x"}}, "source of a term is empty"),
                              ({"terms": {str(i): "x" for i in range(1001)}}, "1001 terms; expected 1000 at most")):
            given = json.dumps({"text": "1", **line}) + "\n"
            self.assertIn(message, self.refuses("translate", "-m", path("plain"), "--json", text=given))
        terms = write("terms.tsv", "2\ttwo\n")
        for flags in (("--format", "html"), ("--alignment", "subword")):
            self.refuses("translate", "-m", path("plain"), "--terms", terms, *flags, text="1\n")
        given = json.dumps({"text": "1 2", "terms": {"2": "two"}}) + "\n"
        self.assertIn("do not go with --alignment subword",
                      self.refuses("translate", "-m", path("plain"), "--json", "--alignment", "subword", text=given))


if __name__ == "__main__":
    unittest.main()
