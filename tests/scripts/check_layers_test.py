"""scripts/check_layers.py reports what it is there to report, and nothing about a tree that is in order."""
import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_layers.py"
SPEC = importlib.util.spec_from_file_location("check_layers", SCRIPT)
check_layers = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_layers)


class CheckLayers(unittest.TestCase):
    def offences(self, files, check=check_layers.offences):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / "src" / name).parent.mkdir(parents=True, exist_ok=True)
                (root / "src" / name).write_text(text)
            return list(check(root))

    def test_a_folder_may_include_what_the_table_names(self):
        files = {"text/a.h": "", "data/b.h": '#include "text/a.h"\n', "config/c.h": "", "text/d.h": '#include "config/c.h"\n'}
        self.assertEqual(self.offences(files), [])

    def test_a_folder_may_not_include_another(self):
        found = self.offences({"search/a.h": "", "train/b.h": '#include "search/a.h"\n'})
        self.assertEqual(len(found), 1)
        self.assertIn("train/b.h", found[0])

    def test_base_may_not_include_config(self):
        self.assertEqual(len(self.offences({"config/a.h": "", "base/b.h": '#include "config/a.h"\n'})), 1)

    def test_a_long_file_is_a_warning(self):
        with contextlib.redirect_stderr(io.StringIO()) as warnings:
            self.assertEqual(self.offences({"text/a.cpp": "\n" * 451}), [])
        self.assertIn("text/a.cpp: warning: 451 lines", warnings.getvalue())

    def test_a_comment_that_leans_on_another_is_reported(self):
        files = {"base/a.h": "/// Of the first.\nint a;\n", "base/b.h": "/// Returns the list\n/// Of names.\nint b;\n  /// Likewise\nint c;\n"}
        found = self.offences(files, check_layers.leaning_comments)
        self.assertEqual([line.split(": ")[0] for line in found], ["src/base/a.h:1", "src/base/b.h:4"])

    def test_torch_header_is_reported(self):
        self.assertEqual(len(self.offences({"model/a.h": "#include <torch/torch.h>\n"})), 1)


if __name__ == "__main__":
    unittest.main()
