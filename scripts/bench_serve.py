#!/usr/bin/env python3
"""What `lacuna serve` can do beside the program itself and LibreTranslate, and what hostile clients can do to it.

    scripts/bench_serve.py --model RUN --src data/multi30k/test2016.de.gz [PART ...]

Parts: equal throughput latency overload idle hostile leaving drain, all of them unless some are named; and, by name alone, `libretranslate`, which needs
--peer-python, the Python of an environment with the package libretranslate, and `memory`, which takes --minutes. Each part starts services of its own,
with int8 and the model's own search otherwise. The exit status is 1 where a figure is not as wanted. --record FILE appends each part's figures as a line of JSON.
The machine must be quiet for throughput, latency, libretranslate, overload, idle and leaving.
"""
import argparse
import collections
import datetime
import gzip
import http.client
import itertools
import json
import os
import pathlib
import random
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEARCH = ["--precision", "int8"]


class Service:
    """`lacuna serve` while it runs."""

    def __init__(self, flags, *words):
        command = [flags.lacuna, "serve", "-m", flags.model, "--listen", "127.0.0.1:0", "--quiet", "--threads", str(flags.threads), *SEARCH, *words]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.log = []
        for line in self.process.stderr:
            self.log.append(line)
            if line.startswith("{") and json.loads(line)["event"] == "ready":
                break
        else:
            sys.exit(f"bench_serve.py: {' '.join(command)} has not begun to serve: {''.join(self.log)}")
        ready = json.loads(self.log[-1])
        self.port = int(ready["listen"].rsplit(":", 1)[1])
        self.src, self.tgt = ready["models"][0].split("-")
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def request(self, path, fields):
        return request(path, {"source": self.src, "target": self.tgt, **fields})

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        return connection.getresponse().read().decode()

    def metric(self, name):
        return next(float(line.split()[-1]) for line in self.get("/metrics").splitlines() if line.startswith(f"lacuna_{name} "))

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def request(path, fields):
    """The bytes of a request."""
    body = json.dumps(fields).encode()
    return b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(body), body)


class Connection:
    """A client that sends requests one after the other, without waiting in between but for `pause_s` after a refusal."""

    def __init__(self, port, requests):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.requests, self.unread, self.number, self.begin = requests, b"", None, 0

    def send_next(self):
        """Sends a request; False if there is none left."""
        self.number, text = next(self.requests, (None, None))
        if text is None:
            return False
        self.begin = time.perf_counter()
        sent = self.socket.send(text)
        if sent < len(text):
            self.socket.setblocking(True)
            self.socket.sendall(text[sent:])
            self.socket.setblocking(False)
        return True

    def take_answer(self):
        """(status, body) if the answer is whole, else None."""
        read = self.socket.recv(1 << 16)
        if not read:
            raise ConnectionError("the service has closed a connection")
        self.unread += read
        head, border, rest = self.unread.partition(b"\r\n\r\n")
        if not border:
            return None
        lines = head.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        if len(rest) < length:
            return None
        self.unread = rest[length:]
        return int(head[9:12]), rest[:length]


def run_clients(port, number, requests, until=None, pause_s=0.0):
    """Lets clients send the requests, (number, bytes), until these or the time are over: [(number, status, seconds, body)]. One thread, so that what they
    take of the machine is small."""
    answers, shared, paused = [], iter(requests), collections.deque()
    selector = selectors.DefaultSelector()
    waiting = 0
    for _ in range(number):
        connection = Connection(port, shared)
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        waiting += connection.send_next()
    while waiting and (until is None or time.perf_counter() < until):
        while paused and paused[0][0] <= time.perf_counter():
            waiting += paused.popleft()[1].send_next() - 1
        for key, _ in selector.select(0.05):
            connection = key.data
            if connection.number is None:  # it has nothing more to ask, and the service has closed it
                selector.unregister(connection.socket)
                continue
            answer = connection.take_answer()
            if answer is None:
                continue
            now = time.perf_counter()
            answers.append((connection.number, answer[0], now - connection.begin, answer[1]))
            if pause_s and answer[0] != 200:
                paused.append((now + pause_s, connection))
            else:
                waiting += connection.send_next() - 1
    for key in list(selector.get_map().values()):
        key.fileobj.close()
    selector.close()
    return answers


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def milliseconds(seconds):
    return round(1000 * seconds, 2)


def lines_of(file):
    with (gzip.open if file.endswith(".gz") else open)(file, "rt", encoding="utf-8") as text:
        return [line.rstrip("\n") for line in text if line.strip()]


def translated_by_the_program(flags, lines):
    """(translations, seconds of the whole process)"""
    begin = time.perf_counter()
    ended = subprocess.run([flags.lacuna, "translate", "-m", flags.model, "--quiet", "--threads", str(flags.threads), *SEARCH], input="\n".join(lines) + "\n",
                           capture_output=True, text=True, check=True)
    return ended.stdout.split("\n")[:-1], time.perf_counter() - begin


def single_requests(service, lines, **fields):
    return list(enumerate(service.request("/translate", {"q": line, "split": False, **fields}) for line in lines))


# ---- The parts: each gives its figures, with what is wanted of them: {name: (value, is as wanted or None, wanted)}

def equal(flags):
    lines = list(itertools.islice(itertools.cycle(flags.lines), 1000))
    expected, _ = translated_by_the_program(flags, lines)
    with Service(flags) as service:
        answers = run_clients(service.port, 32, single_requests(service, lines))
    found = {number: json.loads(body)["translatedText"] for number, status, _, body in answers if status == 200}
    same = sum(found.get(i) == text for i, text in enumerate(expected))
    return {"sentences of 32 clients that are those of the program, of 1,000": (same, same == 1000, 1000)}


def throughput(flags):
    """Pairs in turn: the program on the file, less its start, and 32 clients that ask for the file's lines."""
    lines = list(itertools.islice(itertools.cycle(flags.lines), flags.sentences))
    pairs = []
    with Service(flags) as service:
        requests = single_requests(service, lines)
        run_clients(service.port, 32, requests[:200])
        for _ in range(flags.rounds):
            program = translated_by_the_program(flags, lines)[1] - translated_by_the_program(flags, lines[:1])[1]
            begin = time.perf_counter()
            run_clients(service.port, 32, requests)
            pairs.append((len(lines) / program, len(lines) / (time.perf_counter() - begin)))
    share = statistics.median(served / program for program, served in pairs)
    return {"sentences/s, the program": (round(statistics.median(program for program, _ in pairs), 1), None, ""),
            "sentences/s, 32 clients": (round(statistics.median(served for _, served in pairs), 1), None, ""),
            "share of the program's": (round(share, 3), share >= 0.9, ">= 0.9")}


def latency(flags):
    """One client, and the program that is given one line after the other, in turn; between them a pause, in which threads of the other stop to spin. Then
    clients without pauses."""
    pause_s = 0.02
    lines = flags.lines[:200]
    command = [flags.lacuna, "translate", "-m", flags.model, "--quiet", "--threads", str(flags.threads), *SEARCH]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    alone, served = [], []
    with Service(flags) as service:
        for number, text in single_requests(service, lines):
            time.sleep(pause_s)
            begin = time.perf_counter()
            program.stdin.write(lines[number].encode() + b"\n")
            program.stdin.flush()
            program.stdout.readline()
            alone.append(time.perf_counter() - begin)
            time.sleep(pause_s)
            served.append(run_clients(service.port, 1, [(number, text)])[0][2])
        unpaused = {clients: [one[2] for one in run_clients(service.port, clients, single_requests(service, lines))] for clients in (1, 2, 4)}
    program.stdin.close()
    program.wait()
    more = statistics.median(b - a for a, b in zip(alone[20:], served[20:]))
    return {"milliseconds a sentence, the program one by one": (milliseconds(statistics.median(alone[20:])), None, ""),
            "milliseconds a sentence, one client": (milliseconds(statistics.median(served[20:])), None, ""),
            "milliseconds more, median of pairs": (milliseconds(more), more <= 0.002, "<= 2"),
            **{f"milliseconds a sentence without pauses, {clients} client{'s' * (clients > 1)}, median and p99":
               (f"{milliseconds(statistics.median(seconds))}, {milliseconds(percentile(seconds, 0.99))}", None, "") for clients, seconds in unpaused.items()}}


def start_libretranslate(flags, folder):
    package = os.path.join(folder, "model.argosmodel")
    subprocess.run([flags.lacuna, "export", "-m", flags.model, "--to", "argos", "-o", package], check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    peer = subprocess.Popen([flags.peer_python, str(ROOT / "scripts/peers/serve_libretranslate.py"), "--package", package, "--folder", folder, "--port", str(port)],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            env={**os.environ, "OMP_NUM_THREADS": "1"})  # its fastest setting: more threads wait for each other
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return peer, port
        except OSError:
            time.sleep(0.2)
        if peer.poll() is not None:
            break
    sys.exit("bench_serve.py: LibreTranslate has not begun to serve; run scripts/peers/serve_libretranslate.py by hand to see why")


def libretranslate(flags):
    """16 clients each, in turn, with the same weights in int8 and LibreTranslate's beam of 4."""
    lines = flags.lines[:400]
    figures = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, Service(flags, "-b", "4") as service:
        peer, port = start_libretranslate(flags, folder)
        try:
            requests = single_requests(service, lines)
            for warm_up in (True, *[False] * flags.rounds):
                for name, at in (("lacuna", service.port), ("libretranslate", port)):
                    begin = time.perf_counter()
                    answers = run_clients(at, 16, requests[:64] if warm_up else requests)
                    seconds = time.perf_counter() - begin
                    if any(status != 200 for _, status, _, _ in answers):
                        sys.exit(f"bench_serve.py: {name} has not answered with 200: {answers[0]}")
                    if not warm_up:
                        figures[name].append((len(answers) / seconds, percentile([one for _, _, one, _ in answers], 0.99)))
        finally:
            peer.terminate()
            peer.wait(60)
    ours, theirs = ([statistics.median(one[i] for one in figures[name]) for i in (0, 1)] for name in ("lacuna", "libretranslate"))
    return {"requests/s of 16 clients": (round(ours[0], 1), None, ""), "requests/s, LibreTranslate": (round(theirs[0], 1), None, ""),
            "times LibreTranslate's": (round(ours[0] / theirs[0], 2), ours[0] >= 3 * theirs[0], ">= 3"),
            "p99, ms": (milliseconds(ours[1]), None, ""), "p99 of LibreTranslate, ms": (milliseconds(theirs[1]), None, ""),
            "share of LibreTranslate's p99": (round(ours[1] / theirs[1], 3), ours[1] <= theirs[1] / 3, "<= 0.333")}


def overload(flags):
    """Ten times the clients that keep the service busy, each with ten sentences at a time, whatever it answers."""
    with Service(flags, "--max-queue-kib", "64") as service:
        single = single_requests(service, flags.lines[:20])
        normal = statistics.median(one[2] for one in run_clients(service.port, 1, single))
        draw = random.Random(1)
        texts = itertools.count()
        requests = ((i, service.request("/translate", {"q": draw.sample(flags.lines, 10), "split": False})) for i in texts)
        resident, stop = [], threading.Event()

        def watch():
            while not stop.wait(1):
                resident.append(service.resident_mib())

        watcher = threading.Thread(target=watch)
        watcher.start()
        answers = run_clients(service.port, 320, requests, until=time.perf_counter() + flags.overload_seconds, pause_s=0.25)
        stop.set()
        watcher.join()
        end = time.perf_counter()
        after = [run_clients(service.port, 1, single[:1])[0][2] for _ in range(20) if time.perf_counter() < end + 1]
    statuses = collections.Counter(status for _, status, _, _ in answers)
    begin, last = resident[len(resident) // 6], resident[-1]
    soon = bool(after) and after[-1] <= 2 * normal + 0.005
    return {"statuses": (", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items())), set(statuses) <= {200, 503}, "200 and 503 alone"),
            "MiB after a sixth of the time, and at the end": (f"{begin:.0f}, {last:.0f}", last <= 1.05 * begin + 5, "flat"),
            "milliseconds a sentence before": (milliseconds(normal), None, ""),
            "milliseconds a sentence, the last within 1 s after": (milliseconds(after[-1]) if after else None, soon, "as before")}


def idle(flags):
    with Service(flags) as service:
        single = single_requests(service, flags.lines[:100])
        before = [one[2] for one in run_clients(service.port, 1, single)]
        connections = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(1000)]
        beside = [one[2] for one in run_clients(service.port, 1, single)]
        for one in connections:
            one.close()
    more = statistics.median(b - a for a, b in zip(before, beside))
    return {"milliseconds a sentence, median and most": (f"{milliseconds(statistics.median(before))}, {milliseconds(max(before))}", None, ""),
            "beside 1,000 idle connections": (f"{milliseconds(statistics.median(beside))}, {milliseconds(max(beside))}", max(beside) <= 0.05, "<= 50"),
            "milliseconds more, median of pairs": (milliseconds(more), None, "")}


def send_until_closed(port, head, part, most_bytes, pause_s=0.0):
    """(bytes that could be sent, first line of what came back) of a client that sends `part` again and again."""
    sent, found = 0, b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        try:
            client.sendall(head)
            while sent < most_bytes:
                client.sendall(part)
                sent += len(part)
                time.sleep(pause_s)
        except OSError:
            pass
        try:
            while read := client.recv(1 << 16):
                found += read
        except OSError:
            pass
    return sent, found.split(b"\r\n")[0].decode()


def hostile(flags):
    post = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
    attacks = {
        "a header without end": (b"GET / HTTP/1.1\r\n", b"X-Header: " + b"a" * 1000 + b"\r\n", 1 << 30, 0.0),
        "a header line without end": (b"GET / HTTP/1.1\r\nX: ", b"a" * 65536, 1 << 30, 0.0),
        "a body of 1 GB": (post + b"Content-Length: 1000000000\r\n\r\n", b"x" * 65536, 1 << 30, 0.0),
        "a body that comes byte by byte": (post + b"Content-Length: 1000\r\n\r\n", b"x", 1000, 0.5),
        "a header that comes byte by byte": (post, b"x", 1000, 0.5),
        "a chunked body without end": (chunked, b"4000\r\n" + b"x" * 0x4000 + b"\r\n", 1 << 30, 0.0),
        "chunks of one byte": (chunked, b"1\r\nx\r\n" * 1000, 1 << 30, 0.0),
        "a chunk of 16 EiB": (chunked + b"FFFFFFFFFFFFFFFF\r\n", b"x" * 65536, 1 << 30, 0.0),
        "a chunk extension without end": (chunked + b"1;a=", b"a" * 65536, 1 << 30, 0.0),
        "trailers without end": (chunked + b"0\r\n", b"X: " + b"a" * 1000 + b"\r\n", 1 << 30, 0.0),
    }
    figures = {}
    with Service(flags, "--idle-seconds", "5") as service:
        run_clients(service.port, 8, single_requests(service, flags.lines[:100]))
        before = most = service.resident_mib()
        stop = threading.Event()

        def watch():
            nonlocal most
            while not stop.wait(0.01):
                most = max(most, service.resident_mib())

        watcher = threading.Thread(target=watch)
        watcher.start()
        for name, (head, part, most_bytes, pause_s) in attacks.items():
            begin = time.perf_counter()
            sent, said = send_until_closed(service.port, head, part, most_bytes, pause_s)
            is_refused = sent < most_bytes and (not said or " 4" in said)
            figures[name] = (f"{said[9:12] or 'closed'} after {sent:,} bytes, {time.perf_counter() - begin:.1f} s", is_refused, "refused")
        stop.set()
        watcher.join()
        is_served = json.loads(service.get("/health"))["status"] == "ok"
    figures["MiB more at most"] = (round(most - before, 2), most - before < 5 and is_served, "< 5")
    return figures


def leaving(flags):
    """A client that asks for a book, and closes its connection."""
    seconds = []
    with Service(flags) as service:
        run_clients(service.port, 8, single_requests(service, flags.lines[:100]))
        book = service.request("/translate", {"q": flags.lines[:900], "split": False})
        for _ in range(10):
            client = socket.create_connection(("127.0.0.1", service.port))
            client.sendall(book)
            while service.metric("searched_lines") == 0:
                time.sleep(0.005)
            client.close()
            begin = time.perf_counter()
            while service.metric("searched_lines") + service.metric("waiting_lines") > 0:
                pass
            seconds.append(time.perf_counter() - begin)
    return {"milliseconds until a book's lines are let go, median and most": (f"{milliseconds(statistics.median(seconds))}, {milliseconds(max(seconds))}",
                                                                         max(seconds) <= 0.1, "<= 100")}


def drain(flags):
    with Service(flags, "--drain-seconds", "300") as service:
        requests = [(i, service.request("/translate", {"q": flags.lines[i::32][:4], "split": False})) for i in range(32)]
        answers = []
        clients = threading.Thread(target=lambda: answers.extend(run_clients(service.port, 32, requests)))
        clients.start()
        while service.metric("searched_lines") == 0:
            time.sleep(0.001)
        service.process.send_signal(signal.SIGTERM)
        code = service.process.wait(300)
        clients.join()
    answered = sum(status == 200 for _, status, _, _ in answers)
    return {"requests of 32 that are answered after SIGTERM": (answered, answered == 32, 32), "exit code": (code, code == 0, 0)}


def memory(flags):
    """Texts of mixed lengths at a low load, for as long as is asked."""
    draw, resident = random.Random(2), {}
    with Service(flags) as service:
        begin = time.monotonic()
        while (passed := (time.monotonic() - begin) / 60) < flags.minutes:
            count = draw.choice((1, 1, 1, 2, 3, 5, 8, 20, 60))
            text = (" " if draw.random() < 0.5 else "\n").join(draw.choices(flags.lines, k=count))
            run_clients(service.port, draw.choice((1, 1, 2, 4)), [(i, service.request("/translate", {"q": text})) for i in range(4)])
            resident[int(passed)] = service.resident_mib()
            time.sleep(flags.pause)
        requests = sum(float(line.split()[-1]) for line in service.get("/metrics").splitlines() if line.startswith("lacuna_requests_total"))
    early = resident[min(resident, key=lambda minute: abs(minute - flags.minutes / 6))]
    last = resident[max(resident)]
    return {"requests": (int(requests), None, ""),
            f"MiB after {flags.minutes / 6:.0f} and {flags.minutes:.0f} minutes": (f"{early:.1f}, {last:.1f}", abs(last / early - 1) <= 0.05, "within 5 %")}


PARTS = {part.__name__: part for part in (equal, throughput, latency, libretranslate, overload, idle, hostile, leaving, drain, memory)}
BY_NAME_ALONE = ("libretranslate", "memory")


def parsed_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lacuna", default=str(ROOT / "build/cpu/lacuna"), help="the program")
    parser.add_argument("--model", required=True, help="a checkpoint or run folder")
    parser.add_argument("--src", required=True, help="text in the model's source language, a sentence a line, 1,000 or so")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5, help="of throughput and libretranslate")
    parser.add_argument("--sentences", type=int, default=2000, help="of a round of throughput")
    parser.add_argument("--overload-seconds", type=float, default=60)
    parser.add_argument("--minutes", type=float, default=60, help="of memory")
    parser.add_argument("--pause", type=float, default=1, help="seconds between the requests of memory")
    parser.add_argument("--peer-python", help="for libretranslate")
    parser.add_argument("--record", help="file of records to append to")
    parser.add_argument("--busy", action="store_true", help="the machine does other work meanwhile: the record says so")
    parser.add_argument("--processor", default="", help="its family, for the record")
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[[], *PARTS], help=", ".join(PARTS))
    flags = parser.parse_args()
    flags.parts = flags.parts or [part for part in PARTS if part not in BY_NAME_ALONE]
    if "libretranslate" in flags.parts and not flags.peer_python:
        parser.error("libretranslate needs --peer-python")
    flags.lines = lines_of(flags.src)
    return flags


def append_record(flags, name, figures):
    """Appends the figures of a part to the file of records."""
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    record = {"task": "service", "part": name, "date": str(datetime.date.today()), "processor": flags.processor, "commit": commit,
              "command": f"scripts/bench_serve.py --model RUN --src FILE {name}", "figures": [[figure, value, wanted] for figure, (value, _, wanted) in figures.items()]}
    if flags.busy:
        record["busy"] = True
    with open(flags.record, "a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")


def main():
    flags = parsed_flags()
    is_well = True
    print("| part | figure | value | wanted | holds |\n| --- | --- | --- | --- | --- |")
    for name in flags.parts:
        figures = PARTS[name](flags)
        if flags.record:
            append_record(flags, name, figures)
        for figure, (value, holds, wanted) in figures.items():
            is_well = is_well and holds is not False
            print(f"| {name} | {figure} | {value} | {wanted} | {'' if holds is None else 'yes' if holds else 'NO'} |", flush=True)
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
