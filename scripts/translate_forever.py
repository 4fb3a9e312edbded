#!/usr/bin/env python3
"""Pushes a million strange lines through one `lacuna translate` and looks at what a service would care about.

    scripts/translate_forever.py -m runs/bundled/averaged
    scripts/translate_forever.py -m runs/bundled/averaged --lines 5000 -- --precision int8 --beam-size 1

One line comes out for each line that goes in, bad lines cost nothing but themselves, memory does not grow, and no line
takes long. It prints memory by tenths of the lines and the slowest line of each kind, and ends with 1 if one of that
does not hold. Flags behind `--` are those of `lacuna translate`.
"""
import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

WORDS = """der die das ein eine Haus Frau Mann Hund Katze liest sieht schläft größer über Straße nicht und oder weil heute
morgen 1984 3,14 Köln München Fußballweltmeisterschaft don't e-mail COVID-19 A. B. z.B. „so“ »da« – … !""".split()
ALPHABETS = [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x17F), (0x391, 0x3C9), (0x410, 0x44F), (0x5D0, 0x5EA), (0x621, 0x64A), (0x905, 0x939),
             (0xE01, 0xE2E), (0x1780, 0x17A2), (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0x10330, 0x1034A)]
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "❤️", "1️⃣", "🧑🏿‍🚀", "🫠", "♻", "🀄"]
MARKUP = ["<b>", "</b>", "<br/>", "&nbsp;", "&#x1F600;", "<a href='http://x.y/?q=1&r=2'>", "<!-- -->", "<script>alert(1)</script>", "]]>",
          "<s>", "</s>", "<unk>", "<pad>", "<0x41>", "▁", "|||", "0-0", "%s", "{}", "${HOME}", "$(ls)", "'; --", "\\n", "\\u0000"]
INVISIBLE = ["\u00AD", "\u200B", "\u200C", "\u200D", "\u200E", "\u202E", "\u2060", "\uFEFF", "\u0085", "\u2028", "\u2029", "\uFFF9", "\uFE0F"]
SPACES = [" ", "\t", "\u00A0", "\u2003", "\u202F", "\u3000", "\x0B", "\x0C"]
CONTROLS = [chr(code) for code in range(1, 32) if code != 10] + ["\x7F", "\x1B[31m", "\x1B]0;title\x07", "\x9B"]
COMBINING = [chr(code) for code in range(0x300, 0x370)] + ["\u0E34", "\u064B", "\u20DD", "\u093F"]
LIMIT = 1 << 20  # bytes of a line


def sentence(draw):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, 25)))


def mixed_in(pieces):
    """Makes sentences with these pieces between, before and inside of words."""

    def make(draw):
        words = sentence(draw).split()
        for _ in range(draw.randint(1, 12)):
            at = draw.randrange(len(words))
            words[at] = draw.choice(["{0} {1}", "{0}{1}", "{1}{0}"]).format(words[at], draw.choice(pieces))
        return " ".join(words)

    return make


def letters(draw, count):
    return "".join(chr(draw.randint(*draw.choice(ALPHABETS))) for _ in range(count))


def any_code_points(draw):
    """Also such as are not assigned, private, or no characters."""
    codes = (draw.choice([draw.randint(1, 0xD7FF), draw.randint(0xE000, 0xFFFF), draw.randint(0x10000, 0x10FFFF)]) for _ in range(60))
    return "".join(chr(code) for code in codes if code != 10)


def marks(draw):
    return "".join(letter + "".join(draw.choices(COMBINING, k=draw.randint(0, 12))) for letter in sentence(draw)[:80])


def repeated(draw):
    return " ".join([draw.choice([draw.choice(WORDS), letters(draw, 2), draw.choice(EMOJI), "."])] * draw.randint(2, 150))


def invalid_utf8(draw):
    bad = draw.choice([b"\xFF", b"\xC3", b"\x80", b"\xC0\xAF", b"\xED\xA0\x80", b"\xF4\x90\x80\x80", b"\xE2\x82", b"gr\xFC\xDF"])
    return sentence(draw).encode() + bad + b" " + sentence(draw).encode()


# Name, how often beside the others, whether `translate` must pass over such lines, and what makes one.
KINDS = [("sentence", 4000, False, sentence), ("emoji", 500, False, mixed_in(EMOJI)), ("markup", 500, False, mixed_in(MARKUP)),
         ("control bytes", 500, False, mixed_in(CONTROLS)), ("invisible", 500, False, mixed_in(INVISIBLE)), ("combining marks", 500, False, marks),
         ("mixed scripts", 500, False, lambda draw: " ".join(letters(draw, draw.randint(1, 12)) for _ in range(draw.randint(1, 20)))),
         ("any code points", 500, False, any_code_points), ("repeated", 500, False, repeated),
         ("blank", 300, False, lambda draw: "".join(draw.choices(SPACES, k=draw.randint(0, 9)))),
         ("windows line end", 300, False, lambda draw: sentence(draw) + "\r"),
         ("word of 10,000 characters", 3, False, lambda draw: letters(draw, 10000)),
         ("10,000 times one letter", 3, False, lambda draw: letters(draw, 1) * 10000),
         ("not UTF-8", 200, True, invalid_utf8), ("NUL", 200, True, lambda draw: sentence(draw) + "\0" + sentence(draw)),
         ("longer than 1 MiB", 1, True, lambda draw: "x" * (LIMIT + draw.randint(1, 1000)))]


class Service:
    """A running `lacuna translate`. Lines are written by a thread of their own: the program may wait until its answers are read."""

    def __init__(self, program, model, flags):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([program, "translate", "-m", model, "--on-error", "skip", "--log-level", "error", *flags],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)

    def answers(self, lines):
        """Sends the lines and returns as many answers; fewer if the program ends."""
        block = b"".join(line + b"\n" for line in lines)
        writer = threading.Thread(target=self.write, args=(block,))
        writer.start()
        answers = [self.process.stdout.readline() for _ in lines]
        writer.join()
        return [answer for answer in answers if answer.endswith(b"\n")]

    def write(self, block):
        try:
            self.process.stdin.write(block)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answers tell

    def memory(self):
        """MiB that it holds now."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024

    def end(self):
        """Closes its input. Returns what it still wrote, its exit code, and what it said."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        rest = self.process.stdout.read()
        code = self.process.wait()
        self.errors.seek(0)
        return rest, code, self.errors.read().decode(errors="replace")


class Run:
    """Sends lines block by block, the last of each alone and timed, and notes what comes back."""

    def __init__(self, service, lines, seed):
        self.service, self.total, self.draw = service, lines, random.Random(seed)
        self.sent = self.answered = self.bad = 0
        self.memory = []  # after each block: (lines answered, MiB)
        self.slowest = {}  # by kind: (seconds, line)
        self.problems = []

    def line_of(self, kind):
        _, _, is_bad, make = kind
        line = make(self.draw)
        self.bad += is_bad
        return line.encode() if isinstance(line, str) else line

    def send(self, kinds):
        lines = [self.line_of(kind) for kind in kinds]
        answers = self.service.answers(lines)
        self.sent += len(lines)
        self.answered += len(answers)
        for kind, line, answer in zip(kinds, lines, answers):
            if kind[2] and answer != b"\n":
                self.problems.append(f"a line that is {kind[0]} was answered by {answer[:80]!r}")
        return len(answers) == len(lines)

    def send_timed(self, kind):
        begin = time.monotonic()
        goes_on = self.send([kind])
        seconds = time.monotonic() - begin
        if seconds > self.slowest.get(kind[0], (0, 0))[0]:
            self.slowest[kind[0]] = (seconds, self.sent)
        return goes_on

    def all_lines(self, block=100):
        """Each kind once, then drawn ones. False if the program ended."""
        if not all(self.send_timed(kind) for kind in KINDS):
            return False
        weights = [kind[1] for kind in KINDS]
        while self.sent < self.total:
            kinds = self.draw.choices(KINDS, weights, k=min(block, self.total - self.sent))
            if (len(kinds) > 1 and not self.send(kinds[1:])) or not self.send_timed(kinds[0]):
                return False
            self.memory.append((self.answered, self.service.memory()))
        return True

    def memory_by_tenths(self):
        """Medians, in MiB."""
        tenths = [[] for _ in range(10)]
        for lines, mebibytes in self.memory:
            tenths[min(9, 10 * (lines - 1) // self.total)].append(mebibytes)
        return [statistics.median(tenth) for tenth in tenths if tenth]

    def judge(self, most_growth, most_seconds):
        """Ends the program and fills `problems`."""
        rest, code, said = self.service.end()
        expected = 1 if self.bad else 0
        if code != expected:
            self.problems.append(f"it ended with {code}, expected {expected}: {said.strip()[-500:]}")
        elif self.bad and f"{self.bad} of {self.sent} lines could not be taken" not in said:
            self.problems.append(f"{self.bad} of {self.sent} lines were bad, and it says: {said.strip()[-500:]}")
        if self.answered != self.sent or rest:
            self.problems.append(f"{self.sent} lines went in, {self.answered} came out, and {len(rest)} bytes behind them")
        tenths = self.memory_by_tenths()
        if tenths and abs(tenths[-1] / tenths[0] - 1) > most_growth / 100:
            self.problems.append(f"memory went from {tenths[0]:.1f} to {tenths[-1]:.1f} MiB; expected a change of {most_growth} % at most")
        seconds, kind = max((seconds, kind) for kind, (seconds, _) in self.slowest.items())
        if seconds > most_seconds:
            self.problems.append(f"a line ({kind}) took {seconds:.1f} s; expected {most_seconds} at most")


def report(run, seconds):
    return {"lines_in": run.sent, "lines_out": run.answered, "bad_lines": run.bad, "seconds": round(seconds, 1),
            "memory_mib_by_tenths": [round(value, 1) for value in run.memory_by_tenths()],
            "slowest_seconds_by_kind": {kind: round(value, 3) for kind, (value, _) in sorted(run.slowest.items(), key=lambda item: -item[1][0])},
            "problems": run.problems}


def show(facts):
    print(f"lines in {facts['lines_in']}, lines out {facts['lines_out']}, of them bad {facts['bad_lines']}; {facts['seconds']} s")
    print("MiB of memory by tenths of the lines:", *facts["memory_mib_by_tenths"])
    print("slowest line of each kind, alone:")
    for kind, seconds in facts["slowest_seconds_by_kind"].items():
        print(f"  {seconds:8.3f} s  {kind}")
    for problem in facts["problems"]:
        print("PROBLEM:", problem)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True, help="checkpoint or run folder")
    parser.add_argument("--program", default="build/cpu/lacuna", help="the program (build/cpu/lacuna)")
    parser.add_argument("--lines", type=int, default=1000000, help="how many (1,000,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the lines (1)")
    parser.add_argument("--growth", type=float, default=2, help="percent by which memory may change from the first tenth to the last (2)")
    parser.add_argument("--seconds", type=float, default=10, help="that a line may take (10)")
    parser.add_argument("--json", metavar="FILE", help="writes the report here, too")
    parser.add_argument("flags", nargs="*", help="flags of lacuna translate, behind --")
    asked = parser.parse_args()
    begin = time.monotonic()
    run = Run(Service(asked.program, asked.model, asked.flags), asked.lines, asked.seed)
    run.all_lines()
    run.judge(asked.growth, asked.seconds)
    facts = report(run, time.monotonic() - begin)
    show(facts)
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=2, ensure_ascii=False)
            file.write("\n")
    return 1 if run.problems else 0


if __name__ == "__main__":
    sys.exit(main())
