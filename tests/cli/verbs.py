"""What tests of the verbs that use a trained model share. The program is the first argument of the test that imports this."""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import small_run

PROGRAM = os.path.abspath(sys.argv.pop(1))
FOLDER = tempfile.mkdtemp()
RUN = os.path.join(FOLDER, "run")
AVERAGED = os.path.join(RUN, "averaged")
CORPUS = "{{src: {0}, tgt: {0}}}"
LINES = ["1 2 3", "", "4 5", "7 7 1 0 3 2", "9 8"]
atexit.register(shutil.rmtree, FOLDER)


def setUpModule():
    small_run.train(PROGRAM, FOLDER)


def path(name):
    return os.path.join(FOLDER, name)


def write(name, text):
    with open(path(name), "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path(name)


def start(*arguments, text=""):
    return subprocess.run([PROGRAM, *arguments], input=text, capture_output=True, text=True, timeout=120, check=False)


class Verbs(unittest.TestCase):
    def prints(self, *arguments, text=""):
        ended = start(*arguments, text=text)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def translates(self, *flags, lines=LINES):
        out = self.prints("translate", "-m", AVERAGED, *flags, text="".join(line + "\n" for line in lines))
        self.assertTrue(out.endswith("\n"))
        return out[:-1].split("\n")

    def refuses(self, *arguments, text="", code=2):
        ended = start(*arguments, text=text)
        self.assertEqual(ended.returncode, code, ended.stderr)
        return ended.stderr
