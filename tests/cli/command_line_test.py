#!/usr/bin/env python3
"""What `lacuna` says about a wrong command line or configuration, and how it ends: command_line_test.py PROGRAM"""
import os
import re
import subprocess
import time
import unittest

from patience import seconds
from program import FOLDER, PROGRAM, FreshFolder, path, temporaries, write

VERBS = ["train", "launch", "average", "quantize", "export", "import", "shortlist", "split", "translate", "serve", "score", "evaluate",
         "analyze", "align", "aer", "vocab", "distill", "check", "info", "ablate", "bench"]


class CommandLine(FreshFolder):
    def config(self, text):
        """A configuration file whose run folder, if anything made it, would be in this test's own folder."""
        return write("c.yaml", f"run: {path('run')}\n{text}")

    def prints(self, *arguments):
        """What it prints, saying nothing on stderr."""
        ended = self.start(*arguments)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout

    def refuses(self, *arguments, speaker=None):
        """Its message, all that it says; and it has made no run folder."""
        message = super().refuses(*arguments, speaker=speaker)
        self.assertEqual(message.count("\n"), 1, message)
        self.assertFalse(os.path.exists(path("run")))
        return message

    def refuses_config(self, text, *overrides):
        return self.refuses("train", "-c", self.config(text), *overrides)


class Help(CommandLine):
    def test_lists_every_verb(self):
        self.assertEqual(re.findall(r"(?m)^  (\w+)  ", self.prints("--help")), VERBS)

    def test_of_each_verb_is_there(self):
        for verb in VERBS:
            self.assertIn(f"lacuna {verb}", self.prints(verb, "--help"))
        for what in ("train", "translate"):
            self.assertIn(f"lacuna bench {what}", self.prints("bench", what, "--help"))
            self.assertIn(f"  {what} ", self.prints("bench", "--help"))

    def test_of_a_verb_may_be_asked_for_first(self):
        self.assertEqual(self.prints("help", "align"), self.prints("align", "--help"))

    def test_of_options_is_there_wherever_a_configuration_is_read(self):
        for words in (["train"], ["check"], ["ablate"], ["bench", "train"]):
            self.assertIn("model.d_model  (default 256; at least 1)", self.prints(*words, "--help-options"))

    def test_of_options_names_those_of_every_attention(self):
        text = self.prints("ablate", "--help-options")
        self.assertEqual(text, self.prints("train", "--help-options"))
        for line in ("topk  arXiv:1912.11637", "  k  (default 8; at least 1)", "rela  arXiv:2104.07012  (norm gated_rms, unless another is named)",
                     "  activation  (default relu; one of relu, gelu, leaky_relu, identity)", "local", "  window  (default 8; at least 0)",
                     "rms", "  gain_init  (default xavier_uniform; one of xavier_uniform, ones)"):
            self.assertRegex(text, rf"(?m)^  {re.escape(line)}$")


    def test_shows_values_ranges_and_defaults(self):
        text = self.prints("translate", "--help")
        for line in (r"  -b, --beam-size N \(1-10000\)\s+Hypotheses kept at each step", r"--sampling \{none,full,top_k,top_p\}\s",
                     r"--max-length N \(>= 1\)\s", r"  -m, --model PATH\s.*required", r"  --seed N \(>= 0\) .*default: 1\)"):
            self.assertRegex(text, rf"(?ms)^ *{line}" if not line.startswith(" ") else rf"(?ms)^{line}")
        self.assertIn("N (0-1024)", self.prints("train", "--help"))
        self.assertRegex(self.prints("launch", "--help"), r"(?m)^  -n N \(1-4096\) .*\(required\)$")
        self.assertRegex(text, r"--length-penalty X \(0-100\)\s+Power a of the length")
        self.assertLessEqual(max(map(len, text.splitlines())), 140)


class Reference(CommandLine):
    def test_of_the_configuration_has_every_key(self):
        text = self.prints("reference", "configuration")
        for line in ("| `d_model` | integer, at least 1 | `256` | width of the residual stream |", "## `train`", "### `topk`", "### `gated_rms`",
                     "### `local`", "| `k` | integer, at least 1 | `8` | "):
            self.assertIn(line, text)
        options = re.findall(r"(?m)^([a-z_]+\.)*([a-z_]+)  \(", self.prints("train", "--help-options"))
        self.assertGreater(len(options), 90)
        for _, key in options:
            self.assertIn(f"| `{key}` |", text)

    def test_of_commands_has_every_verb_and_flag(self):
        text = self.prints("reference", "commands")
        self.assertEqual(re.findall(r"(?m)^## lacuna (\w+)$", text), [verb for verb in VERBS if verb != "bench"])
        self.assertIn("## lacuna bench train", text)
        for flag in re.findall(r"(?m)^  (-[^ ]+)", self.prints("score", "--help")):
            self.assertIn(f"`{flag}", text)
        for line in text.splitlines():
            if line.startswith("|"):
                self.assertEqual(len(re.findall(r"(?<!\\)\|", line)) in (3, 4), True, line)

    def test_knows_two_pages(self):
        self.assertIn("{configuration,commands}", self.refuses("reference", "other"))


class Version(CommandLine):
    def test_is_one_line(self):
        self.assertRegex(self.prints("--version"), r"^lacuna \d+\.\d+\.\d+( \(\w+\))?\n$")

    def test_info_says_what_was_built(self):
        text = self.prints("info")
        for fact in ("build ", "LibTorch ", "devices ", "instruction set ", "fp32 products ", "translating ", "threads ", "SentencePiece "):
            self.assertRegex(text, rf"(?m)^{fact} *\S")
        self.assertEqual(self.prints("--build-info"), text)

    def test_has_the_threads_that_the_environment_asks_for(self):
        for asked, threads in (("3", "3"), ("none", r"[1-9]\d*")):
            text = self.ends("info", env={**os.environ, "OMP_NUM_THREADS": asked}).stdout
            self.assertRegex(text, rf"(?m)^threads +{threads}$")

    def test_has_the_threads_that_the_system_lets_it_have(self):
        cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cpus)})
        self.addCleanup(os.sched_setaffinity, 0, cpus)
        without = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        self.assertRegex(self.ends("info", env=without).stdout, r"(?m)^threads +1$")


class WrongWords(CommandLine):
    def test_no_verb(self):
        self.assertIn("a verb is missing", self.refuses(speaker="lacuna"))

    def test_an_unknown_verb_names_the_nearest(self):
        message = self.refuses("trian", speaker="lacuna")
        self.assertIn('"trian" is not a verb; did you mean "train"? (lacuna --help lists them)', message)
        self.assertIn('"xylophone" is not a verb; lacuna --help lists them', self.refuses("xylophone", speaker="lacuna"))

    def test_a_verb_of_other_programs_names_ours(self):
        for verb, hint in (("decode", "use lacuna translate"), ("build_vocab", "use lacuna vocab"), ("server", "use lacuna serve"),
                           ("convert", "use lacuna export")):
            self.assertIn(f'"{verb}" is not a verb: {hint}', self.refuses(verb, speaker="lacuna"))

    def test_several_processes(self):
        for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
            ended = self.ends("train", "-c", self.config(""), env={**os.environ, name: "2"}, code=2)
            self.assertRegex(ended.stderr, f"the environment says {name}=2, and [A-Z_]*RANK is not set")
        step = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "SLURM_STEP_NODELIST": "node[1-2]"}
        ended = self.ends("check", "-c", self.config(""), env={**os.environ, **step}, code=2)
        self.assertIn("the environment says (SLURM_PROCID and SLURM_STEP_NUM_TASKS) that this is process 1 of 2: a launcher", ended.stderr)
        self.assertNotIn("launcher", self.ends("train", "-c", self.config(""), env={**os.environ, "WORLD_SIZE": "1"}, code=2).stderr)

    def test_launch_says_what_it_expects(self):
        for words, message in (((), "-- is missing before the verb that is started: lacuna launch -n 4 -- train -c base.yaml"),
                               (("-n", "2", "train"), "-- is missing"), (("--", "train"), "-n is required"),
                               (("-n", "0", "--", "train"), '"0" is not a whole number from 1 to 4096'), (("-n", "2", "--"), "no verb is behind --"),
                               (("-n", "2", "--", "translate"), '"translate" is behind --; expected train'),
                               (("-n", "2", "--", "lacuna", "train"), 'without "lacuna"'), (("-n", "2", "--bind", "x", "--", "train"), "--bind"),
                               (("-n", "1", "--nodes", "2", "--", "train"), "--address is not given"),
                               (("-n", "1", "--nodes", "2", "--node-rank", "2", "--address", "a", "--", "train"), "--node-rank is 2; expected 0 to 1"),
                               (("-n", "1", "--address", "a:x", "--", "train"), '--address is "a:x"; expected HOST or HOST:PORT'),
                               (("-n", "1", "--address", "no-such-host.invalid", "--", "train"), "--address is no-such-host.invalid, which names")):
            self.assertIn(message, self.refuses("launch", *words))

    def test_launch_ends_as_its_processes_do(self):
        ended = self.ends("launch", "-n", "2", "--bind", "numa", "--", "train", "-c", path("none.yaml"), code=2)
        self.assertIn("none.yaml", ended.stderr)
        self.assertIn("ended with exit code 2", ended.stderr)

    def test_a_missing_flag_is_named_with_the_help(self):
        required = {"translate": "--model", "score": "--model", "average": "--output", "evaluate": "--ref", "vocab": "--output"}
        for verb, flag in required.items():
            self.assertIn(f"{flag} is required; see lacuna {verb} --help", self.refuses(verb))
        self.assertIn("--input is required, or --src and --tgt; see lacuna vocab --help", self.refuses("vocab", "-o", path("model")))

    def test_no_configuration(self):
        for verb in ("train", "check", "ablate"):
            self.assertIn("-c FILE is missing", self.refuses(verb))
            self.assertIn("-c FILE is missing; write -c mine.yaml", self.refuses(verb, "mine.yaml"))
            self.assertIn("-c FILE is missing; write -c 'one of mine.yaml'", self.refuses(verb, "one of mine.yaml"))

    def test_a_number_that_is_none_names_what_was_expected(self):
        for value in ("x", "-1", "1.5"):
            message = self.refuses("train", f"--threads={value}")
            self.assertIn(f'"{value}" is not a whole number from 0 to 1024', message)
        for flag, value, expected in (("--seed", "-5", "of at least 0"), ("--seed", "9" * 23, "of at least 0"),
                                      ("--vocab-size", "0400", "from 16 to 1048576"),
                                      ("--vocab-size", "0x140", "from 16 to 1048576")):
            self.assertIn(f'"{value}" is not a whole number {expected}', self.refuses("vocab", "-i", "text", "-o", "model", f"{flag}={value}"))
        for words in (["train"], ["bench", "train"]):
            message = self.refuses(*words, "--threads=4294967297")
            self.assertIn('"4294967297" is not a whole number from 0 to 1024', message)

    def test_a_word_that_belongs_to_nothing(self):
        self.assertIn('"word" is not understood', self.refuses_config("", "word"))
        self.assertIn("--seed: the value is missing", self.refuses_config("", "--seed"))

    def test_an_unknown_flag_is_no_key_of_the_configuration(self):
        message = self.refuses("translate", "-m", path("none"), "--beam", "4")
        self.assertIn('--beam is not a flag; see lacuna translate --help. Did you mean "--beam-size"?', message)
        self.assertIn("--verbose is not a flag; see lacuna train --help", self.refuses_config("", "--verbose"))
        self.assertIn("--max-epochs is not a flag; the key is --train.max_epochs", self.refuses_config("", "--max-epochs", "3"))
        message = self.refuses("align", "--forward", "a", "--backward", "b", "--symetrize", "union")
        self.assertIn('--symetrize is not a flag; see lacuna align --help. Did you mean "--symmetrize"?', message)
        self.assertIn("--train.overwrite: the value is missing", self.refuses_config("", "--train.overwrite", "--train.lr", "1e-3"))

    def test_a_flag_that_is_given_twice(self):
        self.assertIn("--threads is given more than once; expected one value", self.refuses("train", "--threads", "1", "--threads", "2"))

    def test_models_that_are_not_there_beside_an_output_that_is(self):
        os.mkdir(path("there"))
        write("there/manifest.json", "{}")
        for command in (("average", "-o", path("there"), path("nowhere")), ("quantize", "-o", path("there"), "-m", path("nowhere"))):
            self.assertIn("nowhere does not exist", self.refuses(*command))

    def test_flags_that_do_nothing_together(self):
        self.assertIn("--alignment-layer requires --alignment", self.refuses("translate", "-m", "m", "--alignment-layer", "1"))
        self.assertIn("--n-best excludes --scores", self.refuses("translate", "-m", "m", "--scores", "--n-best", "2"))
        self.assertIn("--json excludes --scores", self.refuses("translate", "-m", "m", "--scores", "--json"))
        self.assertIn("--pairs requires --compare", self.refuses("bench", "translate", "-m", "m", "-i", "i", "--pairs", "9"))
        text = write("text", "1\n")
        message = self.refuses("score", "-m", "a", "-m", "b", "--src", text, "--tgt", text, "--filter", path("filtered"))
        self.assertIn("--filter ranks a corpus by one model; 2 are given with -m", message)

    def test_flags_of_models_beside_files_of_links(self):
        files = ("align", "--forward", "a", "--backward", "b", "--symmetrize", "union")
        for flag, value in (("--src", "a"), ("--level", "word"), ("--layer", "99"), ("--dev-src", "a"), ("--batch-tokens", "9")):
            self.assertIn(f"{flag} has no meaning with files of links", self.refuses(*files, flag, value))
        for flag in ("-m", "--reverse-model"):
            self.assertIn("from models (-m), not from both", self.refuses(*files, flag, "a"))

    def test_an_unknown_thing_to_measure(self):
        self.assertIn('"tarin" is not something to measure', self.refuses("bench", "tarin"))
        self.assertIn("build/cpu/lacuna-bench attention runs it", self.refuses("bench", "attention", "--threads", "2"))

    def test_a_model_that_is_not_there(self):
        for verb in ("translate", "info"):
            self.assertIn("does not exist; expected a run folder, or the folder of a checkpoint", self.refuses(verb, "-m", path("none")))
            message = self.refuses(verb, "-m", write("file", ""))
            self.assertIn("file is a file; expected a run folder, or the folder of a checkpoint", message)

    def test_what_averages_take_is_a_checkpoint_itself(self):
        self.assertIn("none does not exist; expected the folder of a checkpoint", self.refuses("average", "-o", path("out"), path("none")))


class WrongConfiguration(CommandLine):
    def test_a_missing_file_and_a_folder(self):
        message = self.refuses("train", "-c", path("none.yaml"))
        self.assertIn("none.yaml: there is no such configuration file", message)
        self.assertIn("is a folder", self.refuses("train", "-c", FOLDER))

    def test_an_unknown_key_has_its_line_and_the_nearest_key(self):
        message = self.refuses_config("model:\n  d_mode: 64\n")
        self.assertIn("c.yaml:3: unknown key model.d_mode; did you mean model.d_model?", message)

    def test_variants_are_for_ablate(self):
        for verb in ("train", "check"):
            message = self.refuses(verb, "-c", self.config("variants: {a: softmax, b: rela}\n"), "-c", write("later.yaml", "seed: 2\n"))
            self.assertIn(f"c.yaml:2: variants is a map; it says what `lacuna ablate` compares, which trains each: lacuna ablate -c {path('c.yaml')} "
                          f"-c {path('later.yaml')} (one of them alone: --attention NAME)", message)

    def test_a_key_that_is_there_twice_has_both_lines(self):
        self.assertRegex(self.refuses_config("seed: 1\nseed: 2\n"), r"c\.yaml:3: .*twice, first in line 2")

    def test_an_ill_typed_override_names_its_flag(self):
        self.assertIn('command line (--train.lr): train.lr is "fast"; expected a number', self.refuses_config("", "--train.lr", "fast"))
        self.assertIn('command line (--data.train): data.train is "nope"; expected {src: FILE, tgt: FILE} or {tsv: FILE}, or a list',
                      self.refuses_config("", "--data.train", "nope"))

    def test_combinations_without_meaning(self):
        self.assertIn("num_heads is 3; it must divide model.d_model", self.refuses_config("model: {d_model: 64, num_heads: 3}\n"))
        self.assertIn(".yaml:3: model.num_heads is 3;", self.refuses_config("model:\n  {d_model: 64, num_heads: 3}\n"))
        self.assertIn("n_best is 9; at most translate.beam_size", self.refuses_config("translate: {n_best: 9, beam_size: 5}\n"))

    def test_attention_is_checked_before_anything_is_written(self):
        message = self.refuses_config("model:\n  attention: {cross: {type: topk, k: 0}}\n")
        self.assertIn("c.yaml:3: model.attention.cross.k", message)
        message = self.refuses_config("model: {attention: {cross: {type: softmax, pattern: {type: local, window: 4}}}}\n")
        self.assertIn("c.yaml:2: model.attention.cross.pattern is a map; this pattern looks at the distance", message)
        self.assertIn('Did you mean "sparsemax"?', self.refuses_config("model: {attention: sparsemx}\n"))

    def test_text_that_is_not_utf8_is_named_by_its_line(self):
        message = self.refuses("train", "-c", write("latin.yaml", b"seed: 1\nrun: b\xe4d\n"))
        self.assertIn("latin.yaml:2: byte 7 is not UTF-8", message)
        self.assertIn("command line (--run): byte 2 is not UTF-8", self.refuses("train", "-c", self.config(""), "--run", b"b\xe4d"))

    def test_a_tab_is_named(self):
        self.assertRegex(self.refuses_config("model:\n\td_model: 64\n"), r"c\.yaml:\d+: not YAML: .*; line 3 is indented by a tab: take spaces")

    def test_a_corpus_has_a_name_that_files_may_have(self):
        message = self.refuses_config("data: {test: [{src: a, tgt: b, name: ../../evil}]}\n")
        self.assertIn('c.yaml:2: data.test: a corpus has the name "../../evil", by which files in the run folder are called', message)

    def test_a_language_has_a_code(self):
        message = self.refuses_config("data:\n  {tgt_lang: cn}\n")
        self.assertIn('c.yaml:3: data.tgt_lang is "cn"; expected a language\'s code, "zh"', message)

    def test_a_folder_that_cannot_be_made(self):
        message = self.refuses("train", "-c", write("c.yaml", ""), "--run", path("c.yaml", "x"))
        self.assertIn(f"command line (--run): run is {path('c.yaml', 'x')}, and {path('c.yaml')} is no folder; name another", message)

    def test_a_folder_of_other_things_is_no_run_folder(self):
        for name in ("averaged", "best", "last", "tensorboard", "test", "valid", "metrics.jsonl"):
            folder = path("mine", name.split(".", maxsplit=1)[0])
            os.makedirs(os.path.join(folder, name))
            write(os.path.join(folder, name, "my.txt"), "dear\n")
            message = self.refuses("train", "-c", self.config("data: {train: {src: a, tgt: b}}\n"), "--run", folder)
            self.assertIn(f"{folder} holds no run, but {name}, where training would write. Set `run` to another folder", message)
            self.assertEqual(os.listdir(folder), [name])

    def test_home_is_no_tilde(self):
        message = self.refuses("train", "-c", self.config(""), "--run", "~/x")
        self.assertIn('run is "~/x", and ~ is no folder here; write ${HOME}/x', message)

    def test_vocabularies_that_would_not_be_read(self):
        message = self.refuses_config("data: {tokenizer: none, vocab: v, spm_model: my.model}\n")
        self.assertIn("with which the SentencePiece model my.model is not read", message)

    def test_a_variable_that_is_not_set_is_named(self):
        self.assertIn("LACUNA_NOT_SET", self.refuses_config("data: {cache: '${LACUNA_NOT_SET}/x'}\n"))


class DumpedConfiguration(CommandLine):
    def test_reads_back_as_itself(self):
        once = self.prints("train", "-c", self.config("model: {preset: tiny}\n"), "--train.lr", "1e-3", "--dump-config")
        self.assertIn("d_model: 128", once)
        self.assertEqual(self.prints("train", "-c", write("dumped.yaml", once), "--dump-config"), once)
        self.assertFalse(os.path.exists(path("run")))

    def test_has_the_words_of_the_command_line_as_they_are(self):
        for word in ("runs/x #2", "runs/x: 2", "&x", "%x", "a, b", "- a"):
            dumped = write("dumped.yaml", self.prints("train", "-c", self.config(""), "--run=" + word, "--dump-config"))
            self.assertIn(f"run: {word}\n", self.prints("train", "-c", dumped, "--dump-config").replace('"', ""))
        for word, line in (("--run='quoted'", "run: quoted"), ("--seed= 7 ", "seed: 7"), ("--model.attention= {type: entmax15}", "type: entmax15")):
            self.assertRegex(self.prints("train", "-c", self.config(""), word, "--dump-config"), rf"(?m)\b{line}\b")

    def test_is_printed_by_check_too(self):
        self.assertIn("beam_size:", self.prints("check", "-c", self.config(""), "--dump-config"))

    def test_takes_several_files_each_after_its_flag(self):
        first, later = self.config("seed: 3\n"), write("later.yaml", "seed: 4\n")
        self.assertIn("\nseed: 4\n", self.prints("train", "-c", first, "-c", later, "--dump-config"))


class Output(CommandLine):
    def test_that_nobody_reads_ends_quietly(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        ended = self.start("train", "--help-options", stdout=write_end)
        os.close(write_end)
        self.assertEqual((ended.returncode, ended.stderr), (141, ""))

    def test_that_can_be_no_file_is_refused(self):
        links = write("links", "0-0\n")
        for words in (("align", "--forward", links, "--backward", links, "--symmetrize", "union"), ("vocab", "-i", links)):
            self.assertIn("-o is empty", self.refuses(*words, "-o", ""))
            message = self.refuses(*words, "-o", path("none/x"))
            self.assertIn(f"{path('none/x')}: cannot be written: there is no folder {path('none')}", message)
            self.assertEqual(os.listdir(FOLDER), ["links"])

    def test_that_cannot_take_its_name_leaves_nothing(self):
        out, links = path("out"), write("links", "0-0\n")
        words = ["align", "--forward", "/dev/stdin", "--backward", links, "--symmetrize", "union", "-o", out]
        with subprocess.Popen([PROGRAM, *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            while not temporaries(out, program) and program.poll() is None:
                time.sleep(0.01)
            os.mkdir(out)
            message = program.communicate("0-0\n", timeout=seconds(60))[1]
        self.assertEqual(program.returncode, 1, message)
        self.assertIn(f"{out}: cannot be written: ", message)
        self.assertEqual(sorted(os.listdir(FOLDER)), ["links", "out"])

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_on_a_full_disk_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            ended = self.start("train", "--help-options", stdout=full)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("stdout cannot be written", ended.stderr)


if __name__ == "__main__":
    unittest.main()
