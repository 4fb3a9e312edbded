#!/usr/bin/env python3
"""The page of `lacuna serve` in a headless Chromium: page_test.py PROGRAM [PICTURES]

PICTURES, if given, is where screenshots go. Ends with 77, which CTest counts as skipped, where no Chromium is installed.
"""
import os
import sys
import unittest

import browser

PICTURES = sys.argv.pop(2) if len(sys.argv) > 2 else ""
if browser.program() is None:
    print(f"skipped: none of {', '.join(browser.PROGRAMS)} is installed", file=sys.stderr)
    sys.exit(77)

# pylint: disable=wrong-import-position
from service import Service
from verbs import AVERAGED, Verbs, setUpModule  # noqa: F401

TYPE = """(text) => {
  const field = document.getElementById("source");
  field.focus();
  field.value = text;
  field.dispatchEvent(new Event("input", {bubbles: true}));
}"""
IS_TRANSLATED = "document.querySelectorAll('.line').length > 0 && document.querySelectorAll('.waits').length === 0"


class Page(Verbs):
    @classmethod
    def setUpClass(cls):
        cls.service = Service("-m", f"de-en={AVERAGED}", "--quiet")
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.service.stop()

    def open(self, width=1280, scheme="light"):
        self.browser.open(f"http://127.0.0.1:{self.service.port}/", width, scheme)

    def types(self, text):
        self.browser.value(f"({TYPE})({text!r})")
        self.browser.wait_for(IS_TRANSLATED)

    def value(self, expression):
        return self.browser.value(expression)

    def test_translates_as_one_types_line_by_line(self):
        self.open()
        self.types("1 2 3\n\n4 5")
        self.assertEqual(self.value("[...document.querySelectorAll('.line')].map(line => line.innerText.trim())"), ["1 2 3", "", "4 5"])
        self.assertEqual(self.value("document.getElementById('count').textContent"), "10 of 100000 characters")
        self.assertEqual(self.value("document.getElementById('status').textContent"), "")
        self.assertEqual(self.browser.complaints, [])
        places = {request.split("?")[0] for request in self.browser.requests if not request.startswith("data:")}
        self.assertEqual(places, {f"http://127.0.0.1:{self.service.port}/", f"http://127.0.0.1:{self.service.port}/v1/translate"})

    def test_shows_the_links_of_a_word(self):
        self.open()
        self.types("3 1 4")
        box = self.value("(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector('.line span').getBoundingClientRect())")
        self.browser.point_at(*box)
        self.browser.wait_for("document.querySelectorAll('#target .linked').length === 1")
        self.assertLessEqual(self.value("document.querySelectorAll('#mirror .linked').length"), 1)
        self.value("document.querySelector('.line').focus()")
        self.browser.press("ArrowRight")
        self.browser.wait_for("document.querySelectorAll('#target .linked').length === 1")
        same = """(() => { const a = document.getElementById("source").getBoundingClientRect(), b = document.getElementById("mirror").getBoundingClientRect();
          return Math.abs(a.width - b.width) + Math.abs(a.height - b.height); })()"""
        self.assertLess(self.value(same), 1)

    def test_offers_other_translations_and_takes_the_one_that_is_chosen(self):
        self.open()
        self.types("3 1 4")
        self.value("document.querySelector('.line').focus()")
        self.browser.press("Enter")
        self.browser.wait_for("document.querySelectorAll('.others button').length > 1")
        other = self.value("document.querySelectorAll('.others button')[1].firstChild.textContent.trim()")
        self.value("document.querySelectorAll('.others button')[1].click()")
        self.assertEqual(self.value("document.querySelector('.line').innerText"), other)
        self.value("document.querySelector('.line').click()")
        self.browser.wait_for("document.querySelectorAll('.others button').length > 1")
        self.browser.press("Escape")
        self.assertEqual(self.value("document.querySelectorAll('.others').length"), 0)

    def test_shows_the_attention_of_a_line(self):
        self.open()
        self.types("3 1 4 1 5\n7 7")
        self.value("document.querySelector('.line').focus()")
        self.browser.press("Enter")
        self.browser.wait_for("document.querySelectorAll('.others button').length > 1")
        self.value("document.querySelector('.see').click()")
        self.browser.wait_for("document.querySelector('.attention .map svg') !== null")
        words = self.value("document.querySelector('.line').innerText").split()
        self.assertEqual(self.value("[...document.querySelectorAll('.map .row-name')].map(name => name.textContent)"), words)
        self.assertEqual(self.value("[...document.querySelectorAll('.map .column-name')].map(name => name.textContent)"), "3 1 4 1 5".split())
        self.assertIn(f"translating “{words[0]}” → source “3”: ", self.value("document.querySelector('.attention .value').innerText"))
        self.browser.press("ArrowRight")
        self.browser.press("ArrowDown")
        self.assertIn(f"translating “{words[1]}” → source “1”: ", self.value("document.querySelector('.attention .value').innerText"))
        choices = "[...document.querySelectorAll('.attention label:not([hidden]) select')].map(one => one.options.length)"
        self.assertEqual(self.value(choices), [2, 5])  # layers, heads and their mean
        drawn = self.value("document.querySelector('.map .weight').getAttribute('d')")
        self.value("(head => { head.value = '3'; head.dispatchEvent(new Event('change')); })([...document.querySelectorAll('.attention select')].at(-1))")
        self.assertNotEqual(self.value("document.querySelector('.map .weight').getAttribute('d')"), drawn)
        self.value("document.querySelector('.see').click()")
        self.assertEqual(self.value("document.querySelectorAll('.attention').length"), 0)
        self.browser.press("Escape")
        self.assertEqual(self.value("document.querySelectorAll('.panel').length"), 0)
        self.assertEqual(self.browser.complaints, [])

    def test_leaves_the_cells_of_weights_that_are_zero_empty(self):
        self.open()
        self.value("document.getElementById('target').append(element('div', 'panel'))")
        self.value("""showAttention(document.querySelector('.panel'), [{source: ['a', 'b'], target: ['c', 'd'], weights: [[[[0, 1], [0, 0]]]]}])""")
        self.assertEqual(self.value("document.querySelector('.map .weight').getAttribute('d').split('M').length - 1"), 1)
        self.assertIn("exactly 0", self.value("document.querySelector('.attention .value').innerText"))

    def test_says_what_is_wrong(self):
        self.open()
        self.value(f"({TYPE})('1 '.repeat(60000))")
        self.browser.wait_for("document.getElementById('status').classList.contains('error')")
        self.assertIn("expected at most 100000", self.value("document.getElementById('status').textContent"))

    def test_fits_wide_and_narrow_windows(self):
        for width in (1280, 360):
            for scheme in ("light", "dark"):
                self.open(width, scheme)
                self.types("1 2 3\n4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0\n7 7")
                self.assertLessEqual(self.value("document.documentElement.scrollWidth"), width)
                self.value("document.querySelector('.line').click()")
                self.browser.wait_for("document.querySelectorAll('.others button').length > 1")
                self.value("document.querySelector('.see').click()")
                self.browser.wait_for("document.querySelector('.attention .map svg') !== null")
                self.assertLessEqual(self.value("document.documentElement.scrollWidth"), width)
                if PICTURES:
                    self.browser.picture(os.path.join(PICTURES, f"{width}_{scheme}.png"))


if __name__ == "__main__":
    unittest.main()
