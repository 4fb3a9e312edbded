#!/usr/bin/env python3
"""Checks what the manual says about the repository: exit status 1 and a line for each fault, silent otherwise.

- A file or folder that a page names in backticks (src/..., scripts/..., configs/..., tests/..., data/..., docs/...) exists.
- Verbs and flags of `lacuna` in its commands are those of docs/reference/commands.md or keys of docs/reference/configuration.md.
- Files that commands start or read with -c, of scripts/ and configs/, exist.
- The folders of src/README.md are those of scripts/check_layers.py, and may include the same ones.
- Dates stand on the pages of performance and results only.
- README.md has at most 150 lines.
- Each page of docs/ begins with a heading and a command.
"""
import pathlib
import re
import sys

import check_layers

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMED = re.compile(r"`((?:src|scripts|configs|tests|data|docs)/[\w./-]*)`")
STARTED = re.compile(r"(?<![\w/.])((?:scripts|configs)/[\w./-]+\.(?:sh|py|yaml))")
BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"\blacuna ([a-z]+)\b([^|\n]*)")
FLAG = re.compile(r"(?<![\w-])--([\w.-]+)")
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
DATED = ("docs/results", "docs/performance.md", "docs/changelog.md", "CHANGELOG.md")
MADE = ("data/bundled", "data/multi30k", "data/iwslt", "data/wmt", "data/mix")  # by scripts
NO_COMMAND = {"contributing.md", "changelog.md", "configuration.md", "commands.md"}  # pages that include files, or that the program writes
MAX_README_LINES = 150


def flags_of_verbs():
    """Verb -> its flags, of the command reference."""
    text = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    parts = re.split(r"^## lacuna ([a-z ]+)$", text, flags=re.MULTILINE)[1:]
    found = {}
    for name, part in zip(parts[::2], parts[1::2]):
        found.setdefault(name.split()[0], set()).update(FLAG.findall(part))
    return found


def keys():
    return set(re.findall(r"^\| `([\w\[\]]+)` \|", (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8"), re.MULTILINE))


def unknown_flags(text, flags, known_keys):
    for block in BLOCK.findall(text):
        for verb, rest in CALL.findall(re.sub(r"#.*", "", block.replace("\\\n", " "))):
            if verb not in flags:
                yield f"lacuna {verb} is not a verb"
                continue
            for flag in FLAG.findall(rest):
                is_key = flag.startswith("model.attention") or flag.split(".")[-1] in known_keys
                if flag not in flags[verb] and flag != "help" and not is_key:
                    yield f"lacuna {verb} has no flag --{flag}"


def wrong_layers():
    """Rows of src/README.md that say something else than the table of check_layers.py. A row may say "all above"."""
    text = (ROOT / "src/README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]*?) ?\|$", text, re.MULTILINE))
    for folder, allowed in check_layers.ALLOWED.items():
        said = rows.get(folder)
        if said is None:
            yield f"folder {folder} is missing"
        elif said != "all above" and set(filter(None, said.split(", "))) != (allowed or set()):
            yield f"folder {folder} may include {', '.join(sorted(allowed or []))}"


def faults():
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md", "tests/README.md")]
    pages += sorted((ROOT / "src").rglob("README.md")) + sorted((ROOT / "docs").rglob("*.md"))
    flags, known_keys = flags_of_verbs(), keys()
    for fault in wrong_layers():
        yield f"src/README.md: {fault}"
    for page in pages:
        name = page.relative_to(ROOT)
        text = page.read_text(encoding="utf-8")
        for path in {*NAMED.findall(text), *(path for block in BLOCK.findall(text) for path in STARTED.findall(block))}:
            if not path.startswith(MADE) and not (ROOT / path).exists():
                yield f"{name}: {path} does not exist"
        if not str(name).startswith(DATED):
            for date in DATE.findall(text):
                yield f"{name}: {date}; dates stand on the pages of performance and results"
        for fault in unknown_flags(text, flags, known_keys):
            yield f"{name}: {fault}"
        if page.is_relative_to(ROOT / "docs") and page.name not in NO_COMMAND and not re.match(r"# .+\n\n(.*\n\n)?```", text):
            yield f"{name}: a page begins with a heading and a command"
    lines = (ROOT / "README.md").read_text(encoding="utf-8").count("\n")
    if lines > MAX_README_LINES:
        yield f"README.md: {lines} lines, at most {MAX_README_LINES}"


if __name__ == "__main__":
    found = list(faults())
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
