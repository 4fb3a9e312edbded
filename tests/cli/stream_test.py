#!/usr/bin/env python3
"""Training on text that comes through a pipe: stream_test.py PROGRAM"""
import os
import signal
import subprocess
import time
import unittest

import small_run
from patience import seconds
from program import FOLDER, PROGRAM, FreshFolder, path, read, read_bytes, write


class Stream(FreshFolder):
    def setUp(self):
        super().setUp()
        small_run.write_digits(path("text"), 3000, 1)
        lines = read("text").splitlines()
        self.lines = [f"{line}\t{line}\t0-0\t0.9\n" for line in lines]
        self.prints("vocab", "-i", path("text"), "--vocab-size", "24", "--type", "bpe", "-o", path("spm.model"))

    def configuration(self, run="run", corpus="", more=""):
        return write(f"{run}.yaml", f"""run: {FOLDER}/{run}
data:
  train: {{tsv: "-", stream: true, shuffle_lines: 700{corpus}}}
  spm_model: {FOLDER}/spm.model
model: {{preset: tiny, d_model: 32, encoder_layers: 1, decoder_layers: 1}}
train: {{batch_tokens: 512, lr: 0.005, warmup_steps: 10, schedule: inverse_sqrt, save_every: 20, log_every: 10, average_last: 2{more}}}
""")

    def train(self, run, text=None, **settings):
        return self.ends("train", "-c", self.configuration(run), text="".join(self.lines) if text is None else text, **settings)

    def start_and_stop(self, run, lines):
        """Feeds some lines, leaves the pipe open, waits for a line of the log, and stops training."""
        process = subprocess.Popen([PROGRAM, "train", "-c", self.configuration(run)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write("".join(lines))
        process.stdin.flush()
        log = path(run, "train.log")
        until = time.monotonic() + 120
        while time.monotonic() < until and not (os.path.exists(log) and "step 10," in read(run, "train.log")):
            time.sleep(0.05)
        time.sleep(0.5)  # so that it waits for lines
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=seconds(60)), 143)
        process.stdin.close()
        process.stderr.close()

    def test_trains_to_the_end_of_the_pipe(self):
        said = self.train("run").stderr
        self.assertIn("training finished: step", said)
        self.assertIn("the text that is read once (stream) has ended", said)
        self.assertTrue(os.path.exists(path("run", "averaged")))
        self.assertEqual(os.listdir(path("run", "cache", "stream")), [])
        again = self.train("run", text="").stderr
        self.assertIn("already finished", again)

    def test_goes_on_to_the_same_weights_where_the_same_text_comes_again(self):
        self.train("whole")
        self.start_and_stop("stopped", self.lines[:1500])
        said = self.train("stopped").stderr
        self.assertRegex(said, r"passing over the \d+ lines that the run has trained on")
        self.assertEqual(read_bytes("whole", "last", "model.safetensors"), read_bytes("stopped", "last", "model.safetensors"))

    def test_what_goes_on_by_itself_is_read_from_where_it_stands(self):
        self.start_and_stop("run", self.lines[:1500])
        said = self.ends("train", "-c", self.configuration("run", corpus=", skip_consumed: false"), text="".join(self.lines[1500:])).stderr
        self.assertNotIn("passing over", said)
        self.assertIn("training finished", said)

    def test_a_text_that_ends_before_what_was_trained_on_is_refused(self):
        self.start_and_stop("run", self.lines[:1500])
        said = self.refuses("train", "-c", self.configuration("run"), text="".join(self.lines[:100]))
        self.assertRegex(said, r"stdin: it ends after 100 lines, and the run has trained on (700|1400); expected the same text again")

    def test_wrong_lines_and_low_scores(self):
        lines = self.lines[:1400]
        lines[10] = "1 2\t3\n"
        said = self.refuses("train", "-c", self.configuration(), text="".join(lines))
        self.assertRegex(said, r"stdin:11: the line has 2 columns.*data.bad_lines: skip leaves such lines out")
        lines[20] = "1 2\t1 2\t0-0\thigh\n"
        lines[30] = "1 2\t1 2\t0-0\t0.1\n"
        configuration = self.configuration("scored", corpus=", min_score: {column: 4, at_least: 0.5}")
        said = self.ends("train", "-c", configuration, "--data.bad_lines", "skip", text="".join(lines)).stderr
        self.assertIn('stdin:21: column 4 is "high"; expected a score', said)
        self.assertIn("training finished", said)
        said = self.refuses("train", "-c", self.configuration("other"), text="")
        self.assertIn("stdin: there is no line; expected sentence pairs", said)

    def test_scores_choose_pairs_of_files_too(self):
        scored = [line.replace("0.9", "0.1") if number % 2 else line for number, line in enumerate(self.lines[:200])]
        file = write("scored.tsv", "".join(scored))
        configuration = write("files.yaml", f"""run: {FOLDER}/files
data: {{train: {{tsv: {file}, min_score: {{column: 4, at_least: 0.5}}}}, spm_model: {FOLDER}/spm.model}}
model: {{preset: tiny, d_model: 32, encoder_layers: 1, decoder_layers: 1}}
train: {{batch_tokens: 512, max_steps: 1}}
""")
        self.assertIn("100 with a low score, skipped", self.ends("train", "-c", configuration).stderr)

    def test_configurations_that_cannot_be(self):
        for change, words in (
            ("stream: true", 'tsv is "-", standard input, which is read once'),
            (f"  spm_model: {FOLDER}/spm.model\n", "is a stream, which is read once, and a vocabulary is made of the whole text"),
        ):
            self.configuration()
            text = read("run.yaml").replace(change, "stream: false" if "stream" in change else "")
            self.assertIn(words, self.refuses("train", "-c", write("wrong.yaml", text)))
        valid = self.configuration()
        self.assertIn("expected a training corpus in one pipe",
                      self.refuses("train", "-c", valid, "--data.valid", "{tsv: \"-\", stream: true}"))
        self.assertIn("expected no other corpus beside it",
                      self.refuses("train", "-c", valid, "--data.train", f"[{{tsv: \"-\", stream: true}}, {{src: {path('text')}, tgt: {path('text')}}}]"))
        self.assertIn("lacuna bench reads training text several times", self.refuses("bench", "train", "-c", valid))

    def test_check_says_that_it_looks_at_none_of_the_text(self):
        said = self.ends("check", "-c", self.configuration(), text="").stdout
        self.assertRegex(said, r"training data +stdin, as it comes \(stream\): none of it is looked at here")
        self.assertIn("ready for lacuna train", said)


if __name__ == "__main__":
    unittest.main()
