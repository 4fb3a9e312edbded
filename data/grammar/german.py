"""Puts a meaning into German words. Every function appends (text, bits) pairs to `out`."""

from grammar.meaning import (
    ALL,
    DEFINITE,
    EVERY,
    FUTURE,
    INDEFINITE,
    LAST,
    MANY,
    NAME_OWNER,
    NEGATIVE,
    NUMBER,
    PERFECT,
    PLUPERFECT,
    POSSESSIVE,
    PRESENT,
    SECOND,
    THIS,
    WHICH,
)
from grammar.nouns import ACCUSATIVE, DATIVE, GENITIVE, NOMINATIVE, PLURAL
from grammar.verbs import HABEN, SEIN, WERDEN

COMMA = (",", 0)

# By case (nominative, accusative, dative, genitive), then gender (masculine, feminine, neuter, plural).
_THE = ("der die das die".split(), "den die das die".split(), "dem der dem den".split(), "des der des der".split())
_STRONG = ("er e es e".split(), "en e es e".split(), "em er em en".split(), "es er es er".split())
_EIN = (("", "e", "", "e"), ("en", "e", "", "e"), ("em", "er", "em", "en"), ("es", "er", "es", "er"))
_ADJECTIVE_WEAK = ("e e e en".split(), "en e e en".split(), ["en"] * 4, ["en"] * 4)
_ADJECTIVE_MIXED = ("er e es en".split(), "en e es en".split(), ["en"] * 4, ["en"] * 4)
_ADJECTIVE_STRONG = ("er e es e".split(), "en e es e".split(), "em er em en".split(), "en er en er".split())
_RELATIVE = ("der die das die".split(), "den die das die".split(), "dem der dem denen".split())

_WITH_STRONG_ENDING = {THIS: "dies", EVERY: "jed", WHICH: "welch", ALL: "all"}
_PERSONAL = {  # case: by person; the third person singular by gender
    NOMINATIVE: ("ich", "du", ("er", "sie", "es"), "wir", "ihr", "sie"),
    ACCUSATIVE: ("mich", "dich", ("ihn", "sie", "es"), "uns", "euch", "sie"),
    DATIVE: ("mir", "dir", ("ihm", "ihr", "ihm"), "uns", "euch", "ihnen"),
}
_REFLEXIVE = ("mich", "dich", "sich", "uns", "euch", "sich")
_OWN = ("mein", "dein", ("sein", "ihr", "sein"), "unser", "euer", "ihr")
_CONTRACTED = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
}


def pronoun(phrase, case):
    form = _PERSONAL[case][phrase.person]
    return form[phrase.gender] if phrase.person == 2 else form


def _possessive(owner, ending):
    stem = _OWN[owner.person]
    if owner.person == 2:
        stem = stem[owner.gender]
    return "eur" + ending if stem == "euer" and ending else stem + ending


def _determiner(phrase, case):
    """The word before the adjective (or none), and the adjective endings that go with it."""
    kind, gender = phrase.determiner, phrase.gender
    if kind == DEFINITE:
        return _THE[case][gender], _ADJECTIVE_WEAK
    if kind == INDEFINITE:
        return (None, _ADJECTIVE_STRONG) if gender == PLURAL else ("ein" + _EIN[case][gender], _ADJECTIVE_MIXED)
    if kind == POSSESSIVE:
        return _possessive(phrase.owner, _EIN[case][gender]), _ADJECTIVE_MIXED
    if kind == NEGATIVE:
        return "kein" + _EIN[case][gender], _ADJECTIVE_MIXED
    if kind == NUMBER:
        return phrase.quantity[0], _ADJECTIVE_STRONG
    if kind == MANY:
        return "viele" + ("n" if case == DATIVE else ""), _ADJECTIVE_STRONG
    if kind == NAME_OWNER:
        return phrase.owner.text + "s", _ADJECTIVE_STRONG
    return _WITH_STRONG_ENDING[kind] + _STRONG[case][gender], _ADJECTIVE_WEAK


def noun_phrase(phrase, case, out, preposition=None):
    """`preposition` is a (text, bits) pair to put in front, contracted with the article where German does so."""
    if phrase.is_pronoun or phrase.is_name or phrase.is_pair:
        if preposition:
            out.append(preposition)
        return _short_phrase(phrase, case, out)
    word, endings = _determiner(phrase, case)
    article_bits = phrase.article_bit | phrase.negation_bit
    if preposition:
        contracted = phrase.determiner == DEFINITE and _CONTRACTED.get((preposition[0], word))
        out.append((contracted, preposition[1] | article_bits) if contracted else preposition)
        word = None if contracted else word
    if word:
        out.append((word, article_bits))
    gender = phrase.gender
    if phrase.adjective:
        out.append((phrase.adjective.german[endings[case][gender]], phrase.adjective_bit))
    out.append((phrase.noun.german[phrase.number][case], phrase.noun_bit))
    if phrase.genitive:
        noun_phrase(phrase.genitive, GENITIVE, out)
    if phrase.place:
        preposition_phrase(phrase.place, out)
    if phrase.relative:
        _relative_clause(phrase, out)


def _short_phrase(phrase, case, out):
    if phrase.is_pronoun:
        out.append((pronoun(phrase, case), phrase.noun_bit))
    elif phrase.is_name:
        out.append((phrase.text, phrase.noun_bit))
    else:
        noun_phrase(phrase.first, case, out)
        out.append(("und", phrase.noun_bit))
        noun_phrase(phrase.second, case, out)


def preposition_phrase(phrase, out):
    if phrase.__class__.__name__ == "Fixed":
        out += phrase.german
    else:
        noun_phrase(phrase.phrase, phrase.case, out, (phrase.german, phrase.bit))


def _relative_clause(phrase, out):
    relative = phrase.relative
    inner, role = relative.clause, relative.role
    out.append(COMMA)
    if role == "place":
        out.append((inner.place.german, inner.place.bit))
        case, gap = DATIVE, inner.place
    else:
        case = {"subject": NOMINATIVE, "object": ACCUSATIVE, "dative": DATIVE}[role]
        gap = getattr(inner, role)
    out.append((_RELATIVE[case][phrase.gender], relative.bit))
    clause(inner, LAST, out, gap=gap)
    out.append(COMMA)


def _verb_parts(meaning):
    """The finite verb, the infinite part at the end, and the separable prefix (of a simple tense)."""
    verb, person, tense = meaning.verb, meaning.subject.person, meaning.tense
    main, helper = meaning.verb_bit, meaning.auxiliary_bit
    if meaning.passive:
        return (WERDEN[tense != PRESENT][person], helper), [(verb.participle, main)], None
    if meaning.modal:
        forms = meaning.modal.present if tense == PRESENT else meaning.modal.preterite
        return (forms[person], helper), [(verb.infinitive if verb else "sein", main)], None
    if tense == FUTURE:
        return (WERDEN[0][person], helper), [(verb.infinitive if verb else "sein", main)], None
    if verb is None:
        return (SEIN[tense != PRESENT][person], main), [], None
    if tense == PERFECT or tense == PLUPERFECT:
        forms = (SEIN if verb.with_sein else HABEN)[tense == PLUPERFECT]
        return (forms[person], helper), [(verb.participle, main)], None
    form = (verb.present if tense == PRESENT else verb.preterite)[person]
    return (form, main), [], (verb.prefix, main) if verb.prefix else None


def _is_definite(phrase):
    return phrase.is_name or (not phrase.is_pair and phrase.determiner in (DEFINITE, THIS, POSSESSIVE, NAME_OWNER))


def _middle_field(meaning, skip, out):
    """Everything between the two parts of the verb; `skip` are the parts said elsewhere.

    The order: subject, pronouns, time, dative, definite object, adverbs, company, place, other object, where to, predicate.
    """
    subject, verb = meaning.subject, meaning.verb
    thing = None if meaning.object in skip else meaning.object
    dative = None if meaning.dative in skip else meaning.dative
    if subject not in skip:
        noun_phrase(subject, NOMINATIVE, out)
    if verb and verb.reflexive:
        out.append((_REFLEXIVE[subject.person], meaning.verb_bit))
    if thing and thing.is_pronoun:
        noun_phrase(thing, ACCUSATIVE, out)
        thing = None
    if dative and dative.is_pronoun:
        noun_phrase(dative, DATIVE, out)
        dative = None
    if meaning.time and meaning.time not in skip:
        out += meaning.time.german
    if dative:
        noun_phrase(dative, DATIVE, out)
    if thing and _is_definite(thing):
        noun_phrase(thing, ACCUSATIVE, out)
        thing = None
    _adverbs_to_predicate(meaning, thing, skip, out)


def _adverbs_to_predicate(meaning, indefinite_object, skip, out):
    """The second half of the middle field."""
    if meaning.middle:
        out += meaning.middle.german
    if meaning.gladly:
        out.append(("gern", meaning.gladly))
    if meaning.manner:
        out += meaning.manner.german
    for phrase in (meaning.company, meaning.place):
        if phrase and phrase not in skip:
            preposition_phrase(phrase, out)
    if indefinite_object:
        noun_phrase(indefinite_object, ACCUSATIVE, out)
    for phrase in (meaning.prepositional, meaning.direction):
        if phrase:
            preposition_phrase(phrase, out)
    if meaning.predicate:
        _predicate(meaning.predicate, out)


def _predicate(predicate, out):
    bit = predicate.bit
    if predicate.phrase:
        return noun_phrase(predicate.phrase, NOMINATIVE, out)
    if predicate.degree:
        out.append((predicate.degree[0], bit << 1))
    if predicate.equal:
        out.append(("so", bit << 1))
    if predicate.than and not predicate.equal:
        out.append((predicate.adjective.german_comparative, bit))
    else:
        out.append((predicate.adjective.lemma, bit))
    if predicate.than:
        out.append(("wie", bit << 2) if predicate.equal else ("als", bit << 2))
        noun_phrase(predicate.than, NOMINATIVE, out)


def _front(meaning, out):
    """Writes what stands before the finite verb and returns it."""
    front = meaning.front
    if front == "time":
        out += meaning.time.german
        return meaning.time
    part = getattr(meaning, front)
    if front == "place":
        preposition_phrase(part, out)
    else:
        noun_phrase(part, {"subject": NOMINATIVE, "object": ACCUSATIVE, "dative": DATIVE}[front], out)
    return part


def clause(meaning, order, out, gap=None, fronted=False):
    """`gap`: a part said outside (a relative or question word). `fronted`: something outside stands before the verb already."""
    finite, infinite, prefix = _verb_parts(meaning)
    skip = [gap] if gap else []
    if order == LAST:
        _middle_field(meaning, skip, out)
        out += infinite
        out.append((prefix[0] + finite[0], finite[1]) if prefix else finite)
        return
    if order == SECOND and not fronted:
        skip.append(_front(meaning, out))
    out.append(finite)
    _middle_field(meaning, skip, out)
    out += infinite
    if prefix:
        out.append(prefix)


def infinitive_clause(meaning, to_bit, out):
    """`das Buch zu lesen`, `aufzustehen`. The subject is understood."""
    _middle_field(meaning, [meaning.subject], out)
    words = meaning.verb.to_infinitive
    if len(words) == 1:
        out.append((words[0], to_bit | meaning.verb_bit))
    else:
        out.append((words[0], to_bit))
        out.append((words[1], meaning.verb_bit))


def imperative(meaning, out):
    verb = meaning.verb
    out.append((verb.imperative[meaning.subject.person == 4], meaning.verb_bit))
    _middle_field(meaning, [meaning.subject], out)
    if verb.prefix:
        out.append((verb.prefix, meaning.verb_bit))
