"""Makes the lines of a split: in parallel, without repeats, the same whatever the number of processes."""

from collections import deque, namedtuple
from multiprocessing import get_context

from grammar.prng import Random, hash_text
from grammar.sentences import draw

CHUNK = 2000  # lines a process makes at a time
UNIQUE_UP_TO = 1_000_000  # a larger train split may repeat itself, so that memory stays bounded
NOISE_KINDS = ("mismatched", "untranslated", "truncated")
_NOISE_STREAM, _SHUFFLE_STREAM = 101, 102

# `links` is Pharaoh text; `label` is clean or a kind of noise; `key` is the hash of the clean German sentence, got at draw `attempt`.
Line = namedtuple("Line", "german english links label crosses key attempt")


class Recipe:
    """Everything a line depends on besides its number."""

    def __init__(self, seed, noise, shuffle_source, forbidden=frozenset()):
        self.seed = seed
        self.noise = {kind: noise[kind] for kind in NOISE_KINDS if noise.get(kind)}  # shares of the train pairs
        self.shuffle_source = shuffle_source
        self.forbidden = forbidden  # hashes of the sentences of other splits, of both languages

    def line(self, split, number, attempt=0):
        """The line made from the first good draw from `attempt` on."""
        attempt, sentence = self._clean(split, number, attempt)
        german, english, links, label = sentence.german, sentence.english, sentence.links, "clean"
        if split == "train" and self.noise:
            english, links, label = self._noisy(number, sentence)
        crosses = _crosses(links)
        if self.shuffle_source:
            german, links = self._shuffled(split, number, german, links)
        return Line(
            german,
            english,
            " ".join([f"{source}-{target}" for source, target in links]),
            label,
            crosses,
            hash_text(sentence.german),
            attempt,
        )

    def _clean(self, split, number, attempt):
        while True:
            sentence = draw(self.seed, split, number, attempt)
            if (
                sentence is not None
                and hash_text(sentence.german) not in self.forbidden
                and hash_text(sentence.english) not in self.forbidden
            ):
                return attempt, sentence
            attempt += 1

    def _noisy(self, number, sentence):
        """English, links and label of a pair that noise may have got at."""
        random = Random(self.seed, _NOISE_STREAM, number)
        share = random.below(1_000_000) / 1_000_000
        for kind, rate in self.noise.items():
            share -= rate
            if share < 0:
                return (*getattr(self, "_" + kind)(number, sentence, random), kind)
        return sentence.english, sentence.links, "clean"

    def _mismatched(self, number, sentence, random):
        attempt, other = self._clean("mismatch", number, 0)
        while other.english == sentence.english:
            attempt, other = self._clean("mismatch", number, attempt + 1)
        return other.english, []

    def _untranslated(self, number, sentence, random):
        return sentence.german, [(place, place) for place in range(len(sentence.german.split()))]

    def _truncated(self, number, sentence, random):
        words = sentence.english.split()
        kept = max(1, len(words) * (25 + random.below(40)) // 100)
        return " ".join(words[:kept]), [link for link in sentence.links if link[1] < kept]

    def _shuffled(self, split, number, german, links):
        words = german.split()
        order = list(range(len(words)))
        Random(self.seed, _SHUFFLE_STREAM, hash_text(split), number).shuffle(order)
        new_place = {old: new for new, old in enumerate(order)}
        return " ".join([words[place] for place in order]), sorted((new_place[source], target) for source, target in links)


def _crosses(links):
    """Whether two links cross. The links come in the order of their source words."""
    highest = before = -1
    last_source = -1
    for source, target in links:
        if source != last_source:
            before, last_source = highest, source
        if target < before:
            return True
        if target > highest:
            highest = target
    return False


def lines(recipe, split, count, jobs):
    """Yields chunks (lists) of the lines of a split, in order. Of two equal German sentences the later is drawn again."""
    unique = split != "train" or count <= UNIQUE_UP_TO
    seen = set()
    chunks = [(split, first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]
    for (_, first, _), chunk in zip(chunks, _in_order(recipe, chunks, jobs)):
        if unique:
            for place, line in enumerate(chunk):
                while line.key in seen:
                    chunk[place] = line = recipe.line(split, first + place, line.attempt + 1)
                seen.add(line.key)
        yield chunk


_recipe = None  # of this worker process


def _start_worker(recipe):
    global _recipe
    _recipe = recipe


def _make_chunk(split, first, last):
    return [_recipe.line(split, number) for number in range(first, last)]


def _in_order(recipe, chunks, jobs):
    """Results of the chunks in order, with a few chunks a process under way."""
    if jobs == 1 or len(chunks) < 2:
        _start_worker(recipe)
        for chunk in chunks:
            yield _make_chunk(*chunk)
        return
    with get_context("fork").Pool(jobs, _start_worker, (recipe,)) as pool:
        pending = deque()
        for chunk in chunks:
            pending.append(pool.apply_async(_make_chunk, chunk))
            if len(pending) > 2 * jobs:
                yield pending.popleft().get()
        while pending:
            yield pending.popleft().get()
