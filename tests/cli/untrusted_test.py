#!/usr/bin/env python3
"""A model folder of a stranger, used as a user would: untrusted_test.py PROGRAM"""
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
import checkpoints
from patience import seconds
from program import FOLDER, PROGRAM, path, read, read_bytes, write
from verbs import AVERAGED, LINES, Verbs, setUpModule

TEXT = "".join(line + "\n" for line in LINES)


class Untrusted(Verbs):
    def setUp(self):
        self.model = path("stranger")
        shutil.rmtree(self.model, ignore_errors=True)
        shutil.copytree(AVERAGED, self.model)

    def change(self, *changes):
        """Replaces texts in the configuration; the manifest fits."""
        config = read("stranger", "config.yaml")
        for old, new in changes:
            self.assertIn(old, config)
            config = config.replace(old, new, 1)
        write("stranger/config.yaml", config)
        checkpoints.sign(self.model)

    def commands(self):
        pairs = write("pairs", "1 2\n3 4\n")
        return (["translate", "-m", self.model, "--quiet"], ["info", "-m", self.model],
                ["score", "-m", self.model, "--src", pairs, "--tgt", pairs, "--quiet"])

    def in_an_empty_folder(self, command, **settings):
        """What the program says there; it leaves nothing behind."""
        here = path("empty")
        os.mkdir(here)
        try:
            ended = subprocess.run([PROGRAM, *command], cwd=here, input=TEXT, capture_output=True, text=True, timeout=seconds(60), check=False, **settings)
            self.assertEqual(os.listdir(here), [], command)
        finally:
            shutil.rmtree(here)
        return ended

    def test_runs_no_command_and_touches_no_file_elsewhere(self):
        mark = path("mark")
        program = write("program", f"#!/bin/sh\ntouch {mark}\n")
        os.chmod(program, 0o755)
        self.change(('sacrebleu: ""', f'sacrebleu: "{program}"'), (f"run: {FOLDER}/run", f'run: "{FOLDER}/other_run"'),
                    ('  cache: ""', f'  cache: "{FOLDER}/other_cache"'), ('  init_from: ""', '  init_from: "/dev/zero"'),
                    ('  spm_model: ""', f'  spm_model: "{FOLDER}/none.model"'), ('- name: ""', '- name: "${HOME}"'))
        before = sorted(os.listdir(FOLDER) + ["pairs"])
        for command in self.commands():
            ended = self.in_an_empty_folder(command)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            if command[0] == "info":
                self.assertIn("${HOME}", ended.stdout)
        self.assertFalse(os.path.exists(mark))
        self.assertEqual(sorted(os.listdir(FOLDER)), sorted(set(before)))

    def test_a_shortlist_elsewhere_is_left_out_and_said(self):
        pipe = path("pipe")
        if not os.path.exists(pipe):
            os.mkfifo(pipe)
        for elsewhere in (pipe, "/dev/zero", "../pairs"):
            self.change(('  shortlist: ""', f'  shortlist: "{elsewhere}"'))
            ended = self.in_an_empty_folder(["translate", "-m", self.model])
            self.assertEqual((ended.returncode, ended.stdout), (0, TEXT), ended.stderr)
            self.assertIn(f"{elsewhere}, is no file of the model's folder, and is left out", ended.stderr)
            self.setUp()

    def test_links_pipes_and_devices_are_refused_at_once(self):
        for name in ("manifest.json", "config.yaml", "spm.model", "model.safetensors"):
            file = os.path.join(self.model, name)
            for target in ("/dev/zero", "/etc/hostname", None):
                os.remove(file)
                if target is None:
                    os.mkfifo(file)
                else:
                    os.symlink(target, file)
                begin = time.monotonic()
                for command in self.commands()[:2]:
                    ended = self.in_an_empty_folder(command)
                    self.assertEqual(ended.returncode, 2, (name, target, ended.stderr))
                    self.assertIn(f"{file}: is {'no file' if target is None else 'a link'}; expected a regular file", ended.stderr)
                self.assertLess(time.monotonic() - begin, 30)
            self.setUp()

    def test_a_terminal_obeys_nothing_of_its_files(self):
        self.change(("seed:", "\"\\e]0;owned\\a\": 1\nseed:"))
        ended = self.in_an_empty_folder(["info", "-m", self.model])
        self.assertEqual(ended.returncode, 2)
        self.assertNotIn("\x1b", ended.stderr)
        self.assertIn("\\x1b]0;owned\\x07", ended.stderr)
        self.setUp()
        info = json.loads(read("stranger", "checkpoint.json"))
        info["scores"] = {"bleu\x1b[2J": 1}
        write("stranger/checkpoint.json", json.dumps(info))
        checkpoints.sign(self.model)
        ended = self.in_an_empty_folder(["info", "-m", self.model])
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertNotIn("\x1b", ended.stdout)


class ChangedWhileItIsUsed(Verbs):
    def test_a_model_that_is_written_over_or_cut_changes_no_translation(self):
        shutil.copytree(AVERAGED, path("used"))
        file = path("used", "model.safetensors")
        for other in (bytes(len(read_bytes("used", "model.safetensors"))), bytes(1000)):
            with subprocess.Popen([PROGRAM, "translate", "-m", path("used"), "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as process:
                process.stdin.write(LINES[0] + "\n")
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), LINES[0] + "\n")
                with open(file, "r+b") as written:  # in place, as cp writes
                    written.truncate(len(other))
                    written.write(other)
                out, said = process.communicate(TEXT)
            self.assertEqual((process.returncode, out), (0, TEXT), said)
            shutil.copyfile(os.path.join(AVERAGED, "model.safetensors"), file)


if __name__ == "__main__":
    unittest.main()
