#!/usr/bin/env python3
"""Lines that cannot be taken, and signals, while text is read: bad_lines_test.py PROGRAM"""
import array
import fcntl
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
import unittest

import small_run
from patience import seconds
from program import FOLDER, PROGRAM, path, read, read_bytes, write
from verbs import AVERAGED, Verbs, setUpModule

LONG = b"1 " * (600 << 10)
BAD = {"not UTF-8": b"3 \xff 4", "NUL": b"3 \0 4", "longer than 1 MiB": LONG}


class Translate(Verbs):
    def pass_over(self, *flags, text):
        """What it writes and says of a text with bad lines, which are passed over."""
        command = [PROGRAM, "translate", "-m", AVERAGED, "--on-error", "skip", *flags]
        ended = subprocess.run(command, input=text, capture_output=True, timeout=seconds(120), check=False)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        return ended.stdout.decode(), ended.stderr.decode()

    def test_a_bad_line_costs_that_line_alone(self):
        text = b"\n".join([b"1 2", *BAD.values(), b"4 5", b""])
        out, said = self.pass_over(text=text)
        self.assertEqual(out, "1 2\n\n\n\n4 5\n")
        for number, what in ((2, "byte 3 is not UTF-8"), (3, "byte 3 is NUL"), (4, "the line is longer than 1 MiB")):
            self.assertRegex(said, rf"warning stdin:{number}: {what}.* \(an empty line stands for it\)")
        self.assertIn("lacuna translate: error: 3 of 5 lines could not be taken and were passed over", said)

    def test_a_bad_line_of_json_has_its_error_and_its_other_fields(self):
        lines = ['{"id": 1, "text": "1 2"}', "4 5", '{"id": 3, "text": null}', '{"id": 4, "text": "a\\nb"}', '{"id": 5, "error": "old", "text": "4 5"}']
        out, said = self.pass_over("--json", text="\n".join(lines).encode() + b"\n\xff\n")
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([answer.get("id") for answer in answers], [1, None, 3, 4, 5, None])
        self.assertEqual([answer.get("translation") for answer in answers], ["1 2", None, None, None, "4 5", None])
        self.assertRegex(answers[1]["error"], "^stdin:2: is not a JSON object")
        self.assertRegex(answers[2]["error"], '^stdin:3: "text" is null; expected a string')
        self.assertRegex(answers[3]["error"], '^stdin:4: "text" holds a line break')
        self.assertNotIn("error", answers[4])
        self.assertRegex(answers[5]["error"], "^stdin:6: byte 1 is not UTF-8")
        self.assertIn("4 of 6 lines could not be taken", said)

    def test_a_bad_line_of_n_best_lists_keeps_its_number(self):
        out, _ = self.pass_over("--n-best", "1", text=b"1 2\n\xff\n4 5\n")
        self.assertEqual([line.split(" ||| ")[:2] for line in out.splitlines()], [["0", "1 2"], ["1", ""], ["2", "4 5"]])

    def test_without_a_bad_line_nothing_is_passed_over(self):
        self.assertEqual(self.translates("--on-error", "skip", lines=["1 2"]), ["1 2"])

    def test_a_long_line_that_arrives_in_pieces_is_passed_over(self):
        command = [PROGRAM, "translate", "-m", AVERAGED, "--on-error", "skip"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
            program.stdin.write(b"1 2\n" + LONG)
            program.stdin.flush()
            self.assertEqual(program.stdout.readline(), b"1 2\n")
            self.assertEqual(program.stdout.readline(), b"\n")
            program.stdin.write(LONG + b"\n4 5\n")
            program.stdin.flush()
            self.assertEqual(program.stdout.readline(), b"4 5\n")
            program.stdin.close()
            self.assertEqual(program.wait(seconds(60)), 1)

    def test_what_was_done_before_a_bad_line_is_kept(self):
        for bad in BAD.values():
            source = write("bad.src", b"1 2\n4 5\n" + bad + b"\n7 7\n")
            said = self.refuses("translate", "-m", AVERAGED, "-i", source, "-o", path("kept.out"))
            self.assertRegex(said, r"warning \S*kept.out.partial has what was made of the first 2 lines")
            self.assertRegex(said, r"error: \S*bad.src:3: .*\(--on-error skip passes over such lines\)")
            self.assertEqual(read("kept.out.partial"), "1 2\n4 5\n")
            self.assertFalse(os.path.exists(path("kept.out")))
            os.remove(path("kept.out.partial"))
        self.refuses("translate", "-m", AVERAGED, "-i", source, "-o", path("kept.gz"))
        with gzip.open(path("kept.gz.partial"), "rt") as file:
            self.assertEqual(file.read(), "1 2\n4 5\n")
        self.refuses("translate", "-m", AVERAGED, "-i", write("first.src", b"\xff\n"), "-o", path("none.out"))
        self.assertEqual([name for name in os.listdir(FOLDER) if name.startswith("none.out")], [])

    def test_a_whole_file_is_not_replaced_by_a_part(self):
        write("old.out", "old\n")
        self.refuses("translate", "-m", AVERAGED, "-i", write("bad.src", b"1 2\n\xff\n"), "-o", path("old.out"))
        self.assertEqual((read("old.out"), read("old.out.partial")), ("old\n", "1 2\n"))


    def test_a_part_goes_once_the_file_has_all_of_it(self):
        for name in ("whole.out", "whole.gz"):
            source, out = write("bad.src", b"1 2\n4 5\n\xff\n"), path(name)
            command = ("translate", "-m", AVERAGED, "-i", source, "-o", out)
            self.refuses(*command)
            self.refuses(*command)  # which keeps the same, in its place
            write(name + "x.partial", "of another")
            self.assertEqual(sorted(file for file in os.listdir(FOLDER) if file.startswith(name)), [name + ".partial", name + "x.partial"])
            write("bad.src", "1 2\n4 5\n7 7\n")
            self.assertRegex(self.ends(*command).stderr, rf"{name}.partial, of an earlier start, is removed: \S*{name} has all of it")
            self.assertEqual(sorted(file for file in os.listdir(FOLDER) if file.startswith(name)), [name, name + "x.partial"])

    def test_a_part_that_the_file_has_not_stays(self):
        write("two.out.partial", "9 9\n")
        command = ("translate", "-m", AVERAGED, "-o", path("two.out"), "-i")
        said = self.refuses(*command, write("bad.src", b"1 2\n\xff\n"))
        self.assertIn("two.out.partial.2 has what was made of the first 1 line", said)
        said = self.ends(*command, write("good.src", "1 2\n4 5\n")).stderr
        self.assertRegex(said, r"two.out.partial, of an earlier start, stays: \S*two.out does not begin with it")
        self.assertRegex(said, "two.out.partial.2, of an earlier start, is removed")
        self.assertEqual((read("two.out"), read("two.out.partial")), ("1 2\n4 5\n", "9 9\n"))
        self.assertFalse(os.path.exists(path("two.out.partial.2")))

    def test_a_file_of_the_user_s_own_that_is_named_like_a_part_stays(self):
        for out, verb in (("own.out", ["translate", "-m", AVERAGED]), ("halves.out", ["split"])):
            source = write(out + ".partial", "1\n1\n")
            self.ends(*verb, "-i", source, "-o", path(out))
            self.assertEqual(read(out + ".partial"), "1\n1\n")
        write("blank.out.partial", "")
        self.ends("translate", "-m", AVERAGED, "-i", write("good.src", "1 2\n"), "-o", path("blank.out"))
        self.assertEqual(read("blank.out.partial"), "")


class Score(Verbs):
    def files(self):
        write("bad.src", b"1 2\n4 5\n" + b"1 " * 20000 + b"\n3 \xff\n7 7\n")
        write("bad.tgt", b"1 2\n4 5\n3\n3\n7 7\n")
        write("good.src", b"1 2\n4 5\n7 7\n")
        good = self.prints("score", "-m", AVERAGED, "--src", path("good.src"), "--tgt", path("good.src")).splitlines()
        return ["score", "-m", AVERAGED, "--src", path("bad.src"), "--tgt", path("bad.tgt")], good

    def test_a_bad_pair_costs_that_pair_alone(self):
        command, good = self.files()
        ended = self.ends(*command, "--on-error", "skip", code=1)
        self.assertEqual(ended.stdout.splitlines(), [*good[:2], "", "", good[2]])
        self.assertRegex(ended.stderr, r"warning \S*bad.src:3: has \d+ tokens; expected at most 16384")
        self.assertRegex(ended.stderr, r"warning \S*bad.src:4: byte 3 is not UTF-8")
        self.assertIn("2 of 5 lines could not be taken and were passed over", ended.stderr)
        objects = [json.loads(line) for line in self.ends(*command, "--json", "--on-error", "skip", code=1).stdout.splitlines()]
        self.assertEqual([sorted(entry) for entry in objects[1:4]], [["log_prob", "tokens"], ["error"], ["error"]])

    def test_a_bad_target_is_passed_over_with_its_source(self):
        _, good = self.files()
        command = ("score", "-m", AVERAGED, "--src", path("bad.tgt"), "--tgt", path("bad.src"))
        ended = self.ends(*command, "--on-error", "skip", code=1)
        self.assertEqual([line == "" for line in ended.stdout.splitlines()], [False, False, True, True, False])
        self.assertEqual(ended.stdout.splitlines()[4], good[2])

    def test_what_was_done_before_a_bad_pair_is_written(self):
        command, good = self.files()
        said = self.refuses(*command, stdout="".join(line + "\n" for line in good[:2]))
        self.assertRegex(said, r"bad.src:3: has \d+ tokens.*\(--on-error skip passes over such lines\)")
        self.refuses(*command, "-o", path("scores"))
        self.assertEqual(read("scores.partial").splitlines(), good[:2])


class Others(Verbs):
    """Other verbs that read pairs."""

    def files(self):
        return "--src", write("bad.src", b"1 2\n\xff\n7 7\n"), "--tgt", write("bad.tgt", b"1 2\n4 5\n7 7\n")

    def test_a_bad_pair_is_dropped_by_a_filter(self):
        command = ("score", "-m", AVERAGED, *self.files(), "--filter", path("filtered"), "--keep", "1")
        self.assertIn("bad.src:2: byte 1 is not UTF-8", self.refuses(*command))
        self.assertIn("1 of 3 lines could not be taken and was passed over", self.ends(*command, "--on-error", "skip", code=1).stderr)
        self.assertEqual((read("filtered/kept.src"), read("filtered/kept.tgt")), ("1 2\n7 7\n",) * 2)
        self.assertEqual((read("filtered/dropped.src"), read("filtered/dropped.tgt")), ("\n", "\n"))
        self.assertEqual([row.split("\t")[0] for row in read("filtered/scores.tsv").splitlines()], ["line", "1", "2", "3"])

    def test_a_bad_pair_has_no_links(self):
        command = ("align", "-m", AVERAGED, *self.files())
        self.assertIn("bad.src:2: byte 1 is not UTF-8", self.refuses(*command))
        lines = self.ends(*command, "--on-error", "skip", code=1).stdout.split("\n")
        self.assertEqual([line != "" for line in lines], [True, False, True, False])

    def test_the_line_is_named_with_what_passes_over_it(self):
        src, good = self.files()[1], write("good", "1 2\n4 5\n7 7\n")
        pair = ("-m", AVERAGED, "--src", src, "--tgt", good)
        for words in (("analyze", *pair, "-o", path("analysis")), ("shortlist", *pair, "-o", path("no.list")), ("evaluate", "--hyp", src, "--ref", good),
                      ("vocab", "-i", src, "-o", path("no.model"), "--vocab-size", "16")):
            self.assertRegex(self.refuses(*words), r"bad.src:2: byte 1 is not UTF-8.*\(--on-error skip passes over such lines\)")

    def test_a_line_that_is_bad_in_one_file_is_not_scored(self):
        hyp = write("bad.hyp", b"1 2 3 4 5\n\xff\n5 6 7 8 9\n9 1\n" + LONG + b"\n")
        ref = write("bad.ref", b"1 2 3 4 5\n4 5\n5 6 7 8 1\n9 \0\n4\n")
        other = write("other.hyp", b"1 2 3 4 6\n4 5\n5 6 7 8 9\n9 1\n4\n")
        command = ("evaluate", "--ref", ref, "--json", "--on-error", "skip", "--hyp")
        ended = self.ends(*command, hyp, code=1)
        for said in (r"warning \S*bad.hyp:2: byte 1 is not UTF-8.* \(passed over\)", r"warning \S*bad.ref:4: byte 3 is NUL",
                     r"warning \S*bad.hyp:5: the line is longer than 1 MiB", "3 of 5 lines could not be taken and were passed over"):
            self.assertRegex(ended.stderr, said)
        self.assertEqual(len(re.findall("warning", ended.stderr)), 3)
        clean = ("evaluate", "--json", "--ref", write("clean.ref", "1 2 3 4 5\n5 6 7 8 1\n"), "--hyp", write("clean.hyp", "1 2 3 4 5\n5 6 7 8 9\n"))
        scored, expected = json.loads(ended.stdout), json.loads(self.prints(*clean))
        self.assertEqual((scored["lines"], scored["bad_lines"], scored["scores"]), (2, 3, expected["scores"]))
        paired = self.ends(*command, hyp, "--hyp", other, code=1)
        systems = json.loads(self.prints(*clean, "--hyp", write("clean.other", "1 2 3 4 6\n5 6 7 8 9\n")))["systems"]
        self.assertEqual([one["scores"] for one in json.loads(paired.stdout)["systems"]], [one["scores"] for one in systems])

    def test_where_all_lines_are_bad_there_is_nothing_to_score(self):
        bad = write("all.bad", b"\xff\n")
        self.assertIn("all lines are bad", self.refuses("evaluate", "--hyp", bad, "--ref", write("ref", "1\n"), "--on-error", "skip"))

    def test_a_bad_pair_is_not_analysed(self):
        gold = write("bad.gold", "0-0 1-1\n7-7\n0-0 1-1\n")
        command = ("analyze", "-m", AVERAGED, *self.files(), "--gold", gold, "--gold-base", "0", "-o", path("analysed"))
        ended = self.ends(*command, "--on-error", "skip", code=1)
        self.assertIn("1 of 3 lines could not be taken", ended.stderr)
        model = json.loads(read("analysed/analysis.json"))["models"][0]
        self.assertEqual([model[key] for key in ("pairs", "empty_pairs", "bad_pairs")], [2, 0, 1])
        good = write("good", "1 2\n7 7\n")
        self.ends("analyze", "-m", AVERAGED, "--src", good, "--tgt", good, "--gold", write("good.gold", "0-0 1-1\n" * 2), "--gold-base", "0", "-o", path("good_analysed"))
        self.assertEqual(model["alignment"], json.loads(read("good_analysed/analysis.json"))["models"][0]["alignment"])

    def test_a_bad_pair_counts_nothing_in_a_shortlist(self):
        good = write("good", "1 2\n7 7\n")
        made = []
        for name, src, tgt, links, code, flags in (("whole", good, good, "0-0\n1-1\n", 0, ()),
                                                   ("skipped", self.files()[1], self.files()[3], "0-0\n9-9\n1-1\n", 1, ("--on-error", "skip"))):
            for more in ((), ("--alignments", write("links", links))):
                ended = self.ends("shortlist", "-m", AVERAGED, "--src", src, "--tgt", tgt, "-o", path(name), *more, *flags, code=code)
                made.append(read(name))
        self.assertIn("1 of 3 lines could not be taken", ended.stderr)
        self.assertEqual(made[:2], made[2:])

    def test_a_bad_line_has_no_sentences(self):
        source = write("bad.txt", b"One. Two.\n\xff\nThree.\n")
        self.assertRegex(self.refuses("split", "-i", source, stdout="One.\nTwo.\n"), r"bad.txt:2: .*\(--on-error skip passes over such lines\)")
        ended = self.ends("split", "-i", source, "--on-error", "skip", code=1)
        self.assertEqual(ended.stdout, "One.\nTwo.\nThree.\n")
        self.assertIn("1 of 3 lines could not be taken", ended.stderr)

    def test_a_bad_line_is_left_out_of_a_vocabulary(self):
        lines = [f"{number:b}".encode() for number in range(200)]
        made = []
        for name, text, code, flags in (("whole", lines, 0, ()), ("skipped", [*lines[:9], *BAD.values(), *lines[9:]], 1, ("--on-error", "skip"))):
            source = write(name, b"\n".join(text) + b"\n")
            ended = self.ends("vocab", "-i", source, "-o", path("my.model"), "--type", "bpe", "--vocab-size", "16", *flags, code=code)
            made.append(read_bytes("my.model"))
        self.assertRegex(ended.stderr, r"warning \S*skipped:10: byte 3 is not UTF-8.* \(passed over\)")
        self.assertIn("3 of 203 lines could not be taken and were passed over", ended.stderr)
        self.assertEqual(*made)

    def test_no_vocabulary_is_made_of_bad_lines(self):
        for text, said in ((b"\xff\n\xff\n", "none of 2 lines could be taken"),
                           (b"\xff\n\n \n", "1 of 3 lines could not be taken, and all others are empty or blank, or longer than 16384 bytes")):
            self.assertIn(f"no line to train a SentencePiece model on: {said}",
                          self.refuses("vocab", "-i", write("bad", text), "-o", path("no.model"), "--on-error", "skip"))


    def test_nothing_is_made_of_bad_pairs(self):
        verbs = (("align", "no pair to learn alignments from"), ("shortlist", "-m", AVERAGED, "-o", path("no.list"), "no pair to make a shortlist of"),
                 ("analyze", "-m", AVERAGED, "-o", path("no.analysis"), "nothing to analyse"),
                 ("score", "-m", AVERAGED, "--filter", path("no.filter"), "--by", "log_prob", "no pair to rank"))
        for text, why in ((b"\xff\n\xff\n", "none of 2 lines could be taken"), (b"\xff\n\n", "1 of 2 lines could not be taken, and all others are empty on a side")):
            pair = ("--src", write("bad.src", text), "--tgt", write("bad.tgt", "1\n2\n"), "--on-error", "skip")
            for *words, what in verbs:
                said = self.refuses(*words, *pair)
                self.assertIn(f"{what}: {why}", said)
                self.assertRegex(said, r"warning \S*bad.src:1: byte 1 is not UTF-8.* \(passed over\)")


class Signals(Verbs):
    def start_translating(self, *flags, **settings):
        return subprocess.Popen([PROGRAM, "translate", "-m", AVERAGED, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **settings)

    def test_sigterm_ends_one_that_waits(self):
        with self.start_translating() as program:
            program.stdin.write("1 2\n4")
            program.stdin.flush()
            self.assertEqual(program.stdout.readline(), "1 2\n")
            program.terminate()
            self.assertEqual(program.wait(seconds(60)), 143)
            self.assertEqual(program.stdout.read(), "")
            self.assertIn("interrupted; what was read before is answered", program.stderr.read())

    def test_sigterm_lets_what_was_read_be_answered(self):
        lines = 20000
        source = write("many.src", "1 2 3 4 5 6 7\n" * lines)
        with self.start_translating("-i", source) as program:
            self.assertEqual(program.stdout.readline(), "1 2 3 4 5 6 7\n")
            program.terminate()
            rest = program.stdout.read()
            self.assertEqual(program.wait(seconds(60)), 143)
        self.assertEqual(set(rest.splitlines()), {"1 2 3 4 5 6 7"})
        self.assertTrue(rest.endswith("\n"))
        self.assertLess(rest.count("\n"), lines - 1)

    def test_a_file_keeps_what_was_done_before_a_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            out = path("cut.out")
            with self.start_translating("-o", out) as program:
                for line in ("1 2\n", "4 5\n"):  # the second is read once the first is answered
                    program.stdin.write(line)
                    program.stdin.flush()
                    self.wait_until_read(program)
                program.send_signal(number)
                self.assertEqual(program.wait(seconds(60)), 128 + number)
                self.assertRegex(program.stderr.read(), "cut.out.partial has what was made of the first [12] line")
            self.assertIn(read("cut.out.partial"), ["1 2\n4 5\n"] if number == signal.SIGTERM else ["1 2\n", "1 2\n4 5\n"])
            self.assertEqual([name for name in os.listdir(FOLDER) if name.startswith("cut.out")], ["cut.out.partial"])
            os.remove(out + ".partial")

    def wait_until_read(self, program):
        waiting = array.array("i", [1])
        while waiting[0] > 0:
            time.sleep(0.01)
            fcntl.ioctl(program.stdin.fileno(), termios.FIONREAD, waiting)


class Forever(Verbs):
    SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/translate_forever.py")

    def test_answers_one_line_for_each_whatever_it_is(self):
        command = [sys.executable, self.SCRIPT, "-m", AVERAGED, "--program", PROGRAM, "--lines", "2000", "--growth", "20", "--json", path("forever.json"),
                   "--", "--beam-size", "1", "--max-length", "40"]
        # The address sanitizer, if the program is built with it, would keep 256 MiB of what was freed, which counts as growth.
        environment = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=8"}
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds(300), check=False, env=environment)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        facts = json.loads(read("forever.json"))
        self.assertEqual((facts["lines_in"], facts["lines_out"], facts["problems"]), (2000, 2000, []))
        self.assertGreater(facts["bad_lines"], 10)
        self.assertEqual(len(facts["memory_mib_by_tenths"]), 10)

    def test_sees_a_program_that_ends(self):
        other = write("other_program", "#!/bin/sh\nsed -u 50q\n")
        os.chmod(other, 0o755)
        ended = subprocess.run([sys.executable, self.SCRIPT, "-m", AVERAGED, "--program", other, "--lines", "500"], capture_output=True, text=True,
                               timeout=seconds(300), check=False)
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        self.assertRegex(ended.stdout, r"PROBLEM: it ended with 0, expected 1")
        self.assertRegex(ended.stdout, r"PROBLEM: 115 lines went in, 50 came out, and 0 bytes behind them")
        self.assertIn("PROBLEM: a line that is not UTF-8 was answered by", ended.stdout)


class Corpora(Verbs):
    BRIEF = ("--train.max_steps", "4", "--train.save_every", "0", "--train.average_last", "0", "--train.valid_translate", "false",
             "--train.metric", "loss")

    def flags(self, train, run="bad_corpus"):
        return "-c", small_run.configuration(FOLDER, run), *self.BRIEF, "--data.train", f"[{{{train}}}]"

    def digits(self, name, rows):
        """Rows of two columns, of which some are bad."""
        small_run.write_digits(path(name), 300, 3)
        lines = [line + b"\t" + line for line in read_bytes(name).splitlines()]
        for number, row in rows.items():
            lines[number - 1] = row
        return write(name, b"\n".join(lines) + b"\n")

    ROWS = {3: b"1 2", 7: b"1 2,\t3 4\t1 2 3 4", 9: b"1 \xff\t1", 20: b"1\0\t1", 30: b"2 \xfe\t2", 31: b"", 40: LONG + b"\t1"}

    def test_all_kinds_are_named_at_once(self):
        table = self.digits("kinds.tsv", self.ROWS)
        for verb in ("check", "train"):
            said = self.refuses(verb, *self.flags(f"tsv: {table}"))
            self.assertRegex(said, r"kinds.tsv: 6 of 300 lines cannot be taken: ")
            for what in (r"1 longer than 1 MiB \(the first: \S*kinds.tsv:40: ", r"2 not UTF-8 \(the first: \S*kinds.tsv:9: ",
                         r"2 with another number of columns \(the first: \S*kinds.tsv:3: the line has 1 column;",
                         r"1 with NUL bytes \(the first: \S*kinds.tsv:20: ", "data.bad_lines: skip leaves such lines out"):
                self.assertRegex(said, what)

    def test_check_names_all_texts_at_once(self):
        table = self.digits("kinds.tsv", {7: b"1 2,\t3 4\t1 2 3 4"})
        valid = write("bad_valid", b"1 2\n\xff\n")
        ended = self.ends("check", *self.flags(f"tsv: {table}"), "--data.valid", f"[{{src: {valid}, tgt: {valid}}}]", code=2)
        self.assertRegex(ended.stdout, r"(?m)^kinds +error: \S*kinds.tsv:7: the line has 3 columns, and most have 2; ")
        self.assertRegex(ended.stdout, r"(?m)^bad_valid +error: \S*bad_valid:2: byte 1 is not UTF-8")
        self.assertIn("2 texts of this configuration cannot be taken as they are", ended.stderr)

    def test_what_is_skipped_is_counted_and_listed(self):
        table = self.digits("kinds.tsv", self.ROWS)
        skip = (*self.flags(f"tsv: {table}", "skipping"), "--data.bad_lines", "skip")
        said = self.ends("train", *skip).stderr
        self.assertIn("293 pairs of 300 lines;", said)
        self.assertIn("1 with an empty side skipped; 6 lines that cannot be taken, skipped", said)
        self.assertRegex(said, r"warning kinds: 2 lines left out, not UTF-8; the first: \S*kinds.tsv:9: byte 3 is not UTF-8")
        self.assertRegex(said, r"skipping/rejects.tsv lists the lines that are left out")
        rejects = read("skipping/rejects.tsv").splitlines()
        self.assertEqual([int(re.search(r"kinds.tsv:(\d+): ", row)[1]) for row in rejects], [3, 7, 9, 20, 30, 40])
        self.assertEqual([row.split("\t")[1] for row in rejects[:3]], ["1 2", r"1 2,\x093 4\x091 2 3 4", r"1 \xff\x091"])
        said = self.prints("check", *skip)
        self.assertRegex(said, r"(?m)^bad lines +warning: 2 lines left out, not UTF-8; the first: ")
        # What was made of the text under `skip` does not count under `stop`.
        self.assertIn("cannot be taken", self.refuses("train", *self.flags(f"tsv: {table}", "skipping")))

    def test_what_is_skipped_leaves_the_others_as_they_are(self):
        table = self.digits("kinds.tsv", self.ROWS)
        rows = [row for number, row in enumerate(read_bytes("kinds.tsv").splitlines(), 1) if number not in self.ROWS]
        clean = write("clean.tsv", b"\n".join(rows) + b"\n")
        losses = []
        for run, flags in (("dirty", (f"tsv: {table}", "skip")), ("clean", (f"tsv: {clean}", "stop"))):
            self.ends("train", *self.flags(flags[0], run), "--data.bad_lines", flags[1])
            losses.append([json.loads(line)["loss"] for line in read(run, "metrics.jsonl").splitlines() if '"loss"' in line])
        self.assertEqual(*losses)

    def test_a_set_to_score_has_no_bad_lines(self):
        valid = write("bad_valid", b"1 2\n\xff\n")
        flags = (*self.flags(f"src: {path('train.txt')}, tgt: {path('train.txt')}"), "--data.valid", f"[{{src: {valid}, tgt: {valid}}}]")
        self.assertIn("bad_valid:2: byte 1 is not UTF-8", self.refuses("train", *flags, "--data.bad_lines", "skip"))


if __name__ == "__main__":
    unittest.main()
