#!/usr/bin/env python3
"""How `lacuna train` goes on, run as a user would: going_on_test.py PROGRAM"""
import json
import os
import re
import shutil
import unittest

import small_run
from program import FOLDER, FreshFolder, path, read, read_bytes, write


class Training(FreshFolder):
    def test_that_goes_on_keeps_its_vocabulary_whatever_the_files_are_called(self):
        configuration = small_run.configuration(FOLDER, "renamed")
        brief = ["train", "-c", configuration, "--train.average_last", "0", "--train.max_steps"]
        self.ends(*brief, "20")
        shutil.copy(path("train.txt"), path("other.txt"))
        corpus = f"[{{src: {path('other.txt')}, tgt: {path('other.txt')}}}]"
        ended = self.ends(*brief, "25", "--data.train", corpus)
        self.assertIn("going on after step 20", ended.stderr)
        self.assertNotIn("training a SentencePiece model", ended.stderr)

    def test_scores_test_sets_that_an_interruption_left_out(self):
        configuration = small_run.configuration(FOLDER, "tested")
        small_run.write_digits(path("test.txt"), 20, 2)
        command = ["train", "-c", configuration, "--train.max_steps", "20", "--data.test",
                   f"[{{src: {path('test.txt')}, tgt: {path('test.txt')}}}]"]
        self.assertIn("test set test", self.ends(*command).stderr)
        self.assertIn("nothing to do", self.ends(*command).stderr)
        lines = [line for line in read("tested/metrics.jsonl").splitlines(True) if json.loads(line)["kind"] != "test"]
        write("tested/metrics.jsonl", "".join(lines))
        self.assertIn("test set test", self.ends(*command).stderr)

    def test_has_a_whole_log_whatever_stderr_is_told(self):
        command = ["train", "-c", small_run.configuration(FOLDER, "quiet"), "--train.max_steps", "20", "--train.warmup_steps", "5", "--train.log_every", "10",
                   "--train.average_last", "0"]
        self.assertEqual(self.ends(*command, "--quiet").stderr, "")
        self.assertRegex(read("quiet/train.log"), r"(?m)^\[[\d: -]+\] info step 20, ")
        corpus = f"[{{src: {path('train.txt')}, tgt: {write('short.txt', '1 2')}}}]"
        message = self.refuses(*command, "--quiet", "--run", path("broken"), "--data.train", corpus)
        self.assertTrue(read("broken/train.log").endswith(message.split("lacuna train: ")[1].replace("error: ", "error ")), message)

    def scored(self, *arguments):
        """The test sets that a start scores, in order."""
        ended = self.ends(*arguments)
        return re.findall(r"test set (\w+) with", ended.stderr)

    def test_scores_a_test_set_again_if_anything_about_it_changes(self):
        configuration = small_run.configuration(FOLDER, "tested")
        for seed, name in enumerate(("first", "second")):
            small_run.write_digits(path(f"{name}.txt"), 20, seed + 2)
        sets = ", ".join(f"{{src: {path(name + '.txt')}, tgt: {path(name + '.txt')}}}" for name in ("first", "second"))
        command = ["train", "-c", configuration, "--train.max_steps", "20", "--data.test", f"[{sets}]"]
        self.assertEqual(self.scored(*command), ["first", "second"])
        self.assertEqual(self.scored(*command), [])
        lines = [line for line in read("tested/metrics.jsonl").splitlines(True) if json.loads(line).get("set") != "second"]
        write("tested/metrics.jsonl", "".join(lines))
        self.assertEqual(self.scored(*command), ["second"])
        self.assertEqual(self.scored(*command, "--translate.beam_size", "2"), ["first", "second"])
        small_run.write_digits(path("second.txt"), 20, 9)
        self.assertEqual(self.scored(*command, "--translate.beam_size", "2"), ["second"])
        self.assertEqual(self.scored(*command), ["first", "second"])

    def test_brings_the_vocabulary_of_what_it_starts_from_only_if_it_starts(self):
        brief = ["--train.average_last", "0", "--train.max_steps"]
        old = small_run.configuration(FOLDER, "old")
        self.ends("train", "-c", old, *brief, "20")
        tuned = ["train", "-c", small_run.configuration(FOLDER, "tuned"), *brief, "25"]
        message = self.refuses(*tuned, "--train.init_from", path("old/last"), "--model.d_ff", "48")
        self.assertIn("weights do not fit the model", message)
        self.assertFalse(os.path.exists(path("tuned/spm.model")))
        message = self.refuses(*tuned, "--train.init_from", path("old/last"), "--data.spm_symbols", "[<bt>]")
        self.assertIn('data.spm_symbols holds "<bt>", which the vocabulary of', message)
        ended = self.ends(*tuned, "--train.init_from", path("old/last"))
        self.assertNotIn("training a SentencePiece model", ended.stderr)
        self.assertEqual(read_bytes("tuned/spm.model"), read_bytes("old/spm.model"))
        write("tuned/spm.model", "another")
        ended = self.ends(*tuned[:-1], "30", "--train.init_from", path("old/last"))
        self.assertIn("tuned/spm.model: is another vocabulary than that of the checkpoint", ended.stderr)
        self.assertEqual(read_bytes("tuned/spm.model"), read_bytes("old/spm.model"))

    def test_replaces_a_run_with_its_own_vocabulary(self):
        command = ["train", "-c", small_run.configuration(FOLDER, "run"), "--train.average_last", "0", "--train.max_steps", "20"]
        self.ends(*command)
        os.remove(path("run/spm.model.training"))  # now the model might have been put there on purpose
        before = read_bytes("run/spm.model")
        ended = self.ends(*command, "--data.vocab_size", "22", "--train.overwrite", "true")
        self.assertIn("training a SentencePiece model of 22 pieces", ended.stderr)
        self.assertNotEqual(read_bytes("run/spm.model"), before)
        self.assertTrue(os.listdir(path("run/cache")))
        self.assertEqual([name for name in os.listdir(path("run")) if name.startswith(".new")], [])
        self.assertIn("nothing to do", self.ends(*command, "--data.vocab_size", "22").stderr)


if __name__ == "__main__":
    unittest.main()
