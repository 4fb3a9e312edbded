"""Adjectives, one a line:  German English [English comparative] ; kinds of nouns [; notes].

The German comparative is the adjective with -er unless `more=` says otherwise; `stem=` is the form endings are put on (teuer, teur-).
`adverb=` gives the English adverb where the adjective also says how something is done. An English comparative of `more` is written with
that word.
"""

from grammar.nouns import KINDS

TABLE = """
alt old older ; person animal thing vehicle clothing readable inside on_top container surface ; more=älter
neu new newer ; thing vehicle clothing readable inside container surface
jung young younger ; person animal ; more=jünger
groß big bigger ; animal thing vehicle clothing food inside on_top container surface ; more=größer
klein small smaller ; person animal thing vehicle clothing food inside on_top container surface
schön beautiful more ; thing vehicle clothing readable inside on_top
klug clever more ; person animal ; more=klüger
dumm stupid more ; person animal ; more=dümmer
freundlich friendly more ; person
müde tired more ; person animal ; more=müder
glücklich happy happier ; person
traurig sad sadder ; person
krank sick sicker ; person animal ; more=kränker
reich rich richer ; person
arm poor poorer ; person ; more=ärmer
berühmt famous more ; person
ehrlich honest more ; person
höflich polite more ; person
stark strong stronger ; person animal ; more=stärker
faul lazy lazier ; person animal
mutig brave braver ; person animal
hungrig hungry hungrier ; person animal
wild wild wilder ; animal
schwarz black more ; animal thing clothing vehicle ; more=
weiß white more ; animal thing clothing vehicle ; more=
braun brown more ; animal thing clothing ; more=
rot red more ; thing clothing vehicle food ; more=
blau blue more ; thing clothing vehicle ; more=
grün green more ; thing clothing vehicle ; more=
teuer expensive more ; thing clothing vehicle food drink ; stem=teur more=teurer
billig cheap cheaper ; thing clothing vehicle food drink
schwer heavy heavier ; thing container
leicht light lighter ; thing clothing
kaputt broken more ; vehicle thing ; more=
schmutzig dirty dirtier ; thing clothing vehicle surface container
langweilig boring more ; readable
interessant interesting more ; readable
lustig funny funnier ; readable
lang long longer ; readable on_top ; more=länger
kurz short shorter ; readable ; more=kürzer
frisch fresh fresher ; food
süß sweet sweeter ; food drink
warm warm warmer ; food drink ; more=wärmer
kalt cold colder ; food drink ; more=kälter
dunkel dark darker ; inside ; stem=dunkl more=dunkler
ruhig quiet quieter ; inside
schnell fast faster ; animal vehicle ; adverb=quickly
langsam slow slower ; animal vehicle ; adverb=slowly
laut loud louder ; vehicle ; adverb=loudly
leise soft softer ; - ; more=leiser adverb=softly
vorsichtig careful more ; person ; adverb=carefully
"""


class Adjective:
    """`german[ending]` for the endings e, en, er, es, em."""

    __slots__ = ("lemma", "german", "english", "german_comparative", "english_comparative", "kinds", "adverb")

    def __init__(self, line):
        words, kinds, notes = (line + " ; ; ").split(";")[:3]
        notes = dict(note.split("=") for note in notes.split())
        self.lemma, self.english, comparative = words.split()
        stem = notes.get("stem", self.lemma)
        stem = stem[:-1] if stem.endswith("e") else stem
        self.german = {ending: stem + ending for ending in ("e", "en", "er", "es", "em")}
        self.german_comparative = notes.get("more", self.lemma + "er")  # empty: has none
        self.english_comparative = ("more", self.english) if comparative == "more" else (comparative,)
        self.kinds = [kind for kind in kinds.split() if kind in KINDS]
        self.adverb = notes.get("adverb")


ADJECTIVES = [Adjective(line) for line in TABLE.strip().splitlines()]
MANNERS = [(adjective.lemma, adjective.adverb) for adjective in ADJECTIVES if adjective.adverb]
FOR_KIND = {kind: [adjective for adjective in ADJECTIVES if kind in adjective.kinds] for kind in KINDS}
COMPARABLE = {kind: [adjective for adjective in found if adjective.german_comparative] for kind, found in FOR_KIND.items()}
