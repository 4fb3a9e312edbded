"""Phrases of time: adverbs, dates, clock times, durations. Each is written in both languages at once, with its word links."""

from grammar.meaning import Fixed
from grammar.nouns import DATIVE, GENITIVE, KINDS


def _pairs(text):
    return [tuple(pair.split(":")) for pair in text.split()]


WEEKDAYS = _pairs("Montag:Monday Dienstag:Tuesday Mittwoch:Wednesday Donnerstag:Thursday Freitag:Friday Samstag:Saturday Sonntag:Sunday")
MONTHS = _pairs(
    "Januar:January Februar:February März:March April:April Mai:May Juni:June Juli:July August:August September:September "
    "Oktober:October November:November Dezember:December"
)
SEASONS = _pairs("Frühling:spring Sommer:summer Herbst:autumn Winter:winter")
MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_ONES = (
    "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn".split()
)
_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_ENGLISH_ONES = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
_ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def number_words(number):
    """2 to 99 in German and English: einundzwanzig, twenty-one."""
    if number < 20:
        return _ONES[number - 1], _ENGLISH_ONES[number - 1]
    tens, ones = divmod(number, 10)
    german, english = _TENS[tens - 2], _ENGLISH_TENS[tens - 2]
    return (_ONES[ones - 1] + "und" + german, english + "-" + _ENGLISH_ONES[ones - 1]) if ones else (german, english)


NUMBERS = [number_words(number) for number in range(2, 100)]
HOURS = [("eins" if hour == 1 else _ONES[hour - 1], _ENGLISH_ONES[hour - 1]) for hour in range(1, 13)]

PAST, ANY, COMING = range(3)
_PAST_ADVERBS = [
    (("gestern",), ("yesterday",)),
    (("letzte", "Woche"), ("last", "week")),
    (("letzten", "Monat"), ("last", "month")),
    (("letztes", "Jahr"), ("last", "year")),
    (("damals",), ("then",)),
]
_COMING_ADVERBS = [
    (("morgen",), ("tomorrow",)),
    (("bald",), ("soon",)),
    (("nächste", "Woche"), ("next", "week")),
    (("nächsten", "Monat"), ("next", "month")),
    (("nächstes", "Jahr"), ("next", "year")),
]
_ANY_ADVERBS = [(("heute",), ("today",)), (("jeden", "Tag"), ("every", "day")), (("jede", "Woche"), ("every", "week"))]


def few(random):
    """A number as people have of things: mostly small."""
    share = random.below(10)
    return NUMBERS[random.below(11) if share < 8 else random.below(len(NUMBERS))]


def _words(bit, pairs):
    """A Fixed from (German, English) pairs in German order, each pair a link of its own; None is a side without the word."""
    german = [(source, bit << place) for place, (source, _) in enumerate(pairs) if source]
    english = [(word, bit << place) for place, (_, target) in enumerate(pairs) if target for word in target.split()]
    return Fixed(german, english)


def _adverb(random, bit, table):
    return _words(bit, list(zip(*random.pick(table))))


def weekday(random, bit):
    return _words(bit, [("am", "on"), random.pick(WEEKDAYS)])


def date(random, bit):
    """am 3. Mai: on May 3."""
    month = random.below(12)
    day = 1 + random.below(MONTH_DAYS[month])
    german, english = MONTHS[month]
    return Fixed([("am", bit), (f"{day}.", bit << 1), (german, bit << 2)], [("on", bit), (english, bit << 2), (str(day), bit << 1)])


def month_or_season(random, bit):
    return _words(bit, [("im", "in"), random.pick(MONTHS if random.chance(60) else SEASONS)])


def part_of_day(random, bit):
    return _words(bit, [("am", "in the"), random.pick((("Morgen", "morning"), ("Nachmittag", "afternoon"), ("Abend", "evening")))])


def clock(random, bit):
    """um drei Uhr, um halb vier (half past three), um Viertel vor vier, um zehn nach drei."""
    hour = random.below(12)
    german, english = HOURS[hour]
    style = random.below(5)
    if style == 0:
        return Fixed(
            [("um", bit), ("ein" if hour == 0 else german, bit << 1), ("Uhr", bit << 2)],
            [("at", bit), (english, bit << 1), ("o'clock", bit << 2)],
        )
    if style == 1:
        before = HOURS[hour - 1][1]
        return Fixed(
            [("um", bit), ("halb", bit << 1), (german, bit << 2)], [("at", bit), ("half", bit << 1), ("past", bit << 1), (before, bit << 2)]
        )
    side = ("nach", "past") if random.chance(50) else ("vor", "to")
    if style == 2:
        return Fixed(
            [("um", bit), ("Viertel", bit << 1), (side[0], bit << 2), (german, bit << 3)],
            [("at", bit), ("a", bit << 1), ("quarter", bit << 1), (side[1], bit << 2), (english, bit << 3)],
        )
    minutes = random.pick((NUMBERS[3], NUMBERS[8], NUMBERS[18]))  # five, ten, twenty
    return _words(bit, [("um", "at"), minutes, side, (german, english)])


def _amount(random):
    """A number of days, weeks ... : (German number, English number), unit."""
    return few(random), random.pick(KINDS["unit"])


def ago(random, bit):
    """vor drei Tagen: three days ago."""
    (german, english), unit = _amount(random)
    return Fixed(
        [("vor", bit), (german, bit << 1), (unit.german[1][DATIVE], bit << 2)],
        [(english, bit << 1), (unit.english[1], bit << 2), ("ago", bit)],
    )


def from_now(random, bit):
    """in drei Tagen: in three days."""
    number, unit = _amount(random)
    return _words(bit, [("in", "in"), number, (unit.german[1][DATIVE], unit.english[1])])


def duration(random, bit):
    """drei Stunden lang: for three hours."""
    (german, english), unit = _amount(random)
    return Fixed(
        [(german, bit << 1), (unit.german[1][0], bit << 2), ("lang", bit)], [("for", bit), (english, bit << 1), (unit.english[1], bit << 2)]
    )


def year(random, bit):
    text = str(1900 + random.below(125))
    return Fixed([("im", bit), ("Jahr", bit), (text, bit << 1)], [("in", bit), (text, bit << 1)])


_DATIVE_THE, _GENITIVE_THE = ("dem", "der", "dem"), ("des", "der", "des")
_AROUND_EVENT = (("vor", "before", DATIVE), ("nach", "after", DATIVE), ("während", "during", GENITIVE))
_BECAUSE = (("wegen", "because of", GENITIVE), ("trotz", "despite", GENITIVE))


def around_event(random, bit):
    """nach dem Konzert, während des Konzerts, wegen des Regens."""
    kind, prepositions = ("event", _AROUND_EVENT) if random.chance(75) else ("cause", _BECAUSE)
    german, english, case = random.pick(prepositions)
    noun = random.pick(KINDS[kind])
    article = (_DATIVE_THE if case == DATIVE else _GENITIVE_THE)[noun.gender]
    return _words(bit, [(german, english), (article, "the"), (noun.german[0][case], noun.english[0])])


_ANY_TIME = (weekday, weekday, date, month_or_season, part_of_day, clock, clock, around_event, around_event)


def time_phrase(random, bit, when):
    """One phrase of time that fits the tense; it uses up to eight bits from `bit` on."""
    share = random.below(100)
    if when == PAST and share < 40:
        kind = random.below(6)
        return (
            ago(random, bit)
            if kind < 2
            else year(random, bit) if kind == 2 else duration(random, bit) if kind == 3 else _adverb(random, bit, _PAST_ADVERBS)
        )
    if when == COMING and share < 45:
        return from_now(random, bit) if share < 12 else _adverb(random, bit, _COMING_ADVERBS)
    if when == ANY and share < 20:
        return _adverb(random, bit, _ANY_ADVERBS)
    phrase = random.pick(_ANY_TIME)(random, bit)
    if share > 92:  # am Montag um drei Uhr
        day, hour = weekday(random, bit), clock(random, bit << 4)
        return Fixed(day.german + hour.german, day.english + hour.english)
    return phrase
