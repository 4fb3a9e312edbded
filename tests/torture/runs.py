"""The program under faults: one run in a folder, what it did there, and what the folder holds afterwards."""
import collections
import dataclasses
import hashlib
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

from fork_server import ForkServer, ends_within

LONGEST_SECONDS = 120
# What clocks and the machine say, in metrics.jsonl, trainer.json and the rows of ablations.
VOLATILE = {"time", "hours", "tokens_per_second", "data_wait", "peak_mebibytes", "train_tokens_per_second", "translate_tokens_per_second"}
TEMPORARY = re.compile(r"\.lacuna-tmp\.|(^|/)\.[^/]+\.(tmp|old)\.[0-9a-f]{16}\.|\.unfinished[0-9a-f]+|^tmp/")
# The parts of a path that are others in each run: a process and its number, random digits, times.
PASSING = (re.compile(r"(?<=\.lacuna-tmp\.)[^/]+"), re.compile(r"(?<=\.tmp\.)[0-9a-f]{16}\.[^/]+"), re.compile(r"(?<=\.old\.)[0-9a-f]{16}\.[^/]+"),
           re.compile(r"(?<=\.unfinished)[0-9a-f]+"), re.compile(r"(?<=^tmp/)[^/]+"), re.compile(r"(?<=/tensorboard/)[^/]+"))


def lasting(path):
    """The path with a star for each part that is another in the next run."""
    for part in PASSING:
        path = part.sub("*", path)
    return path


@dataclasses.dataclass
class Operation:
    number: int
    name: str
    path: str
    fails: bool = False  # it was made to
    time: int = 1  # how often an operation of that name has come to that path

    def place(self):
        """What finds the operation in each run, whatever order its threads take turns in."""
        return f"{self.name}\t{lasting(self.path)}\t{self.time}"


@dataclasses.dataclass
class Ended:
    """How a run ended: the exit code, negative for a signal; what it said on stderr; its operations on files, if they were counted; the
    new names of what it has renamed."""
    code: int
    said: str
    operations: list[Operation]
    renamed: list[str]

    def message(self):
        """The error with which it ended, or "", on one line."""
        found = re.search(r"^lacuna [a-z]+: error: (.*)", self.said, re.MULTILINE | re.DOTALL)
        return " ".join(found.group(1).split()) if found else ""


REMEMBERING = """#!/bin/sh
answer={answers}/$(for word; do if [ -f "$word" ]; then cat "$word"; else echo "$word"; fi; echo; done | sha256sum | cut -c 1-64)
if [ ! -e "$answer" ]; then
  {real} "$@" > "$answer.$$" 2> "$answer.$$.errors" || {{ code=$?; cat "$answer.$$.errors" >&2; exit $code; }}
  mv "$answer.$$.errors" "$answer.errors"
  mv "$answer.$$" "$answer"
fi
cat "$answer.errors" >&2
exec cat "$answer"
"""
SETTINGS = {"OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "1000", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


class Workshop:
    """The program, the library of faults, and a folder for the folders of cases."""

    def __init__(self, program, library, folder):
        self.program, self.library, self.folder = os.path.realpath(program), os.path.realpath(library), os.path.realpath(folder)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("FAULTS_")} | SETTINGS
        self.remember_scores()
        self.server = ForkServer(self.program, self.library, self.environment)

    def close(self, keeps=False):
        self.server.close()
        if not keeps:
            shutil.rmtree(self.folder, ignore_errors=True)

    def remember_scores(self):
        """Puts a program before sacreBLEU that asks it once for the same texts, and then knows: Python need not start for each fault."""
        real = shutil.which("sacrebleu") or os.path.join(os.path.dirname(__file__), "../../.venv/bin/sacrebleu")
        if not os.access(real, os.X_OK):
            return  # the program finds one, or says what is missing
        os.makedirs(self.place("bin"))
        with open(self.place("bin/sacrebleu"), "w", encoding="utf-8") as script:
            script.write(REMEMBERING.format(answers=shlex.quote(self.place("bin")), real=shlex.quote(os.path.realpath(real))))
        os.chmod(self.place("bin/sacrebleu"), 0o755)
        self.environment["PATH"] = self.place("bin") + os.pathsep + os.environ["PATH"]

    def place(self, name):
        return os.path.join(self.folder, name)

    def copy(self, template, name):
        """A copy of a folder, as the folder of a case."""
        shutil.copytree(template, self.place(name), symlinks=True)
        return self.place(name)

    def remove(self, name):
        for end in ("", ".operations", ".counter", ".said"):
            place = self.place(name + end)
            shutil.rmtree(place, ignore_errors=True) if os.path.isdir(place) else os.path.exists(place) and os.remove(place)

    def start(self, command, folder, at="", kind="", counts=True, each=(), forks=True):
        """The program, started in the folder; finish() waits for it. The operation with the place `at`, if any, fails in the way `kind`, or
        each one of the names `each`. It begins with main() unless `forks` is false."""
        os.makedirs(os.path.join(folder, "tmp"), exist_ok=True)
        environment = {**self.environment, "TMPDIR": os.path.join(folder, "tmp")}
        if counts:
            with open(folder + ".counter", "wb") as counter:
                counter.write(bytes(24))
            if os.path.exists(folder + ".operations"):
                os.remove(folder + ".operations")
            environment.update(LD_PRELOAD=self.library, FAULTS_PROGRAM=self.program, FAULTS_FOLDER=folder, FAULTS_KIND=kind,
                               FAULTS_LOG=folder + ".operations", FAULTS_COUNTER=folder + ".counter")
            if at:
                environment["FAULTS_AT"] = at
            if each:
                environment["FAULTS_EACH"] = ",".join(each)
        with open(folder + ".said", "wb") as said, open(os.devnull, "r+b") as nothing:
            if forks:
                return self.server.start(shlex.split(command), folder, environment, (nothing, nothing, said))
            return subprocess.Popen([self.program, *shlex.split(command)], cwd=folder, env=environment, stdin=nothing, stdout=nothing,
                                    stderr=said, start_new_session=True)

    def finish(self, process, folder):
        """How a started program ended. One that hangs is killed, and counts as ended by SIGALRM."""
        if ends_within(process, LONGEST_SECONDS):
            code = process.returncode
        else:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = -signal.SIGALRM
        with open(folder + ".said", encoding="utf-8", errors="replace") as said:
            return Ended(code, said.read(), *read_operations(folder + ".operations"))

    def run(self, command, folder, at="", kind="", counts=False, each=()):
        return self.finish(self.start(command, folder, at, kind, counts or bool(at or each), each), folder)

    def stopped(self, process):
        """True once the process, or a child of it, has stopped itself, false if it ended before."""
        for _ in range(LONGEST_SECONDS * 1000):
            state = state_of(process.pid)
            if state in "TZX":
                return state == "T"
            if any(state_of(child) == "T" for child in children_of(process.pid)):
                return True
            time.sleep(0.001)
        return False


def state_of(pid):
    """The letter by which the system names the state of a process; X if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def children_of(pid):
    """The processes that threads of a process have started."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="utf-8") as children:
                found += children.read().split()
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def read_operations(log):
    """The operations of a log in their order, and what was renamed."""
    if not os.path.exists(log):
        return [], []
    with open(log, encoding="utf-8", errors="replace") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    found = [Operation(int(row[0]), row[1], row[2], row[3] == "fails") for row in rows if len(row) == 4]
    found.sort(key=lambda operation: operation.number)
    operations, times = [operation for operation in found if operation.number > 0], collections.Counter()
    for operation in operations:
        place = operation.name, lasting(operation.path)
        times[place] += 1
        operation.time = times[place]
    return operations, [operation.path for operation in found if operation.number == 0]


def without_volatile(value):
    if isinstance(value, dict):
        return {key: without_volatile(inner) for key, inner in value.items() if key not in VOLATILE}
    return [without_volatile(inner) for inner in value] if isinstance(value, list) else value


def content(path):
    """What has to be the same in two runs: the bytes, but for what clocks say."""
    name = os.path.basename(path)
    if name in ("train.log", ".lock"):
        return "a log, or the start that holds a lock"
    with open(path, "rb") as file:
        data = file.read()
    try:
        if name.endswith(".jsonl"):
            return json.dumps([without_volatile(json.loads(line)) for line in data.decode().splitlines()])
        if name.endswith(".json"):
            value = without_volatile(json.loads(data))
            if name == "manifest.json" and "trainer.json" in value.get("files", {}):
                value["files"]["trainer.json"] = value["xxh3_128"] = "of a file that says hours"
            return json.dumps(value, sort_keys=True)
    except ValueError:
        pass  # a part of one
    return hashlib.sha256(data).hexdigest()


def snapshot(folder):
    """What a folder holds, by path: bytes, links, folders. Files of TensorBoard, named after the time, count as one."""
    found = {}
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(parent, name)
            short = os.path.relpath(path, folder)
            if os.path.basename(parent) == "tensorboard":
                found[os.path.dirname(short) + "/events"] = "some"
            elif os.path.islink(path):
                found[short] = "-> " + os.readlink(path)
            elif os.path.isdir(path):
                found[short] = "a folder"
            else:
                found[short] = content(path)
    return found


def temporaries(found):
    """The files and folders of a snapshot that the program should have removed."""
    return [path for path in found if TEMPORARY.search(path)]


def differences(found, wanted, ignored=()):
    """In words, how one snapshot differs from another; nothing where they are the same."""
    words = [f"{path} is missing" for path in wanted if path not in found]
    words += [f"{path} is left" for path in found if path not in wanted and path not in ignored]
    words += [f"{path} is another" for path in wanted if path in found and found[path] != wanted[path]]
    return words
