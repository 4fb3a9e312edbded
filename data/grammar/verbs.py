"""Verbs, one a line:  infinitive 3rd-person preterite participle h|s [imp=…] [du=…] ; English ; objects.

`auf|stehen` is separable; `h` or `s` is the auxiliary of the perfect (haben, sein). In the English, `+up` is a particle that moves behind
a pronoun ("picks up the book", "picks it up"); any other further word stays ("looks for the book"). The objects are kinds of nouns.
"""

from grammar import english_forms
from grammar.nouns import KINDS

INTRANSITIVE = """
schlafen schläft schlief geschlafen h ; sleep
lachen lacht lachte gelacht h ; laugh
arbeiten arbeitet arbeitete gearbeitet h ; work
tanzen tanzt tanzte getanzt h ; dance
singen singt sang gesungen h ; sing
weinen weint weinte geweint h imp=weine ; cry
warten wartet wartete gewartet h ; wait
kochen kocht kochte gekocht h ; cook
schwimmen schwimmt schwamm geschwommen s ; swim
auf|stehen steht stand gestanden s ; get up
auf|wachen wacht wachte gewacht s ; wake up
ein|schlafen schläft schlief geschlafen s ; fall asleep
an|kommen kommt kam gekommen s ; arrive
zurück|kommen kommt kam gekommen s ; come back
aus|gehen geht ging gegangen s ; go out
auf|hören hört hörte gehört h ; stop
"""

# Also said of animals.
ANIMAL_ALSO = "schlafen warten schwimmen aufstehen aufwachen einschlafen zurückkommen"

REFLEXIVE = """
setzen setzt setzte gesetzt h ; sit down
aus|ruhen ruht ruhte geruht h ; rest
beeilen beeilt beeilte beeilt h ; hurry
verstecken versteckt versteckte versteckt h ; hide
"""

MOTION = """
gehen geht ging gegangen s ; go
fahren fährt fuhr gefahren s ; drive
laufen läuft lief gelaufen s ; run
reisen reist reiste gereist s ; travel
fliegen fliegt flog geflogen s ; fly
wandern wandert wanderte gewandert s imp=wandere ; hike
"""

TRANSITIVE = """
sehen sieht sah gesehen h imp=sieh ; see ; person animal thing vehicle clothing
suchen sucht suchte gesucht h ; look for ; person animal thing clothing readable
finden findet fand gefunden h ; find ; person animal thing clothing readable
kaufen kauft kaufte gekauft h ; buy ; thing clothing readable food vehicle
verkaufen verkauft verkaufte verkauft h ; sell ; thing clothing readable food vehicle
tragen trägt trug getragen h ; carry ; thing container
lesen liest las gelesen h imp=lies ; read ; readable
schreiben schreibt schrieb geschrieben h ; write ; readable
essen isst aß gegessen h imp=iss ; eat ; food
trinken trinkt trank getrunken h ; drink ; drink
lieben liebt liebte geliebt h imp=liebe ; love ; person animal
fragen fragt fragte gefragt h ; ask ; person
besuchen besucht besuchte besucht h ; visit ; person
kennen kennt kannte gekannt h ; know ; person
fangen fängt fing gefangen h ; catch ; animal
füttern füttert fütterte gefüttert h imp=füttere ; feed ; animal
waschen wäscht wusch gewaschen h ; wash ; clothing animal vehicle
malen malt malte gemalt h ; paint ; person animal thing
reparieren repariert reparierte repariert h ; repair ; vehicle thing
vergessen vergisst vergaß vergessen h imp=vergiss ; forget ; thing clothing readable
verlieren verliert verlor verloren h ; lose ; thing clothing
brauchen braucht brauchte gebraucht h ; need ; thing clothing vehicle person
stehlen stiehlt stahl gestohlen h imp=stiehl ; steal ; thing vehicle food
hören hört hörte gehört h ; hear ; person animal
an|rufen ruft rief gerufen h ; call ; person
ab|holen holt holte geholt h ; pick +up ; person thing
ein|laden lädt lud geladen h du=lädst imp=lade ; invite ; person
an|schauen schaut schaute geschaut h ; look at ; person animal thing vehicle clothing
mit|bringen bringt brachte gebracht h ; bring +along ; thing food drink readable
weg|werfen wirft warf geworfen h imp=wirf ; throw +away ; thing clothing readable
ein|packen packt packte gepackt h ; pack +up ; thing clothing readable
an|ziehen zieht zog gezogen h ; put +on ; clothing
aus|ziehen zieht zog gezogen h ; take +off ; clothing
auf|machen macht machte gemacht h ; open ; container readable
vor|lesen liest las gelesen h imp=lies ; read +aloud ; readable
zurück|geben gibt gab gegeben h imp=gib ; give +back ; thing readable clothing
"""

HAVE = "haben hat hatte gehabt h ; have ; animal thing clothing vehicle readable"

WITH_DATIVE = """
helfen hilft half geholfen h imp=hilf ; help ; person animal
danken dankt dankte gedankt h ; thank ; person
folgen folgt folgte gefolgt s ; follow ; person animal
antworten antwortet antwortete geantwortet h ; answer ; person
zu|hören hört hörte gehört h ; listen to ; person
nach|laufen läuft lief gelaufen s ; run after ; person animal
"""

DITRANSITIVE = """
geben gibt gab gegeben h imp=gib ; give ; thing readable food drink clothing
zeigen zeigt zeigte gezeigt h ; show ; animal thing readable vehicle
schicken schickt schickte geschickt h ; send ; readable thing
leihen leiht lieh geliehen h ; lend ; thing vehicle readable
bringen bringt brachte gebracht h ; bring ; thing food drink readable
"""

# preposition, its case, and the English preposition are in PREPOSITION below.
PREPOSITIONAL = """
warten wartet wartete gewartet h ; wait ; person
denken denkt dachte gedacht h ; think ; person animal thing
sprechen spricht sprach gesprochen h imp=sprich ; talk ; person
träumen träumt träumte geträumt h ; dream ; person animal vehicle
lachen lacht lachte gelacht h ; laugh ; person animal
"""
PREPOSITION = {"warten": "auf acc for", "denken": "an acc of", "sprechen": "mit dat to", "träumen": "von dat of", "lachen": "über acc at"}

PLACING = """
legen legt legte gelegt h ; put ; thing readable clothing
stellen stellt stellte gestellt h ; place ; thing
werfen wirft warf geworfen h imp=wirf ; throw ; thing clothing
"""

SPEAKING = """
sagen sagt sagte gesagt h ; say
glauben glaubt glaubte geglaubt h ; believe
hoffen hofft hoffte gehofft h ; hope
wissen weiß wusste gewusst h du=weißt ; know
"""

TRYING = """
versuchen versucht versuchte versucht h ; try
vergessen vergisst vergaß vergessen h ; forget
an|fangen fängt fing gefangen h ; start
hoffen hofft hoffte gehofft h ; hope
"""

LIVING = "wohnen wohnt wohnte gewohnt h ; live"
LIKING = "gefallen gefällt gefiel gefallen h ; like ; animal thing clothing vehicle readable inside"
BELONGING = "gehören gehört gehörte gehört h ; belong to ; person"


class Verb:
    """Forms by person, 0 to 5: ich, du, er, wir, ihr, sie. `head` and `tail` are the English verb and the words that stay with it."""

    __slots__ = (
        "lemma",
        "prefix",
        "infinitive",
        "to_infinitive",
        "participle",
        "with_sein",
        "present",
        "preterite",
        "imperative",
        "base",
        "third",
        "past",
        "english_participle",
        "particle",
        "fixed",
        "kinds",
        "preposition",
        "reflexive",
    )

    def __init__(self, line, reflexive=False):
        german, english, *kinds = [part.strip() for part in line.split(";")]
        words = [word for word in german.split() if "=" not in word]
        notes = dict(word.split("=") for word in german.split() if "=" in word)
        self.prefix, _, stem = words[0].rpartition("|")
        self.lemma = self.infinitive = self.prefix + stem
        self.to_infinitive = (self.prefix + "zu" + stem,) if self.prefix else ("zu", stem)
        self.participle = self.prefix + words[3]
        self.with_sein = words[4] == "s"
        self._conjugate(stem, words[1], words[2], notes)
        self._anglicise(english.split())
        self.kinds = kinds[0].split() if kinds else []
        self.reflexive = reflexive
        self.preposition = None

    def _conjugate(self, infinitive, third, preterite, notes):
        stem = infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
        soft = "e" if stem[-1] in "td" or stem.endswith("ffn") else ""
        first = third if infinitive == "wissen" else stem + "e"
        changed = third[:-2] if third.endswith("et") else third[:-1]
        second = notes.get("du") or ("hast" if infinitive == "haben" else changed + ("t" if changed[-1] in "sßzx" else soft + "st"))
        self.present = (first, second, third, infinitive, stem + soft + "t", infinitive)
        plural = preterite + ("n" if preterite.endswith("e") else "en")
        self.preterite = (preterite, None, preterite, plural, None, plural)  # du and ihr take the perfect instead
        self.imperative = (notes.get("imp") or stem + soft, self.present[4])

    def _anglicise(self, words):
        self.base = words[0]
        self.particle = words[1][1:] if len(words) > 1 and words[1][0] == "+" else None
        self.fixed = words[1:] if self.particle is None else []
        self.third = english_forms.third_person(self.base)
        self.past, self.english_participle = english_forms.past_and_participle(self.base)


class Modal:
    """`style`: `plain` (can), `lexical` (has to, wants to: takes do), `be` (is allowed to), `would` (would like to)."""

    __slots__ = ("present", "preterite", "style", "english", "english_past")

    def __init__(self, present, preterite, style, english, english_past):
        self.present, self.style, self.english, self.english_past = tuple(present.split()), style, english, english_past
        self.preterite = tuple(preterite.split()) if preterite else None


def _verbs(table, reflexive=False):
    return [Verb(line, reflexive) for line in table.strip().splitlines()]


intransitive = _verbs(INTRANSITIVE)
animal_intransitive = [verb for verb in intransitive if verb.lemma in ANIMAL_ALSO.split()]
reflexive = _verbs(REFLEXIVE, reflexive=True)
motion = _verbs(MOTION)
transitive = _verbs(TRANSITIVE)
have = Verb(HAVE)
with_dative = _verbs(WITH_DATIVE)
ditransitive = _verbs(DITRANSITIVE)
prepositional = _verbs(PREPOSITIONAL)
for _verb in prepositional:
    _verb.preposition = tuple(PREPOSITION[_verb.lemma].split())
placing = _verbs(PLACING)
speaking = _verbs(SPEAKING)
trying = _verbs(TRYING)
live = Verb(LIVING)
like = Verb(LIKING)
belong = Verb(BELONGING)
TAKING_OBJECTS = transitive + with_dative + ditransitive + prepositional + placing + [have, like, belong]

modals = [
    Modal("kann kannst kann können könnt können", "konnte konntest konnte konnten konntet konnten", "plain", "can", "could"),
    Modal("muss musst muss müssen müsst müssen", "musste musstest musste mussten musstet mussten", "lexical", "have", "had"),
    Modal("will willst will wollen wollt wollen", "wollte wolltest wollte wollten wolltet wollten", "lexical", "want", "wanted"),
    Modal("darf darfst darf dürfen dürft dürfen", "durfte durftest durfte durften durftet durften", "be", "allowed", "allowed"),
    Modal("soll sollst soll sollen sollt sollen", None, "plain", "should", None),
    Modal("möchte möchtest möchte möchten möchtet möchten", None, "would", "like", None),
]

SEIN = ("bin bist ist sind seid sind".split(), "war warst war waren wart waren".split())
HABEN = ("habe hast hat haben habt haben".split(), "hatte hattest hatte hatten hattet hatten".split())
WERDEN = ("werde wirst wird werden werdet werden".split(), "wurde wurdest wurde wurden wurdet wurden".split())
BE = ("am are is are are are".split(), "was were was were were were".split())


def nouns_for(verb):
    """Every noun that can be this verb's object."""
    return [noun for kind in verb.kinds for noun in KINDS[kind]]
