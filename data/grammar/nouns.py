"""Nouns and names, one a line:  German gender plural English [English plural] [gen=…] [weak=…] [she|it].

`-` says that a noun has no plural. `gen` is the genitive where it is not the noun with -s; `weak` the form of all singular cases but the
first. A masculine person is `he`, a feminine one `she`, everything else `it`, unless the line says otherwise.
"""

from grammar import english_forms

MASCULINE, FEMININE, NEUTER, PLURAL = range(4)
NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
_GENDERS = {"m": MASCULINE, "f": FEMININE, "n": NEUTER}

PERSON = """
Mann m Männer man men gen=Mannes
Frau f Frauen woman women
Kind n Kinder child children gen=Kindes
Mädchen n Mädchen girl she
Junge m Jungen boy weak=Jungen
Lehrer m Lehrer teacher
Lehrerin f Lehrerinnen teacher
Arzt m Ärzte doctor gen=Arztes
Ärztin f Ärztinnen doctor
Nachbar m Nachbarn neighbor weak=Nachbarn
Nachbarin f Nachbarinnen neighbor
Freund m Freunde friend gen=Freundes
Freundin f Freundinnen friend
Bruder m Brüder brother
Schwester f Schwestern sister
Vater m Väter father
Mutter f Mütter mother
Sohn m Söhne son gen=Sohnes
Tochter f Töchter daughter
Onkel m Onkel uncle
Tante f Tanten aunt
König m Könige king
Königin f Königinnen queen
Student m Studenten student weak=Studenten
Studentin f Studentinnen student
Koch m Köche cook
Köchin f Köchinnen cook
Gast m Gäste guest gen=Gastes
Kollege m Kollegen colleague weak=Kollegen
Kollegin f Kolleginnen colleague
Polizist m Polizisten policeman policemen weak=Polizisten
Sängerin f Sängerinnen singer
Bauer m Bauern farmer weak=Bauern
Richterin f Richterinnen judge
Händler m Händler merchant
Maler m Maler painter
"""

ANIMAL = """
Hund m Hunde dog gen=Hundes
Katze f Katzen cat
Pferd n Pferde horse gen=Pferdes
Kuh f Kühe cow
Vogel m Vögel bird
Maus f Mäuse mouse mice
Schaf n Schafe sheep sheep gen=Schafes
Fuchs m Füchse fox
Bär m Bären bear weak=Bären
Ente f Enten duck
Ziege f Ziegen goat
Hase m Hasen hare weak=Hasen
Affe m Affen monkey weak=Affen
Esel m Esel donkey
"""

THING = """
Ball m Bälle ball
Tasche f Taschen bag
Schlüssel m Schlüssel key
Lampe f Lampen lamp
Messer n Messer knife knives
Löffel m Löffel spoon
Gabel f Gabeln fork
Teller m Teller plate
Tasse f Tassen cup
Flasche f Flaschen bottle
Spiegel m Spiegel mirror
Bild n Bilder picture
Ring m Ringe ring
Telefon n Telefone phone
Koffer m Koffer suitcase
Schirm m Schirme umbrella
Kamera f Kameras camera
Gitarre f Gitarren guitar
Decke f Decken blanket
Kissen n Kissen pillow
Puppe f Puppen doll
Karte f Karten map
"""

CLOTHING = """
Hut m Hüte hat
Mantel m Mäntel coat
Hemd n Hemden shirt
Schuh m Schuhe shoe
Kleid n Kleider dress
Jacke f Jacken jacket
"""

VEHICLE = """
Auto n Autos car
Fahrrad n Fahrräder bicycle
Boot n Boote boat
Wagen m Wagen wagon
Maschine f Maschinen machine
"""

READABLE = """
Buch n Bücher book
Brief m Briefe letter
Zeitung f Zeitungen newspaper
Gedicht n Gedichte poem
Geschichte f Geschichten story
Roman m Romane novel
Bericht m Berichte report
"""

FOOD = """
Apfel m Äpfel apple
Birne f Birnen pear
Kuchen m Kuchen cake
Brötchen n Brötchen roll
Suppe f Suppen soup
Käse m - cheese
Ei n Eier egg
Fisch m Fische fish fish
Tomate f Tomaten tomato
Kartoffel f Kartoffeln potato
Salat m Salate salad
"""

DRINK = """
Kaffee m - coffee
Tee m - tea
Saft m Säfte juice
Wein m Weine wine
"""

INSIDE = """
Küche f Küchen kitchen
Garten m Gärten garden
Wald m Wälder forest
Stadt f Städte city
Dorf n Dörfer village
Park m Parks park
Haus n Häuser house
Schule f Schulen school
Kirche f Kirchen church
Museum n Museen museum
Restaurant n Restaurants restaurant
Büro n Büros office
Laden m Läden shop
Hotel n Hotels hotel
Bibliothek f Bibliotheken library
Keller m Keller cellar
Zimmer n Zimmer room
"""

ON_TOP = """
Straße f Straßen street
Brücke f Brücken bridge
Insel f Inseln island
Berg m Berge mountain
Turm m Türme tower
Platz m Plätze square
"""

CONTAINER = """
Korb m Körbe basket
Schrank m Schränke closet
Schublade f Schubladen drawer
Kiste f Kisten box
"""

SURFACE = """
Tisch m Tische table
Stuhl m Stühle chair
Bett n Betten bed
Sofa n Sofas sofa
Bank f Bänke bench
"""

EVENT = """
Konzert n Konzerte concert
Fest n Feste party gen=Festes
Unterricht m - lesson
Spiel n Spiele game
Essen n Essen meal
Film m Filme movie
Prüfung f Prüfungen exam
Sitzung f Sitzungen meeting
Hochzeit f Hochzeiten wedding
Reise f Reisen trip
"""

CAUSE = """
Sturm m Stürme storm
Regen m - rain
Schnee m - snow
Lärm m - noise
Hitze f - heat
Kälte f - cold
"""

UNIT = """
Minute f Minuten minute
Stunde f Stunden hour
Tag m Tage day gen=Tages
Woche f Wochen week
Monat m Monate month
Jahr n Jahre year
"""

NAMES = """
Anna she
Maria she
Julia she
Laura she
Emma she
Clara she
Peter he
Paul he
Martin he
Simon he
Leon he
Daniel he
"""

CITIES = "Berlin Hamburg Köln:Cologne Wien:Vienna Paris London Rom:Rome Prag:Prague München:Munich Genf:Geneva"


class Noun:
    """`german[number][case]` and `english[number]`; `pronoun` is what English says for it: he, she or it."""

    __slots__ = ("lemma", "kind", "gender", "german", "english", "pronoun", "is_person", "has_plural")

    def __init__(self, kind, line):
        words = [word for word in line.split() if "=" not in word]
        notes = dict(word.split("=") for word in line.split() if "=" in word)
        self.kind = kind
        self.is_person = kind == "person"
        self.pronoun = words.pop() if words[-1] in ("she", "he", "it") else None
        self.lemma, letter, plural, singular = words[:4]
        self.gender = _GENDERS[letter]
        self.has_plural = plural != "-"
        self.german = (self._singular_cases(notes), self._plural_cases(plural))
        self.english = (singular, words[4] if len(words) > 4 else english_forms.plural(singular))
        if self.pronoun is None:
            self.pronoun = ("he", "she", "it")[self.gender] if self.is_person else "it"

    def _singular_cases(self, notes):
        if "weak" in notes:
            return (self.lemma,) + (notes["weak"],) * 3
        ending = "es" if self.lemma.endswith(("s", "z", "sch")) else "s"
        genitive = self.lemma if self.gender == FEMININE else notes.get("gen", self.lemma + ending)
        return (self.lemma,) * 3 + (genitive,)

    @staticmethod
    def _plural_cases(plural):
        if plural == "-":
            return ()
        dative = plural if plural[-1] in "ns" else plural + "n"
        return (plural, plural, dative, plural)

    def german_gender(self, number):
        return PLURAL if number else self.gender


class Name:
    """A person called by name."""

    __slots__ = ("text", "pronoun", "gender")

    def __init__(self, line):
        self.text, self.pronoun = line.split()
        self.gender = FEMININE if self.pronoun == "she" else MASCULINE


def _table(kind, text):
    return [Noun(kind, line) for line in text.strip().splitlines()]


KINDS = {
    "person": _table("person", PERSON),
    "animal": _table("animal", ANIMAL),
    "thing": _table("thing", THING),
    "clothing": _table("clothing", CLOTHING),
    "vehicle": _table("vehicle", VEHICLE),
    "readable": _table("readable", READABLE),
    "food": _table("food", FOOD),
    "drink": _table("drink", DRINK),
    "inside": _table("inside", INSIDE),
    "on_top": _table("on_top", ON_TOP),
    "container": _table("container", CONTAINER),
    "surface": _table("surface", SURFACE),
    "event": _table("event", EVENT),
    "cause": _table("cause", CAUSE),
    "unit": _table("unit", UNIT),
}
NAME_LIST = [Name(line) for line in NAMES.strip().splitlines()]
CITY_LIST = [(word.split(":")[0], word.split(":")[-1]) for word in CITIES.split()]
