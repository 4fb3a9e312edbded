#!/usr/bin/env python3
"""The report of `lacuna analyze`, opened from a file in a headless Chromium: report_test.py FOLDER [PICTURES]

FOLDER holds the report.html that analyze_test.py left there: two models, with gold links, shuffled references and importance. PICTURES, if given, is where
screenshots go. Ends with 77, which CTest counts as skipped, where no Chromium is installed.
"""
import base64
import csv
import json
import os
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
import zlib

import browser

REPORT = PICTURES = ""
WIDTHS = (1280, 400)
NO_BROWSER = 77

# What reaches beyond the page or its chart, labels over one another, letters too large or too small, words broken into letters, empty charts.
FAULTS = """(() => {
  const found = [], box = (element) => element.getBoundingClientRect(), width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const element of document.querySelectorAll("body *")) {
    if (!element.closest(".scroll, .map, details:not([open])") && box(element).right > width + 1) found.push(`${element.tagName} reaches ${box(element).right}`);
  }
  const named = [...document.querySelectorAll("main svg")].filter((svg) => svg.querySelector("text"));
  for (const svg of named) for (const text of svg.querySelectorAll("text")) {
    const outer = box(svg), inner = box(text);
    if (inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1)
      found.push(`"${text.textContent}" is cut`);
    const height = text.hasAttribute("transform") ? inner.width : inner.height;
    if (height < 10 || height > 20) found.push(`letters are ${height} high`);
  }
  for (const cell of document.querySelectorAll("th, td")) if (box(cell).height > 100) found.push(`"${cell.textContent}" is ${box(cell).height} high`);
  for (const svg of named) {
    const labels = [...svg.querySelectorAll("text")].map(box);
    labels.forEach((a, i) => labels.slice(i + 1).forEach((b) => {
      if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3) found.push("two labels overlap");
    }));
  }
  for (const svg of document.querySelectorAll("figure > svg")) if (svg.querySelectorAll("path, rect").length === 0) found.push("an empty chart");
  return [...new Set(found)];
})()"""

# The smallest contrast of any text with the page behind it, as WCAG 2 counts it.
CONTRAST = """(() => {
  const light = (color) => {
    const parts = color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255).map((part) => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
    return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2];
  };
  const behind = (element) => {
    const color = getComputedStyle(element).backgroundColor;
    return /, 0\\)$|transparent/.test(color) ? behind(element.parentElement) : color;
  };
  const ratios = [...document.querySelectorAll("h1, h2, h3, p, a, th, td, label, select, button, figcaption, summary, .heads span, svg text")].map((element) => {
    const style = getComputedStyle(element), pair = [light(element.namespaceURI.endsWith("svg") ? style.fill : style.color), light(behind(element))];
    return (Math.max(...pair) + .05) / (Math.min(...pair) + .05);
  });
  return Math.min(...ratios);
})()"""


def report_and_span():
    """The page, and where its data stand."""
    with open(REPORT, encoding="utf-8") as file:
        html = file.read()
    return html, re.search(r'id="data">(.*?)</script>', html, re.DOTALL).span(1)


def data_of_report():
    html, (begin, end) = report_and_span()
    return json.loads(html[begin:end])


def write_report(path, data):
    """The same page with other data; its path."""
    html, (begin, end) = report_and_span()
    with open(path, "w", encoding="utf-8") as file:
        file.write(html[:begin] + json.dumps(data).replace("<", "\\u003c") + html[end:])
    return path


def setUpModule():
    global BROWSER
    BROWSER = browser.Browser()


def tearDownModule():
    BROWSER.close()


class Page(unittest.TestCase):
    def opens(self, path, width=1280, scheme="light"):
        """Shows the report and waits for the explorer, which is drawn last."""
        BROWSER.open(path, width, scheme)
        BROWSER.wait_for("document.querySelector('.map svg') !== null")

    def is_quiet(self):
        """Nothing was complained of, and nothing was asked for but the file itself."""
        self.assertEqual(BROWSER.complaints, [])
        self.assertEqual([url for url in BROWSER.requests if not url.startswith(("file://", "data:"))], [])
        self.assertEqual(len([url for url in BROWSER.requests if url.startswith("file://")]), 1)

    def values(self):
        return BROWSER.value("[...document.querySelectorAll('.pane:not([hidden]) .value')].map((value) => value.textContent)")

    def map_of(self, pane):
        return BROWSER.value(f"document.querySelectorAll('.map')[{pane}].innerHTML")

    def picture(self, name):
        if PICTURES:
            BROWSER.picture(os.path.join(PICTURES, f"{name}.png"))


class Layout(Page):
    def test_fits_wide_and_narrow_windows_in_light_and_dark(self):
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                with self.subTest(width=width, scheme=scheme):
                    self.opens(REPORT, width, scheme)
                    self.picture(f"report_{width}_{scheme}")
                    self.assertEqual(BROWSER.value(FAULTS), [])
                    self.assertGreaterEqual(BROWSER.value(CONTRAST), 4.5)
                    BROWSER.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                    self.assertEqual(BROWSER.value(FAULTS), [])
                    self.is_quiet()

    def test_schemes_differ(self):
        pages = []
        for scheme in ("light", "dark"):
            self.opens(REPORT, scheme=scheme)
            pages.append(BROWSER.value("getComputedStyle(document.body).backgroundColor"))
        self.assertNotEqual(*pages)

    def test_has_every_section_that_was_measured(self):
        self.opens(REPORT)
        sections = BROWSER.value("[...document.querySelectorAll('main section')].map((one) => one.id)")
        self.assertEqual(sections, ["overview", "explorer", "layers", "alignment", "diversity", "importance"])
        self.assertEqual(BROWSER.value("[...document.querySelectorAll('nav a')].map((one) => one.getAttribute('href').slice(1))"), sections)
        for section in sections[2:]:
            self.assertGreater(BROWSER.value(f"document.querySelectorAll('#{section} figure svg').length"), 0, section)

    def test_says_shares_in_percent_and_a_sentence_where_all_are_zero(self):
        self.opens(REPORT)
        cells = BROWSER.value("[...document.querySelectorAll('#overview tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
        shares = [row for row in cells if row[0].startswith(("sparsity", "null rate", "best AER"))]
        self.assertGreaterEqual(len(shares), 8)
        for row in shares:
            for cell in row[1:]:
                self.assertRegex(cell, r"^\d+\.\d\xa0%( \(\d/\d\))?$", row)
        self.assertIn("60\xa0%", BROWSER.value("document.querySelector('#layers figure svg').textContent"))
        data = data_of_report()
        data["analysis"]["models"] = data["analysis"]["models"][:1]  # softmax, where no weight is 0
        for sentence in data["sentences"]:
            sentence["models"] = sentence["models"][:1]
        with tempfile.TemporaryDirectory() as folder:
            self.opens(write_report(os.path.join(folder, "softmax.html"), data))
        texts = BROWSER.value("[...document.querySelectorAll('#layers p')].map((one) => one.textContent)")
        self.assertIn("Encoder, decoder and cross attention: no weight is exactly 0.", texts)
        self.assertIn("Encoder, decoder and cross attention: every query attends to something (null rate 0\xa0%).", texts)
        self.assertEqual(BROWSER.value("document.querySelectorAll('#layers figure').length"), 6)  # entropy and support
        self.is_quiet()

    def test_compares_the_diversity_of_models_in_one_chart(self):
        self.opens(REPORT)
        header = BROWSER.value("[...document.querySelector('#diversity table').querySelectorAll('th')].map((one) => one.textContent)")
        self.assertEqual(header, ["layer", "run", "rela"])
        titles = BROWSER.value("[...document.querySelectorAll('#diversity h3')].map((one) => one.textContent)")
        self.assertEqual(titles, ["T = 1", "T = 0.5", "T = 0.25", "T = 0.1"])

    def saved(self, button):
        """The name and text of the file that a button saves."""
        return BROWSER.value(f"""(async () => {{
          const files = [], create = URL.createObjectURL, click = HTMLAnchorElement.prototype.click;
          URL.createObjectURL = (blob) => {{ files.push(blob); return 'blob:test'; }};
          let name;
          HTMLAnchorElement.prototype.click = function () {{ name = this.download; }};
          {button}.click();
          [URL.createObjectURL, HTMLAnchorElement.prototype.click] = [create, click];
          return [name, await files[0].text()];
        }})()""")

    def test_saves_charts_and_maps_as_pictures_and_numbers(self):
        self.opens(REPORT)
        figure, model = "document.querySelector('#layers figure')", data_of_report()["analysis"]["models"][1]
        name, text = self.saved(f"{figure}.querySelector('.tools button')")
        self.assertEqual(name, "sparsity_share_of_visible_weights_that_are_exactly_0_encoder.svg")
        picture = ElementTree.fromstring(text)
        texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
        self.assertLessEqual({"run", "rela", "layer"}, set(texts))  # the legend
        self.assertNotIn("var(", re.sub(r'(fill|stroke)="[^"]*"', "", text))  # but in attributes that a style overrides
        name, text = self.saved(f"{figure}.querySelectorAll('.tools button')[1]")
        rows = list(csv.reader(text.splitlines()))
        self.assertTrue(name.endswith("encoder.csv"))
        sparsity = rows[0].index("rela (%)")
        self.assertAlmostEqual(float(rows[1][sparsity]), 100 * model["places"][0]["sparsity"], places=3)
        self.assertAlmostEqual(float(rows[1][rows[0].index("rela, head 1 (%)")]), 100 * model["places"][0]["heads"]["sparsity"][1], places=3)
        name, text = self.saved("document.querySelectorAll('.pane .tools button')[0]")
        ElementTree.fromstring(text)
        self.assertEqual(name, "run_sentence_1_cross_layer_0_head_0.svg")
        rows = list(csv.reader(self.saved("document.querySelectorAll('.pane .tools button')[1]")[1].splitlines()))
        self.assertEqual(rows[0][1:], data_of_report()["sentences"][0]["models"][0]["src"])
        self.is_quiet()

    def test_shows_that_a_table_scrolls(self):
        self.opens(REPORT, 400)
        self.assertIn("gradient", BROWSER.value("getComputedStyle(document.querySelector('#overview .scroll')).backgroundImage"))

    def test_series_differ_in_marker_as_in_color(self):
        self.opens(REPORT)
        markers = BROWSER.value("[...document.querySelectorAll('#layers .legend path')].map((one) => one.getAttribute('d'))")
        self.assertEqual((len(markers), len(set(markers))), (2, 2))

    def test_draws_measures_of_other_models_too(self):
        """Calibration and learned numbers, of seven models with long names: the same page with other data."""
        data = data_of_report()
        data["sentences"] = data["sentences"][:1]
        one, sentence = data["analysis"]["models"][0], data["sentences"][0]
        for place in one["places"]:
            place["numbers"] = {"alpha": [1.5] * one["num_heads"]}
            place["calibration"] = {"rows": 9, "divergence": 0.1, "entropy_change": -0.2, "mask": 0.5,
                                    "by_entropy": [{"from": 0.5 * b, "rows": 1, "divergence": 0.02 * b} for b in range(10)]}
        data["analysis"]["models"] = [dict(one, name=f"/a/folder/that_has_quite_a_long_name_{i}/averaged") for i in range(7)]
        sentence["models"] = [sentence["models"][0]] * 7
        with tempfile.TemporaryDirectory() as folder:
            path = write_report(os.path.join(folder, "seven.html"), data)
            for width in WIDTHS:
                self.opens(path, width)
                self.picture(f"seven_{width}")
                self.assertEqual(BROWSER.value(FAULTS), [])
                self.is_quiet()
        self.assertEqual(BROWSER.value("document.querySelectorAll('#calibration figure svg').length"), 4)
        labels = BROWSER.value("[...document.querySelectorAll('#layers svg text')].map((one) => one.textContent)")
        self.assertEqual([label for label in labels if label.startswith("−")], [])  # nothing here is below 0, though the null rate is 0 everywhere
        self.assertIn("Learned alpha", BROWSER.value("[...document.querySelectorAll('#layers h3')].map((one) => one.textContent)"))
        self.assertEqual(BROWSER.value("document.title"), "What attention does: " + ", ".join(f"that_has_quite_a_long_name_{i}" for i in range(7)))

    def test_draws_importance_before_and_after_calibration(self):
        data = data_of_report()
        for layer in data["analysis"]["models"][0]["importance"]["layers"]:
            layer.update(original=dict(layer["attention"], tau_b=0.25), mask=dict(layer["attention"], tau_b=-0.5))
        with tempfile.TemporaryDirectory() as folder:
            self.opens(write_report(os.path.join(folder, "calibrated.html"), data))
        self.assertEqual(BROWSER.value(FAULTS), [])
        header = BROWSER.value("[...document.querySelectorAll('#importance th')].map((one) => one.textContent)")
        self.assertEqual(header, ["layer", "run, attention", "run, attention before calibration", "run, mask", "rela, attention"])
        cells = BROWSER.value("[...document.querySelectorAll('#importance tr:nth-child(2) td')].map((one) => one.textContent)")
        self.assertEqual(cells[2:4], ["0.25", "-0.5"])
        dashes = BROWSER.value("[...document.querySelectorAll('#importance .legend line')].map((one) => one.getAttribute('stroke-dasharray'))")
        self.assertEqual(len(set(dashes[:3])), 3)
        self.assertIn("masks of calibrated attention are constants", BROWSER.value("document.querySelector('#importance p').textContent"))

    def test_says_what_was_changed_for_it(self):
        data = data_of_report()
        data["analysis"]["overrides"] = "--model.attention softmax"
        with tempfile.TemporaryDirectory() as folder:
            self.opens(write_report(os.path.join(folder, "changed.html"), data))
        self.assertIn("with --model.attention softmax.", BROWSER.value("document.querySelector('#subject').textContent"))

    def test_says_why_there_is_no_sentence(self):
        for omitted, why in ((0, "(--explore 0)"), (20, "None of the 20 sentences")):
            with tempfile.TemporaryDirectory() as folder:
                data = dict(data_of_report(), sentences=[], omitted=omitted)
                BROWSER.open(write_report(os.path.join(folder, "none.html"), data), 1280)
                BROWSER.wait_for("document.querySelector('#explorer p') !== null")
                self.assertIn(why, BROWSER.value("document.querySelector('#explorer').textContent"))


class Explorer(Page):
    def setUp(self):
        self.opens(REPORT)

    def chooses(self, label, value, pane=None):
        """Sets the select under `label`, of a pane or of them all, as a user would, and waits until the maps are drawn anew."""
        scope = "document.querySelector('#explorer > .controls')" if pane is None else f"document.querySelectorAll('.pane')[{pane}]"
        before = "document.querySelectorAll('.map svg')"
        BROWSER.value(f"""(() => {{
          window.drawnBefore = [...{before}];
          const label = [...{scope}.querySelectorAll('label')].find((one) => one.textContent.startsWith({json.dumps(label)}));
          const control = label.querySelector('select, input');
          if (control.type === 'checkbox') control.click();
          else {{ control.value = {json.dumps(str(value))}; control.dispatchEvent(new Event('change')); }}
        }})()""")
        BROWSER.wait_for("[...document.querySelectorAll('.pane:not([hidden]) .map svg')].every((svg) => !window.drawnBefore.includes(svg))")

    def test_choosing_sentence_layer_and_head_draws_another_map(self):
        maps = [self.map_of(0)]
        for label, value, pane in (("Sentence", 3, None), ("Layer", 1, 0), ("Head", 1, 0), ("Head", "mean", 0), ("Model", 1, 0), ("Attention", "encoder_self", None)):
            self.chooses(label, value, pane)
            self.assertNotIn(self.map_of(0), maps, label)
            maps.append(self.map_of(0))
        self.is_quiet()

    def test_decoder_hides_later_keys(self):
        self.chooses("Attention", "decoder_self")
        hidden = BROWSER.value("""(() => {
          const map = document.querySelector('.map'), widths = [...map.querySelectorAll('.hidden')].flatMap((row) => [...row.getAttribute('d').matchAll(/h([\\d.]+)v/g)]);
          return widths.reduce((sum, width) => sum + Number(width[1]), 0) / Number(map.querySelector('.cursor').getAttribute('width'));
        })()""")
        size = BROWSER.value("data.sentences[0].models[0].tgt.length")
        self.assertEqual(hidden, size * (size - 1) // 2)

    def cell(self, pane, row, column):
        """The middle of a cell, in the window."""
        return BROWSER.value(f"""(() => {{
          const map = document.querySelectorAll('.map')[{pane}], size = Number(map.querySelector('.cursor').getAttribute('width'));
          map.querySelectorAll('.row-name')[{row}].scrollIntoView({{block: 'center', inline: 'nearest'}});
          const box = map.querySelector('.lines').getBoundingClientRect();
          return [box.x + ({column} + .5) * size, box.y + ({row} + .5) * size];
        }})()""")

    def test_hovering_tells_the_weight_in_both_maps(self):
        for message in self.values():
            self.assertRegex(message, r"^Largest weight: [\d.]+$")
        BROWSER.point_at(*self.cell(0, 1, 2))
        tokens = BROWSER.value("[data.sentences[0].models[0].tgt[1], data.sentences[0].models[0].src[2]]")
        for pane, message in enumerate(self.values()):
            self.assertTrue(message.startswith("predicting “{}” → source “{}”".format(*tokens)), message)
            texts = BROWSER.value(f"[...document.querySelectorAll('.value')[{pane}].querySelectorAll('bdi')].map((one) => one.textContent)")
            self.assertEqual(texts, tokens)  # of whatever direction, they leave the words around them where they are
            weight = BROWSER.value(f"""(async () => {{
              const tokens = data.sentences[0].models[{pane}], model = models[{pane}], place = model.places.findIndex((one) => one.site === 'cross');
              return weightsOf(await unpack(0, {pane}), tokens, model, place, '0', tokens.tgt.length, tokens.src.length)[1][2];
            }})()""")
            self.assertTrue(message.endswith("exactly 0") if weight == 0 else abs(float(message.split()[-1]) - weight) < 1e-3 * weight, (message, weight))
        self.is_quiet()

    def test_weights_below_zero_are_hollow_and_keep_their_sign(self):
        self.assertEqual(BROWSER.value("document.querySelectorAll('.negative').length"), 0)
        data = data_of_report()
        place = [one["site"] for one in data["analysis"]["models"][0]["places"]].index("cross")
        one = data["sentences"][0]["models"][0]
        rows, columns, heads = len(one["tgt"]), len(one["src"]), data["analysis"]["models"][0]["num_heads"]
        levels = bytearray(zlib.decompress(base64.b64decode(one["weights"])))
        begin = heads * len(one["src"]) ** 2 + 2 * heads * rows ** 2  # after one encoder and two decoder layers
        for head in range(heads):
            levels[begin + head * rows * columns] = 128 + 63 if head == 0 else 63  # of the first row and column
        one["weights"], scale = base64.b64encode(zlib.compress(bytes(levels))).decode(), one["scales"][place]
        with tempfile.TemporaryDirectory() as folder:
            self.opens(write_report(os.path.join(folder, "signed.html"), data))
        self.assertRegex(self.values()[0], r"^Largest weight: [\d.]+; hollow squares are weights below 0, down to -[\d.]+$")
        self.assertEqual(BROWSER.value("document.querySelectorAll('.negative').length"), 1)
        fill = "getComputedStyle(document.querySelectorAll('.map')[0].querySelector('.weight{}')).fill"
        self.assertNotEqual(BROWSER.value(fill.format(".negative")), BROWSER.value(fill.format(":not(.negative)")))
        self.assertEqual(BROWSER.value("document.querySelector('.negative').getAttribute('d')").count("M"), 2)  # a square and its hole
        self.picture("signed")
        for head, weight in ((0, -scale), (1, scale), ("mean", scale * (heads - 2) / heads)):
            self.chooses("Head", head, 0)
            BROWSER.point_at(*self.cell(0, 0, 0))
            self.assertAlmostEqual(float(self.values()[0].split()[-1]), weight, delta=1e-3 * scale)
        self.assertEqual(BROWSER.value("document.querySelectorAll('.negative').length"), 0)
        self.is_quiet()

    def test_a_map_of_a_long_sentence_is_a_few_shapes_a_row(self):
        data, size, levels = data_of_report(), 800, bytearray()
        model = data["analysis"]["models"][0]
        for place in model["places"] * model["num_heads"]:
            for row in range(size):
                levels += bytes(size)
                levels[7 * row % size - size] = 63  # the rest of the row is exactly 0
        tokens = {"src": ["a"] * size, "tgt": ["b"] * size, "src_words": list(range(size)), "tgt_words": list(range(size)),
                  "scales": [1] * len(model["places"]), "weights": base64.b64encode(zlib.compress(bytes(levels))).decode()}
        data["sentences"] = [dict(data["sentences"][0], models=[tokens, tokens])]
        with tempfile.TemporaryDirectory() as folder:
            self.opens(write_report(os.path.join(folder, "long.html"), data))
        self.assertLess(BROWSER.value("document.querySelector('.map').querySelectorAll('*').length"), 4 * size)
        for column, weight in ((7, "≈ 1"), (8, "exactly 0")):
            BROWSER.point_at(*self.cell(0, 1, column))
            self.assertEqual(self.values(), [f"predicting “b” → source “a”: {weight}"] * 2)
        self.picture("long")
        self.is_quiet()

    def test_arrow_keys_move_the_cursor(self):
        BROWSER.value("document.querySelector('.map svg').focus()")
        first = self.values()
        BROWSER.press("ArrowRight")
        self.assertNotEqual(self.values()[0], first[0])
        self.assertIn(BROWSER.value("data.sentences[0].models[0].src[1]"), self.values()[0])

    def test_compares_two_checkpoints_side_by_side(self):
        names = BROWSER.value("[...document.querySelectorAll('.pane')].map((pane) => pane.querySelector('select').selectedOptions[0].textContent)")
        self.assertEqual(names, ["run", "rela"])
        tops = "[...document.querySelectorAll('.pane:not([hidden]) .map')].map((map) => map.getBoundingClientRect()).map((box) => [box.left, box.top])"
        (left, top), (right, same_top) = BROWSER.value(tops)
        self.assertGreater(right, left)
        self.assertEqual(top, same_top)
        self.assertNotEqual(self.map_of(0), self.map_of(1))
        self.chooses("two side by side", None)
        self.assertEqual(len(BROWSER.value(tops)), 1)

    def test_small_maps_of_all_heads_lead_to_the_large_one(self):
        heads = "document.querySelectorAll('.pane')[1].querySelectorAll('.heads button')"
        layers, count = BROWSER.value("[placesOf(models[1], 'cross').length, models[1].num_heads]")
        self.assertEqual(BROWSER.value(f"{heads}.length"), layers * count)
        before = self.map_of(1)
        BROWSER.value(f"{heads}[{count + 1}].click()")
        BROWSER.wait_for(f"{heads}[{count + 1}].getAttribute('aria-pressed') === 'true'")
        self.assertNotEqual(self.map_of(1), before)
        chosen = BROWSER.value("[...document.querySelectorAll('.pane')[1].querySelectorAll('select')].map((one) => one.value)")
        self.assertEqual(chosen, ["1", "1", "1"])
        inked = BROWSER.value(f"""(() => {{
          const canvas = {heads}[0].querySelector('canvas');
          return [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data].some((part) => part > 0);
        }})()""")
        self.assertTrue(inked)
        self.is_quiet()

    def test_axes_are_named(self):
        names = "[...document.querySelector('.map').querySelectorAll('.axis-name')].map((one) => one.textContent)"
        self.assertEqual(BROWSER.value(names), ["source →", "← target, predicted"])
        self.chooses("rows are tokens read", None)
        self.assertEqual(BROWSER.value(names), ["source →", "← target, read"])
        self.chooses("Attention", "encoder_self")
        self.assertEqual(BROWSER.value(names), ["source →", "← source"])

    def test_gold_links_stand_on_maps_of_cross_attention(self):
        gold = data_of_report()["sentences"][0]["gold"]
        outlines = "document.querySelector('.map').querySelectorAll('.gold')"
        self.assertEqual(BROWSER.value(f"{outlines}.length"), len(gold["sure"]))
        BROWSER.point_at(*self.cell(0, 1, 1))  # the links of this text are on the diagonal
        self.assertIn(", a sure gold link: ", self.values()[0])
        self.chooses("words on the axes", None)
        self.assertEqual(BROWSER.value(f"{outlines}.length"), len(gold["sure"]))
        self.chooses("Attention", "decoder_self")
        self.assertEqual(BROWSER.value(f"{outlines}.length"), 0)

    def test_the_address_names_what_is_shown(self):
        self.chooses("Sentence", 3)
        self.chooses("Attention", "decoder_self")
        self.chooses("Layer", 1, 1)
        self.chooses("Head", "mean", 1)
        address, shown = BROWSER.value("location.hash"), self.map_of(1)
        self.assertEqual(address, "#line=4&site=decoder_self&model=run&layer=0&head=0&model2=rela&layer2=1&head2=mean")
        self.assertEqual(BROWSER.value("document.querySelector('#explorer a').getAttribute('href')"), address)
        BROWSER.open(REPORT, 1280)
        BROWSER.ask("Page.navigate", url="about:blank")
        BROWSER.ask("Page.navigate", url="file://" + REPORT + address)
        BROWSER.wait_for("document.querySelectorAll('.map svg').length === 2")
        self.assertEqual(self.map_of(1), shown)
        BROWSER.value("location.hash = 'line=999&site=cross&model=nobody'")  # what is not here stays as it was
        BROWSER.wait_for("document.querySelectorAll('.pane:not([hidden]) .map svg').length === 1")
        self.assertEqual(BROWSER.value("document.querySelector('#explorer select').value"), "3")

    def test_words_stand_on_the_axes(self):
        self.chooses("words on the axes", None)
        words = BROWSER.value("data.sentences[0].src_text.split(' ')")
        columns = BROWSER.value("[...document.querySelector('.map').querySelectorAll('.column-name')].map((one) => one.textContent)")
        self.assertEqual(columns[:-1], words)


if __name__ == "__main__":
    if browser.program() is None:
        print(f"skipped: none of {', '.join(browser.PROGRAMS)} is installed; scripts/setup.sh --tests installs the first")
        sys.exit(NO_BROWSER)
    REPORT = os.path.join(os.path.abspath(sys.argv.pop(1)), "report.html")
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        PICTURES = os.path.abspath(sys.argv.pop(1))
    unittest.main()
