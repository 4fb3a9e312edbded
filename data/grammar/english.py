"""Puts a meaning into English words. Every function appends (text, bits) pairs to `out`."""

from grammar import english_forms, verbs
from grammar.meaning import (
    ALL,
    DEFINITE,
    EVERY,
    FUTURE,
    INDEFINITE,
    MANY,
    NAME_OWNER,
    NUMBER,
    PERFECT,
    PLUPERFECT,
    POSSESSIVE,
    PRESENT,
    THIS,
    WHICH,
    Clause,
)
from grammar.verbs import BE

_SUBJECT = ("I", "you", None, "we", "you", "they")
_OBJECT = {"I": "me", "you": "you", "he": "him", "she": "her", "it": "it", "we": "us", "they": "them"}
_OWN = {"I": "my", "you": "your", "he": "his", "she": "her", "it": "its", "we": "our", "they": "their"}
_WORDS = {
    DEFINITE: ("the", "the"),
    THIS: ("this", "these"),
    EVERY: ("every", None),
    WHICH: ("which", "which"),
    ALL: (None, "all"),
    MANY: (None, "many"),
}


def _subject_form(phrase):
    return _SUBJECT[phrase.person] or phrase.pronoun


def _owned(phrase):
    """The possessor of "the woman's dog" takes the place of the article."""
    text = phrase.noun.english[phrase.number]
    return text + ("'" if phrase.number and text.endswith("s") else "'s")


def noun_phrase(phrase, out, is_subject=False, under_negation=False):
    if phrase.is_pronoun:
        form = _subject_form(phrase)
        out.append((form if is_subject else _OBJECT[form], phrase.noun_bit))
        return
    if phrase.is_name:
        out.append((phrase.text, phrase.noun_bit))
        return
    if phrase.is_pair:
        noun_phrase(phrase.first, out, is_subject)
        out.append(("and", phrase.noun_bit))
        noun_phrase(phrase.second, out, is_subject)
        return
    noun = (phrase.noun.english[phrase.number], phrase.noun_bit)
    adjective = (phrase.adjective.english, phrase.adjective_bit) if phrase.adjective else None
    if phrase.genitive:
        _genitive(phrase.genitive, out)
    else:
        word = _determiner(phrase, (adjective or noun)[0], under_negation)
        if word:
            out.append((word, phrase.article_bit))
    if adjective:
        out.append(adjective)
    out.append(noun)
    if phrase.place:
        preposition_phrase(phrase.place, out)
    if phrase.relative:
        _relative_clause(phrase, out)


def _genitive(owner, out):
    adjective = owner.adjective.english if owner.adjective else None
    word = _determiner(owner, adjective or owner.noun.english[owner.number], False)
    if word:
        out.append((word, owner.article_bit))
    if adjective:
        out.append((adjective, owner.adjective_bit))
    out.append((_owned(owner), owner.noun_bit))


def _determiner(phrase, next_word, under_negation):
    kind = phrase.determiner
    if kind in _WORDS:
        return _WORDS[kind][phrase.number]
    if kind == INDEFINITE:
        return None if phrase.number else english_forms.article(next_word)
    if kind == POSSESSIVE:
        return _OWN[_subject_form(phrase.owner)]
    if kind == NUMBER:
        return phrase.quantity[1]
    if kind == NAME_OWNER:
        return phrase.owner.text + "'s"
    if under_negation:  # kein
        return "any" if phrase.number else english_forms.article(next_word)
    return "no"


def preposition_phrase(phrase, out):
    if phrase.__class__.__name__ == "Fixed":
        out += phrase.english
        return
    out += [(word, phrase.bit) for word in phrase.english.split()]
    noun_phrase(phrase.phrase, out)


def _relative_clause(phrase, out):
    relative = phrase.relative
    inner, role = relative.clause, relative.role
    is_person = phrase.noun.is_person
    if role == "place":
        out += [(word, inner.place.bit) for word in inner.place.english.split()]
        out.append(("which", relative.bit))
        clause(inner, out, gap=inner.place)
    elif role == "subject":
        out.append(("who" if is_person else "that", relative.bit))
        clause(inner, out, gap=inner.subject)
    else:
        out.append(("whom" if is_person else "that", relative.bit))
        clause(inner, out, gap=getattr(inner, role))


def _verb_group(meaning, inverted):
    """The auxiliary (or None) and the words after it, up to and with the main verb. `do` helps where English asks for it."""
    person, tense, main, helper = meaning.subject.person, meaning.tense, meaning.verb_bit, meaning.auxiliary_bit
    verb, past = meaning.verb, tense != PRESENT
    base = (verb.base if verb else "be", main)
    if meaning.passive:
        return (BE[past][person], helper), [(verb.english_participle, main)]
    if meaning.modal:
        return _modal_group(meaning, base, inverted)
    if tense == FUTURE:
        return ("will", helper), [base]
    if verb is None:
        return (BE[past][person], main), []
    if tense == PLUPERFECT or (tense == PERFECT and meaning.middle and meaning.middle.completes):
        word = "had" if tense == PLUPERFECT else "has" if person == 2 else "have"
        return (word, helper), [(verb.english_participle, main)]
    bits = main | helper if tense == PERFECT else main
    if meaning.gladly:
        return _lexical("like", "liked", meaning, inverted, meaning.gladly, [("to", meaning.gladly), (verb.base, main)])
    return _lexical(verb.base, verb.past, meaning, inverted, bits, [])


def _lexical(base, past_form, meaning, inverted, bits, tail):
    person, past = meaning.subject.person, meaning.tense != PRESENT
    if inverted or meaning.negated:
        return ("did" if past else "does" if person == 2 else "do", bits), [(base, bits)] + tail
    form = past_form if past else english_forms.third_person(base) if person == 2 else base
    return None, [(form, bits)] + tail


def _modal_group(meaning, base, inverted):
    modal, helper, person, past = meaning.modal, meaning.auxiliary_bit, meaning.subject.person, meaning.tense != PRESENT
    to = ("to", helper)
    if modal.style == "plain":
        return (modal.english_past if past else modal.english, helper), [base]
    if modal.style == "be":
        return (BE[past][person], helper), [(modal.english, helper), to, base]
    if modal.style == "would":
        return ("would", helper), [(modal.english, helper), to, base]
    return _lexical(modal.english, modal.english_past, meaning, inverted, helper, [to, base])


def clause(meaning, out, gap=None, inverted=False, front=None):
    """`gap`: a part said outside. `inverted`: a question. `front`: the part said first, where German has it first too."""
    if meaning.verb is verbs.like:
        meaning = _liking(meaning)
    if front:
        _write(front, out)
    auxiliary, words = _verb_group(meaning, inverted)
    if inverted:
        auxiliary = _negated_auxiliary(auxiliary, meaning, False)
        out.append(auxiliary[0])
    if meaning.subject is not gap:
        noun_phrase(meaning.subject, out, is_subject=True)
    if auxiliary and not inverted:
        auxiliary = _negated_auxiliary(auxiliary, meaning, True)
        out.append(auxiliary[0])
    if auxiliary:
        out += auxiliary[1]
    if meaning.middle and not meaning.negated:
        out += meaning.middle.before
    out += words
    _after_verb(meaning, gap, front, out)


def _liking(meaning):
    """`Das Buch gefällt dem Mann`: who likes is the subject in English."""
    swapped = Clause(meaning.dative, meaning.verb, meaning.verb_bit)
    swapped.object = meaning.subject
    for name in ("tense", "middle", "negated", "time", "place"):
        setattr(swapped, name, getattr(meaning, name))
    return swapped


def _negated_auxiliary(auxiliary, meaning, may_join):
    """The auxiliary, and `not` where it stands apart from it."""
    if not meaning.negated:
        return auxiliary, []
    negation = meaning.middle.before
    if auxiliary[0] == "can" and may_join:
        return ("cannot", auxiliary[1] | negation[0][1]), []
    return auxiliary, negation


def _write(part, out):
    if part.__class__.__name__ in ("Fixed", "PrepositionPhrase"):
        preposition_phrase(part, out)
    else:
        noun_phrase(part, out)


def _after_verb(meaning, gap, front, out):
    verb, thing, dative = meaning.verb, meaning.object, meaning.dative
    if verb:
        out += [(word, meaning.verb_bit) for word in verb.fixed]
    if dative and dative is not gap:
        noun_phrase(dative, out)
    particle = verb and verb.particle
    if particle and not (thing and thing.is_pronoun):
        out.append((particle, meaning.verb_bit))
        particle = None
    if thing and thing is not gap:
        noun_phrase(thing, out, under_negation=meaning.negated)
    if particle:
        out.append((particle, meaning.verb_bit))
    if meaning.predicate:
        _predicate(meaning.predicate, meaning.negated, out)
    for part in (meaning.prepositional, meaning.direction, meaning.manner, meaning.company, meaning.place, meaning.time):
        if part and part is not gap and part is not front:
            preposition_phrase(part, out)
    if meaning.middle and meaning.middle.last:
        out += meaning.middle.last


def _predicate(predicate, under_negation, out):
    bit = predicate.bit
    if predicate.phrase:
        return noun_phrase(predicate.phrase, out, under_negation=under_negation)
    if predicate.degree:
        out.append((predicate.degree[1], bit << 1))
    if not predicate.than:
        out.append((predicate.adjective.english, bit))
    elif predicate.equal:
        out += [("as", bit << 1), (predicate.adjective.english, bit), ("as", bit << 2)]
        noun_phrase(predicate.than, out, is_subject=True)
    else:
        out += [(word, bit) for word in predicate.adjective.english_comparative]
        out.append(("than", bit << 2))
        noun_phrase(predicate.than, out, is_subject=True)


def infinitive_clause(meaning, to_bit, out):
    out.append(("to", to_bit))
    out.append((meaning.verb.base, meaning.verb_bit))
    _after_verb(meaning, None, None, out)


def imperative(meaning, out):
    if meaning.negated:
        out.append(("do", meaning.verb_bit))
        out += meaning.middle.before
    out.append((meaning.verb.base, meaning.verb_bit))
    _after_verb(meaning, None, None, out)
