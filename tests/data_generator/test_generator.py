"""Tests of the bundled corpus: data/generate.py and the grammar beneath it."""

import hashlib
import json
from pathlib import Path
import re
import subprocess
import sys
import tempfile
import unittest

DATA = Path(__file__).resolve().parents[2] / "data"
sys.path.insert(0, str(DATA))

from grammar import adjectives, english, english_forms, german, held_out, nouns, verbs  # noqa: E402
from grammar.corpus import CHUNK, Recipe, lines  # noqa: E402
from grammar.meaning import DEFINITE, INDEFINITE, NUMBER, NounPhrase, PrepositionPhrase  # noqa: E402
from grammar.prng import Random, hash_text, mix  # noqa: E402
from grammar.sentences import LONGEST, SHORTEST, draw  # noqa: E402
from grammar.times import number_words  # noqa: E402

# SHA-256 of train.de, train.en and train.align of `--train 300 --valid 20 --test 30`. A changed grammar changes it: then set it anew.
GOLDEN = "b91f23dae2f29cb12e1250d0d064d5dc06bcd19da57115b5d8b0d0e22037efa3"


def run(*options):
    return subprocess.run([sys.executable, "-B", str(DATA / "generate.py"), *map(str, options)], capture_output=True, text=True)


def read(folder, name):
    return (Path(folder) / name).read_text(encoding="utf-8").splitlines()


def said(phrase, case, preposition=None):
    """A noun phrase in German, as text."""
    out = []
    german.noun_phrase(phrase, case, out, preposition)
    return " ".join(word for word, _ in out)


def said_in_english(phrase):
    out = []
    english.noun_phrase(phrase, out)
    return " ".join(word for word, _ in out)


def noun(lemma):
    return next(found for table in nouns.KINDS.values() for found in table if found.lemma == lemma)


def adjective(lemma):
    return next(found for found in adjectives.ADJECTIVES if found.lemma == lemma)


def phrase(lemma, determiner=DEFINITE, number=0, with_adjective="alt"):
    made = NounPhrase(noun(lemma), number, 1)
    made.determiner = determiner
    made.adjective = adjective(with_adjective) if with_adjective else None
    return made


class Corpus(unittest.TestCase):
    """One small corpus, made once."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = Path(cls.folder.name) / "corpus"
        cls.result = run("--out", cls.out, "--train", 3000, "--valid", 100, "--test", 200, "--jobs", 1)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def columns(self, split):
        return [read(self.out, f"{split}.{ending}") for ending in ("de", "en", "align")]

    def test_succeeds(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)

    def test_has_the_pairs_asked_for(self):
        for split, count in (("train", 3000), ("valid", 100), ("test", 200)):
            self.assertEqual([len(column) for column in self.columns(split)], [count] * 3)

    def test_does_not_depend_on_the_number_of_processes(self):
        with tempfile.TemporaryDirectory() as other:
            run("--out", other, "--train", 3000, "--valid", 100, "--test", 200, "--jobs", 3)
            for split in ("train", "valid", "test"):
                for ending in ("de", "en", "align"):
                    self.assertEqual(read(other, f"{split}.{ending}"), read(self.out, f"{split}.{ending}"))

    def test_a_longer_train_split_begins_alike(self):
        with tempfile.TemporaryDirectory() as other:
            run("--out", other, "--train", 200, "--valid", 100, "--test", 200)
            self.assertEqual(read(other, "train.de"), read(self.out, "train.de")[:200])

    def test_no_sentence_of_one_split_is_in_another(self):
        for side in (0, 1):
            train, valid, test = (set(self.columns(split)[side]) for split in ("train", "valid", "test"))
            self.assertFalse(train & valid | train & test | valid & test)

    def test_no_german_sentence_comes_twice(self):
        for split in ("train", "valid", "test"):
            self.assertEqual(len(set(self.columns(split)[0])), len(self.columns(split)[0]))

    def test_lengths_are_three_to_forty_words(self):
        for split in ("train", "valid", "test"):
            for text in self.columns(split)[0] + self.columns(split)[1]:
                self.assertTrue(SHORTEST <= len(text.split()) <= LONGEST, text)

    def test_links_point_at_words(self):
        for source, target, links in zip(*self.columns("train")):
            pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
            self.assertEqual(pairs, sorted(set(pairs)))
            for i, j in pairs:
                self.assertTrue(0 <= i < len(source.split()) and 0 <= j < len(target.split()), (source, target, links))

    def test_every_content_word_is_linked(self):
        free = {"der", "die", "das", "den"}  # in `der Hund der Frau`, the article that English drops
        for source, target, links in zip(*self.columns("train")):
            sources = {int(link.split("-")[0]) for link in links.split()}
            targets = {int(link.split("-")[1]) for link in links.split()}
            unlinked = {word.lower() for place, word in enumerate(source.split()) if place not in sources}
            self.assertLessEqual(unlinked, free, source)
            self.assertEqual(targets, set(range(len(target.split()))), target)

    def test_sentences_are_written_as_text(self):
        for column in (0, 1):
            for text in self.columns("train")[column]:
                self.assertRegex(text, r"^[A-ZÄÖÜ].*[^ ,][.?!]$")
                self.assertNotRegex(text, r"  | [,.?!]|,,")

    def test_a_quarter_of_the_pairs_or_more_has_crossing_links(self):
        statistics = json.loads((self.out / "corpus.json").read_text(encoding="utf-8"))["statistics"]
        for split in ("train", "valid", "test"):
            self.assertGreaterEqual(statistics[split]["crossing_share"], 0.25)

    def test_a_german_sentence_has_one_english_translation(self):
        found = {}
        for source, target, _ in zip(*self.columns("train")):
            self.assertEqual(found.setdefault(source, target), target)

    def test_a_or_an_fits_the_next_word(self):
        for text in self.columns("train")[1]:
            for article, after in re.findall(r"\b([Aa]n?) (\w+)", text):
                self.assertEqual(article.lower(), english_forms.article(after.lower()), text)

    def test_what_is_made_is_not_made_again(self):
        before = (self.out / "train.de").stat().st_mtime_ns
        result = run("--out", self.out, "--train", 3000, "--valid", 100, "--test", 200)
        self.assertIn("made already", result.stdout)
        self.assertEqual((self.out / "train.de").stat().st_mtime_ns, before)

    def test_nothing_temporary_is_left(self):
        self.assertFalse([path.name for path in self.out.iterdir() if path.name.startswith(".")])


class Golden(unittest.TestCase):
    def test_everybody_gets_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as out:
            run("--out", out, "--train", 300, "--valid", 20, "--test", 30)
            digest = hashlib.sha256(b"".join((Path(out) / f"train.{ending}").read_bytes() for ending in ("de", "en", "align")))
        self.assertEqual(digest.hexdigest(), GOLDEN)

    def test_numbers_are_those_of_splitmix(self):
        self.assertEqual(mix(0), 0xE220A8397B1DCDAF)  # splitmix64's first output from seed 0

    def test_text_hashes_do_not_change(self):
        self.assertEqual(hash_text("Hund"), 0x5790F2CE9B57527E)

    def test_draws_stay_below_the_bound(self):
        random = Random(1, 2, 3)
        self.assertEqual({random.below(7) for _ in range(1000)}, set(range(7)))


class HeldOut(unittest.TestCase):
    def test_training_sentences_use_no_held_out_combination(self):
        for number in range(2000):
            found = draw(1, "train", number, 0)
            if found is None:
                continue
            for first, second in zip(found.german.split(), found.german.split()[1:]):
                pair = ADJECTIVE_FORMS.get(first.lower()), NOUN_FORMS.get(second.strip(",.?!"))
                if None not in pair:
                    self.assertEqual(held_out.owner(*pair), held_out.EVERYBODY, found.german)

    def test_every_verb_and_noun_keeps_combinations_for_training(self):
        for table in [held_out.OBJECTS]:
            for word, owners in table.items():
                self.assertTrue(owners[held_out.EVERYBODY], word.lemma)

    def test_both_splits_own_combinations(self):
        for split in (held_out.TEST, held_out.VALID):
            self.assertGreater(sum(len(owners[split]) for owners in held_out.OBJECTS.values()), 10)
            self.assertGreater(sum(len(owners[split]) for owners in held_out.ADJECTIVES.values()), 10)


ADJECTIVE_FORMS = {form: found.lemma for found in adjectives.ADJECTIVES for form in found.german.values()}
NOUN_FORMS = {form: found.lemma for table in nouns.KINDS.values() for found in table for number in found.german for form in number}


class GermanForms(unittest.TestCase):
    def test_articles_and_adjectives_agree(self):
        for lemma, determiner, case, expected in (
            ("Hund", DEFINITE, nouns.NOMINATIVE, "der alte Hund"),
            ("Hund", DEFINITE, nouns.ACCUSATIVE, "den alten Hund"),
            ("Hund", DEFINITE, nouns.GENITIVE, "des alten Hundes"),
            ("Frau", DEFINITE, nouns.DATIVE, "der alten Frau"),
            ("Hund", INDEFINITE, nouns.NOMINATIVE, "ein alter Hund"),
            ("Kind", INDEFINITE, nouns.NOMINATIVE, "ein altes Kind"),
            ("Junge", DEFINITE, nouns.ACCUSATIVE, "den alten Jungen"),
            ("Buch", INDEFINITE, nouns.DATIVE, "einem alten Buch"),
        ):
            with self.subTest(expected):
                self.assertEqual(said(phrase(lemma, determiner), case), expected)

    def test_plurals_agree(self):
        self.assertEqual(said(phrase("Hund", DEFINITE, 1), nouns.DATIVE), "den alten Hunden")
        self.assertEqual(said(phrase("Hund", INDEFINITE, 1), nouns.ACCUSATIVE), "alte Hunde")
        three = phrase("Auto", NUMBER, 1)
        three.quantity = ("drei", "three")
        self.assertEqual(said(three, nouns.DATIVE), "drei alten Autos")

    def test_prepositions_and_articles_contract(self):
        self.assertEqual(said(phrase("Garten"), nouns.DATIVE, ("in", 1)), "im alten Garten")
        self.assertEqual(said(phrase("Garten"), nouns.ACCUSATIVE, ("in", 1)), "in den alten Garten")
        self.assertEqual(said(phrase("Ärztin", with_adjective=None), nouns.DATIVE, ("zu", 1)), "zur Ärztin")

    def test_verbs_agree(self):
        forms = {verb.lemma: verb for verb in verbs.TAKING_OBJECTS + verbs.intransitive + verbs.trying + verbs.speaking}
        for lemma, expected in (
            ("lesen", "lese liest liest lesen lest lesen"),
            ("einladen", "lade lädst lädt laden ladet laden"),
            ("antworten", "antworte antwortest antwortet antworten antwortet antworten"),
            ("wissen", "weiß weißt weiß wissen wisst wissen"),
            ("füttern", "füttere fütterst füttert füttern füttert füttern"),
            ("waschen", "wasche wäschst wäscht waschen wascht waschen"),
            ("haben", "habe hast hat haben habt haben"),
            ("vergessen", "vergesse vergisst vergisst vergessen vergesst vergessen"),
            ("tanzen", "tanze tanzt tanzt tanzen tanzt tanzen"),
        ):
            with self.subTest(lemma):
                self.assertEqual(" ".join(forms[lemma].present), expected)

    def test_separable_verbs_come_apart(self):
        get_up = next(verb for verb in verbs.intransitive if verb.lemma == "aufstehen")
        self.assertEqual((get_up.prefix, get_up.participle, get_up.to_infinitive), ("auf", "aufgestanden", ("aufzustehen",)))

    def test_numbers_are_turned_around(self):
        self.assertEqual(number_words(21), ("einundzwanzig", "twenty-one"))
        self.assertEqual(number_words(40), ("vierzig", "forty"))


class EnglishForms(unittest.TestCase):
    def test_regular_and_irregular_forms(self):
        self.assertEqual(english_forms.plural("story"), "stories")
        self.assertEqual(english_forms.plural("fox"), "foxes")
        self.assertEqual(english_forms.third_person("carry"), "carries")
        self.assertEqual(english_forms.third_person("catch"), "catches")
        self.assertEqual(english_forms.past_and_participle("write"), ("wrote", "written"))
        self.assertEqual(english_forms.past_and_participle("carry"), ("carried", "carried"))

    def test_a_or_an(self):
        self.assertEqual(said_in_english(phrase("Apfel", INDEFINITE, with_adjective=None)), "an apple")
        self.assertEqual(said_in_english(phrase("Apfel", INDEFINITE, with_adjective="rot")), "a red apple")
        self.assertEqual(said_in_english(phrase("Mann", INDEFINITE, with_adjective="ehrlich")), "an honest man")


class Noise(unittest.TestCase):
    def test_labels_tell_what_was_done(self):
        with tempfile.TemporaryDirectory() as folder:
            plain, noisy = Path(folder) / "plain", Path(folder) / "noisy"
            run("--out", plain, "--train", 1500, "--valid", 10, "--test", 10)
            result = run(
                "--out",
                noisy,
                "--train",
                1500,
                "--valid",
                10,
                "--test",
                10,
                "--noise-mismatched",
                0.2,
                "--noise-untranslated",
                0.1,
                "--noise-truncated",
                0.1,
            )
            self.assertEqual(result.returncode, 0, result.stderr)
            labels = read(noisy, "train.noise")
            self.assertEqual(read(plain, "train.de"), read(noisy, "train.de"))
            self.assertEqual(read(plain, "test.en"), read(noisy, "test.en"))
            for label, german_text, clean, spoilt in zip(labels, read(plain, "train.de"), read(plain, "train.en"), read(noisy, "train.en")):
                self.assertTrue(
                    {
                        "clean": spoilt == clean,
                        "untranslated": spoilt == german_text,
                        "mismatched": spoilt not in (clean, german_text),
                        "truncated": clean.startswith(spoilt) and len(spoilt) < len(clean),
                    }[label],
                    (label, clean, spoilt),
                )
            for label, share in (("mismatched", 0.2), ("untranslated", 0.1), ("truncated", 0.1)):
                self.assertAlmostEqual(labels.count(label) / len(labels), share, delta=0.04)


class ShuffledSource(unittest.TestCase):
    def test_words_stay_and_links_follow_them(self):
        plain, shuffled = Recipe(1, {}, False), Recipe(1, {}, True)
        for number in range(200):
            a, b = plain.line("train", number), shuffled.line("train", number)
            self.assertEqual(sorted(a.german.split()), sorted(b.german.split()))
            self.assertEqual(a.english, b.english)
            words = [
                sorted((line.german.split()[int(i)], j) for i, j in (link.split("-") for link in line.links.split())) for line in (a, b)
            ]
            self.assertEqual(*words)


class Scale(unittest.TestCase):
    def test_chunks_are_bounded(self):
        for chunk in lines(Recipe(1, {}, False), "train", CHUNK + 5, 1):
            self.assertLessEqual(len(chunk), CHUNK)


class Mistakes(unittest.TestCase):
    def refused(self, *options):
        result = run(*options)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        return result.stderr

    def test_out_is_a_file(self):
        with tempfile.NamedTemporaryFile() as file:
            self.assertIn("name a folder", self.refused("--out", file.name))

    def test_out_lies_beneath_a_file(self):
        with tempfile.NamedTemporaryFile() as file:
            self.assertIn("name a folder", self.refused("--out", file.name + "/corpus"))

    def test_out_is_missing(self):
        self.assertIn("--out", self.refused())

    def test_counts_are_whole_numbers(self):
        for text in ("-1", "1.5", "many", "10000000000"):
            self.assertIn("whole number", self.refused("--out", "unused", "--train", text))
        self.assertIn("1 to 256", self.refused("--out", "unused", "--jobs", "0"))

    def test_rates_are_shares(self):
        for text in ("1.5", "-0.1", "nan", "half"):
            self.assertIn("0 to 1", self.refused("--out", "unused", "--noise-truncated", text))
        self.assertIn("add up", self.refused("--out", "unused", "--noise-truncated", "0.6", "--noise-mismatched", "0.6"))

    def test_a_sacrebleu_that_does_not_run_is_named(self):
        with tempfile.TemporaryDirectory() as out:
            self.assertIn(
                "no-such-command", self.refused("--out", out, "--train", 20, "--valid", 5, "--test", 5, "--sacrebleu", "no-such-command")
            )


if __name__ == "__main__":
    unittest.main()
