#!/usr/bin/env python3
"""scripts/gpu_day.sh: every step is there and says how it ended, whatever becomes of the others: gpu_day_test.py [BUILD]

Without BUILD a script stands for the programs; with it, all steps but the peers' run on the CPU with the programs of that build.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else None
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/gpu_day.sh"
sys.path[:0] = [str(SCRIPT.parent), str(SCRIPT.parents[1] / "tests/cli")]
import gpu_day  # noqa: E402
from patience import seconds  # noqa: E402

# Does what the test's variable FAKE says: a word of the command line, and what becomes of a command that has it.
PROGRAM = """#!/usr/bin/env bash
case " $* " in
  *" $FAKE_FAILS "*) echo "it broke" >&2; exit 3 ;;
  *" $FAKE_HANGS "*) exec sleep 60 ;;
  *" bench train "*) echo '{"tgt_tokens_per_second": 1000.0, "profile": {"gpu_busy_ms": 2.0, "gpu_busy_share": 0.5, "launches": 300,' \\
                          '"synchronizations": 1, "allocations": 0, "parts": [{"name": "products", "ms": 1.5, "calls": 40}]}}' ;;
  *) echo '{}' ;;
esac
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.data, self.out = self.folder / "data", self.folder / "out"
        self.data.mkdir()
        draw = random.Random(1)
        for name, lines in (("train", 60), ("test2016", 6)):
            text = "".join(" ".join(str(draw.randrange(1000)) for _ in range(draw.randint(2, 7))) + "\n" for _ in range(lines))
            for language in ("de", "en"):
                (self.data / f"{name}.{language}.gz").write_text(text, encoding="utf-8")  # read by what it holds, whatever it is called

    def start(self, *flags, **variables):
        return subprocess.run([SCRIPT, *map(str, flags)], capture_output=True, text=True, timeout=seconds(500), check=False,
                              env={**os.environ, "OMP_NUM_THREADS": "1", "FAKE_FAILS": "-", "FAKE_HANGS": "-", **variables})

    def dry_run(self, build, *flags, **variables):
        return self.start("--dry-run", "--no-peers", "--out", self.out, "--data", self.data, "--build", build, "--python", sys.executable, *flags, **variables)

    def steps(self):
        return {step["name"]: int(step["code"]) for step in gpu_day.Results(self.out).steps}


@unittest.skipIf(BUILD, "the programs of a build are tried")
class WithoutPrograms(Case):
    def build(self):
        for name in ("lacuna", "lacuna-bench", "tests/contract/attention_contract_test", "tests/kernels/gpu_kernels_test", "tests/train/gpu_test", "tests/speed/speed_test"):
            program = self.folder / "build" / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(PROGRAM, encoding="utf-8")
            program.chmod(0o755)
        return self.folder / "build"

    def test_a_step_that_fails_loses_no_other(self):
        ended = self.dry_run(self.build(), "--only", "machine,vocabulary,model,translate,translate.alone", FAKE_FAILS="train")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertEqual(self.steps(), {"machine": 0, "vocabulary": 3, "model": 3, "translate": 0, "translate.alone": 0})
        self.assertRegex(ended.stdout, r"(?m)^vocabulary +FAILED 3 +\d+ s +it broke$")
        self.assertRegex(ended.stdout, r"(?m)^translate +ok ")
        self.assertEqual(ended.stderr, "2 steps failed\n")

    def test_a_step_that_hangs_is_stopped_and_what_has_no_time_left_is_said(self):
        ended = self.dry_run(self.build(), "--only", "machine,vocabulary,model,translate", "--seconds", "6", FAKE_HANGS="--folder")
        self.assertEqual(self.steps(), {"machine": 0, "vocabulary": 124, "model": 124, "translate": 124})
        self.assertRegex(ended.stdout, r"(?m)^vocabulary +FAILED 124 +\d+ s +stopped after \d+ s$")
        self.assertRegex(ended.stdout, r"(?m)^translate +FAILED 124 +0 s +not begun: no time is left$")

    def test_tables_hold_what_ended_well(self):
        ended = self.dry_run(self.build(), "--only", "machine,train.tiny.256")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("| tiny | 256 | 1,000 | – (–) | – (–) | – (–) | 0.5 | 300 | 1 | 0 |", (self.out / "tables.md").read_text(encoding="utf-8"))
        self.assertIn("| products | 1.5 | 40 |", ended.stdout)
        with open(self.out / "gpu_day.json", encoding="utf-8") as file:
            self.assertEqual(json.load(file)["results"]["train.tiny.256"]["tgt_tokens_per_second"], 1000)

    def test_says_what_is_missing(self):
        for flags, message in (((), "--out is missing"), (("--out", self.out), "train.de.gz is missing"), (("--frobnicate",), 'unknown argument "--frobnicate"'),
                               (("--data",), "--data needs a value"), (("--out", self.out, "--data", self.data, "--build", self.folder), "lacuna is not built"),
                               (("--out", self.out, "--packed", self.folder / "none.tar.xz"), "cannot be unpacked")):
            ended = self.start("--dry-run", *flags)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(message, ended.stderr)

    def test_tests_that_do_not_run_on_a_gpu_are_no_success(self):
        program = self.folder / "some_test"
        for output, device, is_good in (("[  PASSED  ] 3 tests.", "cuda", True), ("[  PASSED  ] 0 tests.", "cpu", False),
                                        ("[  PASSED  ] 3 tests.\n[  SKIPPED ] 1 test, listed below:", "cuda", False),
                                        ("[  PASSED  ] 3 tests.\n[  SKIPPED ] 1 test, listed below:", "cpu", True)):
            program.write_text(f"#!/usr/bin/env bash\necho '{output}'\n", encoding="utf-8")
            program.chmod(0o755)
            report, is_run = gpu_day.tests(program, "*", device, "2")
            self.assertEqual((report["passed"], is_run), (2 * int(output[13]), is_good), output)

    def test_losses_and_lines_are_near_or_not(self):
        report, is_near = gpu_day.compared_losses([8, 4], [8.001, 4.001], 0.005)
        self.assertTrue(is_near)
        self.assertAlmostEqual(report["largest_difference"], 0.00025)
        self.assertFalse(gpu_day.compared_losses([8, 4], [8, 4.1], 0.005)[1])
        self.assertFalse(gpu_day.compared_losses([8, 4], [8], 0.005)[1])
        for name, text in (("a", "x\n" * 100), ("b", "x\n" * 99 + "y\n"), ("c", "y\n" * 100), ("d", "x\n")):
            (self.folder / name).write_text(text, encoding="utf-8")
        near = {name: gpu_day.lines(self.folder / "a", self.folder / name)[1] for name in "abcd"}
        self.assertEqual(near, {"a": True, "b": True, "c": False, "d": False})


@unittest.skipUnless(BUILD, "no build is given")
class WithPrograms(Case):
    def test_every_step_runs_on_the_cpu(self):
        ended = self.dry_run(BUILD, "--seconds", int(seconds(480)))
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertEqual(set(self.steps().values()), {0})
        results = gpu_day.Results(self.out).of
        self.assertEqual(results["resume"], {"model.safetensors": True, "trainer.safetensors": True})
        self.assertEqual(results["losses"]["fp32"]["largest_difference"], 0)
        self.assertEqual(results["translations"]["different"], 0)
        for table in ("Steps", "Training", "Attention, full", "Attention, causal", "Translating"):
            self.assertRegex(ended.stdout, rf"(?m)^{table}")


if __name__ == "__main__":
    unittest.main()
