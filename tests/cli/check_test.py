#!/usr/bin/env python3
"""`lacuna check`, run as a user would: check_test.py PROGRAM"""
import os
import unittest

import small_run
from verbs import AVERAGED, CORPUS, FOLDER, RUN, Verbs, path, setUpModule


class Check(Verbs):
    def check(self, *overrides, run="checked"):
        text = self.prints("check", "-c", small_run.configuration(FOLDER, run), *overrides)
        self.assertIn("nothing stands in the way", text)
        return text

    def refuses_check(self, *overrides, run="checked"):
        return self.refuses("check", "-c", small_run.configuration(FOLDER, run), *overrides)

    def test_finds_nothing_and_writes_nothing(self):
        before = sorted(os.listdir(FOLDER))
        self.check()
        self.assertEqual(sorted(os.listdir(FOLDER)), sorted({*before, "checked.yaml"}))

    def test_of_a_run_that_goes_on_starts_from_its_checkpoint_and_writes_nothing(self):
        before = sorted(os.listdir(RUN))
        self.assertRegex(self.check(run="run"), r"(?m)^starts from +\S+/run/step_240$")
        self.assertEqual(sorted(os.listdir(RUN)), before)

    def test_refuses_a_run_without_a_folder(self):
        self.assertIn("run is empty; expected the folder", self.refuses_check("--run", "''"))

    def test_refuses_the_folder_of_another_run_unless_it_may_go(self):
        other = ["--model.d_ff", "48"]
        self.assertIn("holds a run of another configuration", self.refuses_check(*other, run="run"))
        self.assertNotIn("starts from", self.check(*other, "--train.overwrite", "true", run="run"))

    def test_refuses_a_start_that_training_would_refuse(self):
        last = os.path.join(RUN, "last")
        self.assertIn("nowhere does not exist", self.refuses_check("--train.init_from", path("nowhere")))
        self.assertIn("holds weights only", self.refuses_check("--train.init_from", AVERAGED))
        self.assertIn("weights do not fit the model", self.refuses_check("--train.init_from", last, "--model.d_ff", "48"))
        small_run.write_digits(path("others.txt"), 100, 2)
        others = ["--data.train", f"[{CORPUS.format(path('others.txt'))}]"]
        self.assertIn("the training corpora are not those", self.refuses_check("--train.init_from", last, *others))
        self.assertIn("starts from", self.check("--train.init_from", last, *others, "--train.reset", "[data]"))

    def test_refuses_sentences_beyond_learned_positions(self):
        positions = ["--model.positions", "learned", "--model.max_positions", "20", "--data.max_length"]
        self.assertIn("model.max_positions is 20, and data.max_length 20 lets sentences of 21 tokens in", self.refuses_check(*positions, "20"))
        self.check(*positions, "19")

    def test_refuses_two_sets_of_one_name(self):
        corpus = CORPUS.format(path("train.txt"))
        self.assertIn('two sets to score are called "train"', self.refuses_check("--data.valid", f"[{corpus}, {corpus}]"))

    def test_looks_for_sacrebleu_if_there_are_test_sets(self):
        corpus = CORPUS.format(path("train.txt"))
        self.assertIn("/nowhere", self.refuses_check("--data.test", corpus, "--sacrebleu", "/nowhere"))

    def test_says_what_its_numbers_leave_open(self):
        text = self.check("--train.batch_tokens", "auto", "--train.max_steps", "0")
        self.assertRegex(text, r"(?m)^batch_tokens +auto: these numbers are of 4096")
        self.assertRegex(text, r"(?m)^end +none of train.max_steps, .* is set: training goes on until it is stopped")
        self.assertNotRegex(text, r"(?m)^time ")

    def test_takes_the_nearest_end(self):
        text = self.check("--train.max_epochs", "1000000000", "--train.max_steps", "0", "--train.max_hours", "2")
        self.assertRegex(text, r"(?m)^time +about 2\.0 hours")

    def test_writes_the_cache_that_is_named(self):
        self.assertIn(f"written to {path('cache')} (data.cache)", self.check("--data.cache", path("cache")))
        self.assertTrue(os.listdir(path("cache")))


if __name__ == "__main__":
    unittest.main()
