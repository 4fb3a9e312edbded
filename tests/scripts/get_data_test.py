"""scripts/get_*: each takes files that are there to where the configurations look for them, and says what it lacks."""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What each script with --from takes, and the configurations that name what it leaves.
SETS = {
    "get_multi30k.sh": (["train.de", "train.en.gz", "val.de.gz", "valid.en", "test_2016_flickr.de", "test2016.en.gz"], "multi30k_de_en"),
    "get_iwslt14_de_en.sh": ([f"{split}.{side}" for split in ("train", "valid", "test") for side in ("de", "en")], "iwslt14_de_en"),
    "get_iwslt15_en_vi.sh": ([f"{split}.{side}.gz" for split in ("train", "tst2012", "tst2013") for side in ("en", "vi")], "iwslt15_en_vi"),
    "get_wmt14_en_de.sh": ([f"{split}.{side}" for split in ("train", "newstest2013", "newstest2014") for side in ("en", "de")], "wmt14_en_de"),
}
MIX = [f"{stem}.{side}.gz" for stem in ("multi30k/train", "tatoeba-deen/train", "manpages-deen/train", "goldalign-deen/dev",
                                        *(f"wmt-news/newstest{year}" for year in range(2008, 2014))) for side in ("de", "en")]
SACREBLEU = """class Tokenizer13a:
    def __call__(self, line):
        return line.replace(".", " .")
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with (gzip.open(path, "wt") if path.suffix == ".gz" else open(path, "w")) as file:
        file.write(text)


class Project(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.root = self.folder / "a project"
        shutil.copytree(ROOT / "scripts", self.root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))

    def assert_configured_files(self, folder):
        """What the configurations of a folder name is there."""
        configurations = list((ROOT / "configs" / folder).glob("*.yaml"))
        self.assertTrue(configurations)
        for configuration in configurations:
            for named in re.findall(r"\bdata/[\w./]*\w", configuration.read_text(encoding="utf-8")):
                self.assertTrue((self.root / named).is_file(), f"{configuration} names {named}")


class Corpora(Project):
    def start(self, script, *arguments):
        return subprocess.run([self.root / "scripts" / script, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, check=False, env={**os.environ, "PATH": "/usr/bin:/bin"})

    def test_what_configurations_name_is_there(self):
        for script, (files, configurations) in SETS.items():
            for file in files:
                write(self.folder / "my texts" / script / file, "b a\nb\n")
            ended = self.start(script, "--from", f"my texts/{script}")  # counts from where it was started
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertIn("is ready", ended.stderr)
            self.assert_configured_files(configurations)
        self.assertEqual((self.root / "data/iwslt14_de_en/vocab.txt").read_text(), "b\na\n")

    def test_says_what_is_missing(self):
        (self.folder / "empty").mkdir()
        for script in SETS:
            for arguments, message in ((["--from", "empty"], r"empty lacks train\.(de|en), plain or as \.gz"),
                                       (["--from", "none/such"], r"--from none/such: there is no such folder"),
                                       (["--from"], "--from needs a folder"), (["--form", "x"], 'unknown argument "--form"')):
                ended = self.start(script, *arguments)
                self.assertEqual(ended.returncode, 2, ended.stderr)
                self.assertRegex(ended.stderr, message)

    @unittest.skipIf(any(os.path.exists(f"{folder}/{tool}") for folder in ("/usr/bin", "/bin") for tool in ("mtdata", "sacrebleu")), "installed")
    def test_says_how_to_have_the_tool_that_downloads(self):
        for script, how in (("get_multi30k.sh", "sacrebleu: scripts/setup.sh"), ("get_iwslt15_en_vi.sh", "mtdata: pipx install mtdata"),
                            ("get_wmt14_en_de.sh", "mtdata: pipx install mtdata")):
            ended = self.start(script)
            self.assertEqual(ended.returncode, 1)
            self.assertIn(how, ended.stderr)

    def tool(self, name, text):
        tool = self.root / ".venv/bin" / name
        write(tool, "#!/bin/sh\n" + text)
        tool.chmod(0o755)

    def test_a_download_that_leaves_other_files_is_not_ready(self):
        self.tool("sacrebleu", 'echo "$*"\n')
        for script, names, folder in (("get_iwslt15_en_vi.sh", [f"{split}.{side}" for split in ("train", "dev", "test1") for side in ("eng", "vie")],
                                       "iwslt15_en_vi"), ("get_wmt14_en_de.sh", ["train.eng.gz", "train.deu.gz"], "wmt14_en_de")):
            self.tool("mtdata", "true\n")
            ended = self.start(script)
            self.assertEqual(ended.returncode, 1)
            self.assertRegex(ended.stderr, rf"the download left no data/{folder}/train.eng")
            self.tool("mtdata", f"mkdir -p data/{folder} && cd data/{folder} && touch {' '.join(names)}\n")
            ended = self.start(script)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assert_configured_files(folder)

    def test_downloads_by_the_tools_of_the_virtual_environment(self):
        self.tool("sacrebleu", 'echo "$*"\n')
        ended = self.start("get_multi30k.sh")
        self.assertEqual(ended.returncode, 1)  # training text is still missing
        self.assertEqual(gzip.open(self.root / "data/multi30k/test2016.de.gz", "rt").read(), "-t multi30k/2016 -l en-de --echo ref\n")
        for name in ("train", "valid"):
            for side in ("de", "en"):
                write(self.root / f"data/multi30k/{name}.{side}.gz", "a\n")
        self.assertEqual(self.start("get_multi30k.sh").returncode, 0)


class Mix(Project):
    def mix(self, with_sacrebleu=True):
        if with_sacrebleu:
            write(self.root / "site/sacrebleu/tokenizers/tokenizer_13a.py", SACREBLEU)
        return subprocess.run([sys.executable, "-S", self.root / "scripts/get_mix_de_en.py", "--from", self.folder / "texts"], capture_output=True, text=True,
                              timeout=60, check=False, env={**os.environ, "PYTHONPATH": str(self.root / "site")})

    def test_is_made_whole_or_not_at_all(self):
        for file in MIX:
            write(self.folder / "texts" / file, "Der Mann's Hut.\n")
        self.assertIn("dev.align.gz", self.mix().stderr)
        write(self.folder / "texts/goldalign-deen/dev.align.gz", "0-0\n")
        ended = self.mix()
        self.assertEqual(ended.returncode, 0, ended.stderr)
        target = self.root / "data/mix_de_en"
        self.assertEqual(gzip.open(target / "train.de.gz", "rt").read(), "der mann 's hut .\n" * 8)
        self.assert_configured_files("mix_de_en")

        before = {file.name: file.read_bytes() for file in target.iterdir()}
        write(self.folder / "texts/wmt-news/newstest2013.en.gz", "a\nb\n")
        self.assertIn("valid: 1 German lines and 2 English ones", self.mix().stderr)
        self.assertEqual({file.name: file.read_bytes() for file in target.iterdir()}, before)

    def test_says_which_python_has_sacrebleu(self):
        ended = self.mix(with_sacrebleu=False)
        self.assertEqual(ended.returncode, 1)
        self.assertIn(".venv/bin/python", ended.stderr)


if __name__ == "__main__":
    unittest.main()
