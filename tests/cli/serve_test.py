#!/usr/bin/env python3
"""`lacuna serve`, asked as its clients ask: serve_test.py PROGRAM"""
import json
import os
import random
import shutil
import signal
import socket
import threading
import unittest
import urllib.parse

import small_run
from patience import seconds
from program import FOLDER, PROGRAM, path, write
from service import Service
from verbs import AVERAGED, RUN, Verbs, setUpModule  # noqa: F401

PAIR = f"de-en={AVERAGED}"
LONG = " ".join(str(i % 10) for i in range(200))


def translation_of(answer):
    return json.loads(answer[2])["translatedText"]


class Asking(Verbs):
    def refused(self, answer, status, words):
        self.assertEqual(answer[0], status, answer[2])
        self.assertIn(words, json.loads(answer[2])["error"])


class Answers(Asking):
    """One service for all of these tests."""

    @classmethod
    def setUpClass(cls):
        cls.service = Service("-m", PAIR, "--max-characters", "20000", "--max-body-kib", "64", "--idle-seconds", "3", "--cache-mib", "1",
                              "--threads", "2")

    @classmethod
    def tearDownClass(cls):
        code = cls.service.stop()
        assert code == 0, (code, cls.service.other_lines)

    def asks(self, q="1 2", source="de", target="en", **fields):
        return self.service.ask("POST", "/translate", {"q": q, "source": source, "target": target, **fields})

    def test_translates_a_text_by_json_and_by_a_form(self):
        status, headers, body = self.asks("3 1 4")
        self.assertEqual((status, json.loads(body)), (200, {"translatedText": "3 1 4"}))
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual(headers["Access-Control-Allow-Origin"], "*")
        form = urllib.parse.urlencode({"q": "2 7\r\n\r\n8 9", "source": "de", "target": "en", "format": "text", "api_key": ""})
        self.assertEqual(translation_of(self.service.ask("POST", "/translate", form, "application/x-www-form-urlencoded")), "2 7\r\n\r\n8 9")

    def test_answers_a_list_by_a_list(self):
        self.assertEqual(translation_of(self.asks(["1 2", "", "2 3\n4 5\n"])), ["1 2", "", "2 3\n4 5\n"])
        self.assertEqual(translation_of(self.asks([])), [])

    def test_keeps_line_breaks_and_blank_lines(self):
        text = "\n1 2\r\n \t\n\n3 4\n"
        self.assertEqual(translation_of(self.asks(text)), text)

    def test_translates_each_sentence_of_a_text(self):
        text = " 1 2? 3 4!\n\n5 6? 7 8."
        expected = self.prints("translate", "-m", AVERAGED, "--split", "--language", "de", text=text + "\n")
        self.assertEqual(translation_of(self.asks(text)) + "\n", expected)
        lines = self.service.metric("lines_total")
        self.asks("9 8 7! 6 5!")
        self.assertEqual(self.service.metric("lines_total"), lines + 2)
        self.asks("9 8 7! 6 5 4!", split=False)
        self.assertEqual(self.service.metric("lines_total"), lines + 3)
        form = urllib.parse.urlencode({"q": "9 8! 7 6 5 4!", "source": "de", "target": "en", "split": "false"})
        self.service.ask("POST", "/translate", form, "application/x-www-form-urlencoded")
        self.assertEqual(self.service.metric("lines_total"), lines + 4)

    def test_takes_json_lines_of_several_sentences(self):
        text = json.dumps({"text": "1 2? 3 4!\n5"}) + "\n"
        for query, flags in (("", []), ("&alignment=word", ["--alignment", "word"]), ("&n_best=2", ["--n-best", "2"])):
            answer = self.service.ask("POST", f"/v1/translate?source=de&target=en{query}", text)
            self.assertEqual((answer[0], answer[2]), (200, self.prints("translate", "-m", AVERAGED, "--json", "--split", *flags, text=text)))
        self.refused(self.service.ask("POST", "/v1/translate?source=de&target=en&split=0", text), 400, "line break")
        self.refused(self.service.ask("POST", "/v1/translate?source=de&target=en&format=rtf", text), 400, "format is not known")

    def test_leaves_placeholders_and_addresses_as_they_are(self):
        for text in ("1 2 {{name}} 3 4", "https://example.com/?a=1 5 6", "%s", "a@b.org: 1 2"):
            answer = translation_of(self.asks(text))
            for part in text.split():
                if not part.isdigit():
                    self.assertEqual(answer.count(part), 1, answer)

    def test_honors_terms_of_lines(self):
        text = json.dumps({"text": "1 2 3", "terms": {"2": "two"}}) + "\n"
        answer = self.service.ask("POST", "/v1/translate?source=de&target=en", text)
        self.assertEqual((answer[0], answer[2]), (200, self.prints("translate", "-m", AVERAGED, "--json", "--split", text=text)))
        self.assertEqual(json.loads(answer[2])["translation"].count("two"), 1)
        self.refused(self.service.ask("POST", "/v1/translate?source=de&target=en&format=html", text), 400, "terms go with plain text alone")
        self.refused(self.service.ask("POST", "/v1/translate?source=de&target=en", '{"text": "1", "terms": []}'), 400, "terms")

    def test_translates_html(self):
        html = '<p class="x">1 2 <b>3</b> 4<br>5 <img src=y> 6</p><script>7 < 8</script>'
        answer = translation_of(self.asks(html, format="html"))
        for tag in ('<p class="x">', "<b>", "</b>", "<br>", "<img src=y>", "</p>", "<script>7 < 8</script>"):
            self.assertEqual(answer.count(tag), 1, answer)
        self.assertEqual(answer + "\n", self.prints("translate", "-m", AVERAGED, "--format", "html", text=html) + "\n")
        line = json.dumps({"text": html}) + "\n"
        streamed = self.service.ask("POST", "/v1/translate?source=de&target=en&format=html", line)
        self.assertEqual(json.loads(streamed[2])["translation"], answer)

    def test_takes_the_only_source_language_for_auto_and_says_that_it_has_not_detected_it(self):
        answer = json.loads(self.asks("5 6", source="auto")[2])
        self.assertEqual(answer, {"translatedText": "5 6", "detectedLanguage": {"confidence": 0, "language": "de"}})

    def test_gives_alternatives(self):
        answer = json.loads(self.asks("1 2 3", alternatives=2)[2])
        expected = [one["translation"] for one in json.loads(
            self.prints("translate", "-m", AVERAGED, "--json", "--n-best", "3", text='{"text": "1 2 3"}\n'))["translations"]]
        self.assertEqual([answer["translatedText"], *answer["alternatives"]], expected)
        lists = json.loads(self.asks(["1 2 3", "4"], alternatives=1)[2])
        self.assertEqual([len(one) for one in lists["alternatives"]], [1, 1])
        self.refused(self.asks(alternatives=50), 400, "this model's beam has")

    def test_says_what_languages_and_settings_there_are(self):
        languages = json.loads(self.service.ask("GET", "/languages")[2])
        self.assertEqual(languages, [{"code": "de", "name": "German", "targets": ["en"]}, {"code": "en", "name": "English", "targets": []}])
        settings = json.loads(self.service.ask("GET", "/frontend/settings")[2])
        self.assertEqual((settings["charLimit"], settings["keyRequired"]), (20000, False))
        self.assertEqual(self.service.ask("GET", "/health")[2], '{"status":"ok"}\n')
        self.assertEqual(self.service.ask("HEAD", "/health")[0::2], (200, ""))

    def test_of_json_lines_are_those_of_the_program(self):
        draw = random.Random(3)
        for flags, query in (([], ""), (["--n-best", "2"], "&n_best=2"), (["--alignment", "word"], "&alignment=word")):
            lines = [json.dumps({"text": " ".join(str(draw.randrange(10)) for _ in range(draw.randrange(9))), "id": i}) for i in range(40)]
            text = "".join(line + "\n" for line in lines)
            answer = self.service.ask("POST", f"/v1/translate?source=de&target=en{query}", text, "application/x-ndjson")
            self.assertEqual(answer[0], 200)
            self.assertEqual(answer[2], self.prints("translate", "-m", AVERAGED, "--json", *flags, text=text))

    def test_of_many_clients_at_once_are_those_of_the_program(self):
        draw = random.Random(4)
        lines = [" ".join(str(draw.randrange(10)) for _ in range(draw.randrange(1, 12))) for _ in range(160)]
        expected, found = self.translates(lines=lines), [None] * len(lines)

        def ask(first):
            for i in range(first, len(lines), 16):
                found[i] = translation_of(self.asks(lines[i]))

        clients = [threading.Thread(target=ask, args=(i,)) for i in range(16)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual(found, expected)

    def test_serve_several_requests_on_one_connection(self):
        connection = self.service.connect()
        for text in ("1 2", "3 4", "5 6"):
            connection.request("POST", "/translate", json.dumps({"q": text, "source": "de", "target": "en"}), {"Content-Type": "application/json"})
            self.assertEqual(json.loads(connection.getresponse().read())["translatedText"], text)
        connection.close()

    def test_take_requests_that_follow_each_other_without_waiting(self):
        with socket.create_connection(("127.0.0.1", self.service.port), timeout=seconds(60)) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 3 + b"GET /health HTTP/1.0\r\n\r\n")
            self.assertEqual(self.all_of(client).count(b'{"status":"ok"}'), 4)

    def test_count_what_was_done(self):
        before = self.service.metric("lines_total")
        self.asks("9 9 9 1\n2 2 2 7 7")
        self.assertEqual(self.service.metric("lines_total"), before + 2)
        hits = self.service.metric("cache_hits_total")
        self.assertEqual(translation_of(self.asks("9 9 9 1")), "9 9 9 1")
        self.assertEqual(self.service.metric("cache_hits_total"), hits + 1)
        text = self.service.ask("GET", "/metrics")[2]
        self.assertIn('lacuna_requests_total{route="/translate",status="200"}', text)
        self.assertIn('lacuna_request_seconds_bucket{le="+Inf"}', text)

    def test_log_requests_without_their_text(self):
        self.asks("6 6 6 6 6")
        self.assertNotIn("6 6 6", json.dumps(self.service.events))
        event = self.service.event("request")
        self.assertEqual(sorted(event), ["bytes", "characters", "client", "event", "lines", "route", "seconds", "status", "time"])

    def test_refuse_what_is_wrong_by_its_name(self):
        for fields, words in (({"q": 5}, "q is number"), ({"q": [1]}, "an item of q is number"), ({"q": {"a": 1}}, "q is object"),
                              ({"source": 1}, "source is number"), ({"target": "xx"}, "no model translates from de to xx; there is de to en"),
                              ({"source": ""}, "source, the code of a language, is missing; there is de to en"), ({"target": None}, "target, the code of a language, is missing; there is de to en"),
                              ({"source": "auto", "target": "xx"}, "no model translates to xx; there is de to en"), ({"split": "no"}, "split is not known"), ({"split": 3}, "split is number"),
                              ({"format": "odt"}, "format is not known"), ({"alternatives": -1}, "alternatives is not a whole number"),
                              ({"alternatives": True}, "alternatives"), ({"q": "a\0b"}, "NUL")):
            with self.subTest(fields):
                self.refused(self.service.ask("POST", "/translate", {"q": "1", "source": "de", "target": "en", **fields}), 400, words)
        for body in ("", "[", "[]", "7", '{"q":', "[" * 5000, b'{"q": "\xff", "source": "de", "target": "en"}', '{"source": "de", "target": "en"}'):
            self.assertEqual(self.service.ask("POST", "/translate", body)[0], 400, body)
        form = "application/x-www-form-urlencoded"
        for body in ("q=%zz", "q=%f", "q=%ff&source=de&target=en", "source=de", "q=1&source=de&target=en&alternatives=x"):
            self.assertEqual(self.service.ask("POST", "/translate", body, form)[0], 400, body)
        self.refused(self.service.ask("POST", "/translate", "q", "text/plain"), 415, "Content-Type")
        for kind in (form, ""):
            self.refused(self.service.ask("POST", "/translate", ' {"q": "1 % 2"}', kind), 400, "send the header Content-Type: application/json")
        self.assertIn("send the header Content-Type: application/json", self.service.ask("POST", "/v2/translate", '{"text": ["1"]}', form)[2])

    def test_refuse_json_lines_by_their_number(self):
        for query, body, words in (("", '{"text": "1"}\n{"txt": "1"}\n', "line 2"), ("", "no\n", "line 1"), ("", '{"text": 3}', "line 1"),
                                   ("&n_best=0", '{"text": "1"}', "n_best"), ("&n_best=x", '{"text": "1"}', "n_best"),
                                   ("&alignment=subword", '{"text": "1"}', "alignment"), ("&nbest=2", '{"text": "1"}', "the query has \"nbest\", a name that is not known; expected source"),
                                   ("&nbest=2", '{"text": "1"}', "Did you mean \"n_best\"?")):
            self.refused(self.service.ask("POST", f"/v1/translate?source=de&target=en{query}", body), 400, words)
        self.assertEqual(self.service.ask("POST", "/v1/translate?source=de&target=en", "")[0::2], (200, ""))
        self.refused(self.service.ask("POST", "/v1/translate", '{"text": "1"}'), 400, "target, the code of a language, is missing; there is de to en")

    def test_refuse_paths_and_methods_that_are_not_there(self):
        self.refused(self.service.ask("GET", "/nothing"), 404, "nothing at this path")
        self.refused(self.service.ask("GET", "/translate"), 405, "POST")
        self.refused(self.service.ask("POST", "/detect", {"q": "x"}), 501, "not detected")
        self.assertEqual(self.service.ask("OPTIONS", "/translate")[0], 204)

    def test_take_options_of_lines(self):
        lines = [{"text": "1 2 3"}, {"text": "1 2 3", "beam_size": 1}, {"text": "7 7 1 0", "n_best": 2}, {"text": "1 2 3", "max_length": 2, "tokens": True},
                 {"text": "1 2 3", "length_penalty": 0}]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        expected = self.prints("translate", "-m", AVERAGED, "--json", text=text)
        for _ in range(2):  # the second time from the cache
            answer = self.service.ask("POST", "/v1/translate?source=de&target=en", text)
            self.assertEqual((answer[0], answer[2]), (200, expected))
        tokens = self.prints("translate", "-m", AVERAGED, "--json", "--tokens", text='{"text": "1 2 3"}\n')
        self.assertEqual(self.service.ask("POST", "/v1/translate?source=de&target=en&tokens=true", '{"text": "1 2 3"}')[2], tokens)

    def test_show_attention_between_words(self):
        ask = "/v1/translate?source=de&target=en&alignment=word&attention=true"
        answer = json.loads(self.service.ask("POST", ask, '{"text": "3 1 4 1 5! 7 2"}')[2])
        self.assertEqual([one["source"] for one in answer["attention"]], ["3 1 4 1 5!".split(), "7 2".split()])
        self.assertEqual([word for one in answer["attention"] for word in one["target"]], answer["translation"].split())
        links, before_src, before_tgt = [], 0, 0
        for one in answer["attention"]:
            of_layer = one["weights"][0]  # of two, the last but one: links are taken from it
            self.assertEqual((len(one["weights"]), len(of_layer)), (2, 4))
            for t in range(len(one["target"])):
                sums = [sum(head[t][s] for head in of_layer) for s in range(len(one["source"]))]
                self.assertTrue(all(0 <= head[t][s] <= 1 for head in of_layer for s in range(len(sums))))
                links.append(f"{before_src + sums.index(max(sums))}-{before_tgt + t}")
            before_src, before_tgt = before_src + len(one["source"]), before_tgt + len(one["target"])
        self.assertEqual(" ".join(links), answer["alignment"])
        several = json.loads(self.service.ask("POST", ask + "&n_best=3", '{"text": "3 1 4"}')[2])["translations"]
        self.assertEqual([one["attention"][0]["target"] for one in several], [one["translation"].split() for one in several])
        self.assertEqual(json.loads(self.service.ask("POST", ask, '{"text": ""}')[2])["attention"], [None])
        long = json.loads(self.service.ask("POST", ask + "&split=0", json.dumps({"text": "1 " * 999, "beam_size": 1, "min_length": 200}))[2])
        self.assertEqual(long["attention"], [None])
        self.refused(self.service.ask("POST", ask, json.dumps({"text": "1 " * 1001})), 413, "attention is given of 2000 at a time")
        self.refused(self.service.ask("POST", ask.replace("true", "all"), '{"text": "1"}'), 400, "attention is not known; expected true or false")

    def test_refuse_options_of_lines_that_cost_more_than_the_service_allows(self):
        for fields, words in (({"beam_size": 6}, "line 2: \"beam_size\" is 6; expected at most 5, the service's own (--translate.beam_size)"),
                              ({"max_length": 257}, "expected at most 256"), ({"max_length_ratio": 1e9}, "expected at most 2"),
                              ({"repetition_penalty": .5}, "expected at least 1"), ({"n_best": 6}, "expected at most beam_size, which is 5"),
                              ({"precision": "fp32"}, "all requests share it: take it out of the line, or let the service be started with --translate.precision"),
                              ({"temperature": 1}, "a service searches by beams and draws nothing: take it out"), ({"sampling": "full"}, "draws nothing"),
                              ({"n_best": 5, "beam_size": 4}, "which is 4 for this line: raise that"), ({"n_best": 6}, "the most that the service allows"),
                              ({"alignment": "word"}, "ask by alignment=word in the query"), ({"split": False}, "ask by split=true or split=false in the query"),
                              ({"format": "html"}, "ask by format=html in the query"), ({"attention": True}, "ask by attention=true in the query"),
                              ({"tokens": "true"}, "expected true or false"), ({"beam": 1}, "line 2: \"beam\" is 1, and a line has no such option; did you mean \"beam_size\"?"),
                              ({"target": "fr"}, "line 2: \"target\" is \"fr\", and all lines of a request share target, which is en"),
                              ({"source": "en"}, "ask by source=en in the query")):
            body = '{"text": "1"}\n' + json.dumps({"text": "1", **fields})
            self.refused(self.service.ask("POST", "/v1/translate?source=de&target=en", body), 400, words)
        own = {"text": "1", "source": "de_AT", "target": "en", "split": "train", "format": "pdf", "id": 1, "own": {"beam": 1}, "src_length": 9, "sample_id": 7, "temp": 1}
        self.assertEqual(json.loads(self.service.ask("POST", "/v1/translate?source=de&target=en", json.dumps(own))[2])["own"], {"beam": 1})

    def deepl(self, fields=None, **more):
        return self.service.ask("POST", "/v2/translate", {"text": ["1 2"], "target_lang": "EN", **(fields or {})}, **more)

    def test_answer_as_deepl_does(self):
        status, _, body = self.deepl({"text": ["3 1 4", ""], "show_billed_characters": True, "formality": "default"})
        expected = [{"detected_source_language": "DE", "text": "3 1 4", "billed_characters": 5}, {"detected_source_language": "DE", "text": "", "billed_characters": 0}]
        self.assertEqual((status, json.loads(body)), (200, {"translations": expected}))
        form = "text=1+2&text=3&target_lang=en-US&source_lang=De&split_sentences=0"
        answer = json.loads(self.service.ask("POST", "/v2/translate", form, "application/x-www-form-urlencoded")[2])
        self.assertEqual([one["text"] for one in answer["translations"]], ["1 2", "3"])
        html = json.loads(self.deepl({"text": ["<p>1 <b>2</b></p>"], "tag_handling": "html"})[2])["translations"][0]["text"]
        self.assertEqual([html.count(tag) for tag in ("<p>", "<b>", "</b>", "</p>")], [1] * 4)
        self.assertEqual(json.loads(self.deepl({"text": ["1\n2"], "split_sentences": "nonewlines"})[2])["translations"][0]["text"], "1 2")
        self.assertEqual(json.loads(self.service.ask("GET", "/v2/languages?type=target")[2]), [{"language": "EN", "name": "English", "supports_formality": False}])
        self.assertEqual(json.loads(self.service.ask("GET", "/v2/languages")[2]), [{"language": "DE", "name": "German"}])
        before = json.loads(self.service.ask("GET", "/v2/usage")[2])["character_count"]
        self.deepl({"text": ["1 2 3"]})
        self.assertEqual(json.loads(self.service.ask("GET", "/v2/usage")[2])["character_count"], before + 5)

    def test_refuse_as_deepl_does(self):
        for fields, status, words in (({"text": []}, 400, "text, what is to be translated, is missing"), ({"text": "1"}, 400, "text is string; expected a list"),
                                      ({"text": [1]}, 400, "an item of text is number"), ({"target_lang": None}, 400, "target_lang, the code of a language, is missing; there is de to en"),
                                      ({"target_lang": "FR"}, 400, "no model translates"), ({"source_lang": "EN"}, 400, "no model translates"),
                                      ({"tag_handling": "xml"}, 400, "expected html"), ({"split_sentences": "2"}, 400, "split_sentences is not known"),
                                      ({"glossary_id": "x"}, 400, "glossary_id is not supported; leave it out"), ({"context": "y"}, 400, "context is not supported"),
                                      ({"formality": "more"}, 400, "formality is not supported with this value"), ({"ignore_tags": ["x"]}, 400, "ignore_tags is not supported"),
                                      ({"txt": "1"}, 400, "the request has \"txt\", a name that is not known"), ({"text": ["1 " * 12000]}, 413, "characters; expected at most 20000")):
            answer = self.deepl(fields)
            self.assertEqual(answer[0], status, answer[2])
            self.assertEqual(list(json.loads(answer[2])), ["message"])
            self.assertIn(words, json.loads(answer[2])["message"])
        self.assertIn("message", json.loads(self.service.ask("POST", "/v2/document", "{}")[2]))
        self.assertIn("expected source or target", json.loads(self.service.ask("GET", "/v2/languages?type=x")[2])["message"])
        self.assertEqual(self.service.ask("POST", "/v2/translate", "x", "text/plain")[0], 415)

    def test_refuse_too_much_text(self):
        self.refused(self.asks("1 " * 12000), 413, "characters; expected at most 20000")
        self.refused(self.asks("1" * 70000), 413, "the body is too large; expected at most 65536 bytes")

    def all_of(self, client):
        found = b""
        while part := client.recv(65536):
            found += part
        return found

    def speaks(self, *parts):
        """What comes back for these bytes until the end."""
        with socket.create_connection(("127.0.0.1", self.service.port), timeout=seconds(60)) as client:
            try:
                for part in parts:
                    client.sendall(part)
                return self.all_of(client)
            except (BrokenPipeError, ConnectionResetError):
                return b""

    def test_refuse_what_is_not_http(self):
        head = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        for text in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 40 + b"\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET\r\n\r\n",
                     head + b"Content-Length: -1\r\n\r\n", head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
                     head + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"):
            self.assertRegex(self.speaks(text), rb"^HTTP/1.1 400 Bad Request\r\n", text)
        for text in (b"GET / HTTP/1.1\r\nX: " + b"a" * 100000, b"GET /" + b"a" * 100000):
            self.assertRegex(self.speaks(text), rb"^(HTTP/1.1 431 |$)", text[:20])

    def test_end_bodies_without_end(self):
        head = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        self.assertIn(b" 413 ", self.speaks(head + b"Content-Length: 1000000000\r\n\r\n", b"x" * 1000))
        chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
        self.assertRegex(self.speaks(head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 60), rb"( 413 |^$)")
        self.assertEqual(self.service.ask("GET", "/health")[0], 200)

    def test_close_connections_that_are_slow_or_idle(self):
        slow = [socket.create_connection(("127.0.0.1", self.service.port), timeout=seconds(60)) for _ in range(3)]
        for client, text in zip(slow, (b"", b"GET / HT", b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n12")):
            client.sendall(text)
        for client in slow:
            self.assertEqual(self.all_of(client), b"")
            client.close()

    def test_serve_others_beside_idle_connections(self):
        idle = [socket.create_connection(("127.0.0.1", self.service.port)) for _ in range(100)]
        self.assertEqual(translation_of(self.asks("1 2")), "1 2")
        for one in idle:
            one.close()

    def test_tell_clients_that_wait_for_it_to_send_the_body(self):
        with socket.create_connection(("127.0.0.1", self.service.port), timeout=seconds(60)) as client:
            body = b'{"q": "1 2", "source": "de", "target": "en"}'
            client.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
                           b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
            self.assertEqual(client.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            client.sendall(body)
            self.assertIn(b'{"translatedText":"1 2"}', self.all_of(client))

    def test_show_a_page_that_loads_nothing_from_elsewhere(self):
        status, headers, page = self.service.ask("GET", "/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'; script-src 'nonce-", policy)
        self.assertIn(f'<script nonce="{policy.split("nonce-")[1].split(chr(39))[0]}">', page)
        self.assertNotRegex(page.replace("http://www.w3.org/2000/svg", ""), r"https?://|\{\{")  # a name, not a place
        self.assertNotEqual(policy, self.service.ask("GET", "/")[1]["Content-Security-Policy"])

    def test_answer_the_form_of_the_page_without_a_script(self):
        form = urllib.parse.urlencode({"pair": "de|en", "q": "1 2\r\n3 4"})
        page = self.service.ask("POST", "/", form, "application/x-www-form-urlencoded")
        self.assertEqual(page[0], 200)
        self.assertIn('<div id="target">1 2\r\n3 4</div>', page[2])
        wrong = self.service.ask("POST", "/", urllib.parse.urlencode({"pair": "<b>|en", "q": "</textarea><script>"}), "application/x-www-form-urlencoded")
        self.assertEqual(wrong[0], 400)
        self.assertIn("no model translates from &lt;b&gt; to en", wrong[2])
        self.assertIn("&lt;/textarea&gt;&lt;script&gt;", wrong[2])


class Services(Asking):
    """Each test has a service of its own."""

    def serves(self, *words):
        service = Service(*words)
        self.addCleanup(service.stop)
        return service

    def test_refuse_wrong_command_lines(self):
        self.assertIn("does not name its languages", self.refuses("serve", "-m", AVERAGED, "--listen", "127.0.0.1:0"))
        self.assertIn("both translate from de to en", self.refuses("serve", "-m", PAIR, "-m", PAIR))
        self.assertIn("expected an address and a port", self.refuses("serve", "-m", PAIR, "--listen", "here"))
        self.assertIn("expected an address and a port", self.refuses("serve", "-m", PAIR, "--listen", "127.0.0.1:70000"))
        for flag in (("--port", "80"), ("--host=0.0.0.0",)):
            self.assertIn("is not a flag; expected --listen HOST:PORT, such as --listen 127.0.0.1:5000", self.refuses("serve", "-m", PAIR, *flag))
        self.assertIn("translate.sampling is on", self.refuses("serve", "-m", PAIR, "--translate.sampling", "full"))
        self.assertIn("there is no key in it", self.refuses("serve", "-m", PAIR, "--keys", write("none", "# nothing\n\n")))
        self.assertIn("expected an address or a network", self.refuses("serve", "-m", PAIR, "--trusted-proxy", "10.0.0.0/33"))
        self.assertIn("keys:2: expected a key", self.refuses("serve", "-m", PAIR, "--keys", write("keys", "a\nb c\n")))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.assertIn("Address already in use", self.refuses("serve", "-m", PAIR, "--listen", f"127.0.0.1:{taken.getsockname()[1]}", code=1))

    def asks(self, service, q, **fields):
        return service.ask("POST", "/translate", {"q": q, "source": "de", "target": "en", **fields})

    def test_want_their_keys(self):
        service = self.serves("-m", PAIR, "--keys", write("keys", "alpha # of all\nbeta 10\n"))
        self.refused(self.asks(service, "1"), 403, "an API key is missing: send it as api_key, or as the header Authorization: Bearer KEY")
        self.assertEqual(self.asks(service, "1", api_key="gamma")[0], 403)
        self.assertEqual(self.asks(service, "1", api_key="alpha")[0], 200)
        answer = service.ask("POST", "/v1/translate?target=en", '{"text": "1"}', Authorization="Bearer alpha")
        self.assertEqual(answer[0], 200, answer[2])
        self.refused(service.ask("POST", "/v1/translate?target=en", '{"text": "1"}'), 403, "missing: send the header Authorization: Bearer KEY")
        self.refused(service.ask("POST", "/v1/translate?target=en", '{"text": "1"}', Authorization="alpha"), 403, "the header Authorization has no API key")
        deepl = {"text": ["1"], "target_lang": "EN"}
        self.assertEqual(json.loads(service.ask("POST", "/v2/translate", deepl)[2]), {"message": "an API key is missing: send the header Authorization: DeepL-Auth-Key KEY"})
        self.assertEqual(service.ask("POST", "/v2/translate", deepl, Authorization="DeepL-Auth-Key alpha")[0], 200)
        self.assertEqual(json.loads(service.ask("POST", "/v2/translate", deepl, Authorization="DeepL-Auth-Key delta")[2]), {"message": "the API key is not known"})
        self.assertEqual(json.loads(service.ask("GET", "/v2/usage", Authorization="DeepL-Auth-Key beta")[2])["character_count"], 0)
        self.assertEqual(self.asks(service, "1 2 3 4 5", api_key="beta")[0], 200)
        status, headers, _ = self.asks(service, "1 2 3 4 5", api_key="beta")
        self.assertEqual(status, 429)
        self.assertGreaterEqual(int(headers["Retry-After"]), 1)
        self.assertEqual(self.asks(service, "1 2 3 4 5" * 9, api_key="alpha")[0], 200)
        write("keys", "gamma\n")
        service.signal(signal.SIGHUP)
        service.event("reload")
        self.assertEqual(self.asks(service, "1", api_key="gamma")[0], 200)
        self.assertEqual(self.asks(service, "1", api_key="alpha")[0], 403)
        self.assertNotIn("alpha", json.dumps(service.events))

    def test_charge_who_stands_behind_a_trusted_proxy(self):
        body = {"q": "1 2 3 4 5", "source": "de", "target": "en"}
        service = self.serves("-m", PAIR, "--rate", "10", "--trusted-proxy", "10.1.0.0/16", "--trusted-proxy", "127.0.0.1")
        for forwarded, status in (("198.51.100.1", 200), ("198.51.100.2", 200), ("198.51.100.1", 429), ("1.1.1.1, 198.51.100.1", 429),
                                  ("198.51.100.3, 10.1.2.3", 200), ("198.51.100.3", 429), ("[2001:db8::1]:443", 200), ("2001:DB8::1", 429),
                                  ("::ffff:198.51.100.3", 429), ("nonsense", 200), ("10.1.9.9", 200), ("", 429)):
            self.assertEqual(service.ask("POST", "/translate", body, **{"X-Forwarded-For": forwarded})[0], status, forwarded)
        self.assertEqual(service.event("request", 1)["client"], "198.51.100.1")
        plain = self.serves("-m", PAIR, "--rate", "10")
        self.assertEqual([plain.ask("POST", "/translate", body, **{"X-Forwarded-For": str(i)})[0] for i in range(2)], [200, 429])

    def test_refuse_more_than_may_wait_and_serve_again_then(self):
        service = self.serves("-m", PAIR, "--max-queue-kib", "1", "--threads", "1", "-b", "50")
        statuses = []

        def ask():
            statuses.append(self.asks(service, "\n".join([LONG] * 2))[0])

        clients = [threading.Thread(target=ask) for _ in range(24)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual(set(statuses), {200, 503})
        self.assertEqual(translation_of(self.asks(service, "1 2")), "1 2")

    def test_let_go_what_a_client_that_left_has_asked(self):
        service = self.serves("-m", PAIR, "--threads", "1", "-b", "50")
        with socket.create_connection(("127.0.0.1", service.port)) as client:
            body = json.dumps({"q": "\n".join([LONG] * 200), "source": "de", "target": "en"}).encode()
            client.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            service.wait_for_metric("searched_lines", lambda lines: lines > 0)
        service.wait_for_metric("searched_lines", lambda lines: lines == 0)
        self.assertEqual(service.metric("waiting_lines"), 0)
        self.assertEqual(service.metric("waiting_bytes"), 0)
        self.assertGreater(service.metric("abandoned_lines_total"), 100)
        self.assertIn(("/translate", 0), [(event["route"], event["status"]) for event in service.events if event["event"] == "request"])

    def test_give_up_what_takes_too_long(self):
        service = self.serves("-m", PAIR, "--threads", "1", "-b", "50", "--max-seconds", "1")
        status, headers, body = self.asks(service, "\n".join([LONG] * 200))
        self.assertEqual(status, 503, body)
        self.assertIn("more than 1 seconds", body)
        self.assertIn("Retry-After", headers)
        service.wait_for_metric("searched_lines", lambda lines: lines == 0)

    def test_take_no_more_connections_than_they_may(self):
        service = self.serves("-m", PAIR, "--max-connections", "2")
        idle = [service.connect() for _ in range(2)]
        for one in idle:
            one.request("GET", "/health")
            one.getresponse().read()
        self.assertEqual(service.ask("GET", "/health")[0], 503)
        for one in idle:
            one.close()

    def test_finish_what_was_taken_and_end_well(self):
        service = self.serves("-m", PAIR, "--threads", "1", "-b", "50")
        found = []
        client = threading.Thread(target=lambda: found.append(self.asks(service, "\n".join([LONG] * 100))))
        client.start()
        service.wait_for_metric("searched_lines", lambda lines: lines > 0)
        service.signal(signal.SIGTERM)
        client.join()
        self.assertEqual(found[0][0], 200)
        self.assertEqual(found[0][1]["Connection"], "close")
        self.assertEqual(service.wait(), 0)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", service.port))

    def test_end_at_the_second_signal(self):
        service = self.serves("-m", PAIR, "--threads", "1", "-b", "50")
        with socket.create_connection(("127.0.0.1", service.port)) as client:
            body = json.dumps({"q": "\n".join([LONG] * 200), "source": "de", "target": "en"}).encode()
            client.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            service.wait_for_metric("searched_lines", lambda lines: lines > 0)
            service.signal(signal.SIGTERM)
            service.event("stop")
            service.signal(signal.SIGTERM)
            self.assertEqual(service.wait(), 1)
        self.assertIn("before all requests were answered", "".join(service.other_lines))

    def test_load_a_model_anew_without_losing_a_request(self):
        shutil.copytree(AVERAGED, path("first"))
        small_run.run(PROGRAM, "train", "-c", small_run.configuration(FOLDER, "second"), "--train.max_steps", "2")
        os.symlink("first", path("current"))
        service = self.serves("-m", f"de-en={path('current')}", "--watch-seconds", "1")
        texts, stops = [], threading.Event()

        def ask():
            while not stops.is_set():
                status, _, body = self.asks(service, "4 2\n1 3 5")
                texts.append(json.loads(body)["translatedText"] if status == 200 else status)

        client = threading.Thread(target=ask)
        client.start()
        service.wait_for_metric("lines_total", lambda lines: lines > 0)
        os.symlink("second/last", path("next"))
        os.replace(path("next"), path("current"))
        service.event("reload")
        stops.set()
        client.join()
        second = "\n".join(self.prints("translate", "-m", path("current"), text="4 2\n1 3 5\n").splitlines())
        self.assertEqual(texts[0], "4 2\n1 3 5")
        self.assertLessEqual(set(texts), {"4 2\n1 3 5", second})
        self.assertEqual(translation_of(self.asks(service, "4 2\n1 3 5")), second)
        self.assertEqual(service.metric("reloads_total"), 1)

    def test_keep_a_model_whose_successor_cannot_be_loaded(self):
        shutil.copytree(AVERAGED, path("kept"))
        service = self.serves("-m", f"de-en={path('kept')}", "--watch-seconds", "0")
        write("kept/config.yaml", "model: {d_model: 3}\n")
        service.signal(signal.SIGHUP)
        self.assertIn("config.yaml", service.event("reload")["error"])
        self.assertEqual(translation_of(self.asks(service, "1 2")), "1 2")
        self.assertEqual(service.metric("failed_reloads_total"), 1)

    def test_translate_between_several_languages(self):
        service = self.serves("-m", PAIR, "-m", f"fr-en={RUN}", "-m", f"en-de={RUN}", "--quiet")
        self.assertEqual(translation_of(service.ask("POST", "/translate", {"q": "1 2", "source": "fr", "target": "en"})), "1 2")
        status, _, body = service.ask("POST", "/translate", {"q": "1", "source": "auto", "target": "en"})
        self.assertEqual(status, 400)
        self.assertIn("de to en, fr to en", body)
        self.refused(service.ask("POST", "/v1/translate?source=de", '{"text": "1"}'), 400, "target, the code of a language, is missing; there is de to en, fr to en, en to de")
        self.assertIn("name source_lang; there is de to en, fr to en", service.ask("POST", "/v2/translate", {"text": ["1"], "target_lang": "EN"})[2])
        self.assertEqual(translation_of(service.ask("POST", "/translate", {"q": "1 2", "source": "auto", "target": "de"})), "1 2")
        self.assertEqual([event["event"] for event in service.events], ["ready"])

    def test_leave_the_page_out(self):
        service = self.serves("-m", PAIR, "--no-page")
        self.assertEqual(service.ask("GET", "/")[0], 404)


if __name__ == "__main__":
    unittest.main()
