"""Combinations that training never sees.

A (verb, object noun) or (adjective, noun) pair belongs to the test set, to the validation set or to everybody, as a hash of the two words
says. Training sentences use everybody's pairs only; every test sentence has at least one pair of the test set's own, every validation
sentence one of its own.
"""

from grammar import adjectives, nouns, verbs
from grammar.prng import hash_text

TEST_PERCENT, VALID_PERCENT = 10, 5
EVERYBODY, TEST, VALID = "train", "test", "valid"


def owner(word, noun):
    """Which split alone may combine `word` (a verb or an adjective) and `noun`: `train` stands for all of them."""
    share = hash_text(f"{word} {noun}") % 100
    if share < TEST_PERCENT:
        return TEST
    return VALID if share < TEST_PERCENT + VALID_PERCENT else EVERYBODY


def _by_owner(candidates, pair):
    """{split: the candidates it owns}; what everybody may use is never left empty."""
    found = {EVERYBODY: [], TEST: [], VALID: []}
    for candidate in candidates:
        found[owner(*pair(candidate))].append(candidate)
    return found


# OBJECTS[verb][split]: nouns; VERBS[noun][split]: transitive verbs; ADJECTIVES[noun][split].
OBJECTS = {verb: _by_owner(verbs.nouns_for(verb), lambda noun, verb=verb: (verb.lemma, noun.lemma)) for verb in verbs.TAKING_OBJECTS}
VERBS = {
    noun: _by_owner([verb for verb in verbs.transitive if kind in verb.kinds], lambda verb, noun=noun: (verb.lemma, noun.lemma))
    for kind, table in nouns.KINDS.items()
    for noun in table
}
ADJECTIVES = {
    noun: _by_owner(adjectives.FOR_KIND[kind], lambda adjective, noun=noun: (adjective.lemma, noun.lemma))
    for kind, table in nouns.KINDS.items()
    for noun in table
}
