#!/usr/bin/env python3
"""clang-tidy over the sources, by .clang-tidy; silent if it finds nothing.

    scripts/tidy.py            every source of src/
    scripts/tidy.py FILE ...   these

LibTorch's headers take some 15 s to read, so the sources of a folder and its subfolders that are compiled alike are
read as one: through a file that includes them all. A source that includes itself again (Highway's way to several instruction
sets) is read alone.
Reads how a file is compiled from build/tidy, which it configures.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/tidy"
PROGRAM = ROOT / ".venv/bin/clang-tidy"  # requirements-test.txt has it: Debian's checks LibTorch's headers too, which takes four times as long
GCC_HEADERS = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()  # has omp.h


def flags_of(entry):
    """The arguments that shape how the file reads, fit for Clang, without the file itself."""
    words = iter(shlex.split(entry["command"])[1:])
    flags = ["-idirafter", GCC_HEADERS, "-Wno-deprecated-declarations"]  # GCC's headers use what they call deprecated
    for word in words:
        if word in ("-o", "-c"):
            next(words)
        elif word.endswith("/cmake_pch.hxx"):  # GCC's precompiled header can't be read: the header itself is
            flags.append(f"{ROOT}/src/base/libtorch.h")
        elif word not in ("-Winvalid-pch", "-fno-math-errno"):
            flags.append(word)
    return tuple(flags)


def groups_of(files):
    """{(folder, flags): [file]}: what can be read as one."""
    groups = collections.defaultdict(list)
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        if file not in files:
            continue
        alone = "HWY_TARGET_INCLUDE" in file.read_text()
        groups[file if alone else ROOT / "src" / file.relative_to(ROOT / "src").parts[0], flags_of(entry)].append(file)
        files.remove(file)
    for file in sorted(files):
        sys.exit(f"tidy.py: {file}: not compiled by the preset cpu; expected a source of src/")
    return groups


def check(name, flags, files):
    """What clang-tidy says about `files`, read as one; nothing if all is well."""
    together = BUILD / f"{name}.cpp"
    together.write_text("".join(f'#include "{file}"\n' for file in sorted(files)))
    command = [PROGRAM, "--quiet", "--checks=-bugprone-suspicious-include", str(together), "--", *flags]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    noise = re.compile(r"^\d+ warnings? generated|^Suppressed |^Use -header-filter")
    errors = [line for line in result.stderr.splitlines() if not noise.match(line)]
    return result.returncode, "\n".join(filter(None, [result.stdout.strip(), *errors]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="a source of src/")
    listed = parser.parse_args().files or (ROOT / "src").rglob("*.cpp")
    if not PROGRAM.exists():
        sys.exit(f"tidy.py: {PROGRAM} is not installed; run scripts/setup.sh --tests")
    subprocess.run(["cmake", "--preset", "cpu", "-B", BUILD, "-DCMAKE_UNITY_BUILD=OFF"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    groups = groups_of({(ROOT / file).resolve() for file in listed})
    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [
            pool.submit(check, f"{place.stem}_{number}", flags, files)
            for number, ((place, flags), files) in enumerate(sorted(groups.items(), key=lambda group: -len(group[1])))
        ]
        for job in jobs:
            code, text = job.result()
            if text:
                print(text, flush=True)
            failed |= code != 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
