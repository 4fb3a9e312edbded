#!/usr/bin/env python3
"""How `lacuna train` goes on, run as a user would: going_on_test.py PROGRAM"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import small_run

PROGRAM = ""


class Training(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def start(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)

    def test_that_goes_on_keeps_its_vocabulary_whatever_the_files_are_called(self):
        configuration = small_run.configuration(self.folder.name, "renamed")
        brief = ["train", "-c", configuration, "--train.average_last", "0", "--train.max_steps"]
        self.assertEqual(self.start(*brief, "20").returncode, 0)
        shutil.copy(self.path("train.txt"), self.path("other.txt"))
        corpus = f"[{{src: {self.path('other.txt')}, tgt: {self.path('other.txt')}}}]"
        ended = self.start(*brief, "25", "--data.train", corpus)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("going on after step 20", ended.stderr)
        self.assertNotIn("training a SentencePiece model", ended.stderr)

    def test_scores_test_sets_that_an_interruption_left_out(self):
        configuration = small_run.configuration(self.folder.name, "tested")
        small_run.write_digits(self.path("test.txt"), 20, 2)
        command = ["train", "-c", configuration, "--train.max_steps", "20", "--data.test",
                   f"[{{src: {self.path('test.txt')}, tgt: {self.path('test.txt')}}}]"]
        self.assertIn("test set test", self.start(*command).stderr)
        self.assertIn("nothing to do", self.start(*command).stderr)
        metrics = self.path("tested/metrics.jsonl")
        with open(metrics, encoding="utf-8") as file:
            lines = [line for line in file if '"kind":"test"' not in line.replace(" ", "")]
        with open(metrics, "w", encoding="utf-8") as file:
            file.writelines(lines)
        self.assertIn("test set test", self.start(*command).stderr)

    def scored(self, *arguments):
        """The test sets that a start scores, in order."""
        ended = self.start(*arguments)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return re.findall(r"test set (\w+) with", ended.stderr)

    def test_scores_a_test_set_again_if_anything_about_it_changes(self):
        configuration = small_run.configuration(self.folder.name, "tested")
        for seed, name in enumerate(("first", "second")):
            small_run.write_digits(self.path(f"{name}.txt"), 20, seed + 2)
        sets = ", ".join(f"{{src: {self.path(name + '.txt')}, tgt: {self.path(name + '.txt')}}}" for name in ("first", "second"))
        command = ["train", "-c", configuration, "--train.max_steps", "20", "--data.test", f"[{sets}]"]
        self.assertEqual(self.scored(*command), ["first", "second"])
        self.assertEqual(self.scored(*command), [])
        with open(self.path("tested/metrics.jsonl"), encoding="utf-8") as file:
            lines = [line for line in file if json.loads(line).get("set") != "second"]
        with open(self.path("tested/metrics.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(lines)
        self.assertEqual(self.scored(*command), ["second"])
        self.assertEqual(self.scored(*command, "--translate.beam_size", "2"), ["first", "second"])
        small_run.write_digits(self.path("second.txt"), 20, 9)
        self.assertEqual(self.scored(*command, "--translate.beam_size", "2"), ["second"])
        self.assertEqual(self.scored(*command), ["first", "second"])

    def test_brings_the_vocabulary_of_what_it_starts_from_only_if_it_starts(self):
        brief = ["--train.average_last", "0", "--train.max_steps"]
        old = small_run.configuration(self.folder.name, "old")
        self.assertEqual(self.start("train", "-c", old, *brief, "20").returncode, 0)
        tuned = ["train", "-c", small_run.configuration(self.folder.name, "tuned"), *brief, "25"]
        failed = self.start(*tuned, "--train.init_from", self.path("old/last"), "--model.d_ff", "48")
        self.assertEqual(failed.returncode, 2)
        self.assertIn("weights do not fit the model", failed.stderr)
        self.assertFalse(os.path.exists(self.path("tuned/spm.model")))
        ended = self.start(*tuned, "--train.init_from", self.path("old/last"))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertNotIn("training a SentencePiece model", ended.stderr)
        with open(self.path("old/spm.model"), "rb") as theirs, open(self.path("tuned/spm.model"), "rb") as ours:
            self.assertEqual(ours.read(), theirs.read())

    def test_replaces_a_run_with_its_own_vocabulary(self):
        command = ["train", "-c", small_run.configuration(self.folder.name, "run"), "--train.average_last", "0", "--train.max_steps", "20"]
        self.assertEqual(self.start(*command).returncode, 0)
        os.remove(self.path("run/spm.model.training"))  # now the model might have been put there on purpose
        with open(self.path("run/spm.model"), "rb") as file:
            before = file.read()
        ended = self.start(*command, "--data.vocab_size", "22", "--train.overwrite", "true")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("training a SentencePiece model of 22 pieces", ended.stderr)
        with open(self.path("run/spm.model"), "rb") as file:
            self.assertNotEqual(file.read(), before)
        self.assertTrue(os.listdir(self.path("run/cache")))
        self.assertEqual([name for name in os.listdir(self.path("run")) if name.startswith(".new")], [])
        self.assertIn("nothing to do", self.start(*command, "--data.vocab_size", "22").stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
