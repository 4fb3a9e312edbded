"""What a sentence means: a tree that german.py and english.py each put into words.

Every atom of meaning owns a bit. Both languages mark the words they write with the bits of what the words stand for; words that share a
bit are linked. So the gold alignment needs no bookkeeping of its own. A word is a pair (text, bits); punctuation has no bits.
"""

# Where the verb stands in a German clause.
SECOND, FIRST, LAST = range(3)

# Tenses. English says PRETERITE and PERFECT alike.
PRESENT, PRETERITE, PERFECT, PLUPERFECT, FUTURE = range(5)

# Determiners.
DEFINITE, INDEFINITE, THIS, EVERY, WHICH, ALL, POSSESSIVE, NEGATIVE, NUMBER, MANY, NAME_OWNER = range(11)


class NounPhrase:
    """Determiner, adjective, noun, and what follows the noun."""

    __slots__ = (
        "noun",
        "number",
        "gender",
        "person",
        "pronoun",
        "determiner",
        "owner",
        "quantity",
        "adjective",
        "genitive",
        "place",
        "relative",
        "article_bit",
        "adjective_bit",
        "noun_bit",
        "negation_bit",
    )
    is_pronoun = is_name = is_pair = False

    def __init__(self, noun, number, bit):
        self.noun = noun
        self.number = number
        self.gender = noun.german_gender(number)
        self.person = 5 if number else 2
        self.pronoun = "they" if number else noun.pronoun
        self.determiner = DEFINITE
        self.owner = None  # POSSESSIVE: a Pronoun or noun phrase it refers to; NAME_OWNER: a NamePhrase
        self.quantity = None  # NUMBER: (German, English)
        self.adjective = None
        self.genitive = None  # a definite noun phrase: "der Hund der Frau"
        self.place = None  # a PrepositionPhrase: "der Hund im Garten"
        self.relative = None  # a RelativeClause
        self.article_bit, self.adjective_bit, self.noun_bit = bit, bit << 1, bit << 2
        self.negation_bit = 0


class Pronoun:
    """A personal pronoun, or the gap a relative pronoun leaves.

    `gender` is the German gender of what it stands for, `pronoun` what English calls it, `noun` the noun, where that is known.
    """

    __slots__ = ("person", "gender", "pronoun", "noun_bit", "noun")
    is_pronoun, is_name, is_pair = True, False, False

    def __init__(self, person, gender, pronoun, bit, noun=None):
        self.person, self.gender, self.pronoun, self.noun_bit, self.noun = person, gender, pronoun, bit, noun

    @classmethod
    def standing_for(cls, phrase, bit):
        return cls(phrase.person, phrase.gender, phrase.pronoun, bit, phrase.noun)


class NamePhrase:
    """A person by name."""

    __slots__ = ("text", "gender", "pronoun", "noun_bit")
    is_pronoun, is_name, is_pair = False, True, False
    person = 2
    number = 0
    noun = None

    def __init__(self, name, bit):
        self.text, self.gender, self.pronoun, self.noun_bit = name.text, name.gender, name.pronoun, bit


class Pair:
    """Two noun phrases joined by `und`."""

    __slots__ = ("first", "second", "noun_bit")
    is_pronoun, is_name, is_pair = False, False, True
    person = 5
    number = 1
    gender = 3
    pronoun = "they"
    noun = None

    def __init__(self, first, second, bit):
        self.first, self.second, self.noun_bit = first, second, bit


def is_noun(phrase):
    return not (phrase.is_pronoun or phrase.is_name or phrase.is_pair)


def kind_of(phrase):
    """person, animal, thing ...; names, pairs and pronouns that stand for no noun are people."""
    return phrase.noun.kind if phrase.noun else "person"


class RelativeClause:
    """A clause with a gap: `role` (subject, object, dative or place) says which of its parts is the relative pronoun."""

    __slots__ = ("clause", "role", "bit")

    def __init__(self, clause, role, bit):
        self.clause, self.role, self.bit = clause, role, bit


class PrepositionPhrase:
    """A preposition in both languages with its noun phrase (in `case`)."""

    __slots__ = ("german", "english", "case", "phrase", "bit")

    def __init__(self, german, english, case, phrase, bit):
        self.german, self.english, self.case, self.phrase, self.bit = german, english, case, phrase, bit


class Fixed:
    """Words known in both languages as they stand: adverbs, dates, clock times."""

    __slots__ = ("german", "english")

    def __init__(self, german, english):
        self.german, self.english = german, english


class Clause:
    """Who does what to whom, when, where and how."""

    __slots__ = (
        "subject",
        "verb",
        "tense",
        "modal",
        "passive",
        "object",
        "dative",
        "prepositional",
        "direction",
        "predicate",
        "middle",
        "gladly",
        "manner",
        "company",
        "time",
        "place",
        "front",
        "verb_bit",
        "auxiliary_bit",
        "negated",
    )

    def __init__(self, subject, verb, bit):
        self.subject = subject
        self.verb = verb  # None: the copula, with `predicate`
        self.tense = PRESENT
        self.modal = None
        self.passive = False  # the subject is what is acted upon
        self.object = None
        self.dative = None
        self.prepositional = None  # the object of a verb with a preposition
        self.direction = None  # a PrepositionPhrase or Fixed: where to
        self.predicate = None  # a Predicate
        self.middle = None  # Middle: nicht, nie, oft, schon ...
        self.gladly = 0  # the bit of `gern`
        self.manner = None
        self.company = None
        self.time = None
        self.place = None
        self.front = "subject"  # what stands before the verb of a main clause
        self.verb_bit, self.auxiliary_bit = bit, bit << 1
        self.negated = False  # English says `not`


class Middle:
    """An adverb near the verb. English: `before` the verb (after an auxiliary), `last` at the end of the clause.

    `completes`: with it, English says the German perfect as a perfect (schon, noch nicht).
    """

    __slots__ = ("german", "before", "last", "completes")

    def __init__(self, german, before, last=None, completes=False):
        self.german, self.before, self.last, self.completes = german, before, last, completes


class Predicate:
    """What the copula says: an adjective, perhaps compared with something, or a noun phrase."""

    __slots__ = ("degree", "adjective", "than", "equal", "phrase", "bit")

    def __init__(self, bit):
        self.degree = None  # (German, English): sehr, zu ...
        self.adjective = None
        self.than = None  # a noun phrase: größer als sie
        self.equal = False  # so groß wie
        self.phrase = None  # ein guter Lehrer
        self.bit = bit  # adjective; bit << 1: degree or comparison word
