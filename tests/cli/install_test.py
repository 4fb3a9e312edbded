#!/usr/bin/env python3
"""`cmake --install`: what it leaves runs anywhere, without the project: install_test.py PROGRAM BUILD_FOLDER SOURCE_FOLDER

Installs, moves the folder, renames the project's virtual environment, and translates. Nothing else may run beside it.
"""
import contextlib
import os
import subprocess
import sys
import tempfile
import unittest

import small_run
from patience import seconds

PROGRAM = BUILD = SOURCE = ""


@contextlib.contextmanager
def renamed(path):
    """The folder has another name inside; a folder that an earlier test, killed, left renamed comes back too."""
    away = path + ".away"
    if os.path.isdir(away) and not os.path.exists(path):
        os.rename(away, path)
    if not os.path.exists(path):  # LibTorch came from elsewhere
        yield
        return
    os.rename(path, away)
    try:
        yield
    finally:
        os.rename(away, path)


class Install(unittest.TestCase):
    def test_runs_where_it_was_moved_to_without_the_virtual_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(small_run.train(PROGRAM, folder, "--train.max_steps", "80"), "averaged")
            subprocess.run(["cmake", "--install", BUILD, "--prefix", os.path.join(folder, "first")], check=True, capture_output=True)
            os.rename(os.path.join(folder, "first"), os.path.join(folder, "second"))
            lacuna = os.path.join(folder, "second/bin/lacuna")
            with renamed(os.path.join(SOURCE, ".venv")):
                translated = subprocess.run([lacuna, "translate", "-m", model], input="1 2\n\n", capture_output=True, text=True, timeout=seconds(60),
                                            check=False)
                info = subprocess.run([lacuna, "info"], env={}, capture_output=True, text=True, timeout=seconds(60), check=False)
            self.assertEqual(translated.returncode, 0, translated.stderr)
            self.assertEqual(translated.stdout.count("\n"), 2)
            self.assertEqual(os.listdir(os.path.join(folder, "second/lib")), ["lacuna"])  # no library that other programs would find
            self.assertEqual(sorted(os.listdir(os.path.join(folder, "second/bin"))), ["lacuna"])
            self.assertEqual(sorted(os.listdir(os.path.join(folder, "second/share/doc/lacuna"))), ["LICENSE", "README.md"])
            sections = subprocess.run(["readelf", "-SW", os.path.join(folder, "second/lib/lacuna/libtorch_cpu.so")], capture_output=True, text=True,
                                      check=True)
            self.assertNotIn(".symtab", sections.stdout)
            self.assertIn(os.path.join(folder, "second/lib/lacuna/libtorch_cpu.so"), info.stdout.replace("bin/../", ""))


if __name__ == "__main__":
    PROGRAM, BUILD, SOURCE = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
    unittest.main()
