#!/usr/bin/env python3
"""`lacuna translate`, run as a user would: translate_test.py PROGRAM"""
import fcntl
import gzip
import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import time
import unittest

import small_run
from patience import seconds
from program import FOLDER, PROGRAM, path, read, read_bytes, temporaries, write
from verbs import AVERAGED, LINES, RUN, Verbs, setUpModule


class Translate(Verbs):
    def test_gives_a_line_for_each_line_in_order(self):
        self.assertEqual(self.translates(), LINES)

    def test_says_the_same_whatever_is_beside_a_line(self):
        for batch in ("1", "40", "5000"):
            self.assertEqual(self.translates("--batch-tokens", batch), LINES)
        self.assertEqual([self.translates(lines=[line])[0] for line in LINES], LINES)

    def test_reads_a_last_line_without_its_end_and_windows_line_ends(self):
        self.assertEqual(self.prints("translate", "-m", AVERAGED, text="1 2\r\n3 4"), "1 2\n3 4\n")

    def test_of_nothing_is_nothing(self):
        self.assertEqual(self.prints("translate", "-m", AVERAGED, text=""), "")

    def test_reads_gzip_and_writes_a_file_that_is_whole(self):
        with gzip.open(path("in.gz"), "wt") as file:
            file.write("3 1 4\n")
        self.assertEqual(self.prints("translate", "-m", RUN, "-i", path("in.gz"), "-o", path("out")), "")
        self.assertEqual(read("out"), "3 1 4\n")
        self.assertEqual(self.prints("translate", "-m", RUN, "-i", path("in.gz"), "-o", path("out.gz")), "")
        with gzip.open(path("out.gz"), "rt") as file:
            self.assertEqual(file.read(), "3 1 4\n")

    def test_writes_and_reads_zstd(self):
        write("in", "3 1 4\n")
        self.assertEqual(self.prints("translate", "-m", RUN, "-i", path("in"), "-o", path("out.zst")), "")
        self.assertEqual(read_bytes("out.zst")[:4], b"\x28\xb5\x2f\xfd")
        self.assertEqual(self.prints("translate", "-m", RUN, "-i", path("out.zst")), "3 1 4\n")
        with open(path("out.zst"), "rb") as file:
            ended = subprocess.run([PROGRAM, "translate", "-m", RUN], stdin=file, capture_output=True, text=True, timeout=seconds(60), check=False)
        self.assertEqual((ended.returncode, ended.stdout), (0, "3 1 4\n"), ended.stderr)
        write("cut.zst", read_bytes("out.zst")[:-1])
        self.assertIn("cut.zst: damaged zstd file: it ends too early", self.refuses("translate", "-m", RUN, "-i", path("cut.zst"), stdout="3 1 4\n"))

    def test_answers_the_python_of_the_manual(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/deployment.md"), encoding="utf-8") as page:
            example = re.search(r"```python\n(.*?)```", page.read(), re.DOTALL)[1]
        for text, digits in (("runs/bundled/averaged", AVERAGED), ("Die Frau liest ein Buch.", "3 1 4"), ("Der Hund schläft.", "2 7")):
            self.assertIn(text, example)
            example = example.replace(text, digits)
        search = os.pathsep.join([os.path.dirname(PROGRAM), os.environ["PATH"]])
        ended = subprocess.run([sys.executable, "-c", example], env={**os.environ, "PATH": search}, capture_output=True, text=True, timeout=seconds(60), check=False)
        self.assertRegex(ended.stdout, r"\A3 1 4 -0\.\d+\n2 7 -0\.\d+\n\Z", ended.stderr)

    def test_answers_each_line_while_the_pipe_stays_open(self):
        for output in ("-", "/dev/stdout"):
            with subprocess.Popen([PROGRAM, "translate", "-m", AVERAGED, "-o", output], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True) as program:
                for line in LINES:
                    program.stdin.write(line + "\n")
                    program.stdin.flush()
                    self.assertEqual(program.stdout.readline(), line + "\n")
                program.stdin.close()
                self.assertEqual(program.wait(seconds(60)), 0)

    def test_waits_where_pipes_are_set_not_to_block(self):
        stdin, feeder = os.pipe()
        reader, stdout = os.pipe()
        fcntl.fcntl(stdout, fcntl.F_SETPIPE_SZ, 4096)  # less than is written
        os.set_blocking(stdin, False)
        os.set_blocking(stdout, False)
        with subprocess.Popen([PROGRAM, "translate", "-m", AVERAGED, "--n-best", "5"], stdin=stdin, stdout=stdout,
                              stderr=subprocess.PIPE, text=True) as program, open(feeder, "w") as text, open(reader) as translations:
            os.close(stdin)
            os.close(stdout)
            text.write("1 2 3\n")
            text.flush()
            first = [translations.readline() for _ in range(5)]
            time.sleep(0.2)  # by then it looks for more
            text.write("1 2 3\n" * 100)
            text.close()
            time.sleep(0.5)  # by then the pipe is full
            others = translations.readlines()
            self.assertEqual((program.wait(seconds(60)), len(others)), (0, 500), program.stderr.read())
            self.assertEqual([line.replace("0 |||", "1 |||", 1) for line in first], others[:5])

    def test_ends_quietly_when_nobody_reads(self):
        with subprocess.Popen([PROGRAM, "translate", "-m", AVERAGED, "-o", "/dev/stdout"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as program:
            program.stdin.write("1 2\n")
            program.stdin.flush()
            self.assertEqual(program.stdout.readline(), "1 2\n")
            program.stdout.close()
            program.stdin.write("1 2\n")
            program.stdin.close()
            self.assertEqual(program.wait(seconds(60)), 141)
            self.assertNotIn("error", program.stderr.read())
        read_end, write_end = os.pipe()
        os.close(read_end)
        ended = subprocess.run([PROGRAM, "translate", "-m", AVERAGED], input="1 2\n", stdout=write_end, stderr=subprocess.PIPE, text=True,
                               timeout=seconds(60), check=False)
        os.close(write_end)
        self.assertEqual(ended.returncode, 141)
        self.assertNotIn("error", ended.stderr)

    def test_writes_n_best_lists_as_moses_does(self):
        lines = self.translates("--n-best", "3", "--beam-size", "4", lines=["1 2 3", "4 5"])
        self.assertEqual(len(lines), 6)
        fields = [line.split(" ||| ") for line in lines]
        self.assertEqual([field[0] for field in fields], ["0"] * 3 + ["1"] * 3)
        self.assertEqual((fields[0][1], fields[3][1]), ("1 2 3", "4 5"))
        for first, second in zip(fields[:2], fields[1:3]):
            self.assertGreaterEqual(float(first[3]), float(second[3]))
        self.assertRegex(fields[0][2], r"^F0= -[\d.e-]+$")

    def test_writes_each_text_of_an_n_best_list_once(self):
        texts = [line.split(" ||| ")[1] for line in self.translates("--n-best", "10", "--beam-size", "10", lines=["1 2 3 4 5"])]
        self.assertEqual(len(set(texts)), len(texts))

    def test_says_that_the_vocabulary_cannot_read_a_line(self):
        ended = self.ends("translate", "-m", AVERAGED, text="1 2\nПривет мир\n3\n你好\n")
        self.assertRegex(ended.stderr, "line 2: 100 % of its source is unknown to the vocabulary")
        self.assertIn("2 lines are for the most part unknown", ended.stderr)
        fields = [json.loads(line) for line in self.translates("--json", lines=['{"text": "1 x", "unknown_ratio": 1}', '{"text": "1 2", "unknown_ratio": 1}'])]
        self.assertEqual([line.get("unknown_ratio") for line in fields], [0.5, None])

    def test_does_not_see_what_nobody_sees(self):
        self.assertEqual(self.translates(lines=["1\u00ad 2\u2060", "\u200e1\u00852", "\ufeff1 2"]), ["1 2"] * 3)

    def test_writes_an_n_best_list_of_one(self):
        self.assertRegex(self.translates("--n-best", "1", lines=["1 2"])[0], r"^0 \|\|\| 1 2 \|\|\| F0= -[\d.e-]+ \|\|\| -[\d.e-]+$")
        self.assertEqual(self.translates("--translate.n_best", "1", lines=["1 2"]), ["1 2"])
        self.assertEqual(len(json.loads(self.translates("--json", "--n-best", "1", lines=['{"text": "1 2"}'])[0])["translations"]), 1)

    def test_says_that_translations_are_cut(self):
        cut = ("translate", "-m", AVERAGED, "--max-length", "4")
        said = self.ends(*cut, text="1\n1 2 3\n4 5\n6 7 8\n").stderr
        self.assertIn("warning line 2: its translation ends where it met a limit (--max-length, ", said)
        self.assertRegex(said, r"warning [23] translations end where they met a limit")
        self.assertEqual(said.count("\n"), 2)
        self.assertEqual(self.ends(*cut, text="1\n").stderr, "")

    def test_has_flags_for_keys_of_the_configuration(self):
        def scored(*flags):
            return self.translates("--scores", *flags, lines=["7 7 1 0 3 2", "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0"])

        endless, default = ("--translate.repetition_penalty", "0.05"), scored()
        for flag, value, *others in (("--length-penalty", "0.2"), ("--length-penalty-type", "gnmt"), ("--max-length-ratio", "0.1", *endless),
                                     ("--no-repeat-ngram-size", "1"), ("--repetition-penalty", "3")):
            found = scored(flag, value, *others)
            self.assertEqual(found, scored("--translate." + flag[2:].replace("-", "_"), value, *others), flag)
            self.assertNotEqual(found, scored(*others) if others else default, flag)

    def test_reads_flags_whose_value_is_empty(self):
        for flag, message in (("--beam-size", "translate.beam_size is empty; expected a whole number"),
                              ("--device", "--device: is empty; expected cpu, cuda or cuda:N"),
                              ("-i", "-i is empty; expected a file to read, or - for standard input")):
            self.assertIn(message, self.refuses("translate", "-m", AVERAGED, flag, "", text="1\n"))
        self.assertEqual(self.translates("--shortlist", "", lines=["1 2"]), ["1 2"])

    def test_begins_lines_with_scores(self):
        for line, text in zip(self.translates("--scores"), LINES):
            score, translation = line.split("\t")
            self.assertEqual(translation, text)
            self.assertLessEqual(float(score), 0)

    def test_passes_the_fields_of_json_through(self):
        lines = [json.dumps({"id": 2**64 - 1, "text": "1 2", "tags": ["a", 1e30]}), json.dumps({"text": ""})]
        first, second = (json.loads(line) for line in self.translates("--json", lines=lines))
        self.assertEqual((first["id"], first["tags"], first["text"], first["translation"]), (2**64 - 1, ["a", 1e30], "1 2", "1 2"))
        self.assertLess(first["log_prob"], 0)
        self.assertEqual(second["translation"], "")

    def test_replaces_the_fields_of_an_earlier_translation(self):
        line = json.dumps({"text": "1 2", "id": 7, "translation": "x", "score": "x", "log_prob": "x", "alignment": "0-0", "truncated": True,
                           "translations": []})
        one = json.loads(self.translates("--json", lines=[line])[0])
        self.assertEqual(list(one), ["text", "id", "translation", "score", "log_prob"])
        self.assertEqual(one["translation"], "1 2")
        several = json.loads(self.translates("--json", "--n-best", "2", lines=[line])[0])
        self.assertEqual((list(several), len(several["translations"])), (["text", "id", "translations"], 2))
        taken_up = json.dumps({"score": -1, "truncated": True, "alignment": "9-9", "text": "1 2"})  # the translation of another, as text
        self.assertEqual(list(json.loads(self.translates("--json", lines=[taken_up])[0])), ["score", "text", "translation", "log_prob"])

    def test_takes_options_of_a_line_for_this_line_alone(self):
        options = [{}, {"beam_size": 1}, {"n_best": 3}, {"max_length": 3, "min_length": 2}, {"length_penalty": 0, "length_penalty_type": "gnmt"},
                   {"max_length_ratio": 0.1, "no_repeat_ngram_size": 1, "repetition_penalty": 1.5, "allow_unk": True}, {"beam_size": None}]
        for split in ([], ["--split"]):
            found = self.translates("--json", *split, lines=[json.dumps({"text": "7 7 1 0 7 2", **one}) for one in options])
            for one, line in zip(options, found):
                flags = [word for key, value in one.items() if value is not None for word in (f"--translate.{key}", json.dumps(value).strip('"'))]
                flags += ["--n-best", "3"] if "n_best" in one else []
                alone = json.loads(self.translates("--json", *split, *flags, lines=['{"text": "7 7 1 0 7 2"}'])[0])
                self.assertEqual(json.loads(line), {"text": "7 7 1 0 7 2", **one, **alone})
        self.assertEqual([len(json.loads(found[2])["translations"]), json.loads(found[3])["truncated"]], [3, True])
        drawn = ["--json", "--sampling", "full", "--seed", "3"]
        several = json.loads(self.translates(*drawn, lines=['{"text": "1 2", "n_best": 4, "temperature": 3}'])[0])
        self.assertEqual(several["translations"], json.loads(self.translates(*drawn, "--n-best", "4", "--temperature", "3", lines=['{"text": "1 2"}'])[0])["translations"])

    def test_refuses_options_that_a_line_may_not_have(self):
        for fields, said in (({"beam_size": 0}, "beam_size is \"0\"; expected a number from 1 to 10000"), ({"beam_size": "4"}, "expected a number"),
                             ({"beam_size": 1.5}, "expected a whole number"), ({"n_best": 9}, "\"n_best\" is 9; expected at most beam_size, which is 5"),
                             ({"min_length": 300}, "expected at most max_length, which is 256"), ({"allow_unk": 1}, "expected true or false"),
                             ({"length_penalty_type": "google"}, "expected one of pow, gnmt, none"), ({"length_penalty": True}, "expected a number"),
                             ({"max_length": [3]}, "expected a number"), ({"precision": "int8"}, "all lines share it: take it out of the line and start"),
                             ({"guard": "flag"}, "all lines share it"), ({"sampling": "full"}, "all lines share it"), ({"alignment": True}, "--alignment word"),
                             ({"temperature": 2}, "it changes nothing without --sampling"), ({"beamSize": 3}, "did you mean \"beam_size\"?"),
                             ({"n-best": 3}, "\"n-best\" is 3, and no option of a line; did you mean \"n_best\"?"),
                             ({"alignment": "word"}, "take it out of the line, and start the program with --alignment word"),
                             ({"alignment": 1}, "--alignment word"), ({"split": True}, "and start the program with --split"),
                             ({"split": "true"}, "\"split\" is \"true\""), ({"split": 1}, "A field of your own may have another name"),
                             ({"format": "html"}, "without --json for a document"), ({"attention": True}, "lacuna serve"),
                             ({"tokens": 1}, "\"tokens\" is 1; expected true or false"), ({"tokens": "true"}, "\"tokens\" is \"true\""),
                             ({"guard": "of an earlier one"}, "all lines share it"), ({"terms": "x"}, "\"terms\" is \"x\"; expected an object"),
                             ({"terms": {"1": 2}}, "\"terms\": \"1\" is 2; expected a string")):
            text = '{"text": "1"}\n' + json.dumps({"text": "1", **fields}) + "\n"
            ended = self.ends("translate", "-m", AVERAGED, "--json", text=text, code=2)
            self.assertEqual(len(ended.stdout.splitlines()), 1, fields)
            self.assertIn(":2: ", ended.stderr)
            self.assertIn(said, ended.stderr)
        self.assertIn("it changes nothing where translations are drawn",
                      self.refuses("translate", "-m", AVERAGED, "--json", "--sampling", "full", text='{"text": "1", "beam_size": 3}\n'))
        skipped = self.ends("translate", "-m", AVERAGED, "--json", "--on-error", "skip", text='{"text": "1", "beam_size": 0}\n', code=1)
        self.assertIn("beam_size", json.loads(skipped.stdout)["error"])

    def test_warns_of_fields_that_are_almost_options(self):
        near = [({"beam": 1}, "beam_size"), ({"max_len": 5}, "max_length"), ({"temp": 0.5}, "temperature"), ({"token": True}, "tokens"),
                ({"alignments": "word"}, "alignment"), ({"splits": True}, "split"), ({"term": {"1": "one"}}, "terms"), ({"allow_unks": False}, "allow_unk")]
        lines = [{"text": "1 2", **fields} for fields, _ in near]
        ended = self.ends("translate", "-m", AVERAGED, "--json", text="".join(json.dumps(line) + "\n" for line in lines * 2))
        self.assertEqual([{**line, "translation": "1 2"} for line in lines * 2],
                         [{key: value for key, value in json.loads(line).items() if key not in ("score", "log_prob")} for line in ended.stdout.splitlines()])
        for number, (fields, name) in enumerate(near, 1):
            [(key, value)] = fields.items()
            said = f'stdin:{number}: "{key}" is {json.dumps(value, separators=(",", ":"))}, and a line has no such option; did you mean "{name}"?'
            self.assertEqual(ended.stderr.count(said), 1, ended.stderr)
        self.assertEqual(ended.stderr.count("\n"), len(near), ended.stderr)

    def test_has_nothing_to_say_of_other_fields(self):
        own = {"id": 3, "split": "train", "format": "pdf", "source": "news", "target": "Ein Satz.", "lang": "de", "url": "x", "score": 1, "scores": [1], "title": "Beam",
               "beam": "Strahl", "length_ratio": 1.1, "alignment": [[0, 0]], "tokens": [], "own": {"beam": 1}, "year": 2020, "is_good": True, "labels": {"1": "one"},
               "test": True, "decision": "accept", "guard": {"flags": []}, "src_length": 9, "sample_id": 7, "length": 3, "batch": 1, "max": 2, "samples": 4}
        as_all_are = {"split": False, "format": "text", "attention": 0, "alignment": "false"}
        for fields, flags in ((own, []), ({"tokens": 12}, []), (as_all_are, []), ({"split": True, "alignment": "word"}, ["--split", "--alignment", "word"])):
            self.assertEqual(self.ends("translate", "-m", AVERAGED, "--json", *flags, text=json.dumps({"text": "1 2", **fields}) + "\n").stderr, "")

    def test_gives_the_tokens_that_are_asked_for(self):
        lines = ['{"text": "3 1 4", "tokens": true}', '{"text": "3 1 4", "tokens": ["mine"]}', '{"text": "", "tokens": true}']
        asked, mine, empty = (json.loads(line) for line in self.translates("--json", lines=lines))
        self.assertEqual([asked["tokens"][-1]["piece"], "".join(one["piece"] for one in asked["tokens"][:-1])], ["</s>", "▁3▁1▁4"])
        self.assertAlmostEqual(sum(one["log_prob"] for one in asked["tokens"]), asked["log_prob"], places=4)
        self.assertEqual([mine["tokens"], empty["tokens"]], [["mine"], []])
        both = json.loads(self.translates("--json", "--tokens", "--split", lines=['{"text": "3 1! 4"}'])[0])
        self.assertEqual([one["piece"] for one in both["tokens"]].count("</s>"), 2)
        self.assertAlmostEqual(sum(one["log_prob"] for one in both["tokens"]), both["log_prob"], places=4)
        self.assertIn("--json", self.refuses("translate", "-m", AVERAGED, "--tokens", text=""))

    def test_tells_of_lines_that_are_too_long(self):
        long, short = (json.loads(line) for line in self.translates("--json", lines=[json.dumps({"text": "1 " * 300}), '{"text": "1", "too_long": true}']))
        self.assertEqual([long.get("too_long"), "cropped" in long, "too_long" in short], [True, False, False])

    def test_takes_an_empty_line_of_json_for_an_empty_text(self):
        first, second, third = (json.loads(line) for line in self.translates("--json", lines=[json.dumps({"text": "1 2"}), "", "  "]))
        self.assertEqual([first["translation"], second["translation"], third["translation"]], ["1 2", "", ""])

    def test_refuses_json_that_goes_too_deep(self):
        for line in ('{"text": "1", "x": ' + "[" * 400000 + "]" * 400000 + "}", '{"text": ' + "[" * 400000):
            self.assertIn("nested more than 100 deep", self.refuses("translate", "-m", AVERAGED, "--json", text=line + "\n"))

    def test_writes_into_what_is_no_file(self):
        self.assertEqual(self.prints("translate", "-m", AVERAGED, "-o", "/dev/stdout", text="1 2\n"), "1 2\n")
        self.assertEqual(self.prints("translate", "-m", AVERAGED, "-o", "/dev/null", text="1 2\n"), "")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        os.symlink(path("target.out"), path("link.out"))
        write("target.out", "")
        self.prints("translate", "-m", AVERAGED, "-o", path("link.out"), text="1 2\n")
        self.assertTrue(os.path.islink(path("link.out")))
        self.assertEqual(read("target.out"), "1 2\n")

    def test_adds_to_what_a_redirected_file_holds(self):
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            for mode in ("a", "w"):
                with open(path("redirected"), mode, encoding="utf-8") as file:
                    if mode == "w":
                        file.write("before\n")
                        file.flush()
                    self.ends("translate", "-m", AVERAGED, "-o", name, text="1 2\n", stdout=file)
                self.assertTrue(read("redirected").endswith("1 2\n"))
                self.assertTrue(mode == "a" or read("redirected") == "before\n1 2\n", name)

    def test_writes_no_warning_into_its_output_where_streams_are_closed(self):
        words = [PROGRAM, "translate", "-m", AVERAGED, "-i", write("alone.txt", "1 2 3\n"), "-o", path("alone.out"), "--max-length", "2"]
        for closed in ("2>&-", "<&- 2>&-", "<&- >&- 2>&-"):
            ended = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *words], timeout=seconds(60), check=False)
            self.assertEqual(ended.returncode, 0)
            self.assertEqual(read("alone.out").count("\n"), 1, closed)
            self.assertNotIn("warning", read("alone.out"))
        ended = subprocess.run(["sh", "-c", '"$@" >&-', "sh", PROGRAM, "translate", "-m", AVERAGED], input="1 2\n", stderr=subprocess.PIPE,
                               text=True, timeout=seconds(60), check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("stdout cannot be written", ended.stderr)

    def test_leaves_nothing_where_files_may_not_be_as_large(self):
        words = [PROGRAM, "translate", "-m", AVERAGED, "-i", write("limited.txt", "1 2 3\n" * 600), "-o", path("too_large.out")]
        # 4 blocks: LLVM's OpenMP does not start where it may not write 1024 bytes of shared memory.
        ended = subprocess.run(["sh", "-c", 'ulimit -f 4; exec "$@"', "sh", *words], stderr=subprocess.PIPE, text=True, timeout=seconds(60), check=False)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("cannot be written: File too large; files may not be as large (ulimit -f", ended.stderr)
        self.assertEqual([name for name in os.listdir(FOLDER) if name.startswith("too_large.out")], [])

    def test_leaves_a_file_its_permissions_and_its_links(self):
        os.chmod(write("private.out", "x"), 0o600)
        self.prints("translate", "-m", AVERAGED, "-o", path("private.out"), text="1 2\n")
        self.assertEqual((stat.S_IMODE(os.stat(path("private.out")).st_mode), read("private.out")), (0o600, "1 2\n"))
        os.symlink("to_come.out", path("dangling.out"))
        self.prints("translate", "-m", AVERAGED, "-o", path("dangling.out"), text="1 2\n")
        self.assertTrue(os.path.islink(path("dangling.out")))
        self.assertEqual(read("to_come.out"), "1 2\n")

    def test_does_not_write_over_what_it_reads(self):
        text = write("both", "1 2\n")
        for words in (("translate", "-m", AVERAGED, "-i", text), ("score", "-m", AVERAGED, "--src", text, "--tgt", text), ("vocab", "-i", text)):
            self.assertIn(f"{text} is read, and would be written over; name another", self.refuses(*words, "-o", text))
        kept = write("kept.src", "1 2\n")
        message = self.refuses("score", "-m", AVERAGED, "--src", kept, "--tgt", text, "--filter", FOLDER)
        self.assertIn(f"{kept} is read, and would be written over", message)
        self.assertEqual((read("both"), read("kept.src")), ("1 2\n", "1 2\n"))

    def test_refuses_a_device_that_is_none(self):
        self.assertIn('device is "gpu"; expected cpu, cuda or cuda:N', self.refuses("translate", "-m", AVERAGED, "--device", "gpu"))

    def test_removes_what_a_killed_one_left_beside_its_output(self):
        out = path("killed.out")
        with subprocess.Popen([PROGRAM, "translate", "-m", AVERAGED, "-o", out], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as killed:
            while not temporaries(out, killed):
                time.sleep(0.01)
            killed.kill()
        self.assertEqual(len(temporaries(out, killed)), 1)
        self.prints("translate", "-m", AVERAGED, "-o", out, text="1 2\n")
        self.assertEqual([name for name in os.listdir(FOLDER) if name.startswith("killed.out")], ["killed.out"])

    def test_removes_its_unfinished_output_when_it_is_stopped(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            out = path("stopped.out")
            with subprocess.Popen([PROGRAM, "translate", "-m", AVERAGED, "-o", out], stdin=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL) as stopped:
                while not temporaries(out, stopped):
                    time.sleep(0.01)
                stopped.send_signal(number)
                self.assertIn(stopped.wait(seconds(60)), (-number, 128 + number))
            self.assertEqual([name for name in os.listdir(FOLDER) if name.startswith("stopped.out")], [])

    def test_lists_the_keys_that_are_flags_too(self):
        text = self.prints("translate", "--help-options")
        self.assertIn("translate.sample_k  (default", text)
        self.assertIn("entmax15", text)
        self.assertNotIn("train.lr", text)

    def test_begins_with_a_prefix(self):
        self.assertTrue(self.translates("--prefix", "5", lines=["1 2 3"])[0].startswith("5"))
        line = json.dumps({"text": "1 2", "prefix": "6"})
        self.assertTrue(json.loads(self.translates("--json", "--prefix", "5", lines=[line])[0])["translation"].startswith("6"))
        without = json.dumps({"text": "1 2", "prefix": ""})
        self.assertEqual(json.loads(self.translates("--json", "--prefix", "5", lines=[without])[0])["translation"], "1 2")

    def test_begins_with_a_prefix_longer_than_the_source_lets_a_translation_be(self):
        prefix = " ".join(["7"] * 20)
        self.assertTrue(self.translates("--prefix", prefix, lines=["1"])[0].startswith(prefix))

    def test_says_which_prefix_is_longer_than_a_translation_may_be(self):
        ended = self.ends("translate", "-m", AVERAGED, "--max-length", "4", "--prefix", "5 5 5 5 5 5", text="1 2\n3\n")
        self.assertEqual(ended.stderr.count("--prefix is longer than a translation may be"), 1, "of all lines")
        line = json.dumps({"text": "1 2", "prefix": "5 5 5 5 5 5"})
        ended = self.ends("translate", "-m", AVERAGED, "--json", "--max-length", "4", text=line + "\n")
        self.assertIn("line 1: its prefix is longer than a translation may be", ended.stderr)

    def test_refuses_a_prefix_that_is_no_text(self):
        self.assertIn("--prefix: byte 3 is not UTF-8", self.refuses("translate", "-m", AVERAGED, "--prefix", b"5 \xff"))

    def test_says_that_a_line_is_longer_than_the_model_can_read(self):
        positions = ("--model.positions", "learned", "--model.max_positions", "16", "--data.max_length", "15")
        self.prints("train", "-c", small_run.configuration(FOLDER, "learned"), *positions, "--train.max_steps", "2", "--train.average_last", "0")
        ended = self.ends("translate", "-m", path("learned/last"), "--max-length", "1", text="2\n" + "1 " * 20 + "\n")
        self.assertEqual(ended.stdout.count("\n"), 2)
        self.assertIn("warning line 2 is longer than the model can read; its end is left out\n", ended.stderr)
        self.assertNotIn("line 1 is longer", ended.stderr)

    def test_says_that_a_line_is_longer_than_sentences_of_training(self):
        said = self.ends("translate", "-m", AVERAGED, "--max-length", "300", "-b", "1", text="1\n" + ("1 " * 300 + "\n") * 2).stderr
        self.assertIn("warning line 2 has 300 pieces, and the model was trained on sentences of 256 at most (data.max_length)", said)
        self.assertIn("warning 2 lines are longer than the sentences of training\n", said)
        self.assertNotIn("line 3 has", said)
        self.assertEqual(self.ends("translate", "-m", AVERAGED, text="1\n").stderr, "")

    def test_says_that_a_prefix_cannot_be_written(self):
        ended = self.ends("translate", "-m", AVERAGED, "--prefix", "\u65e5", text="1 2\n3\n")
        self.assertEqual(ended.stderr.count("--prefix has what the vocabulary cannot write"), 1)

    def test_has_the_minimum_length_whatever_the_source(self):
        text = self.translates("--min-length", "40", lines=["1"])[0]
        self.assertGreater(len(text.replace(" ", "")), 14)  # the ratio alone would end it after 14 tokens

    def test_aligns_words_and_pieces(self):
        line, empty = self.translates("--alignment", "word", lines=["1 2 3", ""])
        text, links = line.split(" ||| ")
        self.assertEqual(text, "1 2 3")
        self.assertRegex(links, r"^\d+-\d+( \d+-\d+)*$")
        self.assertTrue(all(int(number) < 3 for link in links.split() for number in link.split("-")))
        self.assertEqual(empty, " ||| ")
        self.assertIn(" ||| 0-", self.translates("--alignment", "subword", lines=["1 2 3"])[0])

    def test_guards_what_it_translates(self):
        lines = [json.dumps({"text": text, "guard": {"of an earlier": "translation"}}) for text in LINES]
        found = [json.loads(line) for line in self.translates("--json", "--guard", lines=lines)]
        self.assertEqual([one["translation"] for one in found], LINES)
        for one in found:
            self.assertEqual(list(one["guard"]), ["length_ratio", "loop", "unattended", "null_rate", "token_log_prob", "risk", "flags"])
            self.assertEqual((one["guard"]["length_ratio"], one["guard"]["loop"], one["guard"]["flags"]), (1, 0, []))
            self.assertLess(one["guard"]["risk"], 1)
        tokens = found[0]["log_prob"] / found[0]["guard"]["token_log_prob"]
        self.assertAlmostEqual(tokens, round(tokens), delta=1e-3)
        self.assertGreater(tokens, 3)  # with eos
        self.assertNotIn("guard", json.loads(self.translates("--json", lines=lines[:1])[0]))
        self.assertIn("guard", json.loads(self.translates("--json", "--guard", "--n-best", "2", lines=lines[:1])[0])["translations"][1])
        self.assertIn('translate.guard is "often"; expected one of none, flag, retry', self.refuses("translate", "-m", AVERAGED, "--guard", "often"))

    def test_names_the_lines_that_the_guard_flags(self):
        strict = ("translate", "-m", AVERAGED, "--translate.guard_limits.min_token_log_prob", "-0.001", "--guard")
        ended = self.ends(*strict, text="1 2 3\n\n4 5\n")
        self.assertEqual((ended.returncode, ended.stdout), (0, "1 2 3\n\n4 5\n"))
        self.assertRegex(ended.stderr, r"warning line 1: its translation may not be one: token_log_prob -0\.\d\d \(at least -0\.001\)\n")
        self.assertIn("warning line 3: ", ended.stderr)
        self.assertTrue(ended.stderr.endswith("warning the guard flags 2 of 3 translations\n"), ended.stderr)
        ended = self.ends(*strict, "--json", text='{"text": "1 2 3"}\n')
        self.assertEqual(json.loads(ended.stdout)["guard"]["flags"], ["token_log_prob"])
        self.assertTrue(ended.stderr.endswith("warning the guard flags 1 of 1 translation\n"), ended.stderr)
        self.assertNotIn("line 1", ended.stderr)

    def test_searches_again_for_what_the_guard_flags(self):
        # tokens that are there already cost next to nothing, so the likeliest first one comes again and again, whatever the model says then
        endless = ("--json", "--translate.repetition_penalty", "1e-9", "--min-length", "20",
                   "--translate.guard_limits.min_token_log_prob", "-1000")
        lines = [json.dumps({"text": "1 2 3 4 5 6 7"})]
        first, second = (json.loads(self.translates(*endless, "--guard", guard, lines=lines)[0]) for guard in ("flag", "retry"))
        self.assertIn("loop", first["guard"]["flags"])
        self.assertNotIn("second_search", first)
        self.assertTrue(second["second_search"])
        self.assertLess(second["guard"]["risk"], first["guard"]["risk"])
        self.assertLess(second["guard"]["loop"], first["guard"]["loop"])

    def test_draws_the_same_for_the_same_seed(self):
        draws = [self.translates("--sampling", "full", "--temperature", "3", "--seed", seed) for seed in ("1", "1", "2")]
        self.assertEqual(draws[0], draws[1])
        self.assertNotEqual(draws[0], draws[2])

    def test_says_what_changes_nothing_without_sampling_or_with_it(self):
        said = self.ends("translate", "-m", AVERAGED, "--temperature", "3", "--translate.sample_k", "4", text="1 2\n").stderr
        self.assertIn("--temperature changes nothing without --sampling full, top_k or top_p", said)
        self.assertIn("--translate.sample_k changes nothing without --sampling top_k", said)
        said = self.ends("translate", "-m", AVERAGED, "--sampling", "full", "--beam-size", "3", text="1 2\n").stderr
        self.assertIn("--beam-size changes nothing with --sampling", said)
        said = self.ends("translate", "-m", AVERAGED, "--translate.temperature", "1", "--translate.sample_k", "10", text="1 2\n").stderr
        self.assertNotIn("changes nothing", said)  # as ablate starts it
        said = self.ends("translate", "-m", AVERAGED, "--sampling", "top_k", "--translate.sample_k", "4",
                         "--translate.sample_p=0.5", text="1 2\n").stderr
        self.assertNotIn("sample_k", said)
        self.assertIn("--translate.sample_p changes nothing without --sampling top_p", said)

    def test_in_each_precision(self):
        for precision in ("auto", "fp32", "bf16", "int8"):
            self.assertEqual(self.translates("--precision", precision), LINES, precision)

    def test_refuses_a_precision_that_is_none(self):
        message = self.refuses("translate", "-m", AVERAGED, "--precision", "int4", text="1\n")
        self.assertIn("int4", message)
        self.assertIn("auto, fp32, bf16, int8", message)

    def test_says_what_takes_the_place_of_bf16x3(self):
        message = self.refuses("translate", "-m", AVERAGED, "--precision", "bf16x3", text="1\n")
        self.assertIn("bf16x3 was removed; say fp32", message)

    def test_by_an_ensemble_of_checkpoints(self):
        self.assertEqual(self.prints("translate", "-m", AVERAGED, "-m", os.path.join(RUN, "last"), text="1 2 3\n"), "1 2 3\n")

    def test_names_the_line_that_is_no_text_and_gives_those_before(self):
        bad = write("bad.txt", b"1 2\n4 5\n3 \xff 4\n")
        self.assertRegex(self.refuses("translate", "-m", AVERAGED, "-i", bad, stdout="1 2\n4 5\n"), "bad.txt:3.*UTF-8")

    def test_refuses_json_that_is_no_sentence(self):
        before = '{"text":"","translation":"","score":0.0,"log_prob":0.0}\n'
        for line, message in (("1 2", "is not a JSON object"),
                              ('{"id": 1}', 'is not a JSON object with "text"'),
                              ('{"text": 5}', '"text" is 5; expected a string'),
                              (r'{"text": "a\nb"}', '"text" holds a line break; expected one sentence'),
                              (r'{"text": "1\u0000"}', "holds a NUL character"),
                              ('{"text": [' + "1," * 400 + "1]}", '"text" is [' + "1," * 49 + "1; expected a string"),
                              ('{"text": "1", "ids": [1.5, 18446744073709551616]}', "holds a whole number of more than 64 bits"),
                              ('{"text": "1", "id": -9223372036854775809}', "holds a whole number of more than 64 bits"),
                              ('{"text": "1", "prefix": []}', '"prefix" is []; expected a string')):
            said = self.refuses("translate", "-m", AVERAGED, "--json", text=f'{{"text": ""}}\n{line}\n', stdout=before)
            self.assertIn(f":2: {message}", said)

    def test_refuses_a_layer_that_is_not_there(self):
        message = self.refuses("translate", "-m", AVERAGED, "--alignment", "word", "--alignment-layer", "9", text="1\n")
        self.assertIn("--alignment-layer is 9; the decoder's layers are 0 to 1", message)

    def test_takes_no_file_after_the_model_for_a_second_model(self):
        self.assertIn('"input.de" is not understood', self.refuses("translate", "-m", AVERAGED, "input.de", text="1\n"))


class TextsOfSeveralSentences(Verbs):
    def split(self, text, *flags):
        return self.prints("translate", "-m", AVERAGED, "--split", *flags, text=text)

    def test_are_translated_sentence_by_sentence(self):
        sentences = self.translates(lines=["1 2!", "3 4?", "5 6"])
        self.assertEqual(self.split("  1 2!  3 4? 5 6 \n\n"), f"  {sentences[0]}  {sentences[1]} {sentences[2]} \n\n")

    def test_give_a_line_for_each_line(self):
        text = "1 2!\n\n \n3 4? 5 6! 7\n"
        self.assertEqual(self.split(text).count("\n"), 4)
        self.assertEqual(self.split("".join(line + "\n" for line in LINES)), self.prints("translate", "-m", AVERAGED, text="".join(line + "\n" for line in LINES)))

    def test_may_have_line_breaks_in_json(self):
        answer = json.loads(self.split('{"text": "1 2!\\n\\n3 4", "id": 1}\n', "--json", "--alignment", "word"))
        whole = self.translates(lines=["1 2!", "3 4"])
        self.assertEqual(answer["translation"], "\n\n".join(whole))
        targets = [int(link.split("-")[1]) for link in answer["alignment"].split()]
        self.assertEqual(sorted(targets), list(range(len(" ".join(whole).split()))))
        parts = [json.loads(line) for line in self.prints("translate", "-m", AVERAGED, "--json", text='{"text": "1 2!"}\n{"text": "3 4"}\n').splitlines()]
        self.assertAlmostEqual(answer["log_prob"], sum(part["log_prob"] for part in parts), places=5)

    def test_are_cut_where_they_are_too_long_for_the_model(self):
        ended = self.ends("translate", "-m", AVERAGED, "--split", "--max-length-ratio", "3", text="1 2 3 4 5 " * 120 + "\n")
        self.assertNotIn("longer than", ended.stderr)
        self.assertEqual(ended.stdout.count("\n"), 1)

    def test_keep_placeholders_and_addresses(self):
        for text in ("1 2 {{name}} 3", "https://a.b/c?d=1 4 5!", "%1$s", "6 a.b@c.org 7"):
            out = self.split(text + "\n")
            for part in text.replace("!", "").split():
                if not part.isdigit():
                    self.assertEqual(out.count(part), 1, out)

    def test_are_html(self):
        html = "<ul>\n <li>1 <b>2 3</b> 4</li>\n</ul>\n<!-- 5 -->"
        out = self.prints("translate", "-m", AVERAGED, "--format", "html", text=html)
        self.assertRegex(out, r"^<ul>\n <li>[\d ]*<b>[\d ]+</b>[\d ]*</li>\n</ul>\n<!-- 5 -->$")
        self.assertEqual(re.sub("<[^>]*>", "", out).split(), self.translates(lines=["1 2 3 4"])[0].split())

    def test_are_subtitles(self):
        srt = "1\n00:00:01,000 --> 00:00:02,000\n1 2\n\n2\n00:00:02,100 --> 00:00:03,000\n<i>3 4!</i>\n"
        out = self.prints("translate", "-m", AVERAGED, "--format", "srt", text=srt)
        self.assertRegex(out, r"^1\n00:00:01,000 --> 00:00:02,000\n\d[^\n]*\n\n2\n00:00:02,100 --> 00:00:03,000\n<i>\S[^\n]*</i>\n$")

    def test_refuse_what_does_not_fit(self):
        self.assertIn("--alignment subword does not go with --split", self.refuses("translate", "-m", AVERAGED, "--split", "--alignment", "subword", text=""))
        self.assertIn("--language changes nothing without", self.refuses("translate", "-m", AVERAGED, "--language", "de", text=""))
        self.assertIn('--language is "cn"; expected a language\'s code, "zh"', self.refuses("translate", "-m", AVERAGED, "--split", "--language", "cn", text=""))
        self.assertIn("--format", self.refuses("translate", "-m", AVERAGED, "--format", "html", "--json", text=""))
        self.assertIn("byte 2 is not UTF-8", self.refuses("translate", "-m", AVERAGED, "--format", "html", "-i", write("bad.html", b"a\xff")))

    def test_are_split_without_a_model(self):
        self.assertEqual(self.prints("split", "--language", "de", text="Am 3. Mai z. B. war es.  Oder?\n\nJa\n"), "Am 3. Mai z. B. war es.\nOder?\nJa\n")
        self.assertIn("is not UTF-8", self.refuses("split", "-i", write("bad.txt", b"a\xff\n")))
        self.assertIn('--language is "jp"', self.refuses("split", "--language", "jp"))


class OtherAttention(Verbs):
    """Attention that is not the checkpoint's."""

    def test_is_said_in_one_line(self):
        ended = self.start("translate", "-m", AVERAGED, "--model.attention.cross", "{type: topk, k: 1}", text="1 2\n")
        self.assertEqual((ended.returncode, ended.stdout.count("\n")), (0, 1), ended.stderr)
        self.assertEqual(ended.stderr.count("\n"), 1)
        self.assertIn("averaged: attention of the checkpoint: cross: softmax; used here: cross: {type: topk, k: 1, sparsify: always}",
                      ended.stderr)

    def test_that_is_the_same_says_nothing_and_changes_nothing(self):
        for words in (["--model.attention", "softmax"], ["--model.attention.cross.pattern", "full"]):
            ended = self.start("translate", "-m", AVERAGED, *words, text="1 2\n")
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "1 2\n", ""))

    def test_for_training_only_is_softmax_here(self):
        source = write("other.src", "1 2 3\n7 7 1 0\n")
        sparse = ["--model.attention.default", "{type: topk, k: 1}"]

        def scores(*flags):
            lines = self.prints("score", "-m", AVERAGED, "--src", source, "--tgt", source, *flags).splitlines()
            return [float(line) for line in lines]

        for masked, dense in zip(scores(*sparse, "--model.attention.default.sparsify", "train"), scores()):
            self.assertAlmostEqual(masked, dense, delta=1e-4)
        self.assertNotEqual(scores(*sparse), scores())

    def test_scores_and_is_measured(self):
        source = write("other.src", "1 2 3\n")
        score = ["score", "-m", AVERAGED, "--src", source, "--tgt", source]
        self.assertNotEqual(self.prints(*score, "--model.attention.cross", "entmax15"), self.prints(*score))
        ended = self.ends("bench", "translate", "-m", AVERAGED, "-i", source, "--rounds", "1", "--model.attention.encoder_self", "sparsemax")
        self.assertIn("used here: encoder_self: sparsemax", ended.stderr)

    def test_that_the_checkpoint_has_no_parameters_for_is_refused(self):
        message = self.refuses("translate", "-m", AVERAGED, "--model.attention.encoder_self", "{type: entmax, alpha: learned}", text="1\n")
        self.assertIn("needs: encoder.layers.0.self_attention.numbers.alpha_logit", message)
        source = write("other.src", "1\n")
        message = self.refuses("score", "-m", AVERAGED, "--src", source, "--tgt", source, "--model.attention.cross", "rela")
        self.assertIn("needs: decoder.layers.0.cross_attention.norm.gain", message)

    def test_is_all_that_can_be_changed(self):
        message = self.refuses("translate", "-m", AVERAGED, "--model.d_ff", "7", text="1\n")
        self.assertIn('model.d_ff is "7"; a trained model keeps that', message)
        message = self.refuses("translate", "-m", AVERAGED, "--model.attention.cross.pattern", "local", text="1\n")
        self.assertIn("looks at the distance", message)
        source = write("other.src", "1\n")
        message = self.refuses("score", "-m", AVERAGED, "--src", source, "--tgt", source, "--translate.beam_size", "3")
        self.assertIn("--translate.beam_size has no meaning for score", message)


class TextInPieces(Verbs):
    """Words that were cut into pieces before: numbers of two digits, "1@@ 2" for 12."""
    PIECES = ["1@@ 2 7 3@@ 4", "5 6@@ 6", "9@@ 8 1@@ 0 2"]
    WHOLE = ["12 7 34", "5 66", "98 10 2"]

    @classmethod
    def setUpClass(cls):
        draw = random.Random(3)
        write("pieces.vocab", "".join(f"{digit}\n{digit}@@\n" for digit in range(10)))
        write("pieces.txt", "".join(" ".join(draw.choice(("", f"{draw.randrange(10)}@@ ")) + str(draw.randrange(10))
                                             for _ in range(draw.randint(1, 4))) + "\n" for _ in range(2500)))
        corpus = f"[{{src: {path('pieces.txt')}, tgt: {path('pieces.txt')}}}]"
        valid = write("pieces.valid", "\n".join(cls.PIECES) + "\n")
        write("pieces.yaml", f"""run: {path("in_pieces")}
data: {{train: {corpus}, valid: {{src: {valid}, tgt: {valid}, name: v}}, tokenizer: none, vocab: {path("pieces.vocab")}}}
model: {{preset: tiny, d_model: 64, encoder_layers: 1, decoder_layers: 2, dropout: 0, attention_dropout: 0}}
train: {{batch_tokens: 1024, lr: 0.005, warmup_steps: 60, schedule: inverse_sqrt, max_steps: 400, valid_every: 400, metric: bleu}}
translate: {{joiner: "@@"}}
""")
        small_run.run(PROGRAM, "train", "-c", path("pieces.yaml"))

    def translates(self, *flags):
        return self.prints("translate", "-m", path("in_pieces"), *flags, text="\n".join(self.PIECES) + "\n").splitlines()

    def test_is_translated_to_whole_words(self):
        self.assertEqual(self.translates(), self.WHOLE)
        self.assertEqual(self.translates("--translate.joiner", ""), self.PIECES)

    def test_is_aligned_by_whole_words(self):
        self.assertEqual(len(self.translates("--alignment", "word")[0].split("|||")[1].split()), 3)
        self.assertEqual(len(self.translates("--alignment", "subword")[0].split("|||")[1].split()), 5)

    def test_is_scored_in_whole_words_while_it_trains(self):
        with open(path("in_pieces/metrics.jsonl"), encoding="utf-8") as file:
            validation = [entry for entry in map(json.loads, file) if "bleu" in str(entry)][-1]
        self.assertIn("100.0", json.dumps(validation))


if __name__ == "__main__":
    unittest.main()
