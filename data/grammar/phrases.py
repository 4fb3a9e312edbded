"""Draws noun phrases, prepositional phrases and small words."""

from grammar import times
from grammar.held_out import ADJECTIVES, EVERYBODY, OBJECTS, VERBS
from grammar.meaning import (
    ALL,
    DEFINITE,
    EVERY,
    INDEFINITE,
    MANY,
    NAME_OWNER,
    NUMBER,
    POSSESSIVE,
    THIS,
    Fixed,
    Middle,
    NamePhrase,
    NounPhrase,
    Pair,
    PrepositionPhrase,
    Pronoun,
    kind_of,
)
from grammar.nouns import ACCUSATIVE, CITY_LIST, DATIVE, FEMININE, KINDS, MASCULINE, NAME_LIST, PLURAL

# (person, gender, English); sie is she or they, as the verb says.
_PRONOUNS = [
    (0, MASCULINE, "I"),
    (1, MASCULINE, "you"),
    (2, MASCULINE, "he"),
    (2, FEMININE, "she"),
    (3, PLURAL, "we"),
    (4, PLURAL, "you"),
    (5, PLURAL, "they"),
]
_SPEAKERS = [_PRONOUNS[0], _PRONOUNS[1], _PRONOUNS[3 + 1], _PRONOUNS[5]]
_SINGULAR = [DEFINITE] * 11 + [INDEFINITE] * 5 + [POSSESSIVE] * 3 + [THIS] * 2 + [EVERY] + [NAME_OWNER]
_PLURAL = [DEFINITE] * 9 + [INDEFINITE] * 3 + [NUMBER] * 4 + [POSSESSIVE] * 3 + [THIS] * 2 + [MANY] + [ALL]
_BUILDINGS = [
    noun for noun in KINDS["inside"] if noun.lemma in ("Haus", "Schule", "Kirche", "Museum", "Restaurant", "Hotel", "Laden", "Bibliothek")
]
_FAR_INSIDE = [noun for noun in KINDS["inside"] if noun.lemma in ("Wald", "Stadt", "Dorf", "Park")]
_FAR_ON_TOP = [noun for noun in KINDS["on_top"] if noun.lemma in ("Insel", "Berg")]
_AROUND = (("vor", "in front of"), ("hinter", "behind"), ("neben", "next to"))
_WITH = (("mit", "with", DATIVE), ("mit", "with", DATIVE), ("für", "for", ACCUSATIVE), ("ohne", "without", ACCUSATIVE))
_OFTEN = (("oft", "often"), ("immer", "always"), ("selten", "rarely"), ("manchmal", "sometimes"))
_OBJECT_PRONOUNS = ((0, MASCULINE, "I"), (1, MASCULINE, "you"), (3, PLURAL, "we"), (4, PLURAL, "you"))


def _same_speakers(person, other):
    """Whether two persons overlap: ich and wir, du and ihr."""
    return person == other or {person, other} in ({0, 3}, {1, 4})


class Phrases:
    """One sentence's draws. `held_out_used` says whether a combination of the split's own is in it."""

    def __init__(self, random, split):
        self.random = random
        self.split = split
        self.bit = 1
        self.held_out_used = False

    def bits(self, count):
        bit = self.bit
        self.bit = bit << count
        return bit

    def choose(self, table):
        """From what everybody may combine or, in test and validation sentences, sometimes from the split's own combinations."""
        if self.split != EVERYBODY and table[self.split] and self.random.chance(30):
            self.held_out_used = True
            return self.random.pick(table[self.split])
        return self.random.pick(table[EVERYBODY])

    def choose_object(self, verb):
        return self.choose(OBJECTS[verb])

    def few(self):
        return times.few(self.random)

    def noun_phrase(self, noun, reference=None, articles=True, adjective_percent=30):
        """`reference`: whom `sein` and `ihr` refer to. Without `articles`, only definite ones (and possessives) are drawn."""
        random = self.random
        phrase = NounPhrase(noun, 1 if noun.has_plural and random.chance(22) else 0, self.bits(3))
        if articles:
            kind = random.pick(_PLURAL if phrase.number else _SINGULAR)
            phrase.determiner = kind
            if kind == POSSESSIVE:
                phrase.owner = self._owner(reference)
            elif kind == NUMBER:
                phrase.quantity = times.few(random)
            elif kind == NAME_OWNER:
                phrase.owner = NamePhrase(random.pick(NAME_LIST), phrase.article_bit)
        if random.chance(adjective_percent):
            self.add_adjective(phrase)
        return phrase

    def add_adjective(self, phrase):
        table = ADJECTIVES[phrase.noun]
        if table[EVERYBODY]:
            phrase.adjective = self.choose(table)

    def _owner(self, reference):
        if reference is not None and self.random.chance(70):
            return reference
        return Pronoun(*self.random.pick(_SPEAKERS), 0)

    def genitive(self):
        """The owner in `der Hund der Frau`: one person, definite."""
        phrase = NounPhrase(self.random.pick(KINDS["person"]), 0, self.bits(3))
        if self.random.chance(25):
            self.add_adjective(phrase)
        return phrase

    def person(self, reference=None, **options):
        return self.noun_phrase(self.random.pick(KINDS["person"]), reference, **options)

    def pronoun(self, choice):
        return Pronoun(*choice, self.bits(1))

    def name(self):
        return NamePhrase(self.random.pick(NAME_LIST), self.bits(1))

    def subject(self, animal=False, reference=None):
        """Somebody who acts."""
        random, share = self.random, self.random.below(100)
        if animal:
            return self.noun_phrase(random.pick(KINDS["animal"]), reference)
        if share < 22:
            return self.pronoun(random.pick(_PRONOUNS))
        if share < 32:
            return self.name()
        if share < 38:
            return Pair(
                self.person(reference, adjective_percent=15), self.name() if random.chance(30) else self.person(reference), self.bits(1)
            )
        return self.person(reference)

    def object(self, verb, reference, antecedent=None):
        """What the verb acts upon; perhaps a pronoun for `antecedent`, which the sentence has named before."""
        random = self.random
        animate = "person" in verb.kinds
        if antecedent is not None and random.chance(45) and antecedent.person in (2, 5) and kind_of(antecedent) in verb.kinds:
            return Pronoun.standing_for(antecedent, self.bits(1))
        if animate and random.chance(12):
            choice = random.pick(_OBJECT_PRONOUNS)
            if not _same_speakers(choice[0], reference.person):
                return self.pronoun(choice)
        if animate and random.chance(10):
            return self.name()
        phrase = self.noun_phrase(self.choose_object(verb), reference)
        if random.chance(5) and not animate:
            return Pair(phrase, self.noun_phrase(self.choose_object(verb), reference, adjective_percent=10), self.bits(1))
        return phrase

    def recipient(self, subject=None):
        """A person in the dative."""
        random, share = self.random, self.random.below(100)
        if share < 20:
            choice = random.pick(_OBJECT_PRONOUNS)
            if subject is None or not _same_speakers(choice[0], subject.person):
                return self.pronoun(choice)
        if share < 30:
            return self.name()
        return self.person(adjective_percent=20)

    def verb_for(self, noun):
        """A transitive verb that takes `noun`, or None."""
        table = VERBS[noun]
        return self.choose(table) if table[EVERYBODY] else None

    def place(self):
        """Where: im Garten, auf der Brücke, vor dem alten Haus, in Berlin."""
        random, share = self.random, self.random.below(100)
        if share < 14:
            return self._city("in", "in")
        if share < 70:
            return self._located("in", "in", random.pick(KINDS["inside"]), DATIVE)
        if share < 85:
            return self._located("auf", "on", random.pick(KINDS["on_top"]), DATIVE)
        german, english = random.pick(_AROUND)
        return self._located(german, english, random.pick(_BUILDINGS), DATIVE)

    def direction(self, far):
        """Where to: in den Garten, auf die Brücke, zum Arzt; `far` as one drives or flies: nach Berlin, auf die Insel."""
        random, share = self.random, self.random.below(100)
        if far and share < 40:
            return self._city("nach", "to")
        if share < 65:
            return self._located("in", "into", random.pick(_FAR_INSIDE if far else KINDS["inside"]), ACCUSATIVE)
        if share < 82:
            return self._located("auf", "onto", random.pick(_FAR_ON_TOP if far else KINDS["on_top"]), ACCUSATIVE)
        return self._located("zu", "to", random.pick(KINDS["person"]), DATIVE)

    def target(self):
        """Where something is put: in den Korb, auf den Tisch."""
        if self.random.chance(50):
            return self._located("in", "into", self.random.pick(KINDS["container"]), ACCUSATIVE)
        return self._located("auf", "onto", self.random.pick(KINDS["surface"]), ACCUSATIVE)

    def _city(self, german, english):
        bit = self.bits(2)
        city = self.random.pick(CITY_LIST)
        return Fixed([(german, bit), (city[0], bit << 1)], [(english, bit), (city[1], bit << 1)])

    def _located(self, german, english, noun, case):
        phrase = NounPhrase(noun, 0, self.bits(3))
        if self.random.chance(15):
            phrase.determiner = INDEFINITE if self.random.chance(50) else THIS
        if self.random.chance(22):
            self.add_adjective(phrase)
        return PrepositionPhrase(german, english, case, phrase, self.bits(1))

    def company(self, reference):
        """mit dem Bruder, ohne mich, für Anna."""
        german, english, case = self.random.pick(_WITH)
        share = self.random.below(100)
        choice = self.random.pick(_OBJECT_PRONOUNS)
        if share < 15 and not _same_speakers(choice[0], reference.person):
            phrase = self.pronoun(choice)
        elif share < 30:
            phrase = self.name()
        else:
            phrase = self.person(reference, adjective_percent=20)
        return PrepositionPhrase(german, english, case, phrase, self.bits(1))

    def time(self, when):
        return times.time_phrase(self.random, self.bits(8), when)

    def often(self):
        german, english = self.random.pick(_OFTEN)
        bit = self.bits(1)
        return Middle([(german, bit)], [(english, bit)])

    def never(self):
        bit = self.bits(1)
        return Middle([("nie", bit)], [("never", bit)])

    def not_(self):
        bit = self.bits(1)
        return Middle([("nicht", bit)], [("not", bit)])

    def no_object(self):
        """`not`, which German says in the article of the object (kein)."""
        return Middle([], [("not", self.bits(1))])

    def already(self):
        bit = self.bits(1)
        return Middle([("schon", bit)], [("already", bit)], completes=True)

    def not_yet(self):
        bit = self.bits(2)
        return Middle([("noch", bit), ("nicht", bit << 1)], [("not", bit << 1)], [("yet", bit)], completes=True)
