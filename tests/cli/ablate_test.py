#!/usr/bin/env python3
"""`lacuna ablate` on a corpus of digits: interrupted, killed, resumed; refusals; failures: ablate_test.py PROGRAM"""
import contextlib
import json
import os
import signal
import subprocess
import time
import unittest

import small_run
from patience import seconds
from program import FOLDER, PROGRAM, FreshFolder, path, read, write

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEASURED = ("train_tokens_per_second", "translate_tokens_per_second", "peak_mebibytes", "hours")


class Ablate(FreshFolder):
    def setUp(self):
        super().setUp()
        for name, lines, seed in (("valid", 20, 2), ("test", 30, 3)):
            small_run.write_digits(path(f"{name}.txt"), lines, seed)
        sets = ", ".join(f"{name}: {{src: {path(name)}.txt, tgt: {path(name)}.txt}}" for name in ("valid", "test"))
        self.base = write("base.yaml", f"extends: run.yaml\ndata: {{{sets}}}\n"
                          "train: {max_steps: 120, save_every: 40, valid_every: 60, valid_translate: false, metric: loss, log_every: 20}\n")
        small_run.configuration(FOLDER)

    def command(self, folder, *flags):
        return ["ablate", "-c", self.base, "-o", path(folder), "--rounds", "1", *flags]

    def ablates(self, folder, *flags, code=0):
        return self.ends(*self.command(folder, *flags), code=code)

    def refuses(self, *flags):
        """The message with which it refuses, having written nothing."""
        message = super().refuses(*self.command("refused", *flags))
        self.assertFalse(os.path.exists(path("refused")))
        return message

    @contextlib.contextmanager
    def training(self, folder, variant, *flags):
        """The program, once the variant's first run has trained for a while."""
        metrics = path(folder, variant, "seed_1", "metrics.jsonl")
        with subprocess.Popen([PROGRAM, *self.command(folder, *flags)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as program:
            while program.poll() is None and not (os.path.exists(metrics) and '"train"' in read(metrics)):
                time.sleep(0.01)
            yield program

    def stop_when_training(self, folder, variant, with_signal, *flags):
        """The exit code of one that gets the signal while it trains."""
        with self.training(folder, variant, *flags) as program:
            program.send_signal(with_signal)
            return program.wait(timeout=seconds(120))

    def report(self, folder):
        """table.json without what a clock says."""
        report = json.loads(read(folder, "table.json"))
        for row in report["variants"] + report["runs"] + report["left_out"]:
            for name in MEASURED:
                del row[name]
        return report

    def table(self, folder):
        """Names and seeds of the table's rows, and the runs that are left out of it."""
        report = self.report(folder)
        return ([(variant["name"], variant["seeds"]) for variant in report["variants"]],
                [(run["variant"], run["seed"]) for run in report["left_out"]])


class Interrupted(Ablate):
    def test_and_killed_it_goes_on_to_the_same_table(self):
        flags = ("--attention", "softmax, rela", "--seeds", "1,2")
        whole = self.ablates("whole", *flags)
        self.assertIn("all 4 runs have ended: ", whole.stderr)
        printed = whole.stdout
        self.assertEqual(self.stop_when_training("stopped", "softmax", signal.SIGINT, *flags), 130)
        self.assertEqual(self.stop_when_training("stopped", "rela", signal.SIGKILL, *flags), -signal.SIGKILL)
        self.ablates("stopped", *flags)
        whole = self.report("whole")
        self.assertEqual(self.report("stopped"), whole)
        self.assertEqual([(run["variant"], run["seed"]) for run in whole["runs"]],
                         [("softmax", 1), ("rela", 1), ("softmax", 2), ("rela", 2)])
        rela = whole["variants"][1]
        self.assertEqual((rela["seeds"], rela["against"], len(rela["p_values"])), ([1, 2], "softmax", 2))
        self.assertGreater(rela["sparsity"]["cross"], 0)
        self.assertGreater(rela["parameters"]["mean"], 10000)
        self.assertEqual(rela["updates"]["mean"], 120)
        self.assertEqual(printed, read("whole", "table.md"))
        for name in ("table.tex", "plot.svg", "spm.model", "cache"):
            self.assertTrue(os.path.exists(path("whole", name)), name)
        self.assertFalse(os.path.exists(path("whole", "rela", "seed_1", "cache")))
        self.assertNotIn("training a SentencePiece model", read("whole", "rela", "seed_2", "train.log"))
        self.check_that_nothing_is_done_again(flags)

    def check_that_nothing_is_done_again(self, flags):
        log = path("whole", "softmax", "seed_1", "train.log")
        before = os.stat(log).st_mtime_ns, read("whole", "results.jsonl")
        self.ablates("whole", *flags)
        self.assertEqual((os.stat(log).st_mtime_ns, read("whole", "results.jsonl")), before)
        columns = self.ablates("whole", *flags, "--columns", "bleu,zeros").stdout
        self.assertTrue(columns.startswith("| attention | BLEU | zero weights, %: encoder, decoder, cross |\n"), columns)
        self.assertIn("attention & BLEU & zeros, \\% \\\\", read("whole", "table.tex"))
        self.assertIn("--columns", self.ablates("whole", *flags, "--columns", "blue", code=2).stderr)
        self.assertRegex(self.ablates("whole", *flags, "--list").stdout, r"(?m)^rela +seed 2 +ended: [\d.]+ BLEU$")
        self.assertIn("rela, seed 2: has ended", self.ablates("whole", *flags, "--dry-run").stdout)
        message = self.ablates("whole", *flags, "--train.lr", "0.1", code=2).stderr
        self.assertIn("holds a run of another configuration", message)
        message = self.ablates("whole", *flags, "--train.max_steps", "60", code=2).stderr
        self.assertIn("softmax/seed_1 holds a run that was trained for longer: train.max_steps is 60 now, and it has 120", message)
        self.check_that_a_table_is_of_one_experiment()

    def check_that_a_table_is_of_one_experiment(self):
        longer = self.ablates("whole", "--attention", "softmax", "--seeds", "1", "--train.max_steps", "240")
        self.assertIn(f"the only run has ended: {path('whole')}/table.md", longer.stderr)
        self.assertEqual(self.table("whole"), ([("softmax", [1])], [("rela", 1), ("softmax", 2), ("rela", 2)]))
        self.assertRegex(longer.stdout, r"(?m)^Left out, .*:\n\n- rela, seeds 1, 2\n- softmax, seed 2$")
        self.assertIsNone(self.report("whole")["left_out"][0]["comparison"], "compared with a softmax that is no longer there")
        self.ablates("whole", "--attention", "rela", "--seeds", "1,2")
        self.assertEqual(self.table("whole"), ([("softmax", [2]), ("rela", [1, 2])], [("softmax", 1)]))
        self.assertEqual([run["comparison"]["seed"] for run in self.report("whole")["runs"] if run["comparison"]], [2, 2])
        small_run.write_digits(path("test.txt"), 30, 4)
        self.ablates("whole", "--attention", "rela", "--seeds", "1")
        self.assertEqual(self.table("whole"), ([("rela", [1])], [("softmax", 1), ("softmax", 2), ("rela", 2)]))
        self.assertIsNone(self.report("whole")["runs"][0]["comparison"], "compared with a softmax that was scored on another set")


class Failing(Ablate):
    def test_a_variant_stands_in_the_table_and_stops_no_other(self):
        variants = write("v.yaml", "first: softmax\nwild: {attention: softmax, train: {lr: 1e30}}\nlast: rela\n")
        ended = self.ablates("failed", "--variants", variants, "--train.max_steps", "60", code=1)
        self.assertIn("- wild, seed 1: training has diverged", ended.stdout)
        self.assertRegex(ended.stdout, r"(?m)^\| wild \| failed \|")
        self.assertIn("1 of 3 runs failed", ended.stderr)
        self.assertEqual([bool(run["error"]) for run in self.report("failed")["runs"]], [False, True, False])
        self.assertRegex(self.ablates("failed", "--variants", variants, "--train.max_steps", "60", "--list").stdout, r"wild +seed 1 +failed: ")
        self.assertEqual(len(self.report("failed")["variants"][-1]["p_values"]), 1)
        os.truncate(path("failed", "first", "seed_1", "last", "manifest.json"), 7)
        self.ablates("failed", "--attention", "first: softmax", "--train.max_steps", "90", code=1)
        last = self.report("failed")["left_out"][-1]
        self.assertEqual((last["variant"], last["comparison"]), ("last", None), "compared with a run that has failed since")

    def test_a_training_that_was_killed_stands_in_the_table(self):
        with self.training("killed", "softmax", "--attention", "softmax") as program:
            with open(f"/proc/{program.pid}/task/{program.pid}/children", encoding="ascii") as file:
                os.kill(int(file.read()), signal.SIGKILL)
            self.assertEqual(program.wait(timeout=seconds(120)), 1)
        self.assertIn("- softmax, seed 1: lacuna train was ended by signal 9 (Killed); was memory short?\n", read("killed", "table.md"))

    def test_a_line_that_cannot_be_scored_costs_the_loss_alone(self):
        with open(path("valid.txt"), "a", encoding="utf-8") as file:
            file.write("1 " * 60 + "\n")
        ended = self.ablates("long", "--attention", "softmax", "--model.positions", "learned", "--model.max_positions", "33",
                          "--data.max_length", "32", "--train.max_steps", "60")
        self.assertIn("softmax, seed 1 has no validation loss: ", ended.stderr)
        run = self.report("long")["runs"][0]
        self.assertEqual((run["error"], run["valid_loss"]), ("", None))
        self.assertIsNotNone(run["bleu"])


class Unchanged(Ablate):
    def test_by_shared_options_that_its_variant_has_its_own_values_for(self):
        flags = ("--variants", write("v.yaml", "short: {attention: softmax, train: {max_steps: 60}}\n"))
        self.ablates("kept", *flags)
        before = self.table("kept")
        write("base.yaml", read("base.yaml").replace("max_steps: 120", "max_steps: 90"))
        self.assertIn("short, seed 1: has ended", self.ablates("kept", *flags, "--dry-run").stdout)
        self.ablates("kept", *flags)
        self.assertEqual(self.table("kept"), before)
        self.assertEqual(before, ([("short", [1])], []))
        self.check_that_it_stays_what_it_was_trained_as(flags)

    def check_that_it_stays_what_it_was_trained_as(self, flags):
        dry = (*flags, "--dry-run")
        self.ablates("kept", *dry, "--max-seconds", "1000")
        self.assertIn("short/seed_1 holds a run that was trained for longer: train.max_hours is 2.7777778e-08 now, and it has 0.",
                      self.ablates("kept", *dry, "--max-seconds", "0.0001", code=2).stderr)
        for key, value, trained in (("patience", 3, 0), ("min_steps", 7, 0), ("min_improvement", 0.5, 0), ("save_every", 20, 40),
                                    ("valid_every", 30, 60), ("valid_beam_size", 3, 5)):
            message = self.ablates("kept", *dry, f"--train.{key}", str(value), code=2).stderr
            self.assertIn(f"short/seed_1 holds a run that was trained otherwise: train.{key} is {value} now, and it has {trained}; remove", message)
        with open(path("kept", "short", "seed_1", "metrics.jsonl"), "a", encoding="utf-8") as file:
            file.write('{"step":60,"kind":7}\n')
        small_run.write_digits(path("train.txt"), 1500, 9)
        self.assertIn("short, seed 1 failed: the training corpora are not those", self.ablates("kept", *flags, code=1).stderr)


class OneFileForBothSides(Ablate):
    def scores(self, folder):
        return [(run["bleu"], run["chrf"], run["valid_loss"]) for run in self.report(folder)["runs"]]

    def test_is_scored_as_two_files_are(self):
        flags, columns = ("--attention", "softmax, rela", "--train.max_steps", "60"), []
        for name in ("valid", "test"):
            table = write(f"{name}.tsv", "".join(f"{line}\t{line}\n" for line in read(f"{name}.txt").splitlines()))
            columns += [f"--data.{name}", f"[{{tsv: {table}}}]"]
        self.ablates("files", *flags)
        self.ablates("columns", *flags, *columns)
        self.assertEqual(self.scores("columns"), self.scores("files"))

    def test_is_scored_with_its_prefix(self):
        flags, written, prefixed = ("--attention", "softmax", "--train.max_steps", "60"), [], []
        for name in ("valid", "test"):
            lines = read(f"{name}.txt").splitlines()
            sevens = write(f"{name}_sevens.txt", "".join(f"7 {line}\n" for line in lines))
            table = write(f"{name}_sevens.tsv", "".join(f"{line}\t7 {line}\n" for line in lines))
            written += [f"--data.{name}", f"[{{src: {sevens}, tgt: {sevens}}}]"]
            prefixed += [f"--data.{name}", f"[{{tsv: {table}, src_prefix: 7}}]"]
        self.ablates("written", *flags, *written)
        self.ablates("prefixed", *flags, *prefixed)
        self.assertEqual(self.scores("prefixed"), self.scores("written"))


class Refused(Ablate):
    def test_an_option_that_is_wrong_before_anything_is_trained(self):
        message = self.refuses("--attention", "softmax, topk: {k: 0}")
        self.assertIn("variant topk-k=0", message)
        self.assertIn("at least 1", message)

    def test_a_pattern_where_it_has_no_meaning(self):
        self.assertIn("looks at the distance", self.refuses("--attention", "softmax,{cross: {type: softmax, pattern: local}}"))

    def test_an_unknown_type(self):
        self.assertIn('Did you mean "softmax"?', self.refuses("--attention", "sofmax"))

    def test_nothing_to_compare(self):
        self.assertIn("there is nothing to compare", self.refuses())

    def test_a_seed_that_is_there_twice(self):
        self.assertIn("a seed is there twice", self.refuses("--attention", "softmax", "--seeds", "1,1"))

    def test_a_joiner_of_one_variant(self):
        variants = write("joined.yaml", "whole: {attention: softmax, translate: {joiner: '@@'}}\n")
        message = self.refuses("--variants", variants, "--data.tokenizer", "none", "--data.vocab", write("pieces.vocab", "a@@\nb\n"))
        self.assertIn("variant whole: translate.joiner belongs to the whole ablation", message)

    def test_seconds_that_are_no_number(self):
        self.assertIn("--max-seconds", self.refuses("--attention", "softmax", "--max-seconds", "nan"))

    def test_a_set_to_score_that_is_missing(self):
        self.assertIn("data.test and data.valid are empty", self.refuses("--attention", "softmax", "--data.test=[]", "--data.valid=[]"))
        for also in ([], ["--dry-run"]):
            missing = f"[{{src: {path('nowhere')}, tgt: {path('test.txt')}}}]"
            self.assertIn("nowhere", self.refuses("--attention", "softmax", "--data.test", missing, *also))
            uneven = f"[{{src: {path('valid.txt')}, tgt: {path('test.txt')}}}]"
            self.assertIn("20 lines", self.refuses("--attention", "softmax", "--data.test", uneven, *also))


class Looking(Ablate):
    def test_writes_nothing(self):
        variants = "--attention", "softmax, mine: {type: topk, k: 2}"
        self.assertRegex(self.ablates("none", *variants, "--list").stdout, r"^softmax +seed 1 +not begun\nmine +seed 1 +not begun\n$")
        self.assertIn("mine, seed 1: ", self.ablates("none", *variants, "--dry-run").stdout)
        self.assertFalse(os.path.exists(path("none")))

    def test_takes_variants_of_the_configuration(self):
        self.base = write("with.yaml", "extends: base.yaml\nvariants:\n  a: softmax\n  b: {attention: rela, seeds: [4, 5], against: a}\n")
        out = self.ablates("none", "--dry-run").stdout
        self.assertRegex(out, r"(?m)^a, seed 1: would train .* and score it$")
        self.assertRegex(out, r"(?m)^b, seed 5: .* against a$")
        self.assertNotIn("a, seed", self.ablates("none", "--attention", "b", "--dry-run").stdout)

    def test_finds_our_configurations_in_order(self):
        for name in ("bundled", "multi30k"):
            self.base = os.path.join(SOURCE, "configs", "ablations", f"{name}.yaml")
            self.assertRegex(self.ablates("none", "--list").stdout, r"(?m)^softmax +seed 1 ")

    def test_runs_every_variant_once_before_one_runs_twice(self):
        out = self.ablates("none", "--attention", "softmax,rela", "--seeds", "7,8", "--list").stdout.split("\n")
        self.assertEqual([line.split()[0::2][:2] for line in out[:4]], [["softmax", "7"], ["rela", "7"], ["softmax", "8"], ["rela", "8"]])


if __name__ == "__main__":
    unittest.main()
