#!/usr/bin/env python3
"""A student that learns from a teacher's translations: distill_test.py PROGRAM"""
import os
import signal
import subprocess
import time
import unittest

import small_run
from patience import seconds
from program import FOLDER, PROGRAM, Program, path, read, read_bytes, write


class Distill(Program):
    @classmethod
    def setUpClass(cls):
        small_run.train(PROGRAM, FOLDER)
        small_run.write_digits(path("mono"), 1200, 7)

    def student(self, run):
        return write(f"{run}.yaml", f"""run: {FOLDER}/{run}
data: {{spm_model: {FOLDER}/run/averaged/spm.model}}
model: {{preset: tiny, d_model: 32, encoder_layers: 1, decoder_layers: 1}}
train: {{batch_tokens: 512, lr: 0.005, warmup_steps: 20, max_steps: 60, save_every: 20, average_last: 2}}
""")

    def words(self, run):
        return ["distill", "-m", path("run", "averaged"), "--mono", path("mono"), "-c", self.student(run), "--part-lines", "200", "-b", "2"]

    def test_translates_filters_and_trains(self):
        said = self.ends(*self.words("student"), "--keep", "0.9").stderr
        self.assertRegex(said, r"1080 of 1200 lines kept; 0 with an empty side, 0 of too different lengths, 120 with a low score|"
                               r"\d+ of 1200 lines kept")
        self.assertIn("training finished: 60 of 60 updates", said)
        sources, targets = (read("student.distill", name).splitlines() for name in ("distilled.src", "distilled.tgt"))
        self.assertEqual(len(sources), len(targets))
        self.assertLessEqual(abs(len(sources) - 1080), 60)
        alone = dict(zip(read("mono").splitlines(), self.prints("translate", "-m", path("run", "averaged"), "-b", "2", text=read("mono")).splitlines()))
        self.assertEqual(targets, [alone[line] for line in sources])
        again = self.ends(*self.words("student"), "--keep", "0.9").stderr
        self.assertIn("already finished", again)
        self.assertNotIn("part 0:", again)

    def test_goes_on_where_it_was_stopped_to_the_same_student(self):
        self.ends(*self.words("whole"))
        log = path("stopped.distill", "translations", "part-000000.zst")
        process = subprocess.Popen([PROGRAM, *self.words("stopped")], stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 120
        while time.monotonic() < until and not os.path.exists(log):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=seconds(60))
        self.assertIn(process.returncode, (143, 0))
        self.ends(*self.words("stopped"))
        self.assertEqual(read_bytes("whole", "averaged", "model.safetensors"), read_bytes("stopped", "averaged", "model.safetensors"))

    def test_lengths_that_do_not_fit_are_left_out(self):
        said = self.ends(*self.words("even"), "--max-length-ratio", "1").stderr
        self.assertRegex(said, r"\d+ of 1200 lines kept; 0 with an empty side, \d+ of too different lengths")

    def test_mistakes(self):
        words = self.words("wrong")
        self.assertIn("no such file", self.refuses(*[path("none") if word == path("mono") else word for word in words]).lower())
        self.assertIn("--keep", self.refuses(*words, "--keep", "2"))
        self.ends(*self.words("other"))
        self.assertIn("translate.beam_size", self.refuses(*self.words("other")[:-1], "3"))


if __name__ == "__main__":
    unittest.main()
