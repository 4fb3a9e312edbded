#!/usr/bin/env python3
"""Run folders of an earlier version load, go on and translate as that version did: old_runs_test.py PROGRAM"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from patience import seconds  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
FIXTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "old_runs")
NAMES = ("softmax", "calibrated")
LAST = 912  # the update up to which the earlier version went on


def precisions():
    """Those that give the fixture's bits here: for processors without VNNI, int8 has fewer levels (packed_product.h)."""
    with open("/proc/cpuinfo", encoding="ascii") as file:
        has_vnni = "vnni" in file.read()
    return ("fp32", "int8") if has_vnni else ("fp32",)


def expected(name):
    with open(os.path.join(FIXTURE, name), encoding="utf-8") as file:
        return file.read()


class OldRun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copytree(FIXTURE, self.folder, symlinks=True, dirs_exist_ok=True)

    def run_program(self, *words, text=""):
        ended = subprocess.run([PROGRAM, *words], cwd=self.folder, input=text, capture_output=True, text=True, timeout=seconds(300), check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended

    def read(self, *names):
        with open(os.path.join(self.folder, *names), encoding="utf-8") as file:
            return file.read()

    def translation(self, run, *words):
        return self.run_program("translate", "-m", run, "--threads", "1", *words, text=self.read("data", "test.de")).stdout

    def test_translates_to_the_same_bytes(self):
        for run in NAMES:
            for precision in precisions():
                with self.subTest(run=run, precision=precision):
                    self.assertEqual(self.translation(run, "--precision", precision), expected(f"{run}.{precision}.en"))

    def test_is_read_by_info(self):
        for run in NAMES:
            self.assertIn("900", self.run_program("info", "-m", run).stdout)

    def test_goes_on_with_the_same_losses(self):
        for run in NAMES:
            with self.subTest(run=run):
                ended = self.run_program("train", "-c", os.path.join(run, "config.yaml"), "--run", run, "--train.max_steps", str(LAST),
                                         "--train.log_every", "1")
                self.assertIn("going on after step 900", ended.stderr)
                lines = [json.loads(line) for line in self.read(run, "metrics.jsonl").splitlines()]
                found = [line for line in lines if line["kind"] == "train" and line["step"] > 900]
                self.compare(run, found, json.loads(expected("resumed.json"))[run])
                self.assertEqual(self.translation(run), expected(f"{run}.resumed.en"))

    def compare(self, run, found, wanted):
        """Bit for bit where the products and the order of sums are those of the earlier version: without calibrated attention, on a
        processor with the same instructions."""
        self.assertEqual([line["step"] for line in found], [line["step"] for line in wanted])
        with open(os.path.join(self.folder, run, "last", "trainer.json"), encoding="utf-8") as file:
            now = json.load(file)["products"]
        with open(os.path.join(FIXTURE, run, "last", "trainer.json"), encoding="utf-8") as file:
            is_exact = run == "softmax" and now == json.load(file)["products"]
        for line, old in zip(found, wanted):
            for key, value in old.items():
                if is_exact:
                    self.assertEqual(line[key], value, f"{key} of update {old['step']}")
                else:
                    self.assertAlmostEqual(line[key], value, delta=2e-4 * max(1, abs(value)), msg=f"{key} of update {old['step']}")


if __name__ == "__main__":
    unittest.main()
