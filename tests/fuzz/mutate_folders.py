#!/usr/bin/env python3
"""Changes files of a checkpoint, of a run, or of a model of another program, in a thousand ways, and starts the program on each.

mutate_folders.py PROGRAM [--mutations N] [--seconds N] [--seed N] [--keep FOLDER] [--library FILE]

Checksums within the files (manifest, headers, archives) fit in most cases. Right is: it ends by itself, with exit code 0, or with 1 or 2
and a message (`lacuna import`: 0, or 2 and one line beside warnings); within 5 seconds of CPU, under 1 GB of memory; and writes nothing but where it was
told to. What is not right is listed, the changed folders are kept in FOLDER, and the exit code is 1.
"""
import argparse
import copy
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder) for folder in ("cli", "torture")]

import checkpoints  # noqa: E402
import fork_server  # noqa: E402
import small_run  # noqa: E402

CPU_SECONDS, WALL_SECONDS, MOST_KIB = 5, 60, 1 << 20
NUMBERS = [b"0", b"-1", b"1e308", b"-1e308", b"NaN", b"1e999", b"4294967296", b"9223372036854775807", b"18446744073709551616", b"1152921504606846976",
           b"0.5", b"true", b"null", b"[]", b"{}", b'""', b"\x1b]0;x\x07", b"10000", b"100000000"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "1000"}
IMPORTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli", "imports")
VALUES = [0, -1, 1, 0.5, 1e308, 2**31, 2**63 - 1, 2**64 - 1, 10**30, True, False, None, "", "a", "\x1b]0;x\x07", "\ud800", "../../etc/passwd", [], {}, [0], [[]] * 9,
          {"a": 1}, "x" * 100000]
TEXT_FILES = ("config.yaml", "metrics.jsonl", "vocab.txt", ".yml")


def changed_number(data, draw):
    """The bytes with one number replaced by a hostile one."""
    places = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", data))
    if not places:
        return data
    place = draw.choice(places)
    return data[:place.start()] + draw.choice(NUMBERS) + data[place.end():]


def changed_bytes(data, draw):
    """The bytes with a few of them changed, left out or repeated; mostly near the beginning, where headers are."""
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 8, 64])):
        if not changed:
            break
        at = draw.randrange(min(len(changed), draw.choice([16, 256, 4096, len(changed)])))
        kind = draw.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            changed[at] = draw.choice([0, 0x7F, 0x80, 0xFF, draw.randrange(256)])
        elif kind == 2:
            del changed[at:at + draw.choice([1, 4, 100])]
        elif kind == 3:
            changed[at:at] = changed[at:at + draw.choice([1, 8, 1000])]
        else:
            length = draw.choice([4, 8, 64, 1024])
            changed[at:at + length] = bytes([draw.choice([0, 0xFF])]) * length
    return bytes(changed)


def changed_value(data, draw):
    """The bytes of a JSON file with one of its values, or all of a list or object, replaced by a hostile one, left out, or there twice."""
    try:
        whole = json.loads(data)
    except ValueError:
        return data
    places, to_visit = [], [whole]
    while to_visit:
        at = to_visit.pop()
        keys = list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
        places += [(at, key) for key in keys]
        to_visit += [at[key] for key in keys]
    if not places:
        return data
    at, key = draw.choice(places)
    if draw.randrange(6) == 0:
        del at[key]
    elif draw.randrange(6) == 0:
        at[key] = copy.deepcopy(draw.choice([place[key] for place, key in places]))
    else:
        at[key] = draw.choice(VALUES)
    return json.dumps(whole, ensure_ascii=draw.randrange(2) == 0).encode("utf-8", "surrogatepass")


def changed_header(data, draw):
    """A safetensors file with a change in its header, whose length is told as it is."""
    size = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else 0
    if not 0 < size <= len(data) - 8:
        return changed_bytes(data, draw)
    header = draw.choice([changed_value, changed_number])(data[8:8 + size], draw)
    return struct.pack("<Q", len(header)) + header + data[8 + size:]


def changed_member(data, draw):
    """An archive with a change in one member, whose checksum fits; now and then the members are compressed, or there twice."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, EOFError):
        return changed_bytes(data, draw)
    at = draw.randrange(len(members)) if members else 0
    for_member = draw.choice([changed_bytes, changed_number, lambda member, _: member[:draw.randrange(len(member) + 1)], lambda member, _: bytes(1 << 26)])
    members[at:at + 1] = [(name, for_member(member, draw)) for name, member in members[at:at + 1]] * draw.choice([0, 1, 1, 1, 1, 2])
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        with zipfile.ZipFile(file, "w", draw.choice([zipfile.ZIP_STORED] * 5 + [zipfile.ZIP_DEFLATED])) as archive:
            for name, member in members:
                archive.writestr(zipfile.ZipInfo(name), member, archive.compression)
    return file.getvalue()


def changes_of(name):
    """What can be done to a file of the name, by kind; those that come more often are there more often."""
    if name.endswith(".npz"):
        return {"member": changed_member, "bytes": changed_bytes}
    if name.endswith(".safetensors"):
        return {"header": changed_header, "bytes": changed_bytes}
    if name.endswith(".json"):
        return {"value": changed_value, "number": changed_number, "bytes": changed_bytes}
    if name.endswith(TEXT_FILES):
        return {"number": changed_number, "bytes": changed_bytes}
    return {"bytes": changed_bytes}


def replace(path, draw):
    """Puts in a file's place what is no file of that folder."""
    os.remove(path)
    kind = draw.randrange(6)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        os.symlink(draw.choice(["/dev/zero", "/dev/urandom", "/proc/self/mem", "/etc/passwd", os.path.basename(path)]), path)
    elif kind == 2:
        os.mkdir(path)
    elif kind == 3:
        with open(path, "wb") as file:
            file.truncate(draw.choice([0, 1 << 20, 1 << 27]))
    elif kind == 4:
        with open(path, "wb") as file:
            file.write(random.Random(draw.random()).randbytes(draw.choice([1, 100, 100000])))


def mutate(folder, draw):
    """Changes one or two files of the folder and says what was done."""
    done = []
    for _ in range(draw.choice([1, 1, 1, 2])):
        name = draw.choice(sorted(name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name))) or [""])
        path = os.path.join(folder, name)
        if not name or os.path.islink(path) or not stat.S_ISREG(os.lstat(path).st_mode):
            continue
        changes = changes_of(name)
        kind = draw.choice(list(changes)) if draw.randrange(4) > 0 else "replace"
        if kind == "replace":
            replace(path, draw)
        else:
            with open(path, "rb") as file:
                data = file.read()
            with open(path, "wb") as file:
                file.write(changes[kind](data, draw))
        done.append(f"{kind} {name}")
    if os.path.lexists(os.path.join(folder, "manifest.json")) and draw.randrange(5) > 0:  # otherwise the manifest does not fit, which is for the program to notice
        try:
            if not stat.S_ISREG(os.lstat(os.path.join(folder, "manifest.json")).st_mode):
                raise OSError("what stands in its place may have no end")
            checkpoints.sign(folder)
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            done.append("no manifest")
    return ", ".join(done)


def listing(folder):
    """Names and sizes of all that is in a folder."""
    return sorted((os.path.join(at, name), os.lstat(os.path.join(at, name)).st_size) for at, folders, names in os.walk(folder) for name in folders + names)


class Forked:
    """Starts the program by a fork server."""

    def __init__(self, program, library):
        self.server = fork_server.ForkServer(program, library, ENVIRONMENT)

    def run(self, command, here, text, said):
        """Its exit code (that of SIGALRM if it hangs), seconds of CPU and KiB of memory."""
        with open(os.devnull, "wb") as nothing:
            process = self.server.start(command[1:], here, {**ENVIRONMENT, "TMPDIR": here}, (text, nothing, said))
        in_time = fork_server.ends_within(process, WALL_SECONDS)
        if not in_time:
            process.kill()
            process.wait()
        return process.returncode if in_time else -signal.SIGALRM, process.cpu_seconds, process.most_kib


class Loaded:
    """Starts the program as a user does."""

    def run(self, command, here, text, said):
        process = subprocess.Popen(command, cwd=here, env={**ENVIRONMENT, "TMPDIR": here}, stdin=text, stdout=subprocess.DEVNULL, stderr=said)
        deadline = time.monotonic() + WALL_SECONDS
        while True:
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
        return -signal.SIGALRM if time.monotonic() > deadline else process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss


def piped(data):
    """The end of a pipe to read some bytes from."""
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    return os.fdopen(read, "rb")


def fault_of(starter, command, folder):
    """Starts the program in an empty folder; what was wrong about how it ended, or nothing."""
    before = listing(folder)
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryFile() as said, piped(b"1 2 3\n4 5\n") as text:
        code, cpu_seconds, most_kib = starter.run(command, here, text, said)
        said.seek(0)
        message = said.read()
        left = os.listdir(here)
    if code == -signal.SIGALRM:
        return f"it took more than {WALL_SECONDS} s"
    is_of_device = b"Input/output error" in message  # as /proc/self/mem gives, in place of a file
    if code not in ((0, 2) if command[1] == "import" and not is_of_device else (0, 1, 2)):
        return f"exit code {code}: {message[-300:]!r}"
    if code != 0 and b": error: " not in message:
        return f"exit code {code} without a message: {message[-300:]!r}"
    told = [line for line in message.splitlines() if b" warning " not in line]
    if command[1] == "import" and code != 0 and len(told) != 1:
        return f"more than one line: {message[-1000:]!r}"
    if re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", message):
        return f"control bytes on stderr: {message[-300:]!r}"
    if cpu_seconds > CPU_SECONDS:
        return f"{cpu_seconds:.1f} s of CPU"
    if most_kib > MOST_KIB:
        return f"{most_kib >> 10} MiB of memory"
    if left:
        return f"files left in its folder: {left}"
    if command[1] != "train" and listing(folder) != before:
        return "it changed the folder that it read"
    return None


def command_of(program, folder, text, draw):
    """A verb that reads the checkpoint."""
    verb = draw.choice(["info", "info", "translate", "score"])
    flags = {"translate": ["--quiet", "-b", "2", "--max-length", "8"], "score": ["--quiet", "--src", text, "--tgt", text]}.get(verb, [])
    return [program, verb, "-m", folder, *flags]


class Mutations:
    def __init__(self, program, folder, starter):
        self.program, self.folder, self.changed, self.starter = program, folder, os.path.join(folder, "changed"), starter
        self.run = small_run.train(program, folder, "--train.max_steps", "40", "--train.save_every", "20")
        self.text = os.path.join(folder, "pairs.txt")
        small_run.write_digits(self.text, 3, 7)

    def try_checkpoint(self, draw):
        """Changes a checkpoint, or a run that goes on; what was done, the verb, and what was wrong."""
        of_run = draw.randrange(10) == 0
        shutil.copytree(self.run if of_run else os.path.join(self.run, draw.choice(["averaged", "last"])), self.changed, symlinks=of_run)
        part = os.path.join(self.changed, os.readlink(os.path.join(self.changed, "last"))) if of_run else self.changed
        done = mutate(part if draw.randrange(4) > 0 else self.changed, draw)
        command = command_of(self.program, self.changed, self.text, draw)
        if of_run:
            command = [self.program, "train", "-c", os.path.join(self.folder, "run.yaml"), "--run", self.changed, "--train.max_steps", "42", "--quiet"]
        return done, command[1], fault_of(self.starter, command, self.changed)

    def try_import(self, draw):
        """Changes a model of another program; what is imported all the same must translate, or be refused."""
        name, imported = draw.choice(sorted(os.listdir(IMPORTS))), os.path.join(self.folder, "imported")
        shutil.copytree(os.path.join(IMPORTS, name), self.changed, ignore=lambda at, names: ["expected.json"])
        done = f"{name}: {mutate(self.changed, draw)}"
        fault, verb = fault_of(self.starter, [self.program, "import", self.changed, "-o", imported, "--quiet"], self.changed), "import"
        if fault is None and os.path.exists(imported):
            fault, verb = fault_of(self.starter, [self.program, "translate", "-m", imported, "--quiet", "-b", "2", "--max-length", "8"], imported), "translate"
        shutil.rmtree(imported, ignore_errors=True)
        return done, verb, fault


def main():
    flags = argparse.ArgumentParser(description="Starts the program on changed checkpoints, run folders, and models of other programs.")
    flags.add_argument("program")
    flags.add_argument("--mutations", type=int, default=100)
    flags.add_argument("--seconds", type=float, default=0, help="goes on for so long, whatever --mutations says")
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--of", choices=["checkpoints", "imports", "both"], default="both", help="what is changed")
    flags.add_argument("--keep", default="", help="folder for what was found")
    flags.add_argument("--library", help="libtorture_faults.so, by which the program is loaded once for all starts")
    asked = flags.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faults, begin, count = [], time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.realpath(asked.program)
        mutations = Mutations(program, folder, Forked(program, os.path.realpath(asked.library)) if asked.library else Loaded())
        while time.monotonic() - begin < asked.seconds if asked.seconds > 0 else count < asked.mutations:
            draw = random.Random(f"{asked.seed} {count}")
            is_import = asked.of == "imports" or (asked.of == "both" and draw.randrange(2) == 0)
            done, verb, fault = (mutations.try_import if is_import else mutations.try_checkpoint)(draw)
            if fault:
                faults.append(f"seed {asked.seed}, mutation {count} ({done}): lacuna {verb}: {fault}")
                print(faults[-1], flush=True)
                if asked.keep:
                    shutil.copytree(mutations.changed, os.path.join(asked.keep, f"{asked.seed}_{count}"), symlinks=True, ignore_dangling_symlinks=True,
                                    ignore=lambda at, names: [name for name in names if stat.S_ISFIFO(os.lstat(os.path.join(at, name)).st_mode)])
            shutil.rmtree(mutations.changed)
            count += 1
    print(f"{count} changed folders, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
