#!/usr/bin/env python3
"""`lacuna check`, run as a user would: check_test.py PROGRAM"""
import os
import re
import signal
import subprocess
import time
import unittest

import small_run
from patience import seconds
from program import FOLDER, PROGRAM, Program, path
from verbs import AVERAGED, RUN, setUpModule

CORPUS = "{{src: {0}, tgt: {0}}}"


class Check(Program):
    def check(self, *overrides, run="checked"):
        text = self.prints("check", "-c", small_run.configuration(FOLDER, run), *overrides)
        self.assertRegex(text, r"(?m)^(ready for lacuna train|finished: there is nothing left to train)")
        return text

    def refuses_check(self, *overrides, run="checked"):
        return self.refuses("check", "-c", small_run.configuration(FOLDER, run), *overrides)

    def refuses_after_data(self, *overrides):
        """The error behind what it has printed of the data."""
        ended = self.ends("check", "-c", small_run.configuration(FOLDER, "checked"), *overrides, code=2)
        self.assertNotIn("ready for lacuna train", ended.stdout)
        self.assertIn("lacuna check: error: ", ended.stderr)
        return ended.stderr

    def test_finds_nothing_and_writes_nothing(self):
        before = sorted(os.listdir(FOLDER))
        self.check()
        self.assertEqual(sorted(os.listdir(FOLDER)), sorted({*before, "checked.yaml"}))

    def test_of_a_run_that_goes_on_starts_from_its_checkpoint_and_writes_nothing(self):
        before = sorted(os.listdir(RUN))
        self.assertRegex(self.check(run="run"), r"(?m)^starts from +\S+/run/step_240$")
        self.assertEqual(sorted(os.listdir(RUN)), before)

    def test_says_that_nothing_is_validated(self):
        self.assertRegex(self.check(), r"(?m)^validation +warning: data.valid is empty: nothing is validated, ")
        valid = ["--data.valid", CORPUS.format(path("train.txt")), "--train.valid_translate", "false", "--train.metric", "loss"]
        self.assertNotIn("nothing is validated", self.check(*valid))

    def test_refuses_a_run_without_a_folder(self):
        self.assertIn("run is empty; expected the folder", self.refuses_check("--run", "''"))

    def test_refuses_a_folder_that_training_cannot_make(self):
        self.assertIn("checked.yaml is no folder; name another", self.refuses_check("--run", path("checked.yaml")))

    def test_refuses_a_set_whose_files_would_lie_elsewhere(self):
        test = f"[{{src: {path('train.txt')}, tgt: {path('train.txt')}, name: ../../evil}}]"
        for run in ("checked", "run"):  # one that goes on, too
            self.assertIn('a corpus has the name "../../evil"', self.refuses_check("--data.test", test, run=run))

    def test_refuses_learning_rates_that_no_training_wants(self):
        self.assertIn("command line (--train.lr): train.lr is 0.0005; with the noam schedule it is a factor",
                      self.refuses_check("--train.schedule", "noam", "--train.lr", "5e-4"))
        message = self.refuses_check("--train.min_lr", "1e-2")
        self.assertIn("command line (--train.min_lr): train.min_lr is 0.01; expected at most train.lr, which is 0.005", message)
        self.assertIn("(train.lr: ", message)

    def test_refuses_the_folder_of_another_run_unless_it_may_go(self):
        other = ["--model.d_ff", "48"]
        self.assertIn("holds a run of another configuration", self.refuses_check(*other, run="run"))
        self.assertNotIn("starts from", self.check(*other, "--train.overwrite", "true", run="run"))
        self.assertIn("starts from", self.check("--train.overwrite", "true", run="run"))  # of this one, which stays and goes on

    def test_refuses_to_start_from_what_goes(self):
        replaces = ["--train.lr", "1e-3", "--train.overwrite", "true"]
        for key, place in (("train.init_from", os.path.join(RUN, "best")), ("data.spm_model", os.path.join(RUN, "spm.model"))):
            self.assertIn(f"{key} is {place}, a part of the run", self.refuses_check(*replaces, f"--{key}", place, run="run"))

    def test_refuses_a_start_that_training_would_refuse(self):
        last, longer = os.path.join(RUN, "last"), ["--train.max_steps", "300"]
        self.assertIn(f"train.init_from: {path('nowhere')} does not exist; expected a run folder, or the folder of a checkpoint",
                      self.refuses_check("--train.init_from", path("nowhere")))
        self.assertIn("holds weights only", self.refuses_check("--train.init_from", AVERAGED))
        self.assertIn(f"(--train.init_from): train.init_from: {last} stands where training ends: 240 of 240 updates", self.refuses_check("--train.init_from", last))
        self.assertIn("weights do not fit the model", self.refuses_after_data("--train.init_from", last, "--model.d_ff", "48", *longer))
        small_run.write_digits(path("others.txt"), 100, 2)
        others = ["--data.train", f"[{CORPUS.format(path('others.txt'))}]"]
        self.assertIn("the training corpora are not those", self.refuses_after_data("--train.init_from", last, *others, *longer))
        self.assertIn("starts from", self.check("--train.init_from", last, *others, *longer, "--train.reset", "[data]"))

    def test_says_how_much_memory_training_takes(self):
        peak, free = map(int, re.search(r"(?m)^memory +(\d+) MiB with the batch that takes most; (\d+) MiB were free$",
                                        self.check()).groups())
        self.assertLess(20, peak)
        self.assertLess(peak, free)

    def test_knows_which_sentences_take_most_memory(self):
        flags = ("--train.precision", "fp32", "--train.batch_tokens", "8192", "--data.max_length")  # bf16 keeps less of them
        peaks = [int(re.search(r"(?m)^memory +(\d+) MiB", self.check(*flags, length)).group(1)) for length in ("20", "127", "255")]
        self.assertLess(1.1 * peaks[0], peaks[1])
        self.assertLess(0.95 * peaks[1], peaks[2])  # attention keeps the weights of the middle ones

    def test_refuses_a_model_that_no_memory_holds(self):
        large = ["--run", path("large"), "--model.d_model", "1000000", "--model.num_heads", "4"]
        for verb in ("check", "train"):
            ended = self.ends(verb, "-c", small_run.configuration(FOLDER, "checked"), *large, code=1)
            self.assertRegex(ended.stderr, r"the model has about \d+ million parameters, which take \d+ MiB in training without any batch; \d+ MiB")

    def test_says_that_what_it_starts_from_brings_its_vocabulary(self):
        start = ["check", "-c", small_run.configuration(FOLDER, "checked"), "--train.init_from", os.path.join(RUN, "last"), "--train.max_steps", "300"]
        self.assertNotIn("brings its own", self.ends(*start).stderr)
        self.assertIn("last brings its own vocabulary, of 24 source and 24 target pieces", self.ends(*start, "--data.vocab_size", "30").stderr)

    def test_refuses_sentences_beyond_learned_positions(self):
        positions = ["--model.positions", "learned", "--model.max_positions", "20", "--data.max_length"]
        self.assertIn("(--model.max_positions): model.max_positions is 20, and data.max_length 20 lets sentences of 21 tokens in", self.refuses_check(*positions, "20"))
        self.check(*positions, "19")

    def test_refuses_two_sets_of_one_name(self):
        corpus = CORPUS.format(path("train.txt"))
        self.assertIn('(--data.valid): data.valid: two sets to score are called "train"', self.refuses_check("--data.valid", f"[{corpus}, {corpus}]"))

    def test_looks_for_sacrebleu_if_there_are_test_sets(self):
        corpus = CORPUS.format(path("train.txt"))
        self.assertIn("/nowhere", self.refuses_check("--data.test", corpus, "--sacrebleu", "/nowhere"))

    def test_names_a_set_that_is_not_there_before_it_reads_any(self):
        missing = f"{{src: {path('train.txt')}, tgt: {path('nowhere')}}}"
        for key in ("valid", "test"):
            message = self.refuses_check(f"--data.{key}", missing)
            self.assertIn(f"nowhere: there is no such file; expected target text of data.{key}", message)
            self.assertNotIn("SentencePiece", message)

    def test_says_that_the_warm_up_is_longer_than_the_run(self):
        self.assertRegex(self.check("--train.max_steps", "50"), r"(?m)^warm-up +warning: train.warmup_steps is 60 and the run ends at about step 50")
        self.assertNotRegex(self.check("--train.max_steps", "60"), r"(?m)^warm-up +warning")

    def test_chooses_a_warm_up_that_fits_the_run_and_an_end(self):
        text = self.check("--train.warmup_steps", "auto", "--train.max_steps", "50")
        self.assertRegex(text, r"(?m)^warm-up +5 updates$")
        valid = ["--data.valid", CORPUS.format(path("train.txt")), "--train.valid_translate", "false", "--train.metric", "loss"]
        text = self.check(*valid, "--train.max_steps", "0")
        self.assertRegex(text, r"(?m)^end +after 10 validations without a better loss \(train.patience\), if not before$")
        self.assertIn("ready for lacuna train: no warnings\n", text)
        self.assertIn("ready for lacuna train: 2 warnings above\n", self.check("--train.max_steps", "0"))

    def test_shows_the_sentence_and_its_translation(self):
        self.assertRegex(self.check(run="run"), r"(?m)^one sentence +([\d ]+)\ntranslated +[\d ]+$")

    def test_says_that_a_run_has_finished(self):
        text = self.check(run="run")
        self.assertRegex(text, r"(?m)^finished +240 of 240 updates \(train.max_steps\)$")
        self.assertRegex(text, r"finished: there is nothing left to train \(1 warning above\)\n$")
        self.assertNotRegex(text, "(?m)^time ")

    def test_is_one_process(self):
        ended = self.ends("check", "-c", small_run.configuration(FOLDER, "checked"),
                          env={**os.environ, "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, code=2)
        self.assertIn("that this is process 1 of 2: a launcher (torchrun, srun, mpirun, lacuna launch) has started several", ended.stderr)

    def test_that_is_interrupted_leaves_nothing_behind(self):
        temporary = path("temporary")
        os.mkdir(temporary)
        with subprocess.Popen([PROGRAM, "check", "-c", small_run.configuration(FOLDER, "checked")], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": temporary}) as check:
            while check.poll() is None and not os.listdir(temporary):
                time.sleep(0.001)
            check.send_signal(signal.SIGINT)
            self.assertIn(b"interrupted", check.communicate(timeout=seconds(120))[1])
        self.assertEqual(check.returncode, 130)
        self.assertEqual(os.listdir(temporary), [])

    def test_says_what_its_numbers_leave_open(self):
        text = self.check("--train.batch_tokens", "auto", "--train.max_steps", "0")
        self.assertRegex(text, r"(?m)^batch_tokens +auto: these numbers are of 4096")
        self.assertRegex(text, r"(?m)^end +warning: none of train.max_steps, .* is set: training goes on until it is stopped")
        self.assertNotRegex(text, r"(?m)^time ")

    def test_of_a_run_that_goes_on_counts_with_the_batches_that_it_has_chosen(self):
        text = self.check("--train.batch_tokens", "auto", run="run")
        self.assertNotIn("these numbers are of", text)
        self.assertLess(int(re.search(r"(?m)^effective batch +about (\d+)", text).group(1)), 1025)

    def test_takes_the_nearest_end(self):
        text = self.check("--train.max_epochs", "1000000000", "--train.max_steps", "0", "--train.max_hours", "2")
        self.assertRegex(text, r"(?m)^time +about 2\.0 hours")

    def test_writes_the_cache_that_is_named(self):
        self.assertIn(f"written to {path('cache')} (data.cache)", self.check("--data.cache", path("cache")))
        self.assertTrue(os.listdir(path("cache")))


if __name__ == "__main__":
    unittest.main()
