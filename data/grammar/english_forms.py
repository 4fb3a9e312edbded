"""How English words change: plurals, verb forms, comparatives, a or an."""

_IRREGULAR = {  # base: past, participle
    "be": "was been",
    "bring": "brought brought",
    "buy": "bought bought",
    "catch": "caught caught",
    "come": "came come",
    "dream": "dreamed dreamed",
    "drink": "drank drunk",
    "drive": "drove driven",
    "eat": "ate eaten",
    "fall": "fell fallen",
    "feed": "fed fed",
    "find": "found found",
    "fly": "flew flown",
    "forget": "forgot forgotten",
    "get": "got gotten",
    "give": "gave given",
    "go": "went gone",
    "hang": "hung hung",
    "have": "had had",
    "hear": "heard heard",
    "hide": "hid hidden",
    "hold": "held held",
    "keep": "kept kept",
    "know": "knew known",
    "lend": "lent lent",
    "lie": "lied lied",
    "lose": "lost lost",
    "put": "put put",
    "read": "read read",
    "run": "ran run",
    "say": "said said",
    "see": "saw seen",
    "sell": "sold sold",
    "send": "sent sent",
    "sing": "sang sung",
    "sit": "sat sat",
    "sleep": "slept slept",
    "swim": "swam swum",
    "take": "took taken",
    "tell": "told told",
    "think": "thought thought",
    "throw": "threw thrown",
    "wake": "woke woken",
    "write": "wrote written",
    "steal": "stole stolen",
}
_VOWELS = "aeiou"


def plural(noun):
    if noun.endswith(("s", "x", "ch", "sh", "ato")):
        return noun + "es"
    if noun[-1] == "y" and noun[-2] not in _VOWELS:
        return noun[:-1] + "ies"
    return noun + "s"


def third_person(verb):
    if verb == "have":
        return "has"
    if verb.endswith(("s", "x", "ch", "sh", "o", "z")):
        return verb + "es"
    if verb[-1] == "y" and verb[-2] not in _VOWELS:
        return verb[:-1] + "ies"
    return verb + "s"


def past_and_participle(verb):
    if verb in _IRREGULAR:
        return tuple(_IRREGULAR[verb].split())
    if verb[-1] == "e":
        past = verb + "d"
    elif verb[-1] == "y" and verb[-2] not in _VOWELS:
        past = verb[:-1] + "ied"
    elif verb in ("stop", "plan"):
        past = verb + verb[-1] + "ed"
    else:
        past = verb + "ed"
    return past, past


def article(next_word):
    """`a` or `an`, by the sound of the word that follows."""
    if next_word.startswith(("useful", "uni", "one")):
        return "a"
    return "an" if next_word[0] in _VOWELS or next_word.startswith(("hour", "honest")) else "a"
