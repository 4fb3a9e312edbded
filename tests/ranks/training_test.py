#!/usr/bin/env python3
"""Runs of `lacuna train` that several ranks serve: training_test.py PROGRAM"""
import os
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from patience import seconds  # noqa: E402
from program import FOLDER, PROGRAM, Program, path, read, write  # noqa: E402
import ranks  # noqa: E402
import small_run  # noqa: E402

SERVED = "lacuna train: error: "


def configure(run, **more):
    """Writes a configuration with whatever could make ranks differ; its name."""
    for name, lines, seed in (("train.txt", 500, 1), ("valid.txt", 30, 2)):
        if not os.path.exists(path(name)):
            small_run.write_digits(path(name), lines, seed)
    train = {"batch_tokens": 96, "lr": 0.004, "warmup_steps": 10, "clip_norm": 0.5, "ema_decay": 0.9, "label_smoothing": 0.1, "max_steps": 16,
             "log_every": 2, "valid_every": 8, "save_every": 4, "average_last": 2, **more}
    keys = ", ".join(f"{key}: {value}" for key, value in train.items())
    return write(f"{run}.yaml", f"""run: {FOLDER}/{run}
threads: 1
data:
  train: [{{src: {FOLDER}/train.txt, tgt: {FOLDER}/train.txt}}]
  valid: [{{src: {FOLDER}/valid.txt, tgt: {FOLDER}/valid.txt}}]
  test: [{{name: exam, src: {FOLDER}/valid.txt, tgt: {FOLDER}/valid.txt}}]
  vocab_size: 24
  spm_alpha: 0.3
model: {{preset: tiny, d_model: 32, d_ff: 64, num_heads: 2, encoder_layers: 1, decoder_layers: 1, dropout: 0.1}}
translate: {{beam_size: 2, max_length: 12}}
train: {{{keys}}}
""")


class Training(Program):
    LONGER = {"max_steps": 60, "save_every": 20}

    def alone(self, run, size, **more):
        """The results of one process that computes what `size` ranks do."""
        if not os.path.exists(path(run)):
            self.ends("train", "-c", configure(run, update_freq=size, **more), env=ranks.environment())
        return ranks.results(path(run))

    def together(self, run, size, own=None, before=None, **more):
        return ranks.Ranks(PROGRAM, ["train", "-c", more.pop("config", None) or configure(run, **more)], size, own, before=before)

    def serves(self, run, size, **more):
        """Trains to the end; what rank 0 said."""
        with self.together(run, size, **more) as together:
            self.assertEqual(together.wait(seconds(120)), [0] * size, together.texts())
            return together.text(0)

    def assert_same(self, run, expected):
        self.assertEqual(ranks.different(ranks.results(path(run)), expected), [])

    def test_gives_the_same_bits_on_2_and_3_ranks_as_in_one_process(self):
        for size, shares in ((2, "1 + 1"), (3, "1 + 1 + 1")):
            with self.subTest(size=size):
                said = self.serves(f"ranks{size}", size)
                self.assert_same(f"ranks{size}", self.alone(f"alone{size}", size))
                self.assertIn(f"{size} ranks serve the run: {size} batches an update: {shares}", said)
                self.assertGreater(ranks.results(path(f"ranks{size}"))["trainer.json"]["epoch"], 0)
                self.assertIn("already finished", self.serves(f"ranks{size}", size))

    def test_stops_on_sigterm_and_goes_on_in_one_process(self):
        with self.together("stopped", 2, **self.LONGER) as together:
            ranks.wait_for(lambda: ranks.records(path("stopped")))
            together.send(signal.SIGTERM, [1])
            self.assertEqual(together.wait(seconds(60)), [143, 143], together.texts())
            self.assertRegex(together.text(0), r"stopped at step \d+: interrupted by SIGTERM, and saved")
        self.ends("train", "-c", configure("stopped", **self.LONGER), env=ranks.environment())
        self.assert_same("stopped", self.alone("longer", 2, **self.LONGER))

    def test_ctrl_c_in_the_terminal_of_a_launcher_saves_once_and_ends_all(self):
        command = [PROGRAM, "launch", "-n", "2", "--", "train", "-c", configure("launched", max_steps=1000000)]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ranks.environment(),
                              start_new_session=True) as launcher:
            ranks.wait_for(lambda: ranks.records(path("launched")))
            os.killpg(launcher.pid, signal.SIGINT)  # to the launcher and to both ranks, to which it passes it on as well
            said = launcher.communicate(timeout=seconds(60))[0].decode()
        self.assertEqual(launcher.returncode, 130, said)
        self.assertEqual(said.count("interrupted by SIGINT, and saved"), 1, said)
        step = int(re.search(r"stopped at step (\d+)", said)[1])
        self.assertEqual(ranks.results(path("launched"))["trainer.json"]["step"], step)
        self.assertRaises(ProcessLookupError, os.killpg, launcher.pid, 0)

    def test_goes_on_after_a_rank_is_killed(self):
        with self.together("killed", 2, **self.LONGER) as together:
            ranks.wait_for(lambda: ranks.records(path("killed")))
            together.send(signal.SIGKILL, [1])
            self.assertEqual(together.wait(seconds(8)), [75, -9], together.texts())
            self.assertIn("rank 1", together.text(0))
        self.serves("killed", 2, **self.LONGER)
        self.assert_same("killed", self.alone("longer", 2, **self.LONGER))

    def test_fewer_ranks_go_on_with_as_many_batches(self):
        self.serves("fewer", 3, max_steps=4, schedule="constant")
        said = self.serves("fewer", 2, max_steps=8, schedule="constant")
        self.assertIn("2 ranks serve the run: 3 batches an update: 2 + 1", said)
        self.assertEqual(ranks.results(path("fewer"))["trainer.json"]["batches_per_update"], 3)

    def test_more_ranks_than_batches_are_refused(self):
        self.serves("few", 2, max_steps=4)
        with self.together("few", 3, config=path("few.yaml")) as together:
            self.assertEqual(together.wait(seconds(60)), [2, 2, 2], together.texts())
            self.assertIn(f"3 ranks are to go on with {FOLDER}/few, whose updates have 2 batches: start at most 2 ranks", together.text(0))

    def refused(self, run, own=None, size=2, before=None):
        """What rank 0 says where others have these words of their own; all end with code 2, and nothing but rank 0 tells why."""
        with self.together(run, size, own, before) as together:
            self.assertEqual(together.wait(seconds(60)), [2] * size, together.texts())
            self.assertEqual(together.texts().count(SERVED), 1, together.texts())
            return together.text(0)

    def test_ranks_that_differ_are_refused(self):
        said = self.refused("differs", {1: ["--train.lr", "0.002"]})
        self.assertRegex(said, r"error: rank 1 \(\S+\) and rank 0 \(\S+\) do not start the same run \(there and here\):\n  train\.lr: 0\.002 and 0\.004\n")
        write("other.txt", read("train.txt").replace("1", "2"))
        said = self.refused("differs", {2: ["--data.train", f"[{{src: {FOLDER}/other.txt, tgt: {FOLDER}/train.txt}}]"]}, size=3)
        self.assertRegex(said, r"rank 2 \(\S+\) and rank 0 .*\n  data\.train\.0\.src \(contents\): [0-9a-f]{32} and [0-9a-f]{32}\n")
        said = self.refused("differs", {1: ["--data.valid", f"[{{src: {FOLDER}/none.txt, tgt: {FOLDER}/none.txt}}]"]})
        self.assertRegex(said, r"\n  data\.valid\.0\.src \(contents\): there is no \S+none\.txt and [0-9a-f]{32}\n")
        said = self.refused("differs", {1: ["-c", path("none.yaml")]})
        self.assertRegex(said, r"error: rank 1 \(\S+\): .*none\.yaml")
        self.assertFalse(os.path.exists(path("differs")))

    @staticmethod
    def instead(old, new):
        """Words that start, in place of the program, a copy in which one text is another."""
        with open(PROGRAM, "rb") as file:
            program = file.read()
        assert len(old) == len(new) and old.encode() + b"\0" in program
        changed = write("changed", program.replace(old.encode() + b"\0", new.encode() + b"\0"))
        os.chmod(changed, 0o755)
        return ["sh", "-c", 'shift; exec "$0" "$@"', changed]

    def test_ranks_of_other_programs_and_processors_are_refused(self):
        version = self.prints("--version").split()[1]
        other = version[:-1] + ("1" if version[-1] == "0" else "0")
        said = self.refused("unlike", before={1: self.instead(version, other)})
        self.assertIn(f"\n  the program: {other} and {version}\n", said)
        processor = self.alone("alone2", 2)["trainer.json"]["products"]["instruction_set"]
        said = self.refused("unlike", size=3, before={2: self.instead(processor, "x" * len(processor))})
        self.assertRegex(said, rf"rank 2 \(.*\n  instruction set: x+ and {processor}\nTheir processors multiply in other ways")

    def test_a_mistake_of_all_is_told_once(self):
        said = self.refused("mistaken", {0: ["--train.valid_every", "x"], 1: ["--train.valid_every", "x"]})
        self.assertRegex(said, r"error: command line \(--train\.valid_every\)")


if __name__ == "__main__":
    unittest.main()
