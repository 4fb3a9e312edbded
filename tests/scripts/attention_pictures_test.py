"""scripts/attention_pictures.py draws what an analysis.json holds, puts its numbers in tables, and says what it can't draw."""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from pictures import analysis_file, svg_charts  # noqa: E402

FILES = {"sparsity.svg", "alignment_error.svg", "null_rate.svg", "shuffled_null_rate.svg", "head_diversity.svg"}


def place(site, layer, kind, sparsity, null_rates, diversity):
    rows = {"sparsity": sparsity, "null_rate": sum(null_rates) / 2, "heads": {"null_rate": null_rates}}
    more = {"null_rate": rows["null_rate"] * 2, "heads": {"null_rate": [2 * rate for rate in null_rates]}}
    return {"site": site, "layer": layer, "type": kind, **rows, "diversity": diversity, "shuffled": more}


def system(aer):
    return {"aer": aer, "interval": [aer - 0.05, aer + 0.05]}


def layer_alignment(layer, first, second, average):
    step = {"heads": [system(first), system(second)], "best_head": int(second < first), "average": system(average)}
    return {"layer": layer, "normal": step, "shifted": copy.deepcopy(step)}


def analysis(places):
    model = {"name": "runs/a", "num_heads": 2, "pairs": 3, "src_tokens": 20, "tgt_tokens": 21, "notes": [], "places": places,
             "alignment": {"sentences": 3, "layers": [layer_alignment(0, 0.5, 0.4, 0.45), layer_alignment(1, 0.3, 0.6, 0.41)]}}
    return {"format": 1, "src": "corpus/test.de", "tgt": "corpus/test.en", "seed": 1, "models": [model]}


def softmax():
    return analysis([place(site, layer, "softmax", 0, [0, 0], {"as_is": 0.31 + layer / 10}) for site in analysis_file.SITES for layer in (0, 1)])


def rela():
    return analysis([place(site, layer, "rela", 0.7 + layer / 10, [0.1 + layer / 10, 0.25], {"1.0": 0.6, "0.5": 0.456})
                     for site in analysis_file.SITES for layer in (0, 1)])


def rows_of(page, title):
    """The table under a heading: rows as {column: cell}, the heading's first table."""
    lines = [line for line in page.split(f"## {title}\n")[1].split("\n## ")[0].splitlines() if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(header, row)) for row in rows]


def texts_of(svg):
    return [element.text for element in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]


class Script(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    def start(self, *arguments):
        script = [sys.executable, str(SCRIPTS / "attention_pictures.py"), "--out", str(self.folder / "out"), "--title", "Three pairs"]
        return subprocess.run(script + list(arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)

    def draws(self, *arguments):
        """The page, and what was said of things left out."""
        ended = self.start(*arguments)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return (self.folder / "out/README.md").read_text(encoding="utf-8"), ended.stderr

    def refuses(self, *arguments):
        ended = self.start(*arguments)
        self.assertEqual((ended.returncode, ended.stdout), (2, ""), ended.stderr)
        self.assertFalse((self.folder / "out").exists())
        return ended.stderr

    def drawn(self):
        return {path.name for path in (self.folder / "out").glob("*.svg")}

    def both(self):
        return [f"softmax={self.file('a.json', softmax())}", f"rela-g={self.file('b.json', rela())}"]


class Pictures(Script):
    def test_all_are_drawn_and_name_every_model(self):
        page, said = self.draws(*self.both())
        self.assertEqual(self.drawn(), FILES)
        for file in FILES:
            self.assertIn(f"]({file})", page)
            texts = " ".join(texts_of(self.folder / "out" / file))
            self.assertIn("softmax", texts, file)
            self.assertIn("rela-g", texts, file)
        self.assertIn("null_rate.svg: left out: softmax: no row of cross attention is null", said)

    def test_are_light_and_dark_and_need_nothing_else(self):
        self.draws(*self.both())
        for file in FILES:
            text = (self.folder / "out" / file).read_text(encoding="utf-8")
            self.assertIn("prefers-color-scheme: dark", text)
            self.assertNotIn("http", text.replace("http://www.w3.org/2000/svg", ""))

    def test_do_not_depend_on_files_being_one_or_two(self):
        apart, _ = self.draws(*self.both())
        together = softmax()
        together["models"] += rela()["models"]
        self.assertEqual(self.draws(f"softmax,rela-g={self.file('both.json', together)}")[0], apart)

    def test_say_with_dashes_and_open_marks_what_is_an_average(self):
        self.draws(*self.both())
        text = (self.folder / "out/alignment_error.svg").read_text(encoding="utf-8")
        self.assertEqual(text.count("curve dashed"), 2 * 2)  # of two models, normal and shifted
        self.assertEqual(len(re.findall(r"h6m-3 0V", text)), 2 * 2 * 2 * 2)  # an interval for each model, step, layer, kind

    def test_of_many_models_have_an_alignment_panel_of_their_own_for_averages(self):
        path = self.file("a.json", softmax())
        self.draws(*(f"{name}={path}" for name in "abcd"))
        texts = texts_of(self.folder / "out/alignment_error.svg")
        self.assertEqual((texts.count("normal"), texts.count("a AoH"), texts.count("d AoL")), (2, 2, 2))

    def test_escape_names(self):
        page, _ = self.draws(f"a<b>&|c={self.file('b.json', rela())}")
        self.assertTrue(any("a<b>&|c" in text for text in texts_of(self.folder / "out/null_rate.svg")))
        self.assertIn("| a<b>&\\|c |", page)


class Page(Script):
    def setUp(self):
        super().setUp()
        self.page, _ = self.draws(*self.both(), "--command", "lacuna analyze -m runs/a", "--command", "echo done")

    def test_quotes_the_commands(self):
        self.assertIn("```sh\nlacuna analyze -m runs/a\necho done\n```", self.page)

    def test_sparsity_is_the_json_s(self):
        rows = {(row["site"], row["model"]): row for row in rows_of(self.page, "Sparsity by layer")}
        self.assertEqual(len(rows), 3 * 2)
        self.assertEqual([rows["cross", "rela-g"][column] for column in ("layer 0", "layer 1", "mean")], ["0.700", "0.800", "0.750"])

    def test_alignment_error_is_the_json_s_in_percent(self):
        rows = {(row["weights"], row["model"], row["of"]): row for row in rows_of(self.page, "Alignment error by layer")}
        best, average = rows["normal", "rela-g", "AoH"], rows["shifted", "softmax", "AoL"]
        self.assertEqual((best["layer 0"], best["layer 1"]), ("40.0 (35.0 to 45.0)", "30.0 (25.0 to 35.0)"))
        self.assertEqual((average["layer 0"], average["layer 1"]), ("45.0 (40.0 to 50.0)", "41.0 (36.0 to 46.0)"))
        self.assertIn("rela-g: the lowest of any head is normal 30.0 (layer 1, head 0)", self.page)

    def test_null_rates_are_the_json_s(self):
        rows = rows_of(self.page, "Null rate by layer and head")
        self.assertEqual([(row["model"], row["layer"], row["head 0"], row["head 1"]) for row in rows],
                         [("rela-g", "0", "0.100", "0.250"), ("rela-g", "1", "0.200", "0.250")])
        self.assertIn("rela-g: null rate 0.200 on true references, 0.400 on shuffled ones.", self.page)
        rows = rows_of(self.page, "Null rate on true and on shuffled references")
        self.assertEqual([(row["references"], row["layer 0"], row["mean"]) for row in rows],
                         [("true", "0.175", "0.200"), ("shuffled", "0.350", "0.400")])

    def test_diversity_is_the_json_s_by_temperature(self):
        rows = {(row["site"], row["model"], row["rows"]): row["layer 1"] for row in rows_of(self.page, "Head diversity by layer")}
        self.assertEqual(len(rows), 3 * (1 + 2))
        self.assertEqual((rows["cross", "softmax", "as is"], rows["cross", "rela-g", "T = 0.5"]), ("0.410", "0.456"))


class LeftOut(Script):
    def test_is_what_no_model_was_measured_for(self):
        bare = softmax()
        del bare["models"][0]["alignment"]
        for one in bare["models"][0]["places"]:
            del one["shuffled"], one["diversity"]
        _, said = self.draws(f"softmax={self.file('a.json', bare)}")
        self.assertEqual(self.drawn(), {"sparsity.svg"})
        self.assertIn("alignment_error.svg: not drawn: softmax: alignment error was not measured (lacuna analyze --gold FILE does)", said)
        self.assertIn("(lacuna analyze --shuffle-references does)", said)
        self.assertIn("head_diversity.svg: not drawn", said)

    def test_is_the_model_without_gold_links_and_the_picture_says_so(self):
        bare = rela()
        del bare["models"][0]["alignment"]
        page, _ = self.draws(f"softmax={self.file('a.json', softmax())}", f"rela-g={self.file('b.json', bare)}")
        self.assertIn("Not shown: rela-g: alignment error was not measured", page)
        self.assertTrue(any("Not shown: rela-g" in text for text in texts_of(self.folder / "out/alignment_error.svg")))

    def test_leaves_no_picture_of_an_earlier_run(self):
        self.draws(*self.both())
        _, said = self.draws(self.both()[0])
        self.assertEqual(self.drawn(), FILES - {"null_rate.svg", "shuffled_null_rate.svg"})
        self.assertRegex(said, r"out.null_rate.svg was of an earlier run, and is removed")

    def test_is_a_deeper_layer_that_another_model_has_not(self):
        shallow = rela()
        shallow["models"][0]["places"] = [one for one in shallow["models"][0]["places"] if one["layer"] == 0]
        page, _ = self.draws(f"softmax={self.file('a.json', softmax())}", f"rela-g={self.file('b.json', shallow)}")
        cross = [row for row in rows_of(page, "Sparsity by layer") if row["site"] == "cross"]
        self.assertEqual([row["layer 1"] for row in cross], ["0.000", "\N{EN DASH}"])


class Refusals(Script):
    def test_name_the_file_that_is_not_an_analysis(self):
        for content, why in (("once", "not JSON"), ("[" * 100000, "nested too deeply"), ("[1]", "which `lacuna analyze` does not write"),
                             ("{}", 'has no "format"')):
            path = self.file("odd.json", content)
            message = self.refuses(f"a={path}")
            self.assertIn(path, message)
            self.assertIn(why, message)
        self.assertIn("No such file", self.refuses(f"a={self.folder / 'none.json'}"))
        self.assertIn("reads 1", self.refuses(f"a={self.file('next.json', {**softmax(), 'format': 2})}"))

    def test_name_the_field_that_is_missing_or_odd(self):
        for change, where in ((lambda model: model["places"][1].pop("layer"), 'models[0].places[1] has no "layer"'),
                              (lambda model: model["places"][0].update(sparsity="much"), 'models[0].places[0].sparsity is "much"'),
                              (lambda model: model["alignment"]["layers"][0].pop("shifted"), 'alignment.layers[0] has no "shifted"'),
                              (lambda model: model["places"][0].update(sparsity=float("inf")), 'models[0].places[0].sparsity is Infinity'),
                              (lambda model: model["places"][0].update(null_rate=float("nan")), 'models[0].places[0].null_rate is NaN'),
                              (lambda model: model["places"][0]["diversity"].update(as_is=10 ** 400), 'places[0].diversity.as_is is 1000'),
                              (lambda model: model["places"][1]["heads"]["null_rate"].pop(), "places[1].heads.null_rate has 1 values; expected 2"),
                              (lambda model: model["places"][1]["shuffled"]["heads"]["null_rate"].append(0), "shuffled.heads.null_rate has 3 values"),
                              (lambda model: model["alignment"]["layers"][1]["shifted"]["heads"].pop(), "layers[1].shifted.heads has 1 values"),
                              (lambda model: model["alignment"]["layers"][0]["normal"]["average"]["interval"].pop(), "average.interval has 1 values"),
                              (lambda model: model["alignment"]["layers"][0]["normal"].update(best_head=2), "best_head is 2")):
            odd = softmax()
            change(odd["models"][0])
            self.assertIn(where, self.refuses(f"a={self.file('odd.json', odd)}"))

    def test_of_names(self):
        path = self.file("a.json", softmax())
        self.assertIn('"a" is the name of 2 models', self.refuses(f"a={path}", f"a={path}"))
        self.assertIn("holds 1 models (runs/a)", self.refuses(f"a,b={path}"))
        for odd in (path, f"={path}", "a="):
            self.assertIn("is not NAME=PATH", self.refuses(odd))

    def test_of_models_that_saw_different_texts(self):
        other = rela()
        other["models"][0]["pairs"] = 4
        message = self.refuses(f"a={self.file('a.json', softmax())}", f"b={self.file('b.json', other)}")
        self.assertRegex(message, r"b saw 4 pairs, and a 3 .*analyse the same text")

    def test_of_nothing_to_draw(self):
        bare = analysis([{"site": "cross", "layer": 0, "type": "softmax"}])
        del bare["models"][0]["alignment"]
        self.assertIn("nothing to draw", self.refuses(f"a={self.file('a.json', bare)}"))

    def test_of_a_folder_that_is_a_file(self):
        self.file("out", "")
        ended = self.start(f"a={self.file('a.json', softmax())}")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("name a folder that can be written to", ended.stderr)


class Charts(unittest.TestCase):
    def test_labels_are_spread_in_their_order(self):
        self.assertEqual(svg_charts.spread([20, 20, 20], 10, 0, 40), [10, 20, 30])
        self.assertEqual(svg_charts.spread([30, 29, 0], 10, 0, 30), [30, 20, 0])
        self.assertEqual(svg_charts.spread([0, 1], 10, 0, 30), [0, 10])
        self.assertEqual(svg_charts.spread([9, 9, 9], 10, 0, 10), [-5, 5, 15])  # no room

    def test_axes_are_round_and_hold_their_values(self):
        axis = svg_charts.round_axis([0.13, 0.78], 0, 1)
        self.assertEqual((axis.low, axis.high), (0, 1))
        axis = svg_charts.round_axis([31.2, 58.9])
        self.assertEqual((axis.low, axis.high, axis.step), (30, 60, 10))
        self.assertEqual(svg_charts.round_axis([0], 0).ticks()[0], 0)
        self.assertEqual(axis.on(100, 0).at(45), 50)

    def test_a_line_without_values_has_no_label(self):
        lines = [svg_charts.Line("here", 0, [0.5, None]), svg_charts.Line("nowhere", 1, [None, None])]
        svg = svg_charts.line_chart("A", "b", [[svg_charts.Panel("p", lines)]], 100)
        self.assertEqual((svg.count(">here<"), svg.count(">nowhere<")), (1, 0))


if __name__ == "__main__":
    unittest.main()
