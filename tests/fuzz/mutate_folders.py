#!/usr/bin/env python3
"""Changes files of a checkpoint, or of a run, in a thousand ways, with a manifest that fits, and starts the program on each.

mutate_folders.py PROGRAM [--mutations N] [--seconds N] [--seed N] [--keep FOLDER]

Right is: it ends by itself, with exit code 0, or with 1 or 2 and a message; within 5 seconds of CPU, under 1 GB of memory; and writes
nothing but where it was told to. What is not right is listed, the changed folders are kept in FOLDER, and the exit code is 1.
"""
import argparse
import os
import random
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli")]

import checkpoints  # noqa: E402
import small_run  # noqa: E402

CPU_SECONDS, WALL_SECONDS, MOST_KIB = 5, 60, 1 << 20
NUMBERS = [b"0", b"-1", b"1e308", b"-1e308", b"NaN", b"1e999", b"4294967296", b"9223372036854775807", b"18446744073709551616", b"1152921504606846976",
           b"0.5", b"true", b"null", b"[]", b"{}", b'""', b"\x1b]0;x\x07", b"10000", b"100000000"]
TEXT_FILES = ("config.yaml", "checkpoint.json", "manifest.json", "trainer.json", "metrics.jsonl", "vocab.txt")


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
        kind = draw.choice(["bytes", "bytes", "bytes", "replace"]) if not name.endswith(TEXT_FILES) else draw.choice(["number", "number", "bytes", "replace"])
        if kind == "replace":
            replace(path, draw)
        else:
            with open(path, "rb") as file:
                data = file.read()
            with open(path, "wb") as file:
                file.write((changed_number if kind == "number" else changed_bytes)(data, draw))
        done.append(f"{kind} {name}")
    if draw.randrange(5) > 0:  # otherwise the manifest does not fit, which is for the program to notice
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


def fault_of(command, folder):
    """Starts the program in an empty folder; what was wrong about how it ended, or nothing."""
    before = listing(folder)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "1000"}
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryFile() as said:
        environment["TMPDIR"] = here
        process = subprocess.Popen(command, cwd=here, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said)
        try:
            process.stdin.write(b"1 2 3\n4 5\n")
            process.stdin.close()
        except BrokenPipeError:
            pass
        deadline = time.monotonic() + WALL_SECONDS
        while True:
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        message = said.read()
        left = os.listdir(here)
    if time.monotonic() > deadline:
        return f"it took more than {WALL_SECONDS} s"
    if process.returncode not in (0, 1, 2):
        return f"exit code {process.returncode}: {message[-300:]!r}"
    if process.returncode != 0 and b": error: " not in message:
        return f"exit code {process.returncode} without a message: {message[-300:]!r}"
    if re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", message):
        return f"control bytes on stderr: {message[-300:]!r}"
    if used.ru_utime + used.ru_stime > CPU_SECONDS:
        return f"{used.ru_utime + used.ru_stime:.1f} s of CPU"
    if used.ru_maxrss > MOST_KIB:
        return f"{used.ru_maxrss >> 10} MiB of memory"
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


def main():
    flags = argparse.ArgumentParser(description="Starts the program on changed checkpoints and run folders.")
    flags.add_argument("program")
    flags.add_argument("--mutations", type=int, default=100)
    flags.add_argument("--seconds", type=float, default=0, help="goes on for so long, whatever --mutations says")
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--keep", default="", help="folder for what was found")
    asked = flags.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    program, faults, begin = os.path.abspath(asked.program), [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run = small_run.train(program, folder, "--train.max_steps", "40", "--train.save_every", "20")
        text = os.path.join(folder, "pairs.txt")
        small_run.write_digits(text, 3, 7)
        count = 0
        while time.monotonic() - begin < asked.seconds if asked.seconds > 0 else count < asked.mutations:
            draw = random.Random(f"{asked.seed} {count}")
            changed = os.path.join(folder, "changed")
            of_run = draw.randrange(10) == 0  # a run that goes on
            shutil.copytree(run if of_run else os.path.join(run, draw.choice(["averaged", "last"])), changed, symlinks=of_run)
            part = os.path.join(changed, os.readlink(os.path.join(changed, "last"))) if of_run else changed
            done = mutate(part if draw.randrange(4) > 0 else changed, draw)
            command = [program, "train", "-c", os.path.join(folder, "run.yaml"), "--run", changed, "--train.max_steps", "42", "--quiet"] if of_run \
                else command_of(program, changed, text, draw)
            fault = fault_of(command, changed)
            if fault:
                faults.append(f"seed {asked.seed}, mutation {count} ({done}): lacuna {command[1]}: {fault}")
                print(faults[-1], flush=True)
                if asked.keep:
                    shutil.copytree(changed, os.path.join(asked.keep, f"{asked.seed}_{count}"), symlinks=True, ignore_dangling_symlinks=True,
                                    ignore=lambda at, names: [name for name in names if stat.S_ISFIFO(os.lstat(os.path.join(at, name)).st_mode)])
            shutil.rmtree(changed)
            count += 1
    print(f"{count} changed folders, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
