#!/usr/bin/env python3
"""`lacuna bench` and `lacuna-bench`, at sizes that take no time: what they report and refuse, never how fast it was: bench_test.py PROGRAM BENCH_PROGRAM"""
import json
import os
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import small_run
from program import FOLDER, PROGRAM, Program, path, write

BENCH_PROGRAM = os.path.abspath(sys.argv.pop(1))
LEARNED = "{type: entmax, alpha: learned}"
LEARNED_NAME = "entmax-alpha=learned"


class Bench(Program):
    VERB = ("bench",)

    def prints(self, *arguments):
        return super().prints(*self.VERB, *arguments)

    def reports(self, *arguments):
        return json.loads(self.prints(*arguments, "--json"))

    def refuses(self, *arguments):
        return super().refuses(*self.VERB, *arguments)

    def says_that_there_is_no_gpu(self, ended):
        """In one line: the program was built without CUDA (2), or the machine has no GPU or a driver too old (1)."""
        self.assertIn(ended.returncode, (1, 2), ended.stderr)
        self.assertRegex(ended.stderr, r'^lacuna bench: error: .*device is "cuda".*\n$')

    def expect_comparisons(self, report, names, pairs):
        self.assertEqual([line["attention"] for line in report["comparisons"]], ["softmax (control)", *names])
        for line in report["comparisons"]:
            self.assertGreater(line["ratio"], 0)
            self.assertLessEqual(line["ratio_low"], line["ratio"])
            self.assertLessEqual(line["ratio"], line["ratio_high"])
            self.assertEqual(line["pairs"], pairs)


class Parts(Bench):
    """The program for contributors, whose verbs stand alone."""
    PROGRAM, NAME, VERB = BENCH_PROGRAM, "lacuna-bench", ()


class Attention(Parts):
    SMALL = ("attention", "--sentences", "2", "--heads", "2", "--d-head", "8", "--rounds", "1", "--threads", "2")

    def test_times_every_type_with_every_pattern_at_every_length(self):
        report = self.reports(*self.SMALL, "--types", f"rela,{LEARNED}", "--lengths", "4,7", "--causal")
        self.assertEqual((report["sentences"], report["heads"], report["causal"], report["threads"]), (2, 2, True, 2))
        cells = [(line["length"], line["type"], line["pattern"]) for line in report["lines"]]
        patterns = ("full", "local-window=32")
        self.assertEqual(cells, [(n, name, pattern) for n in (4, 7) for name in ("rela", LEARNED_NAME) for pattern in patterns])
        for line in report["lines"]:
            for time in ("ms", "softmax_ms", "aten_ms"):
                self.assertGreater(line[time], 0)
            self.assertNotIn("zero_share", line)

    def test_knows_every_type_by_itself(self):
        types = [line["type"] for line in self.reports(*self.SMALL, "--lengths", "3", "--patterns", "full")["lines"]]
        for name in ("softmax", "topk-k=8", "rela", "sparsemax", "entmax15", LEARNED_NAME, "span"):
            self.assertIn(name, types)

    def test_finds_scores_with_so_many_zeros(self):
        lines = self.reports(*self.SMALL, "--types", f"topk,rela,sparsemax,{LEARNED}", "--lengths", "40", "--zeros", "0.9")["lines"]
        self.assertEqual(len(lines), 4)
        for line in lines:
            self.assertAlmostEqual(line["zero_share"], 0.9, delta=0.01)

    def test_finds_the_k_for_so_many_zeros_of_the_keys_that_are_seen(self):
        def zero_share(zeros, *flags):
            flags = ("--types", "topk", "--lengths", "100", "--zeros", zeros, *flags)
            return self.reports(*self.SMALL, *flags)["lines"][0]["zero_share"]

        self.assertAlmostEqual(zero_share("0.8", "--patterns", "{type: local, window: 16}"), 0.8, delta=0.02)
        self.assertAlmostEqual(zero_share("0.9", "--causal"), 0.9, delta=0.01)
        self.assertAlmostEqual(zero_share("0.904"), 0.9, delta=1e-9)  # k = 10 is nearer than 9

    def test_prints_a_table(self):
        text = self.prints(*self.SMALL, "--types", "topk", "--lengths", "5")
        self.assertRegex(text, r"(?m)^length +dtype +type +pattern +ms +/ softmax +/ ATen softmax")
        self.assertRegex(text, r"(?m)^5 +fp32 +topk +full +[\d.e-]+ ")

    def test_measures_bf16_or_says_that_it_cannot(self):
        ended = self.ends(*self.SMALL, "--types", "rela", "--patterns", "full", "--lengths", "4", "--dtype", "bf16", "--json")
        lines = json.loads(ended.stdout)["lines"]
        if not lines:
            self.assertIn("takes no bf16 tensors", ended.stderr)
        self.assertTrue(all(line["dtype"] == "bf16" for line in lines))

    def test_refuses_the_queue_of_a_gpu_on_the_cpu(self):
        self.assertIn("--queued is of a GPU's queue", self.refuses(*self.SMALL, "--lengths", "4", "--queued"))
        self.assertFalse(self.reports(*self.SMALL, "--types", "softmax", "--lengths", "3")["queued"])

    def test_says_that_there_is_not_so_much_memory(self):
        """An exception of LibTorch's, and not the end of the program (text/spm_vocabulary.cpp)."""
        ended = self.ends("attention", "--types", "softmax", "--patterns", "full", "--sentences", "1", "--lengths", "1000000000",
                          "--heads", "1024", "--d-head", "1024", code=1)
        self.assertIn("allocate memory", ended.stderr)

    def test_refuses_what_is_no_type_and_what_has_no_zeros(self):
        self.assertIn('Did you mean "sparsemax"?', self.refuses("attention", "--types", "sparsmax"))
        self.assertIn("softmax gives no zero weights", self.refuses("attention", "--types", "softmax", "--zeros", "0.9"))
        self.assertIn("--zeros", self.refuses("attention", "--zeros", "1.5"))
        for flags in ([], ["--zeros", "0.9"]):
            self.assertRegex(self.refuses("attention", "--types", "rela,{type: calibrated, base: rela}", *flags),
                             "--types: calibrated-base=rela takes the scores of a mask model.*bench train --compare '{cross: calibrated}'")
        self.assertIn("--patterns", self.refuses("attention", "--types", "rela", "--patterns", "{type: local, window: -1}"))
        self.assertIn("expected patterns with commas between them", self.refuses("attention", "--types", "rela", "--patterns", " "))


class Train(Bench):
    def train(self, *flags):
        return ("train", "-c", small_run.configuration(FOLDER, "measured"), "--folder", path("bench"), "--warmup", "1", *flags)

    def test_says_where_the_time_goes(self):
        report = self.reports(*self.train("--steps", "3", "--profile"))
        parts = {part["part"]: part for part in report["profile"]["parts"]}
        for name in ("products", "attention", "norms", "loss"):
            self.assertGreater(parts[name]["forward_ms"], 0)
        for name in ("products", "attention", "norms"):
            self.assertGreater(parts[name]["backward_ms"], 0)
        self.assertGreater(parts["optimizer"]["forward_ms"], 0)
        self.assertIn("data wait", parts)
        self.assertIn("rest", parts)
        self.assertGreater(report["profile"]["product_gflops"], 0)
        self.assertGreater(report["profile"]["product_gflops_alone"], 0)
        self.assertLessEqual(sum(part["forward_ms"] + part["backward_ms"] for part in parts.values()), 1.5 * report["ms_per_update"])

    def test_prints_the_profile_as_a_table(self):
        text = self.prints(*self.train("--steps", "2", "--profile"))
        self.assertRegex(text, r"(?m)^part +forward ms +backward ms +share$")
        self.assertRegex(text, r"(?m)^attention +\d+\.\d+ +\d+\.\d+ +\d+\.\d %$")

    def test_measures_a_gpu_or_says_in_a_line_why_not(self):
        ended = self.start(*self.VERB, *self.train("--steps", "2", "--profile", "--device", "cuda", "--json"))
        if ended.returncode == 0:
            profile = json.loads(ended.stdout)["profile"]
            self.assertGreater(profile["gpu_busy_ms"], 0)
            self.assertGreater(profile["launches"], 0)
        else:
            self.says_that_there_is_no_gpu(ended)

    def test_measures_two_ranks_and_estimates_more(self):
        words = ("ranks", *self.train("--steps", "2", "--threads", "1")[1:])
        report = self.reports(*words)
        self.assertEqual((report["ranks"], report["threads"], report["updates"]), (2, 1, 2))
        self.assertAlmostEqual(report["megabytes_sent_per_update"], 4e-6 * report["parameters"])
        for key in ("ms_alone", "ms_update", "ms_update_without_overlap", "gigabits_per_second", "us_per_message", "us_agreement"):
            self.assertGreater(report[key], 0, key)
        self.assertAlmostEqual(report["efficiency"], report["ms_alone"] / report["ms_update"])
        self.assertEqual([line["network"] for line in report["estimates"]], ["this one", "1 Gbit/s", "10 Gbit/s", "25 Gbit/s", "100 Gbit/s"])
        for line in report["estimates"]:
            self.assertEqual(list(line["efficiency"]), ["8", "64", "512"])
            for ranks, share in line["efficiency"].items():
                self.assertTrue(0 < share < line["efficiency_of_4_times_the_batches"][ranks] <= 1, line)
        text = super(Bench, self).prints("launch", "-n", "2", "--", "bench", *words)
        self.assertRegex(text, r"(?m)^efficiency, estimated +8 ranks +64 ranks +512 ranks +8 ranks, 4 x the batches ")
        self.assertRegex(text, r"(?m)^10 Gbit/s +\d+ %")

    def test_measures_training_in_the_wanted_precision(self):
        for precision, names in (("fp32", ("fp32",)), ("bf16x3", ("bf16x3", "fp32")), ("bf16", ("bf16",))):  # fp32 without tiles
            report = self.reports(*self.train("--steps", "2", "--train.precision", precision))
            self.assertIn(report["precision"], names)
            self.assertGreater(report["matrix_product_share"], 0)

    def test_compares_types_in_pairs(self):
        report = self.reports(*self.train("--compare", f"topk,{LEARNED}", "--pairs", "9"))
        self.expect_comparisons(report, ["topk", LEARNED_NAME], 9)
        self.assertIn("alpha: learned", report["comparisons"][2]["in_full"])
        self.assertGreater(report["mean_src_length"], 3)
        self.assertGreater(report["mean_tgt_length"], 3)
        self.assertIn(report["precision"], ("fp32", "bf16"))

    def test_compares_models_with_several_attentions(self):
        variant = "{encoder_self: {type: softmax, pattern: {type: local, window: 2}}, cross: rela}"
        text = self.prints(*self.train("--compare", variant, "--pairs", "9"))
        self.assertIn("encoder_self=softmax-pattern=local-window=2-cross=rela", text)
        self.assertIn("norm: gated_rms", text)

    def test_compares_what_configuration_files_say(self):
        rela_i = write("rela_i.yaml", "model: {attention: {type: rela, norm: rms}}\n")
        report = self.reports(*self.train("--compare", f"{rela_i},mine: {LEARNED}", "--pairs", "9"))
        self.expect_comparisons(report, ["rela_i", "mine"], 9)
        self.assertIn("norm: rms", report["comparisons"][1]["in_full"])

    def test_compares_variants_of_the_configuration(self):
        small_run.configuration(FOLDER, "measured")
        extended = write("with.yaml", "extends: measured.yaml\nvariants: {few: {type: topk, k: 2}}\n")
        flags = "--folder", path("bench"), "--warmup", "1", "--pairs", "9"
        self.expect_comparisons(self.reports("train", "-c", extended, *flags, "--compare", "few"), ["few"], 9)

    def test_refuses_variants_of_more_than_attention(self):
        self.assertIn("changes something else", self.refuses(*self.train("--compare", "a: {attention: rela, train: {lr: 1}}")))

    def test_refuses_comparisons_that_say_nothing(self):
        self.assertIn("at least 9", self.refuses(*self.train("--compare", "topk", "--pairs", "8")))
        self.assertIn("expected names or types", self.refuses(*self.train("--compare", " ")))
        self.assertIn("looks at the distance", self.refuses(*self.train("--compare", "{type: softmax, pattern: local}")))
        self.assertIn("--profile is of one attention", self.refuses(*self.train("--compare", "topk", "--profile")))


class Translate(Bench):
    @classmethod
    def setUpClass(cls):
        steps = ("--train.max_steps", "2", "--train.save_every", "2", "--train.average_last", "0")
        cls.model = os.path.join(small_run.train(PROGRAM, FOLDER, *steps), "last")
        cls.source = write("source", "1 2 3\n\n4 5\n6\n7\n")

    def translate(self, *flags):
        return ("translate", "-m", self.model, "-i", self.source, *flags)

    def test_compares_types_on_translations_of_one_length(self):
        report = self.reports(*self.translate("--compare", "topk,rela", "--limit", "4", "--length", "6", "--pairs", "9"))
        self.expect_comparisons(report, ["topk", "rela"], 9)
        self.assertEqual((report["sentences"], report["forced_tgt_length"], report["output_tokens_per_round"]), (3, 6, 18))
        drawn = [line["drawn_parameters"] for line in report["comparisons"]]
        self.assertEqual(drawn[:2], [0, 0])
        self.assertGreater(drawn[2], 0)  # of the norm over the heads

    def test_takes_the_mean_length_of_the_sources(self):
        report = self.reports(*self.translate("--compare", "topk"))
        self.assertLessEqual(abs(report["forced_tgt_length"] - report["mean_src_length"]), 0.5)
        self.assertEqual(report["output_tokens_per_round"], report["sentences"] * report["forced_tgt_length"])

    def test_profiles_a_gpu_alone(self):
        self.assertIn("--profile of translating is of a GPU", self.refuses(*self.translate("--profile")))
        ended = self.start(*self.VERB, *self.translate("--profile", "--device", "cuda", "--json"))
        if ended.returncode == 0:
            self.assertGreater(json.loads(ended.stdout)["profile"]["launches"], 0)
        else:
            self.says_that_there_is_no_gpu(ended)

    def test_refuses_a_text_without_words(self):
        self.assertIn("holds no text", self.refuses("translate", "-m", self.model, "-i", write("empty", "\n\n"), "--compare", "topk"))

    def test_times_starts_and_fails_with_one_that_fails(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/bench_start.py")
        command = [sys.executable, script, "--lacuna", PROGRAM, "--sentence", "1 2", "--rounds", "2", self.model]
        ended = subprocess.run([*command, "--translate.max_length", "4"], capture_output=True, text=True, check=False)
        self.assertRegex(ended.stdout.splitlines()[-1], r"max_length 4 \| \d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\) \| \d+\.\d\d ", ended.stderr)
        ended = subprocess.run([*command, "--translate.max_len", "4"], capture_output=True, text=True, check=False)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("ended with 2", ended.stderr)


class Kernels(Parts):
    SMALL = ("kernels", "--tokens", "40", "--d-model", "16", "--d-ff", "24", "--vocab-size", "50", "--parameters", "100", "--rounds", "1")

    def test_times_every_kernel_beside_plain_operations(self):
        report = self.reports(*self.SMALL)
        names = {line["kernel"] for line in report["lines"]}
        for name in ("linear", "projection + loss", "residual + dropout + norm", "relu + dropout", "embedding + positions + dropout", "Adam"):
            self.assertIn(name, names)
        for line in report["lines"]:
            self.assertGreater(line["ms"], 0)
            self.assertGreater(line["plain_ms"], 0)
            self.assertTrue(("gflops" in line) != ("gigabytes_per_second" in line))

    def test_prints_a_table_of_those_that_are_wanted(self):
        text = self.prints(*self.SMALL, "--only", "Adam")
        self.assertRegex(text, r"(?m)^Adam +100 +fp32 ")
        self.assertNotIn("linear", text)

    def test_refuses_a_name_that_no_kernel_has(self):
        self.assertIn('no kernel\'s name holds "adm"', self.refuses("kernels", "--only", "adm"))


class Lengths(Parts):
    SMALL = ("lengths", "--model.preset", "tiny", "--model.d_model", "32", "--model.num_heads", "2", "--model.d_ff", "64",
             "--data.vocab_size", "50", "--batch-tokens", "16", "--rounds", "1", "--threads", "2", "--quiet")

    def types(self, *flags):
        report = self.reports(*self.SMALL, "--lengths", "4", *flags)
        return {entry["type"]: entry["in_full"] for entry in report["types"]}

    def test_measure_every_type_at_every_length(self):
        report = self.reports(*self.SMALL, "--lengths", "4,8")
        names = ["softmax", "local", "rela", "topk-k=8", "entmax15"]
        self.assertEqual([entry["type"] for entry in report["types"]], names)
        self.assertEqual([(line["length"], line["type"]) for line in report["lines"]], [(n, name) for n in (4, 8) for name in names])
        self.assertEqual((report["batch_tokens"], report["vocab_size"], report["beam_size"], report["threads"]), (16, 50, 5, 2))
        self.assertEqual(report["translate_precision"], "fp32")
        for line in report["lines"]:
            self.assertEqual(line["sentences"], 16 // line["length"])
            for cost in ("train_us_per_token", "translate_us_per_token", "train_ratio", "translate_ratio"):
                self.assertGreater(line[cost], 0)
            if line["type"] == "softmax":
                self.assertEqual((line["train_ratio"], line["translate_ratio"]), (1, 1))

    def test_measure_one_sentence_that_is_longer_than_the_batch(self):
        self.assertEqual(self.reports(*self.SMALL, "--types", "softmax", "--lengths", "20")["lines"][0]["sentences"], 1)

    def test_measure_softmax_beside_others(self):
        self.assertEqual(list(self.types("--types", "sparsemax")), ["softmax", "sparsemax"])

    def test_give_cross_attention_what_it_can_have(self):
        found = self.types("--types", "near: {type: topk, k: 2, pattern: {type: local, window: 1}},span")
        self.assertEqual(found["near"].count("type: topk"), 2)  # with the pattern, and on cross attention without
        self.assertEqual(found["near"].count("type: local"), 1)
        self.assertIn("type: full", found["near"])
        self.assertIn("type: span", found["span"])
        self.assertIn("type: softmax", found["span"])

    def test_measure_attentions_by_site(self):
        found = self.types("--types", "mine: {encoder_self: rela, decoder_self: sparsemax}")
        for name in ("rela", "sparsemax", "softmax"):
            self.assertIn(f"type: {name}", found["mine"])

    def test_take_sizes_and_named_types_from_a_configuration(self):
        named = write("named.yaml", "model: {preset: tiny}\ndata: {vocab_size: 40}\nvariants: {few: {type: topk, k: 2}}\n")
        report = self.reports("lengths", "-c", named, "--types", "few", "--lengths", "4", "--rounds", "1", "--batch-tokens", "8")
        self.assertEqual(report["vocab_size"], 40)
        self.assertIn("k: 2", report["types"][1]["in_full"])

    def test_draw_a_picture_that_names_every_type(self):
        text = self.prints(*self.SMALL, "--lengths", "4,8", "--types", "rela,mine: {type: topk, k: 2}", "--svg", path("lengths.svg"))
        self.assertRegex(text, r"(?m)^length +type +train us/token +/ softmax +translate us/token +/ softmax$")
        self.assertRegex(text, r"(?m)^8 +mine +[\d.e+]+ +[\d.]+ +[\d.e+]+ +[\d.]+$")
        picture = xml.etree.ElementTree.parse(path("lengths.svg")).getroot()
        texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
        for name in ("softmax", "rela", "mine"):
            self.assertEqual(texts.count(name), 2, name)  # training, translating
        self.assertEqual(len(list(picture.iter("{http://www.w3.org/2000/svg}polyline"))), 6)

    def test_refuse_lengths_that_make_no_curve(self):
        self.assertIn('"1" is not a whole number of at least 2', self.refuses("lengths", "--lengths", "1,2"))
        self.assertIn("expected lengths that grow", self.refuses("lengths", "--lengths", "8,4"))
        self.assertIn("expected lengths that grow", self.refuses("lengths", "--lengths", "8,8"))
        self.assertIn("expected at most 1048576", self.refuses("lengths", "--lengths", "9999999999"))

    def test_refuse_lengths_that_the_model_cannot_read(self):
        learned = "--model.positions", "learned", "--model.max_positions", "8"
        self.assertIn("--lengths: 9 is more than model.max_positions, which is 8", self.refuses(*self.SMALL, "--lengths", "4,9", *learned))
        self.assertEqual(len(self.reports(*self.SMALL, "--lengths", "8", "--types", "softmax", *learned)["lines"]), 1)

    def test_refuse_what_is_no_type_and_what_changes_more(self):
        self.assertIn('Did you mean "sparsemax"?', self.refuses(*self.SMALL, "--types", "sparsmax"))
        self.assertIn("changes something else", self.refuses(*self.SMALL, "--types", "a: {attention: rela, train: {lr: 1}}"))

    def test_refuse_what_needs_pieces_of_text(self):
        self.assertIn("translate.shortlist", self.refuses(*self.SMALL, "--translate.shortlist", path("none")))

    def test_refuse_a_picture_that_cannot_be_written_before_long_work(self):
        self.assertIn("is a folder", self.refuses(*self.SMALL, "--svg", FOLDER))


if __name__ == "__main__":
    unittest.main()
