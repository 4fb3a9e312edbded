#!/usr/bin/env python3
"""How `lacuna train` goes on, run as a user would: going_on_test.py PROGRAM"""
import os
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


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
