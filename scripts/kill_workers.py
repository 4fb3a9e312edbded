#!/usr/bin/env python3
"""Proves that workers lose and double no line: translates a text by one process, then in parts by several, which are killed and stopped.

    scripts/kill_workers.py build/cpu/lacuna -m runs/bundled/averaged -i data/bundled/train.de -- --beam-size 1

Every --kill-every seconds one of the workers is killed (SIGKILL) and started again; once, another is stopped (SIGSTOP) for longer than the
lease, and goes on. The parts, end to end, must be the bytes of one process. The text is that of -i, repeated with its words in other orders until
it has --lines lines. Prints what was done as JSON; exit code 1 if a byte differs.
"""
import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time


def write_text(source, lines, target):
    with open(source, encoding="utf-8") as file:
        sentences = file.read().splitlines()
    with open(target, "w", encoding="utf-8") as file:
        for number in range(lines):
            words = sentences[number % len(sentences)].split()
            if number >= len(sentences):
                random.Random(number).shuffle(words)
            file.write(" ".join(words) + "\n")


def hash_of(chunks):
    digest, count = hashlib.sha256(), 0
    for chunk in chunks:
        digest.update(chunk)
        count += len(chunk)
    return digest.hexdigest(), count


def chunks_of(files):
    for name in files:
        with open(name, "rb") as file:
            while chunk := file.read(1 << 20):
                yield chunk


class Workers:
    def __init__(self, command, count, log):
        self.command, self.log = command, log
        self.processes = [self.start() for _ in range(count)]
        self.kills = self.stops = 0

    def start(self):
        return subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env={**os.environ, "OMP_NUM_THREADS": "1"})

    def kill(self, which):
        self.processes[which].kill()
        self.processes[which].wait()
        self.kills += 1
        self.processes[which] = self.start()

    def wait(self, deadline):
        """True once all have ended."""
        while time.time() < deadline:
            if all(process.poll() is not None for process in self.processes):
                return True
            time.sleep(0.2)
        return False


def work(arguments, command, log):
    """Translates in parts; what was done to the workers."""
    draw = random.Random(arguments.seed)
    workers = Workers(command, arguments.workers, log)
    begin = time.time()
    try:
        stopped_until = None
        while not workers.wait(time.time() + arguments.kill_every):
            if stopped_until and time.time() >= stopped_until:
                workers.processes[0].send_signal(signal.SIGCONT)
                stopped_until = None
            elif not workers.stops:
                workers.processes[0].send_signal(signal.SIGSTOP)
                workers.stops, stopped_until = 1, time.time() + 2 * arguments.lease
            running = [i for i, process in enumerate(workers.processes) if i > 0 and process.poll() is None]
            if running:
                workers.kill(draw.choice(running))
        codes = [process.returncode for process in workers.processes]
    finally:
        for process in workers.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    return {"seconds": round(time.time() - begin, 1), "kills": workers.kills, "stops": workers.stops, "exit_codes": codes}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-i", "--input", required=True, help="text to begin with")
    parser.add_argument("--lines", type=int, default=200000)
    parser.add_argument("--part-lines", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kill-every", type=float, default=20, help="seconds")
    parser.add_argument("--lease", type=float, default=15, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:end])
    arguments.flags = words[end + 1:]  # of lacuna translate
    with tempfile.TemporaryDirectory() as folder:
        text, whole, job = (os.path.join(folder, name) for name in ("text", "whole", "job"))
        write_text(arguments.input, arguments.lines, text)
        base = [arguments.program, "translate", "-m", arguments.model, "-i", text, "--threads", "1", "--quiet", *arguments.flags]
        begin = time.time()
        subprocess.run([*base, "-o", whole], check=True)
        seconds_whole = round(time.time() - begin, 1)
        with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
            done = work(arguments, [*base, "-o", job, "--part-lines", str(arguments.part_lines), "--part-packing", "none",
                                    "--lease", str(arguments.lease)], log)
            log.seek(0)
            done["taken_over"] = log.read().count("another worker has taken over")
        parts = sorted(os.path.join(job, name) for name in os.listdir(job) if name.endswith(".txt"))
        left = [name for name in os.listdir(job) if name.endswith(".claim") or "tmp" in name]
        (hash_whole, bytes_whole), (hash_parts, bytes_parts) = hash_of(chunks_of([whole])), hash_of(chunks_of(parts))
    is_equal = hash_whole == hash_parts and not left and set(done["exit_codes"]) == {0}
    print(json.dumps({"lines": arguments.lines, "flags": arguments.flags, "parts": len(parts), "seconds_whole": seconds_whole, **done,
                      "bytes": [bytes_whole, bytes_parts], "sha256": [hash_whole, hash_parts], "left": left, "is_equal": is_equal}))
    sys.exit(0 if is_equal else 1)


if __name__ == "__main__":
    main()
