#!/usr/bin/env python3
"""How `lacuna train` resumes runs, as a user would: resume_test.py PROGRAM"""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import unittest

import small_run
from program import FOLDER, PROGRAM, FreshFolder, path, read, read_bytes, write


class Diverging(FreshFolder):
    def command(self, run, *words):
        return ["train", "-c", small_run.configuration(FOLDER, run), "--train.average_last", "0", *words]

    def growing(self, run, decay, *words):
        """Training that multiplies weights by 1 - 0.005 decay in each update, until its numbers overflow."""
        return self.command(run, "--train.optimizer", "adamw", "--train.weight_decay", decay, "--train.warmup_steps", "1", "--train.schedule",
                            "constant", "--train.keep_last", "1", "--train.max_bad_updates", "3", *words)

    def recovering(self, run):
        """Weights are multiplied by -2.8, and by -0.9 with half the learning rate."""
        return self.growing(run, "760", "--train.save_every", "5", "--train.max_steps", "200")

    def test_saves_no_weights_that_are_no_numbers(self):
        said = self.refuses(*self.command("run", "--train.lr", "1e300", "--train.save_every", "4"), code=1)
        self.assertRegex(said, r"error: training has diverged: after step 4, \S+ has \d+ of \d+ values that are not finite \(NaN or infinity\)")
        self.assertIn("there is no earlier checkpoint of this run to go back to", said)
        self.assertRegex(said, r"diagnosis of step 4: in the forward pass, first \S.*: \d+ of \d+ values are not finite")
        self.assertFalse([name for name in os.listdir(path("run")) if name.startswith("step_")])
        replayed = self.prints("check", "-c", path("run/config.yaml"), "--replay", path("run/bad_batch.json"))
        self.assertRegex(replayed, r"(?m)^weights +as initialized")
        self.assertRegex(replayed, r"(?m)^update +step 4, \d+ sentence pairs$")
        self.assertRegex(replayed, r"(?m)^found +all values are finite$")

    def test_goes_back_and_trains_on_with_half_the_learning_rate(self):
        said = self.ends(*self.recovering("run")).stderr
        self.assertEqual(len(re.findall(r"going back to \S+/run/step_\d+ with 0\.5 times the learning rate", said)), 1, said)
        with open(path("run/last/trainer.json"), encoding="utf-8") as file:
            state = json.load(file)
        self.assertEqual((state["step"], state["went_back"]["lr_factor"]), (200, 0.5))
        rates = {line["step"]: line["lr"] for line in map(json.loads, read("run/metrics.jsonl").splitlines()) if line["kind"] == "train"}
        self.assertEqual(rates[200], 0.0025)

    def test_that_is_killed_as_it_goes_back_goes_on_in_the_same_way(self):
        self.ends(*self.recovering("whole"))
        with subprocess.Popen([PROGRAM, *self.recovering("killed")], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as training:
            for line in training.stderr:
                if "going back to" in line:
                    training.kill()
        self.ends(*self.recovering("killed"))
        for file in ("model.safetensors", "trainer.safetensors"):
            self.assertEqual(read_bytes("killed/last", file), read_bytes("whole/last", file))
        self.assertEqual(os.readlink(path("killed/last")), os.readlink(path("whole/last")))

    def test_goes_back_once_and_then_ends_with_a_good_checkpoint(self):
        said = self.refuses(*self.growing("run", "4400", "--train.save_every", "1"), code=1)
        self.assertEqual(len(re.findall(r"going back to \S+/run/step_\d+ with 0\.5 times the learning rate", said)), 1, said)
        self.assertIn("training has gone back once before, from step ", said)
        self.assertIn("diagnosis", said)
        self.ends("average", "-o", path("good"), path("run/last"))
        replayed = self.prints("check", "-c", path("run/config.yaml"), "--replay", path("run/bad_batch.json"))
        self.assertRegex(replayed, r"(?m)^weights +\S+/run/step_\d+$")

    def test_refuses_to_repeat_what_is_no_saved_update(self):
        self.ends(*self.command("run", "--train.max_steps", "20"))
        message = self.refuses("check", "-c", path("run/config.yaml"), "--replay", write("batch.json", "{}"))
        self.assertIn("batch.json is not what lacuna train writes", message)


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
        self.assertTrue(os.path.exists(path("renamed/spm.model.training")))

    def test_does_not_go_on_with_other_columns_or_another_prefix(self):
        configuration = small_run.configuration(FOLDER, "columns")
        rows = [line.split() for line in read("train.txt").splitlines()]
        table = write("train.tsv", "".join(f"{' '.join(words)}\t{' '.join(words)}\t{' '.join(reversed(words))}\n" for words in rows))
        brief = ["train", "-c", configuration, "--train.average_last", "0", "--train.max_steps"]
        self.ends(*brief, "20", "--data.train", f"[{{tsv: {table}}}]")
        for other in ("columns: [1, 3]", "columns: [2, 1]", "src_prefix: 7"):
            self.assertIn("the training corpora are not those that", self.refuses(*brief, "25", "--data.train", f"[{{tsv: {table}, {other}}}]"))
        tagged = ["--data.train", f"[{{tsv: {table}, src_prefix: 7}}]"]
        self.assertIn("are read from their beginning", self.ends(*brief, "25", *tagged, "--train.reset", "[data]").stderr)
        shutil.move(table, path("moved.tsv"))
        self.assertIn("going on after step 25", self.ends(*brief, "30", "--data.train", f"[{{tsv: {path('moved.tsv')}, src_prefix: 7}}]").stderr)

    def test_warns_of_another_prefix_of_the_validation_set(self):
        small_run.write_digits(path("valid.txt"), 20, 2)
        command = ["train", "-c", small_run.configuration(FOLDER, "prefixed"), "--train.average_last", "0", "--train.valid_translate", "false",
                   "--train.metric", "loss", "--train.valid_every", "10"]
        valid = f"{{src: {path('valid.txt')}, tgt: {path('valid.txt')}"
        self.ends(*command, "--train.max_steps", "20", "--data.valid", valid + "}")
        ended = self.ends(*command, "--train.max_steps", "25", "--data.valid", valid + ", src_prefix: 7}")
        self.assertIn("data.valid: the first set is another than until step 20", ended.stderr)

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

    def test_a_run_that_was_killed_before_it_removed_a_checkpoint_removes_it(self):
        command = ["train", "-c", small_run.configuration(FOLDER, "killed"), "--train.save_every", "20", "--train.keep_last", "1",
                   "--train.average_last", "0", "--train.max_steps"]
        self.ends(*command, "20")
        shutil.copytree(path("killed/step_20"), path("step_20"))
        self.ends(*command, "40")
        shutil.copytree(path("step_20"), path("killed/step_20"))
        self.assertIn("nothing to do", self.ends(*command, "40").stderr)
        self.assertEqual([name for name in os.listdir(path("killed")) if name.startswith("step_")], ["step_40"])

    def test_says_once_what_is_lost_without_validation_and_logs_the_last_update(self):
        command = ["train", "-c", small_run.configuration(FOLDER, "unvalidated"), "--train.max_steps", "20", "--train.warmup_steps", "5",
                   "--train.log_every", "1000", "--train.average_last", "0"]
        said = self.ends(*command).stderr
        self.assertEqual(said.count("data.valid is empty: nothing is validated"), 1, said)
        self.assertEqual(re.findall(r"info step (\d+), epoch", said), ["20"], said)
        self.assertIn("effective batch: 1024 tokens (1024 a batch x 1 batch an update)", said)
        small_run.write_digits(path("valid.txt"), 20, 2)
        valid = ["--data.valid", f"{{src: {path('valid.txt')}, tgt: {path('valid.txt')}}}", "--train.valid_translate", "false",
                 "--train.metric", "loss", "--run", path("validated")]
        self.assertNotIn("nothing is validated", self.ends(*command, *valid).stderr)

    def test_says_which_key_ended_it_and_how_it_goes_on(self):
        small_run.write_digits(path("valid.txt"), 20, 2)
        command = ["train", "-c", small_run.configuration(FOLDER, "run"), "--data.valid", f"{{src: {path('valid.txt')}, tgt: {path('valid.txt')}}}",
                   "--train.valid_every", "10", "--train.valid_translate", "false", "--train.metric", "loss", "--train.min_improvement", "1000",
                   "--train.average_last", "0", "--train.max_steps", "40", "--train.patience"]
        end = "step 20: no better loss in 1 validation since step 10, and train.patience is 1 (a higher one goes on)"
        self.ends(*command, "1")
        self.assertIn(f"info training finished: {end}\n", read("run/train.log"))
        self.assertIn(f"already finished: {end}; nothing to do", self.ends(*command, "1").stderr)
        self.ends(*command, "2")
        self.assertIn("info training finished: step 30: no better loss in 2 validations since step 10, and train.patience is 2", read("run/train.log"))
        self.ends(*command, "0")
        self.assertIn("info training finished: 40 of 40 updates (train.max_steps)\n", read("run/train.log"))
        self.ends(*command, "0", "--train.max_steps", "1000000", "--train.max_hours", "1e-9")
        self.assertRegex(read("run/train.log"), r"already finished: \S+ of 1e-09 hours \(train\.max_hours\); nothing to do\n")
        longer = ["--train.max_steps", "1000000", "--train.max_epochs", "1"]
        self.ends(*command, "0", "--run", path("epoch"), *longer)
        self.assertIn("info training finished: 1 of 1 epochs (train.max_epochs)\n", read("epoch/train.log"))

    def test_saves_and_goes_on_where_its_terminal_was_closed(self):
        command = ["train", "-c", small_run.configuration(FOLDER, "run"), "--train.average_last", "0", "--train.log_every", "1", "--train.max_steps"]
        training, terminal = pty.fork()
        if training == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # however the test was started
            os.execv(PROGRAM, [PROGRAM, *command, "1000000"])
        said = b""
        while b"step 5, epoch" not in said:
            said += os.read(terminal, 1 << 16)
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(training, 0)[1]), 129)
        stopped = re.search(r"step (\d+): interrupted by SIGHUP \(the terminal was closed\), and saved", read("run/train.log"))
        self.assertIsNotNone(stopped, read("run/train.log"))
        step = int(stopped.group(1))
        self.assertIn(f"going on after step {step}", self.ends(*command, str(step + 5)).stderr)

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

    def test_says_the_way_past_a_damaged_checkpoint(self):
        command = ["train", "-c", small_run.configuration(FOLDER, "run"), "--train.average_last", "0", "--train.save_every", "10",
                   "--train.max_steps"]
        self.ends(*command, "20")
        os.truncate(path("run/last/model.safetensors"), 1000)
        message = self.refuses(*command, "30")
        self.assertIn("step_20/model.safetensors is damaged", message)
        way = re.search(r"weights of the one before: (--run \S+_2) (--train.init_from \S+step_10) (--train.reset) '(.*)'", message)
        self.ends(*command, "30", *(word for part in way.groups()[:3] for word in part.split()), way.group(4))

    def test_makes_a_damaged_average_again_and_averages_without_a_damaged_checkpoint(self):
        command = ["train", "-c", small_run.configuration(FOLDER, "run"), "--train.save_every", "10", "--train.max_steps"]
        self.ends(*command, "20", "--train.average_last", "2")
        weights = read_bytes("run/averaged/model.safetensors")
        os.truncate(path("run/averaged/checkpoint.json"), 10)
        said = self.ends(*command, "20", "--train.average_last", "2").stderr
        self.assertRegex(said, r"averaged/checkpoint\.json is damaged.* It is made again")
        self.assertEqual(read_bytes("run/averaged/model.safetensors"), weights)
        os.truncate(path("run/step_10/manifest.json"), 10)
        longer = [*command, "30", "--train.average_last", "3"]
        self.assertIn("averaged the last 2 checkpoints", self.ends(*longer).stderr)
        os.truncate(path("run/step_20/model.safetensors"), 1000)
        shutil.rmtree(path("run/averaged"))
        message = self.refuses(*longer)
        self.assertRegex(message, r"step_20/model\.safetensors is damaged.* or remove its folder: the same command averages the others")
        shutil.rmtree(path("run/step_20"))
        self.assertIn("one checkpoint is its own average", self.ends(*longer).stderr)

    def test_does_not_write_over_a_configuration_that_it_is_given(self):
        os.mkdir(path("mine"))
        small_run.configuration(FOLDER, "mine")
        text = "# Mine.\n" + read("mine.yaml")
        own = write("mine/config.yaml", text)
        message = self.refuses("train", "-c", own, "--train.max_steps", "20")
        self.assertIn(f"{own} is of no run", message)
        self.assertEqual(read("mine/config.yaml"), text)
        self.ends("train", "-c", own, "--run", path("other"), "--train.max_steps", "20")
        self.assertIn("nothing to do", self.ends("train", "-c", path("other/config.yaml")).stderr)

    def test_removes_an_average_that_it_goes_past_and_no_other(self):
        command = ["train", "-c", small_run.configuration(FOLDER, "run"), "--train.save_every", "10", "--train.max_steps"]
        self.ends(*command, "20", "--train.average_last", "2")
        self.ends(*command, "30", "--train.average_last", "0")
        self.assertFalse(os.path.exists(path("run/averaged")))
        self.ends("average", "-o", path("run/averaged"), path("run/step_10"), path("run/step_20"))  # made on purpose, after step 30
        self.ends(*command, "30", "--train.average_last", "0")
        self.assertTrue(os.path.exists(path("run/averaged")))

    def test_starts_with_another_attention_from_weights(self):
        brief = ["--train.average_last", "0", "--train.ema_decay", "0.9", "--train.max_steps"]
        self.ends("train", "-c", small_run.configuration(FOLDER, "run"), *brief, "20")
        command = ["train", "-c", small_run.configuration(FOLDER, "tuned"), *brief, "30", "--train.init_from", path("run/last"),
                   "--model.attention.cross", "{type: rela, norm: gated_rms}"]
        self.assertRegex(self.refuses(*command), r"cross: softmax; used here: cross: .*rela.*; drawn anew: .*norm\.gain.*set train\.reset: \[optimizer\]")
        anew = ["--train.reset", "[optimizer, lr, data, best]"]
        self.assertIn("weights do not fit the model", self.refuses(*command, *anew, "--model.encoder_layers", "2"))
        self.assertRegex(self.ends(*command, *anew).stderr, r"; drawn anew: decoder\.layers\.0\.cross_attention\.norm\.gain")
        self.assertIn("going on after step 30", self.ends(*command[:-5], "35", *command[-4:], *anew).stderr)
        back = ["train", "-c", small_run.configuration(FOLDER, "back"), *brief, "10", "--train.init_from", path("tuned/last"), *anew]
        self.assertRegex(self.ends(*back).stderr, r"used here: cross: softmax; left out: decoder\.layers\.0\.cross_attention\.norm")

    def test_goes_on_in_another_spelling(self):
        command = ["train", "-c", small_run.configuration(FOLDER, "run"), "--train.average_last", "0", "--train.max_steps"]
        self.ends(*command, "20", "--model.attention", "entmax15")
        same = ["--model.attention", "{default: softmax, encoder_self: {type: entmax15}, decoder_self: entmax15, cross: {default: entmax15}}"]
        self.assertIn("going on after step 20", self.ends(*command, "25", *same).stderr)
        self.assertIn("model.attention", self.refuses(*command, "30", "--model.attention", "{default: entmax15, cross: softmax}"))

    def test_counts_scores_anew_for_another_metric(self):
        small_run.write_digits(path("valid.txt"), 20, 2)
        validating = ["--data.valid", f"[{{src: {path('valid.txt')}, tgt: {path('valid.txt')}}}]", "--train.valid_every", "10",
                      "--train.valid_translate", "false", "--train.average_last", "0", "--train.max_steps"]
        self.ends("train", "-c", small_run.configuration(FOLDER, "run"), *validating, "20", "--train.metric", "loss")
        command = ["train", "-c", small_run.configuration(FOLDER, "tuned"), *validating, "30", "--train.init_from", path("run/last")]
        self.assertIn("is of loss, and train.metric is ppl here: scores are counted anew",
                      self.ends(*command, "--train.metric", "ppl").stderr)
        with open(path("tuned/last/trainer.json"), encoding="utf-8") as file:
            self.assertGreater(json.load(file)["scores"]["best_step"], 20)

    def test_looks_at_the_learning_rate_of_a_run_that_replaces_another(self):
        command = ["train", "-c", small_run.configuration(FOLDER, "run"), "--train.average_last", "0", "--train.max_steps", "20"]
        self.ends(*command)
        message = self.refuses(*command, "--train.schedule", "noam", "--train.lr", "5e-4", "--train.overwrite", "true")
        self.assertIn("with the noam schedule it is a factor", message)
        os.mkdir(path("run/valid"))
        part = shutil.copy(path("train.txt"), path("run/valid/step_20.hyp"))
        corpus = f"[{{src: {path('train.txt')}, tgt: {part}}}]"
        message = self.refuses(*command, "--data.train", corpus, "--train.overwrite", "true", "--train.lr", "1e-3")
        self.assertIn(f"data.train is {part}, a part of the run", message)

    def test_warns_of_a_loss_above_that_of_guessing(self):
        said = self.ends("train", "-c", small_run.configuration(FOLDER, "diverges"), "--train.average_last", "0", "--train.max_steps", "15",
                         "--train.log_every", "5", "--train.lr", "1e4", "--train.warmup_steps", "1").stderr
        self.assertEqual(len(re.findall(r"step \d+: the loss is \S+ nats a token, where guessing has 3\.18: training diverges", said)), 1, said)

    def test_says_what_to_do_where_a_validation_finds_that_it_has_diverged(self):
        small_run.write_digits(path("valid.txt"), 20, 2)
        said = self.refuses("train", "-c", small_run.configuration(FOLDER, "run"), "--train.average_last", "0", "--train.lr", "1e30",
                            "--train.warmup_steps", "0", "--train.valid_every", "5", "--data.valid",
                            f"{{src: {path('valid.txt')}, tgt: {path('valid.txt')}}}", code=1)
        self.assertIn("training has diverged: the loss on valid is not finite. Lower train.lr", said)

    def test_warns_of_pairs_that_do_not_train(self):
        said = self.ends("train", "-c", small_run.configuration(FOLDER, "short"), "--train.average_last", "0", "--train.max_steps", "2",
                         "--data.max_length", "4").stderr
        self.assertRegex(said, r"train: \d+ % of its pairs do not train, as they are longer than data\.max_length")

    def test_looks_at_validation_sets_before_long_work(self):
        sets = f"[{{src: {write('a.txt', '1 2' + chr(10))}, tgt: {write('b.txt', b'1' + bytes([255, 10]))}}}]"
        message = self.refuses("train", "-c", small_run.configuration(FOLDER, "run"), "--data.valid", sets)
        self.assertIn("b.txt:1", message)
        self.assertNotIn("training a SentencePiece model", message)

    def test_says_that_a_vocabulary_is_taken_as_it_is(self):
        self.ends("train", "-c", small_run.configuration(FOLDER, "run"), "--train.average_last", "0", "--train.max_steps", "20")
        os.mkdir(path("second"))
        shutil.copy(path("run/spm.model"), path("second/spm.model"))
        ended = self.ends("train", "-c", small_run.configuration(FOLDER, "second"), "--train.average_last", "0", "--train.max_steps", "20",
                          "--data.vocab_size", "22")
        self.assertRegex(ended.stderr, "second/spm.model, which no training of this configuration has made, is taken as it is: [0-9]+ pieces")

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
