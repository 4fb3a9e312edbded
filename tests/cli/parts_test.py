#!/usr/bin/env python3
"""A text that several processes translate or score in parts: parts_test.py PROGRAM"""
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import small_run
from patience import seconds
from program import PROGRAM, path, read, read_bytes, write
from verbs import AVERAGED, RUN, Verbs
from verbs import setUpModule as train

SAMPLING = ("--sampling", "full", "--seed", "7")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def setUpModule():
    train()
    small_run.write_digits(path("mono"), 230, 5)


def lines_of(name, begin=0, end=None):
    return "".join(line + "\n" for line in read(name).splitlines()[begin:end])


class Parts(Verbs):
    """Each test has a folder for its job that is not there yet."""

    def setUp(self):
        shutil.rmtree(path("job"), ignore_errors=True)

    def command(self, *flags, lines=50, packing="none", source=None, verb="translate"):
        files = ("--src", path("mono"), "--tgt", path("mono")) if verb == "score" else ("-i", source or path("mono"))
        return [verb, "-m", AVERAGED, *files, "-o", path("job"), "--part-lines", str(lines), "--part-packing", packing, *flags]

    def start_workers(self, count, *flags, **settings):
        command = [PROGRAM, *self.command(*flags, **settings)]
        return [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) for _ in range(count)]

    def end_well(self, workers):
        for worker in workers:
            out, said = worker.communicate(timeout=seconds(120))
            self.assertEqual((worker.returncode, out), (0, ""), said)

    def names(self, end=""):
        return sorted(name for name in os.listdir(path("job")) if name.startswith("part-") and name.endswith(end))

    def joined(self, end=".txt"):
        return "".join(read("job", name) for name in self.names(end))

    def whole(self, *flags, text=None):
        return self.prints("translate", "-m", AVERAGED, *flags, text=lines_of("mono") if text is None else text)

    def status(self, verb="translate"):
        return json.loads(self.prints(verb, "-o", path("job"), "--parts-status", "--json"))


class Translate(Parts):
    def test_parts_are_the_whole_whoever_makes_them(self):
        for flags, counts in (((), (1, 3)), (SAMPLING, (1, 3)), (("--n-best", "2"), (2,)), (("--json", "--guard"), (2,))):
            text = lines_of("mono") if "--json" not in flags else "".join(json.dumps({"text": line}) + "\n" for line in read("mono").splitlines())
            whole = self.whole(*flags, text=text)
            for workers in counts:
                with self.subTest(flags=flags, workers=workers):
                    shutil.rmtree(path("job"), ignore_errors=True)
                    self.end_well(self.start_workers(workers, *flags, source=write("text", text)))
                    self.assertEqual(self.joined(), whole)
                    self.assertEqual(len(self.names(".txt")), 5)
                    self.assertEqual((self.names(".claim"), [name for name in os.listdir(path("job")) if "tmp" in name]), ([], []))

    def test_parts_are_packed(self):
        self.ends(*self.command(packing="zst"))
        with open(path("all.zst"), "wb") as file:
            file.write(b"".join(read_bytes("job", name) for name in self.names(".zst")))
        whole = self.whole()
        self.ends("translate", "-m", AVERAGED, "-i", write("same", whole), "-o", path("again"))
        self.ends("translate", "-m", AVERAGED, "-i", path("all.zst"), "-o", path("from_parts"))
        self.assertEqual(read("from_parts"), read("again"))
        shutil.rmtree(path("job"))
        self.ends(*self.command(packing="gz"))
        self.assertEqual("".join(gzip.decompress(read_bytes("job", name)).decode() for name in self.names(".gz")), whole)

    def test_a_text_may_be_empty_and_end_with_a_part(self):
        self.ends(*self.command(source=write("empty", "")))
        self.assertEqual((self.names(".txt"), self.joined()), (["part-000000.txt"], ""))
        shutil.rmtree(path("job"))
        self.ends(*self.command(source=write("hundred", lines_of("mono", 0, 100))))
        self.assertEqual((len(self.names(".txt")), self.joined()), (2, self.whole(text=lines_of("mono", 0, 100))))

    def test_a_job_that_is_done_stays_as_it_is(self):
        self.ends(*self.command())
        before = {name: os.stat(path("job", name)).st_mtime_ns for name in os.listdir(path("job"))}
        self.ends(*self.command())
        self.assertEqual({name: os.stat(path("job", name)).st_mtime_ns for name in os.listdir(path("job"))}, before)

    def test_only_what_is_missing_is_made_again(self):
        self.ends(*self.command())
        whole = self.joined()
        kept = os.stat(path("job", "part-000003.txt")).st_mtime_ns
        for name in ("part-000001.txt", "part-000004.txt"):
            os.remove(path("job", name))
        self.ends(*self.command())
        self.assertEqual(self.joined(), whole)
        self.assertEqual(os.stat(path("job", "part-000003.txt")).st_mtime_ns, kept)

    def test_another_job_is_refused_with_both_values(self):
        self.ends(*self.command())
        other = path("run", sorted(name for name in os.listdir(RUN) if name.startswith("step_"))[0])
        shutil.copy(path("mono"), path("other"))
        with open(path("other"), "r+b") as file:
            file.write(b"0" if file.read(1) != b"0" else b"1")
        for flags, said in ((("--beam-size", "3"), 'translate.beam_size is "5" there, and "3" here'),
                            (("--prefix", "1"), 'prefix is "" there, and "1" here'),
                            (SAMPLING, 'translate.sampling is "none" there, and "full" here, seed is missing there, and 7 here'),
                            (("--on-error", "skip"), 'on_error is "stop" there, and "skip" here'),
                            (("--lease", "5"), "lease is 600.0 there, and 5.0 here")):
            self.assertIn(f"job.json: another job: {said}", self.refuses(*self.command(*flags)))
        self.assertIn("part_lines is 50 there, and 60 here", self.refuses(*self.command(lines=60)))
        command = self.command()
        command[command.index(AVERAGED)] = other
        self.assertRegex(self.refuses(*command), r'models is \["\w{32}"\] there, and \["\w{32}"\] here')
        self.assertRegex(self.refuses(*self.command(source=path("other"))), r'input is "(\d+) bytes, sampled XXH3-128 \w{32}" there, and "\1 bytes, ')

    def test_a_killed_workers_part_is_free_at_once(self):
        workers = self.start_workers(1, lines=200)
        while not os.path.isdir(path("job")) or not self.names(".claim") or not read("job", self.names(".claim")[0]):
            time.sleep(0.001)
        workers[0].kill()
        workers[0].communicate()
        if self.names(".txt"):
            self.skipTest("the worker was faster than its end")
        claim = json.loads(read("job", "part-000000.claim"))
        self.assertEqual((claim["process"], claim["host"]), (workers[0].pid, os.uname().nodename))
        self.assertEqual(len(self.status()["stale"]), 1)
        self.ends(*self.command(lines=200))
        self.assertEqual(self.joined(), self.whole())
        self.assertEqual([name for name in os.listdir(path("job")) if not re.fullmatch(r"job\.json|part-\d{6}\.(txt|json)", name)], [])

    def test_a_stale_claim_of_another_host_is_anyones_and_a_fresh_one_is_waited_for(self):
        self.ends(*self.command("--lease", "2"))
        whole = self.joined()
        claim = {"host": "elsewhere", "process": 1, "start": "long ago", "writer": "0123456789abcdef.1", "start_ticks": 1}
        os.remove(path("job", "part-000001.txt"))
        write("job/part-000001.claim", json.dumps(claim))
        os.utime(path("job", "part-000001.claim"), (1, 1))
        self.ends(*self.command("--lease", "2"))
        self.assertEqual(self.joined(), whole)
        os.remove(path("job", "part-000001.txt"))
        write("job/part-000001.claim", json.dumps(claim))
        status = self.status()
        self.assertEqual([(one["part"], one["host"], one["process"]) for one in status["running"]], [(1, "elsewhere", 1)])
        start = time.time()
        said = self.ends(*self.command("--lease", "2")).stderr
        self.assertGreater(time.time() - start, 1)
        self.assertIn("waits for 1 part of other workers: part 1 (elsewhere, process 1)", said)
        self.assertEqual(self.joined(), whole)

    def test_a_claim_that_is_half_written_counts_by_its_lease(self):
        os.mkdir(path("job"))
        write("job/part-000000.claim", "")
        self.assertIn("part-000000.claim: is there, and no job.json beside it", self.refuses(*self.command()))
        os.remove(path("job", "part-000000.claim"))
        self.ends(*self.command("--lease", "0.5"))
        os.remove(path("job", "part-000000.txt"))
        write("job/part-000000.claim", "")
        self.ends(*self.command("--lease", "0.5"))
        self.assertEqual(self.joined(), self.whole())

    def test_a_signal_gives_the_part_up(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            shutil.rmtree(path("job"), ignore_errors=True)
            workers = self.start_workers(1, lines=100000, source=write("long", lines_of("mono") * 200))
            while not os.path.isdir(path("job")) or not self.names(".claim"):
                time.sleep(0.01)
            workers[0].send_signal(number)
            workers[0].communicate(timeout=seconds(60))
            self.assertEqual(workers[0].returncode, 128 + number)
            self.assertEqual(os.listdir(path("job")), ["job.json"])

    def test_bad_lines_are_counted_over_all_workers(self):
        text = b"".join(line.encode() + b"\n" for line in read("mono").splitlines()[:120])
        bad = text.split(b"\n")
        bad[10], bad[70] = b"\xff", b"1 " * (600 << 10)
        source = write("bad", b"\n".join(bad))
        said = self.refuses(*self.command(source=source))
        self.assertIn("bad:11: byte 1 is not UTF-8", said)
        self.assertEqual(os.listdir(path("job")), ["job.json"])
        shutil.rmtree(path("job"))
        ended = self.ends(*self.command("--on-error", "skip", source=source), code=1)
        self.assertIn("bad:71: the line is longer than 1 MiB", ended.stderr)
        self.assertIn("2 of 120 lines could not be taken and were passed over", ended.stderr)
        self.assertIn("2 of 120 lines could not be taken", self.ends(*self.command("--on-error", "skip", source=source), code=1).stderr)
        whole = self.ends("translate", "-m", AVERAGED, "--on-error", "skip", "-i", source, code=1).stdout
        self.assertEqual(self.joined(), whole)
        self.assertEqual(self.status()["bad_lines"], 2)

    def test_what_is_wrong_with_the_folder_is_said(self):
        self.assertIn("is not a folder, and cannot become one", self.refuses(*self.command()[:-6], "-o", write("file", "x"), "--part-lines", "5"))
        self.ends(*self.command())
        write("job/part-mine.txt", "x")
        self.assertIn("part-mine.txt: is no part of the job; move it away", self.refuses(*self.command()))
        os.rename(path("job", "part-mine.txt"), path("job", "part-000009.txt"))
        shutil.copy(path("job", "part-000004.json"), path("job", "part-000009.json"))
        self.assertRegex(self.refuses(*self.command()), "part-000009.txt: is behind the last part, 4; move it away")
        os.remove(path("job", "part-000009.txt"))
        write("job/part-000002.json", "{}")
        self.assertIn("part-000002.json: is not what lacuna writes; remove it and part-000002.txt", self.refuses(*self.command()))
        write("job/job.json", "[]")
        self.assertIn("job.json: is not what lacuna writes", self.refuses(*self.command()))
        self.assertIn("has no job.json; expected the folder of a job in parts", self.refuses("translate", "-o", RUN, "--parts-status"))

    def test_a_folder_that_is_removed_ends_its_workers(self):
        workers = self.start_workers(1, lines=100000, source=write("long", lines_of("mono") * 200))
        while not os.path.isdir(path("job")) or not self.names(".claim"):
            time.sleep(0.01)
        os.rename(path("job"), path("away"))
        _, said = workers[0].communicate(timeout=seconds(120))
        self.assertEqual(workers[0].returncode, 1)
        self.assertRegex(said, r"job.json: was removed or replaced while this worker was at the job")
        shutil.rmtree(path("away"))

    def test_flags_that_do_not_fit_are_refused(self):
        base = ("translate", "-m", AVERAGED)
        self.assertIn("--part-lines needs a folder for the parts; give -o FOLDER", self.refuses(*base, "-i", path("mono"), "--part-lines", "5"))
        self.assertIn("--part-lines needs a file that every worker can read", self.refuses(*base, "-o", path("job"), "--part-lines", "5"))
        self.assertIn("--parts-status needs the folder of the parts", self.refuses("translate", "--parts-status"))
        self.assertIn("--part-lines", self.refuses(*base, "-i", path("mono"), "-o", path("job"), "--lease", "5"))
        self.assertIn("--first-line", self.refuses(*self.command("--first-line", "5")))
        self.assertIn("--model is required", self.refuses("translate", "-i", path("mono"), "-o", path("job"), "--part-lines", "5"))
        self.assertIn("is a pipe or a device", self.refuses(*base, "-i", "/dev/null", "-o", path("job"), "--part-lines", "5"))

    def test_status_says_how_far_a_job_is(self):
        self.ends(*self.command())
        self.assertRegex(self.prints("translate", "-o", path("job"), "--parts-status"), r"job: done, 5 parts, 230 lines\n$")
        os.remove(path("job", "part-000003.txt"))
        self.assertRegex(self.prints("translate", "-o", path("job"), "--parts-status"), r"job: 4 of 5 parts done, 180 of 230 lines\nnobody works on it\n$")
        os.remove(path("job", "part-000004.txt"))
        status = self.status()
        self.assertEqual((status["is_done"], status["parts_done"], status["lines_done"], status["is_end_known"]), (False, 3, 150, False))
        self.assertAlmostEqual(status["lines"], 230, delta=30)


class FirstLine(Verbs):
    def test_pieces_are_translated_as_the_whole(self):
        for flags in ((), SAMPLING, ("--n-best", "2")):
            whole = self.prints("translate", "-m", AVERAGED, *flags, text=lines_of("mono"))
            pieces = [self.prints("translate", "-m", AVERAGED, *flags, "--first-line", str(begin + 1), text=lines_of("mono", begin, end))
                      for begin, end in ((0, 70), (70, 71), (71, 230))]
            self.assertEqual("".join(pieces), whole, flags)

    def test_messages_go_by_it(self):
        ended = self.ends("translate", "-m", AVERAGED, "--first-line", "1001", text="1 2\nПривет мир\n")
        self.assertIn("line 1002: 100 % of its source is unknown", ended.stderr)
        self.assertIn("stdin:1000: ", self.refuses("translate", "-m", AVERAGED, "--json", "--first-line", "1000", text="x\n"))
        self.assertIn('"0" is not a whole number', self.refuses("translate", "-m", AVERAGED, "--first-line", "0"))


class Score(Parts):
    def test_parts_are_the_whole(self):
        for flags in ((), ("--json", "--guard"), ("--tokens", "--normalize")):
            whole = self.prints("score", "-m", AVERAGED, "--src", path("mono"), "--tgt", path("mono"), *flags)
            shutil.rmtree(path("job"), ignore_errors=True)
            self.end_well(self.start_workers(2, *flags, verb="score"))
            self.assertEqual(self.joined(), whole)
        self.assertTrue(self.status("score")["is_done"])

    def test_another_job_is_refused(self):
        self.ends(*self.command(verb="score"))
        self.assertIn("normalize is false there, and true here", self.refuses(*self.command("--normalize", verb="score")))
        self.assertIn('verb is "score" there, and "translate" here', self.refuses(*self.command()))

    FILTERED = ("kept.src", "kept.tgt", "dropped.src", "dropped.tgt", "scores.tsv", "report.txt")

    def filtered(self, folder):
        return {name: read(folder, name) for name in self.FILTERED}

    def whole_filter(self, *flags):
        self.prints("score", "-m", AVERAGED, "--src", path("mono"), "--tgt", path("mono"), "--filter", path("whole"), *flags)
        return self.filtered("whole")

    def test_a_filter_ranks_by_the_parts(self):
        expected = self.whole_filter("--keep", "0.6")
        shutil.rmtree(path("filtered"), ignore_errors=True)
        self.end_well(self.start_workers(2, "--filter", path("filtered"), "--keep", "0.6", verb="score"))
        self.assertEqual(self.filtered("filtered"), expected)
        self.assertEqual(len(self.names(".txt")), 5)
        times = {name: os.stat(path(folder, name)).st_mtime_ns for folder in ("job", "filtered") for name in os.listdir(path(folder))}
        self.ends(*self.command("--filter", path("filtered"), "--keep", "0.6", verb="score"))
        self.assertEqual({name: os.stat(path(folder, name)).st_mtime_ns for folder in ("job", "filtered") for name in os.listdir(path(folder))}, times)
        self.ends(*self.command("--filter", path("filtered"), "--keep", "0.3", verb="score"))
        self.assertEqual(self.filtered("filtered"), self.whole_filter("--keep", "0.3"))
        self.assertEqual(os.stat(path("job", "part-000001.txt")).st_mtime_ns, times["part-000001.txt"])

    def test_a_filter_drops_bad_pairs_of_all_parts(self):
        bad = read_bytes("mono").split(b"\n")
        bad[10] = bad[70] = b"\xff"
        source = write("bad", b"\n".join(bad))
        files = ("--src", source, "--tgt", path("mono"), "--on-error", "skip", "--keep", "1")
        self.ends("score", "-m", AVERAGED, *files, "--filter", path("whole"), code=1)
        shutil.rmtree(path("filtered"), ignore_errors=True)
        ended = self.ends("score", "-m", AVERAGED, *files, "--filter", path("filtered"), "-o", path("job"), "--part-lines", "50", code=1)
        self.assertIn("2 of 230 lines could not be taken and were passed over", ended.stderr)
        self.assertEqual(self.filtered("filtered"), self.filtered("whole"))

    def test_parts_of_a_filter_that_are_damaged_are_named(self):
        command = self.command("--filter", path("filtered"), verb="score")
        self.ends(*command)
        os.remove(path("job", "filter.json"))
        write("job/part-000002.txt", read("job", "part-000002.txt").replace("\t", " ", 1))
        self.assertRegex(self.refuses(*command), r'part-000002.txt:1: ".*" is not what lacuna writes; expected three numbers')
        self.assertIn("is for the parts of --part-lines", self.refuses("score", "-m", AVERAGED, "--src", path("mono"), "--tgt", path("mono"), "--filter",
                                                                       path("filtered"), "-o", path("scores")))
        self.assertIn("filter is missing there", self.refuses_other_job(command))

    def refuses_other_job(self, command):
        """What is said where the parts of a job are plain scores."""
        shutil.rmtree(path("job"))
        self.ends(*self.command(verb="score"))
        return self.refuses(*command)

    def test_texts_of_different_lengths_are_refused(self):
        command = self.command(verb="score")
        command[command.index("--tgt") + 1] = write("short", lines_of("mono", 0, 120))
        self.assertIn("has 230 lines and ", self.refuses(*command))


if __name__ == "__main__":
    unittest.main()
