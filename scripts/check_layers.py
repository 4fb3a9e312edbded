#!/usr/bin/env python3
"""Checks that folders of src/ include only what they may, and that doc comments of src/ and tests/ stand alone.

Reads the #include lines. The table is the one of src/README.md; `base` and `config` are open to all. A doc comment must not begin with words
that need the comment above it, such as "Of the second."
Exit status 1 and one line per offence; silent otherwise. Long files are named on stderr, as a warning.
"""
import argparse
import pathlib
import re
import sys

ALLOWED = {
    "base": set(),
    "config": set(),
    "parts": set(),
    "ranks": set(),
    "text": set(),
    "document": set(),
    "data": {"text"},
    "kernels": set(),
    "attention": {"kernels"},
    "model": {"attention", "kernels"},
    "checkpoint": {"model", "text", "kernels"},
    "train": {"checkpoint", "model", "data", "kernels", "ranks"},
    "search": {"model", "text", "kernels"},
    "metrics": {"text"},
    "analysis": {"attention", "checkpoint", "model", "data", "text"},
    "run": {"analysis", "attention", "checkpoint", "data", "document", "kernels", "metrics", "model", "parts", "ranks", "search", "text", "train"},
    "exchange": {"attention", "checkpoint", "kernels", "model", "text"},
    "serve": {"analysis", "checkpoint", "document", "model", "run", "search", "text"},
    "ablation": {"attention", "checkpoint", "data", "metrics", "train"},
    "speed": {"attention", "checkpoint", "data", "kernels", "model", "ranks", "search", "train"},
    "cli": {"ablation", "analysis", "attention", "checkpoint", "data", "document", "exchange", "kernels", "metrics", "model", "parts", "ranks", "run", "search", "serve", "speed", "text", "train"},
    "bench": None,  # everything
}
OPEN = {"base", "config"}
LONG_FILE = 450
LEANING_COMMENT = re.compile(r"^\s*/// (Of|That of|Those|Likewise)\b")
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def offences(root: pathlib.Path):
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in SOURCES:
            continue
        folder = path.relative_to(root / "src").parts[0]
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(root)
        if folder not in ALLOWED:
            yield f"{name}: folder {folder} is not in the table of scripts/check_layers.py"
            continue
        if text.count("\n") > LONG_FILE:
            print(f"{name}: warning: {text.count(chr(10))} lines; files of up to {LONG_FILE} read well", file=sys.stderr)
        if folder not in ("cli", "bench") and re.search(r"#\s*include\s+<torch/torch\.h>", text):
            yield f"{name}: includes torch/torch.h; link lacuna_torch, which has what is needed precompiled (base/libtorch.h)"
        for included in INCLUDE.findall(text):
            if not (root / "src" / included).exists():
                continue  # generated, or a system header
            other = pathlib.PurePosixPath(included).parts[0]
            if ALLOWED[folder] is None or other == folder or other in ALLOWED[folder]:
                continue
            if other in OPEN and not (folder == "base" and other == "config"):
                continue
            yield f"{name}: includes {included}, but {folder} may include only {', '.join(sorted(ALLOWED[folder] | OPEN)) or 'itself'}"


def leaning_comments(root: pathlib.Path):
    for path in sorted(path for top in ("src", "tests") for path in (root / top).rglob("*")):
        if path.suffix not in SOURCES:
            continue
        before = ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            begins_comment = not before.lstrip().startswith("///")
            if begins_comment and LEANING_COMMENT.match(line):
                yield f"{path.relative_to(root)}:{number}: the comment leans on what is above it; write a sentence that stands alone"
            before = line


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    found = [*offences(root), *leaning_comments(root)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
