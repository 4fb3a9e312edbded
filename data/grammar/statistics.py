"""What is said about a corpus once it is made: sizes, lengths, crossing links, and how far a dictionary alone would get."""

from collections import Counter, defaultdict
import subprocess

BASELINE_LINES = 40_000  # train lines the dictionary is read from
_MARKS = ",.?!"


class SplitStatistics:
    """Counts over one split, chunk by chunk."""

    def __init__(self):
        self.pairs = self.crossing = 0
        self.lengths = {"de": Counter(), "en": Counter()}
        self.words = {"de": set(), "en": set()}
        self.labels = Counter()

    def add(self, chunk):
        self.pairs += len(chunk)
        self.crossing += sum(line.crosses for line in chunk)
        self.labels.update(line.label for line in chunk)
        for side, texts in (("de", [line.german for line in chunk]), ("en", [line.english for line in chunk])):
            self.lengths[side].update(text.count(" ") + 1 for text in texts)
            self.words[side].update(word.strip(_MARKS) for word in set(" ".join(texts).split()))

    def summary(self):
        total = {side: sum(length * times for length, times in counts.items()) for side, counts in self.lengths.items()}
        return {
            "pairs": self.pairs,
            "words": total,
            "vocabulary": {side: len(words) for side, words in self.words.items()},
            "mean_length": {side: round(total[side] / max(1, self.pairs), 2) for side in total},
            "length_histogram": {side: _histogram(counts) for side, counts in self.lengths.items()},
            "crossing_share": round(self.crossing / max(1, self.pairs), 4),
            "labels": dict(sorted(self.labels.items())),
        }


def _histogram(counts):
    """Pairs by length, in steps of five words."""
    bins = Counter()
    for length, times in counts.items():
        first = (length - 1) // 5 * 5 + 1
        bins[first] += times
    return {f"{first}-{first + 4}": bins[first] for first in sorted(bins)}


class Dictionary:
    """The best single English word for each German word, counted over word links: the baseline that knows no order."""

    def __init__(self):
        self._counts = defaultdict(Counter)
        self._lines = 0

    def add(self, chunk):
        for line in chunk[: max(0, BASELINE_LINES - self._lines)]:
            self._lines += 1
            source = [word.strip(_MARKS).lower() for word in line.german.split()]
            target = [word.strip(_MARKS) for word in line.english.split()]
            target[0] = target[0][0].lower() + target[0][1:]
            for link in line.links.split():
                i, j = link.split("-")
                self._counts[source[int(i)]][target[int(j)]] += 1

    def best(self):
        return {word: min(found, key=lambda other: (-found[other], other)) for word, found in self._counts.items()}

    def translate(self, german_lines):
        """Word by word, in German order; unknown words and punctuation stay."""
        best = self.best()
        for line in german_lines:
            words = []
            for word in line.split():
                bare = word.strip(_MARKS)
                words.append(best.get(bare.lower(), bare) + word[len(bare) :])
            text = " ".join(words)
            yield text[0].upper() + text[1:]


def bleu(command, reference_path, hypothesis_lines):
    """sacreBLEU of the lines, by running `command` (a list of words); raises OSError or CalledProcessError where that fails."""
    result = subprocess.run(
        [*command, str(reference_path), "-m", "bleu", "-b", "-w", "1"],
        input="".join(line + "\n" for line in hypothesis_lines),
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    return float(result.stdout)
