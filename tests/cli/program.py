"""The program, run as a user would. It is the first argument of the test that imports this."""
import atexit
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from patience import seconds

PROGRAM = os.path.abspath(sys.argv.pop(1))
FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, FOLDER)


def path(*names):
    return os.path.join(FOLDER, *names)


def write(name, text):
    with open(path(name), "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path(name)


def read(*names):
    with open(path(*names), encoding="utf-8") as file:
        return file.read()


def read_bytes(*names):
    with open(path(*names), "rb") as file:
        return file.read()


def temporaries(out, process):
    """The names under which a process of this machine has begun to write a file."""
    return [name for name in glob.glob(f"{glob.escape(out)}.lacuna-tmp.*") if name.split(".")[-2] == str(process.pid)]


class Program(unittest.TestCase):
    PROGRAM, NAME = PROGRAM, "lacuna"

    def start(self, *arguments, text="", **settings):
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": seconds(600), **settings}
        return subprocess.run([self.PROGRAM, *arguments], input=text, text=True, check=False, **settings)

    def ends(self, *arguments, code=0, **settings):
        ended = self.start(*arguments, **settings)
        self.assertEqual(ended.returncode, code, ended.stderr)
        return ended

    def prints(self, *arguments, text=""):
        return self.ends(*arguments, text=text).stdout

    def refuses(self, *arguments, text="", code=2, stdout="", speaker=None):
        """What it says on stderr, an error in its name, having printed nothing or else this."""
        ended = self.ends(*arguments, code=code, text=text)
        self.assertEqual(ended.stdout, stdout)
        self.assertRegex(ended.stderr, rf"(?m)^{speaker or f'{self.NAME} {arguments[0]}'}: error: ")
        return ended.stderr


class FreshFolder(Program):
    """Each test finds the folder empty."""

    def setUp(self):
        shutil.rmtree(FOLDER)
        os.mkdir(FOLDER)
