"""scripts/filter_auc.py measures what scores.tsv holds, and names the file that is not one."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/filter_auc.py"
SCORES = "line\tnull_rate\tnull_contrast\tlog_prob\tkept\n1\t0.1\tnan\t-1\t1\n2\t0.9\tnan\t-1\t0\n3\t0.2\tnan\t-2\t1\n"


class FilterAuc(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, scores, labels):
        paths = [self.folder / "scores.tsv", self.folder / "labels"]
        for path, text in zip(paths, (scores, labels)):
            if text is not None:
                path.write_text(text)
        return subprocess.run([sys.executable, SCRIPT, *paths], capture_output=True, text=True, timeout=60, check=False)

    def test_areas_recall_and_precision(self):
        ended = self.start(SCORES, "clean\nmismatched\nclean\n")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        rows = [line.split() for line in ended.stdout.splitlines()]
        self.assertEqual(rows[1], ["mismatched", "1", "1.0000", "nan", "0.2500", "1.0000"])
        self.assertEqual(rows[-1][-4:], ["1.0000", "of", "1", "pairs"])

    def test_names_the_file_that_is_odd(self):
        for scores, labels, message in ((None, None, "scores.tsv: No such file"), (SCORES, None, "labels: No such file"), ("", "clean\n", "(none)"),
                                        ("a\tb\n1\t2\n", "clean\n", "columns a b"), (SCORES, "clean\n", "3 pairs"), (SCORES, "clean\n" * 3, "['clean']")):
            for path in self.folder.iterdir():
                path.unlink()
            ended = self.start(scores, labels)
            self.assertEqual(ended.returncode, 1)
            self.assertIn(message, ended.stderr)
            self.assertNotIn("Traceback", ended.stderr)


if __name__ == "__main__":
    unittest.main()
