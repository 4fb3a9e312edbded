"""Draws clauses: a subject, a verb of some kind with what it needs, a tense, and what may be added."""

from grammar import verbs
from grammar.adjectives import COMPARABLE, FOR_KIND, MANNERS
from grammar.meaning import (
    ALL,
    DEFINITE,
    EVERY,
    FUTURE,
    INDEFINITE,
    MANY,
    NAME_OWNER,
    NEGATIVE,
    PERFECT,
    POSSESSIVE,
    PRESENT,
    PRETERITE,
    THIS,
    Clause,
    Fixed,
    NounPhrase,
    Predicate,
    PrepositionPhrase,
    Pronoun,
    RelativeClause,
    is_noun,
    kind_of,
)
from grammar.nouns import ACCUSATIVE, DATIVE, KINDS, MASCULINE
from grammar.phrases import Phrases
from grammar.times import ANY, COMING, PAST

_TENSES = [PRESENT] * 8 + [PRETERITE] * 5 + [PERFECT] * 10 + [FUTURE] * 4
_PAST_TENSES = [PRETERITE] * 4 + [PERFECT] * 7
_PRESENT_MODALS = verbs.modals
_PAST_MODALS = [modal for modal in verbs.modals if modal.preterite]
_WITH_MANNER = frozenset(
    (
        "gehen laufen fahren wandern sprechen lachen arbeiten tanzen singen kochen schwimmen essen trinken lesen schreiben malen suchen "
        "aufmachen einpacken tragen waschen vorlesen antworten aufstehen reparieren folgen weinen"
    ).split()
)
_NOT_GLADLY = frozenset(
    "finden verlieren vergessen brauchen kennen lieben einschlafen ankommen aufhören aufwachen beeilen verstecken".split()
)
_ANIMALS_DO = frozenset("sehen suchen finden hören fangen tragen stehlen lieben folgen nachlaufen essen brauchen anschauen".split())
_HUNTERS = [verb for verb in verbs.transitive + verbs.with_dative if verb.lemma in _ANIMALS_DO]
_FAR_VERBS = frozenset("fahren reisen fliegen wandern".split())
_DEGREES = (("sehr", "very"), ("zu", "too"), ("ziemlich", "quite"))
_POSITIVE = tuple(
    noun
    for noun in KINDS["person"]
    if noun.lemma in "Lehrer Lehrerin Arzt Ärztin Nachbar Freund Freundin Koch Köchin Student Sängerin Maler".split()
)
_GOOD = [
    adjective for adjective in FOR_KIND["person"] if adjective.lemma in "alt jung klug freundlich berühmt reich höflich ehrlich".split()
]

# What kinds of clauses there are, and how often.
_KINDS = (
    ["intransitive"] * 9
    + ["reflexive"] * 3
    + ["motion"] * 10
    + ["transitive"] * 34
    + ["have"] * 3
    + ["with_dative"] * 8
    + ["ditransitive"] * 12
    + ["prepositional"] * 6
    + ["placing"] * 6
    + ["copula"] * 8
    + ["living"] * 2
    + ["liking"] * 4
    + ["belonging"] * 2
    + ["passive"] * 4
)
ACTIVE_KINDS = [kind for kind in _KINDS if kind not in ("liking", "belonging", "passive", "copula", "have", "living")]


class Clauses(Phrases):
    """Adds clauses to the draws of one sentence."""

    def clause(self, subject=None, when=None, antecedent=None, kinds=_KINDS, extras=True, antecedent_possessive=None):
        """`when`: PAST or ANY to fit another clause; `antecedent`: whom a pronoun may stand for; `extras`: times, places and the like."""
        kind = self.random.pick(kinds)
        if subject is not None:
            kind = self._fitting(kind, subject)
        meaning = getattr(self, "_" + kind)(subject, antecedent, antecedent_possessive)
        self._draw_tense(meaning, kind, when)
        self._draw_middle(meaning, kind, alone=when is None)
        if extras:
            self._draw_extras(meaning, kind)
        return meaning

    @staticmethod
    def _fitting(kind, subject):
        """A kind of clause that can be said of `subject`."""
        what = kind_of(subject)
        if what == "person":
            return "transitive" if kind in ("liking", "belonging", "passive") else kind
        if what == "animal":
            return kind if kind in ("intransitive", "copula") else "transitive"
        return "copula"

    # --- kinds of clauses -------------------------------------------------------------------------------------------------------------

    def _new(self, verb, subject, reference, animal=False):
        if subject is None:
            subject = self.subject(animal, reference)
        return Clause(subject, verb, self.bits(2))

    def _intransitive(self, subject, _, reference):
        if subject is None and self.random.chance(25):
            return self._new(self.random.pick(verbs.animal_intransitive), None, reference, animal=True)
        table = verbs.animal_intransitive if subject is not None and kind_of(subject) == "animal" else verbs.intransitive
        return self._new(self.random.pick(table), subject, reference)

    def _reflexive(self, subject, _, reference):
        return self._new(self.random.pick(verbs.reflexive), subject, reference)

    def _motion(self, subject, _, reference):
        meaning = self._new(self.random.pick(verbs.motion), subject, reference)
        meaning.direction = self.direction(far=meaning.verb.lemma in _FAR_VERBS)
        return meaning

    def _transitive(self, subject, antecedent, reference):
        animal = self.random.chance(12) if subject is None else kind_of(subject) == "animal"
        verb = self.random.pick(_HUNTERS if animal else verbs.transitive)
        meaning = self._new(verb, subject, reference, animal)
        thing = self.object(verb, meaning.subject, antecedent)
        if verb in verbs.with_dative:
            meaning.dative = thing
        else:
            meaning.object = thing
        return meaning

    def _have(self, subject, _, reference):
        meaning = self._new(verbs.have, subject, reference)
        meaning.object = self.noun_phrase(self.choose_object(verbs.have), None)
        return meaning

    def _with_dative(self, subject, antecedent, reference):
        verb = self.random.pick(verbs.with_dative)
        meaning = self._new(verb, subject, reference)
        meaning.dative = self.object(verb, meaning.subject, antecedent)
        return meaning

    def _ditransitive(self, subject, _, reference):
        verb = self.random.pick(verbs.ditransitive)
        meaning = self._new(verb, subject, reference)
        meaning.dative = self.recipient(meaning.subject)
        meaning.object = self.object(verb, meaning.subject)
        return meaning

    def _prepositional(self, subject, antecedent, reference):
        verb = self.random.pick(verbs.prepositional)
        meaning = self._new(verb, subject, reference)
        german, case, english = verb.preposition
        phrase = self.object(verb, meaning.subject)
        meaning.prepositional = PrepositionPhrase(german, english, DATIVE if case == "dat" else ACCUSATIVE, phrase, self.bits(1))
        return meaning

    def _placing(self, subject, _, reference):
        verb = self.random.pick(verbs.placing)
        meaning = self._new(verb, subject, reference)
        meaning.object = self.object(verb, meaning.subject)
        meaning.direction = self.target()
        return meaning

    def _living(self, subject, _, reference):
        meaning = self._new(verbs.live, subject, reference)
        meaning.place = self.place()
        return meaning

    def _liking(self, _, __, reference):
        noun = self.choose_object(verbs.like)
        meaning = Clause(self.noun_phrase(noun), verbs.like, self.bits(2))
        meaning.dative = self.recipient()
        return meaning

    def _belonging(self, _, __, reference):
        noun = self.random.pick(KINDS[self.random.pick(("thing", "animal", "clothing", "vehicle", "readable"))])
        subject = NounPhrase(noun, 1 if self.random.chance(20) else 0, self.bits(3))
        if self.random.chance(40):
            self.add_adjective(subject)
        meaning = Clause(subject, verbs.belong, self.bits(2))
        meaning.dative = self.recipient()
        return meaning

    def _passive(self, _, __, reference):
        verb = self.random.pick(verbs.transitive)
        meaning = Clause(self.noun_phrase(self.choose_object(verb)), verb, self.bits(2))
        meaning.passive = True
        if self.random.chance(60):
            meaning.company = PrepositionPhrase(
                "von", "by", DATIVE, self.person(articles=False) if self.random.chance(80) else self.name(), self.bits(1)
            )
        return meaning

    def _copula(self, subject, _, reference):
        if subject is None and self.random.chance(45):
            subject = self.noun_phrase(
                self.random.pick(KINDS[self.random.pick(("thing", "animal", "clothing", "vehicle", "readable", "inside"))]), reference
            )
        meaning = self._new(None, subject, reference)
        meaning.predicate = predicate = Predicate(self.bits(3))
        subject = meaning.subject
        kind = kind_of(subject)
        share = self.random.below(100)
        if share < 12 and kind == "person" and subject.person < 3 and subject.pronoun in ("he", "she"):
            predicate.phrase = self._profession(subject)
        elif share < 45:
            self._compare(predicate, kind)
        else:
            predicate.adjective = self.random.pick(FOR_KIND[kind])
            if self.random.chance(45):
                predicate.degree = self.random.pick(_DEGREES)
        return meaning

    def _profession(self, subject):
        fitting = [noun for noun in _POSITIVE if noun.pronoun == subject.pronoun]
        phrase = NounPhrase(self.random.pick(fitting), 0, self.bits(3))
        phrase.determiner = INDEFINITE
        if self.random.chance(50):
            self.add_adjective(phrase)
        return phrase

    def _compare(self, predicate, kind):
        predicate.adjective = self.random.pick(COMPARABLE[kind])
        predicate.equal = self.random.chance(35)
        predicate.than = self.noun_phrase(self.random.pick(KINDS[kind]), adjective_percent=15)

    # --- tense, negation, additions ---------------------------------------------------------------------------------------------------

    def _draw_tense(self, meaning, kind, when):
        random, person = self.random, meaning.subject.person
        modal_allowed = kind not in ("copula", "liking", "belonging", "passive", "have", "living")
        if modal_allowed and random.chance(18):
            past = when == PAST or when is None and random.chance(30)
            meaning.modal = random.pick(_PAST_MODALS if past else _PRESENT_MODALS)
            meaning.tense = PRETERITE if past else PRESENT
            return
        tense = random.pick(_TENSES) if when is None else random.pick(_PAST_TENSES) if when == PAST else PRESENT
        if kind in ("liking", "belonging", "passive", "have") and tense == FUTURE:
            tense = PRESENT
        if kind in ("copula", "passive", "liking", "belonging") and tense == PERFECT:
            tense = PRETERITE
        if tense == PRETERITE and person in (1, 4) and meaning.verb is not None and not meaning.passive:
            tense = PERFECT
        meaning.tense = tense

    def _draw_middle(self, meaning, kind, alone):
        random, share = self.random, self.random.below(100)
        if share < 12:
            if not _counts_all(meaning.dative if kind == "liking" else meaning.subject):
                self._negate(meaning)
        elif share < 20 and kind not in ("living", "liking", "belonging", "passive"):
            meaning.middle = self.often()
        elif share < 30 and alone and meaning.tense == PERFECT and kind != "living":
            meaning.middle = self.already()
        elif share < 36 and alone and meaning.tense == PERFECT and kind != "living" and _can_take_not(meaning):
            meaning.middle = self.not_yet()
            meaning.negated = True
        elif share < 46 and meaning.tense in (PRESENT, PRETERITE) and not meaning.modal and kind in ACTIVE_KINDS:
            if meaning.verb.lemma not in _NOT_GLADLY and kind_of(meaning.subject) == "person":
                meaning.gladly = self.bits(1)

    def _negate(self, meaning):
        """nicht, kein or nie, as the object asks."""
        thing = meaning.object or (meaning.predicate.phrase if meaning.predicate else None)
        if thing is not None and is_noun(thing) and thing.determiner == INDEFINITE:
            thing.determiner = NEGATIVE
            meaning.middle = self.no_object()
            thing.negation_bit = meaning.middle.before[0][1]
            meaning.negated = True
        elif _can_take_not(meaning) and self.random.chance(75):
            meaning.middle = self.not_()
            meaning.negated = True
        elif not (meaning.predicate and meaning.predicate.phrase) and not meaning.passive:
            meaning.middle = self.never()

    def _draw_extras(self, meaning, kind):
        random = self.random
        if kind in ("copula", "liking", "belonging", "have", "living"):
            if random.chance(15) and not (meaning.middle and meaning.middle.completes):
                meaning.time = self.time(_when(meaning))
            return
        if meaning.verb.lemma in _WITH_MANNER and random.chance(14) and not meaning.passive:
            bit = self.bits(1)
            german, english = random.pick(MANNERS)
            meaning.manner = Fixed([(german, bit)], [(english, bit)])
        if kind in ("intransitive", "motion", "transitive") and random.chance(10) and kind_of(meaning.subject) == "person":
            meaning.company = self.company(meaning.subject)
        if kind not in ("motion", "placing") and random.chance(20):
            meaning.place = self.place()
        if random.chance(36) and not (meaning.middle and meaning.middle.completes):
            meaning.time = self.time(_when(meaning))

    def relative_clause(self, phrase):
        """A clause about `phrase`, whose gap German marks clearly, or which is the subject's."""
        random, noun = self.random, phrase.noun
        share = random.below(100)
        if noun.kind in ("person", "animal") and share < 60:
            subject = Pronoun.standing_for(phrase, 0)
            meaning = self.clause(subject=subject, kinds=ACTIVE_KINDS, extras=random.chance(30))
            role = "subject"
        else:
            meaning, role = self._object_relative(phrase)
            if meaning is None:
                return
        phrase.relative = RelativeClause(meaning, role, self.bits(1))

    def _object_relative(self, phrase):
        verb = self.verb_for(phrase.noun)
        if verb is None:
            return None, None
        subject = self.subject()
        if not (phrase.gender == MASCULINE or is_marked_subject(subject)):
            return None, None
        meaning = Clause(subject, verb, self.bits(2))
        meaning.object = Pronoun.standing_for(phrase, 0)
        self._draw_tense(meaning, "transitive", None)
        if self.random.chance(25):
            meaning.time = self.time(_when(meaning))
        return meaning, "object"


def _counts_all(phrase):
    """jeder, alle, viele: who goes badly with a negation."""
    return is_noun(phrase) and phrase.determiner in (EVERY, ALL, MANY)


def _can_take_not(meaning):
    """Whether plain `nicht` is what German says: not before or after quantities and indefinite objects."""
    for thing in (meaning.object, meaning.dative, meaning.predicate and meaning.predicate.phrase):
        if thing is None or thing.is_pronoun or thing.is_name:
            continue
        if thing.is_pair or thing.determiner not in (DEFINITE, THIS, POSSESSIVE, NAME_OWNER):
            return False
    return not (meaning.predicate and meaning.predicate.degree and meaning.predicate.degree[0] != "sehr")


def _when(meaning):
    return COMING if meaning.tense == FUTURE else ANY if meaning.tense == PRESENT else PAST


def is_marked_subject(phrase):
    """A subject no German reader could take for an accusative."""
    if phrase.is_pronoun:
        return phrase.person in (0, 1, 3, 4) or phrase.pronoun == "he"
    return is_noun(phrase) and phrase.gender == MASCULINE and phrase.determiner != NAME_OWNER


def is_marked_object(phrase):
    """An accusative no German reader could take for a subject."""
    return is_noun(phrase) and phrase.gender == MASCULINE and phrase.determiner != NAME_OWNER
