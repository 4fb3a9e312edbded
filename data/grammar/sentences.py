"""Draws whole sentences and writes them down in both languages with their word links."""

from grammar import english, german, verbs
from grammar.clauses import ACTIVE_KINDS, Clauses, is_marked_object, is_marked_subject
from grammar.held_out import EVERYBODY
from grammar.meaning import (
    DEFINITE,
    FIRST,
    FUTURE,
    INDEFINITE,
    LAST,
    NEGATIVE,
    NUMBER,
    PLUPERFECT,
    PRESENT,
    SECOND,
    WHICH,
    Clause,
    NounPhrase,
    Pronoun,
    is_noun,
)
from grammar.nouns import ACCUSATIVE, KINDS, MASCULINE, PLURAL
from grammar.prng import Random
from grammar.times import ANY, PAST

SHORTEST, LONGEST = 3, 40
COMMA = (",", 0)

_CONJUNCTIONS = (
    ("weil", "because"),
    ("weil", "because"),
    ("wenn", "if"),
    ("obwohl", "although"),
    ("bevor", "before"),
    ("während", "while"),
    ("als", "when"),
    ("damit", "so that"),
    ("nachdem", "after"),
)
_TENSE_AFTER = {"als": PAST, "nachdem": PAST, "wenn": ANY, "damit": ANY}  # the others go with both
_FRONT_CONJUNCTIONS = (
    ("weil", "because"),
    ("wenn", "if"),
    ("obwohl", "although"),
    ("als", "when"),
    ("nachdem", "after"),
    ("bevor", "before"),
)


class Sentence:
    """Two texts and the links between their words, as (source, target) pairs."""

    __slots__ = ("german", "english", "links")

    def __init__(self, german_words, english_words):
        self.german, german_bits = _write(german_words)
        self.english, english_bits = _write(english_words)
        self.links = [(i, j) for i, source in enumerate(german_bits) for j, target in enumerate(english_bits) if source & target]

    def lengths(self):
        return self.german.count(" ") + 1, self.english.count(" ") + 1


def _write(words):
    """The text, capitalised and with its punctuation attached, and the bits of each of its words."""
    text = " ".join([word for word, _ in words])
    text = text.replace(" , ,", ",").replace(" ,", ",")
    for mark in ".?!":
        text = text.replace(" " + mark, mark).replace("," + mark, mark)
    return text[0].upper() + text[1:], [bits for _, bits in words if bits]


class Sentences(Clauses):
    """Draws one sentence. Every kind of sentence returns its German and its English words."""

    def sentence(self):
        kind = self.random.pick(_KINDS)
        source, target = [], []
        mark = kind(self, source, target) or "."
        source.append((mark, 0))
        target.append((mark, 0))
        return source, target

    # --- main clauses -----------------------------------------------------------------------------------------------------------------

    def _main(self, source, target, **options):
        """A main clause, with something other than the subject in front now and then."""
        meaning = self.clause(**options)
        self._draw_front(meaning)
        self._draw_subject_extras(meaning)
        self._draw_object_extras(meaning)
        german.clause(meaning, SECOND, source)
        front = {"time": meaning.time, "place": meaning.place}.get(meaning.front)
        english.clause(meaning, target, front=front)
        return meaning

    def _draw_front(self, meaning):
        share = self.random.below(100)
        if meaning.time and share < 38:
            meaning.front = "time"
        elif meaning.place and meaning.verb is not verbs.live and share < 55:
            meaning.front = "place"
        elif share > 55:
            self._front_object(meaning)

    def _front_object(self, meaning):
        """Object first, where cases make clear who does what."""
        thing, dative, subject = meaning.object, meaning.dative, meaning.subject
        if meaning.negated or meaning.verb is verbs.have:
            return
        if thing and is_noun(thing) and thing.owner is None and not dative:
            if is_marked_object(thing) or is_marked_subject(subject) or thing.person != subject.person and subject.person in (2, 5):
                meaning.front = "object"
        elif dative and is_noun(dative) and dative.owner is None and dative.determiner != NUMBER and self.random.chance(60):
            meaning.front = "dative"

    def _draw_subject_extras(self, meaning):
        subject, random = meaning.subject, self.random
        if not is_noun(subject) or subject.determiner == NEGATIVE:
            return
        share = random.below(100)
        if share < 10 and meaning.front == "subject":
            self.relative_clause(subject)
        elif share < 15 and subject.determiner == DEFINITE and not meaning.dative and not subject.number:
            subject.genitive = self.genitive()
        elif share < 20 and meaning.front == "subject" and meaning.verb is not verbs.live:
            subject.place = self.place()

    def _draw_object_extras(self, meaning):
        thing = meaning.object
        if thing is None or not is_noun(thing) or thing.determiner == NEGATIVE:
            return
        share = self.random.below(100)
        if share < 8:
            self.relative_clause(thing)
        elif share < 14 and thing.determiner == DEFINITE and not meaning.dative:
            thing.genitive = self.genitive()

    def simple(self, source, target):
        self._main(source, target)

    def two_clauses(self, source, target):
        """Der Hund schläft, aber die Katze spielt."""
        bit = self.bits(1)
        first = self._main(source, target)
        if self.random.chance(60):
            source += [COMMA, ("aber", bit)]
            target += [COMMA, ("but", bit)]
        else:
            source.append(("und", bit))
            target += [COMMA, ("and", bit)]
        subject = self._same_or_new(first.subject, 30)
        second = self.clause(subject=subject, antecedent=_if_new(subject, first))
        german.clause(second, SECOND, source)
        english.clause(second, target)

    def two_predicates(self, source, target):
        """Der Mann kauft einen Apfel und liest ein Buch."""
        subject = self.subject()
        first = self.clause(subject=subject, kinds=ACTIVE_KINDS)
        second = self.clause(subject=subject, kinds=ACTIVE_KINDS, extras=self.random.chance(40))
        bit = self.bits(1)
        german.clause(first, SECOND, source)
        english.clause(first, target)
        source.append(("und", bit))
        target.append(("and", bit))
        german.clause(second, SECOND, source, gap=subject, fronted=True)
        english.clause(second, target, gap=subject)

    # --- subordinate clauses ----------------------------------------------------------------------------------------------------------

    def _same_or_new(self, subject, percent):
        """A pronoun for `subject`, or somebody new."""
        if self.random.chance(percent):
            return Pronoun.standing_for(subject, self.bits(1))
        return self._new_subject()

    def _new_subject(self):
        """Not a third-person pronoun: that would stand for the subject of the other clause."""
        subject = self.subject()
        return self.person() if subject.is_pronoun and subject.person in (2, 5) else subject

    def _following(self, earlier, when, **options):
        """A clause whose pronouns stand for the subject of an `earlier` one."""
        subject = self._same_or_new(earlier.subject, 50)
        return self.clause(subject=subject, when=when, antecedent=_if_new(subject, earlier), extras=self.random.chance(50), **options)

    def _joined(self, german_word, subordinate_first):
        """The earlier and the later of two clauses, in tenses that fit the conjunction."""
        when = _TENSE_AFTER.get(german_word)
        if when is None:
            when = PAST if self.random.chance(50) else ANY
        options = {"kinds": ACTIVE_KINDS} if german_word == "nachdem" else {}
        earlier = self.clause(when=when, extras=self.random.chance(45), **options)
        later = self._following(earlier, when, **options)
        if german_word == "nachdem":
            inner = earlier if subordinate_first else later
            if inner.verb:
                inner.modal, inner.gladly, inner.tense = None, 0, PLUPERFECT
        return earlier, later

    def subordinate_last(self, source, target):
        conjunction = self.random.pick(_CONJUNCTIONS)
        bit = self.bits(1)
        main, inner = self._joined(conjunction[0], subordinate_first=False)
        self._draw_front(main)
        german.clause(main, SECOND, source)
        source += [COMMA, (conjunction[0], bit)]
        german.clause(inner, LAST, source)
        english.clause(main, target, front={"time": main.time, "place": main.place}.get(main.front))
        target += [(word, bit) for word in conjunction[1].split()]
        english.clause(inner, target)

    def subordinate_first(self, source, target):
        """Weil der Hund müde ist, schläft er."""
        conjunction = self.random.pick(_FRONT_CONJUNCTIONS)
        bit = self.bits(1)
        inner, main = self._joined(conjunction[0], subordinate_first=True)
        source.append((conjunction[0], bit))
        german.clause(inner, LAST, source)
        source.append(COMMA)
        german.clause(main, SECOND, source, fronted=True)
        target += [(word, bit) for word in conjunction[1].split()]
        english.clause(inner, target)
        target.append(COMMA)
        english.clause(main, target)

    def that_clause(self, source, target):
        """Die Frau glaubt, dass der Hund schläft."""
        verb = self.random.pick(verbs.speaking)
        outer = Clause(self.subject(), verb, self.bits(2))
        self._draw_tense(outer, "that", None)
        if self.random.chance(12):
            outer.middle = self.not_()
            outer.negated = True
        bit = self.bits(1)
        inner = self._following(outer, PAST if outer.tense != PRESENT and outer.tense != FUTURE else None)
        german.clause(outer, SECOND, source)
        source += [COMMA, ("dass", bit)]
        german.clause(inner, LAST, source)
        english.clause(outer, target)
        target.append(("that", bit))
        english.clause(inner, target)

    def to_infinitive(self, source, target):
        """Der Mann versucht, das Buch zu lesen."""
        outer = Clause(self.subject(), self.random.pick(verbs.trying), self.bits(2))
        self._draw_tense(outer, "to", None)
        if self.random.chance(12):
            outer.middle = self.not_()
            outer.negated = True
        inner, bit = self._infinitive_of(outer.subject)
        german.clause(outer, SECOND, source)
        source.append(COMMA)
        german.infinitive_clause(inner, bit, source)
        english.clause(outer, target)
        english.infinitive_clause(inner, bit, target)

    def in_order_to(self, source, target):
        """Er geht in die Stadt, um einen Hut zu kaufen."""
        outer = self._main(source, target, kinds=["motion", "motion", "transitive", "intransitive"], extras=False)
        inner, bit = self._infinitive_of(outer.subject)
        um = self.bits(1)
        source += [COMMA, ("um", um)]
        german.infinitive_clause(inner, bit, source)
        target += [("in", um), ("order", um)]
        english.infinitive_clause(inner, bit, target)

    def _infinitive_of(self, subject):
        inner = self.clause(subject=subject, kinds=ACTIVE_KINDS, extras=False)
        inner.tense, inner.modal, inner.middle, inner.gladly, inner.negated = PRESENT, None, None, 0, False
        if inner.object and is_noun(inner.object) and inner.object.determiner == NEGATIVE:
            inner.object.determiner, inner.object.negation_bit = INDEFINITE, 0
        if self.random.chance(25):
            inner.place = self.place() if not inner.direction else None
        return inner, self.bits(1)

    # --- questions and commands -------------------------------------------------------------------------------------------------------

    def yes_or_no(self, source, target):
        meaning = self.clause()
        german.clause(meaning, FIRST, source)
        english.clause(meaning, target, inverted=True)
        return "?"

    def when_where_why(self, source, target):
        """Warum kauft der Mann einen Hut?"""
        word = self.random.pick((("wann", "when"), ("wo", "where"), ("warum", "why")))
        meaning = self.clause(kinds=ACTIVE_KINDS)
        if word[0] == "wann":
            meaning.time = None
        elif word[0] == "wo":
            meaning.place = None
        bit = self.bits(1)
        source.append((word[0], bit))
        german.clause(meaning, SECOND, source, fronted=True)
        target.append((word[1], bit))
        english.clause(meaning, target, inverted=True)
        return "?"

    def who_or_what(self, source, target):
        """Wer sieht den Hund? Wen sieht der Hund? Was kauft die Frau? Wem hilft sie?"""
        share = self.random.below(4)
        if share == 0:
            return self._who(source, target)
        verb = self.random.pick(verbs.with_dative if share == 1 else verbs.transitive)
        person = "person" in verb.kinds
        meaning = Clause(self.subject(), verb, self.bits(2))
        gap = Pronoun(2, MASCULINE, "it", 0)
        bit = self.bits(1)
        if share == 1:
            meaning.dative, word = gap, ("wem", "whom")
        else:
            meaning.object, word = gap, ("wen", "whom") if person else ("was", "what")
        self._draw_tense(meaning, "transitive", None)
        if self.random.chance(40):
            meaning.time = self.time(ANY if meaning.tense == PRESENT else PAST if meaning.tense != FUTURE else 2)
        if self.random.chance(30):
            meaning.place = self.place()
        source.append((word[0], bit))
        german.clause(meaning, SECOND, source, gap=gap, fronted=True)
        target.append((word[1], bit))
        english.clause(meaning, target, gap=gap, inverted=True)
        return "?"

    def _who(self, source, target):
        gap = Pronoun(2, MASCULINE, "he", 0)
        meaning = self.clause(subject=gap, kinds=ACTIVE_KINDS)
        bit = self.bits(1)
        source.append(("wer", bit))
        german.clause(meaning, SECOND, source, gap=gap, fronted=True)
        target.append(("who", bit))
        english.clause(meaning, target, gap=gap)
        return "?"

    def which(self, source, target):
        """Welchen Hund sucht die Frau?"""
        verb = self.random.pick(verbs.transitive)
        thing = self.noun_phrase(self.choose_object(verb), articles=False)
        thing.determiner = WHICH
        subject = self.subject()
        if not (is_marked_object(thing) or is_marked_subject(subject)):
            subject = self.pronoun((4, PLURAL, "you"))
        meaning = Clause(subject, verb, self.bits(2))
        meaning.object = thing
        self._draw_tense(meaning, "transitive", None)
        if self.random.chance(30):
            meaning.place = self.place()
        german.noun_phrase(thing, ACCUSATIVE, source)
        german.clause(meaning, SECOND, source, gap=thing, fronted=True)
        english.noun_phrase(thing, target)
        english.clause(meaning, target, gap=thing, inverted=True)
        return "?"

    def command(self, source, target):
        """Bitte gib dem Kind den Ball!"""
        subject = Pronoun(*self.random.pick(((1, MASCULINE, "you"), (4, PLURAL, "you"))), 0)
        meaning = self.clause(subject=subject, when=ANY, kinds=ACTIVE_KINDS, extras=False)
        meaning.modal, meaning.tense, meaning.gladly = None, PRESENT, 0
        if meaning.middle and not meaning.negated:
            meaning.middle = None
        if self.random.chance(30):
            meaning.time = self.time(ANY)
        if self.random.chance(35):
            bit = self.bits(1)
            source.append(("bitte", bit))
            target.append(("please", bit))
        german.imperative(meaning, source)
        english.imperative(meaning, target)
        return "!"

    # --- there is ---------------------------------------------------------------------------------------------------------------------

    def there_is(self, source, target):
        """Im Garten gibt es einen Hund: in the garden there is a dog."""
        noun = self.random.pick(KINDS[self.random.pick(("person", "animal", "vehicle", "thing"))])
        phrase = NounPhrase(noun, 1 if self.random.chance(45) else 0, self.bits(3))
        phrase.determiner = self.random.pick((INDEFINITE, NUMBER) if phrase.number else (INDEFINITE,))
        if phrase.determiner == NUMBER:
            phrase.quantity = self.few()
        elif self.random.chance(20):
            phrase.determiner = NEGATIVE
        if self.random.chance(40):
            self.add_adjective(phrase)
        place, bit, past, front = self.place(), self.bits(2), self.random.chance(40), self.random.chance(50)
        verb = ("gab" if past else "gibt", bit)
        if front:
            german.preposition_phrase(place, source)
            english.preposition_phrase(place, target)
            source += [verb, ("es", bit << 1)]
        else:
            source += [("es", bit << 1), verb]
        target += [("there", bit << 1), (verbs.BE[past][phrase.person], bit)]
        german.noun_phrase(phrase, ACCUSATIVE, source)
        english.noun_phrase(phrase, target)
        if not front:
            german.preposition_phrase(place, source)
            english.preposition_phrase(place, target)


def _if_new(subject, earlier):
    """Whom an object pronoun may stand for: the subject of the `earlier` clause, unless `subject` does so already."""
    return None if subject.is_pronoun and subject.person in (2, 5) else earlier.subject


# Kinds of sentences, and how often of 100.
_KINDS = (
    [Sentences.simple] * 42
    + [Sentences.two_clauses] * 7
    + [Sentences.two_predicates] * 5
    + [Sentences.subordinate_last] * 13
    + [Sentences.subordinate_first] * 6
    + [Sentences.that_clause] * 7
    + [Sentences.to_infinitive] * 4
    + [Sentences.in_order_to] * 3
    + [Sentences.yes_or_no] * 3
    + [Sentences.when_where_why] * 2
    + [Sentences.who_or_what] * 2
    + [Sentences.which]
    + [Sentences.command] * 2
    + [Sentences.there_is] * 3
)

_SPLIT_NUMBER = {"train": 1, "valid": 2, "test": 3, "mismatch": 4}


def draw(seed, split, line, attempt):
    """The sentence that (seed, split, line, attempt) stands for.

    None where that draw is no good: too short, too long, or without a combination of the split's own.
    """
    combinations = EVERYBODY if split == "mismatch" else split
    maker = Sentences(Random(seed, _SPLIT_NUMBER[split], line, attempt), combinations)
    words = maker.sentence()
    if combinations != EVERYBODY and not maker.held_out_used:
        return None
    found = Sentence(*words)
    source, target = found.lengths()
    if min(source, target) < SHORTEST or max(source, target) > LONGEST:
        return None
    return found
