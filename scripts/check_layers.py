#!/usr/bin/env python3
"""Checks that folders of src/ include only what they may, and that sources keep the sizes of a page one can read.

Reads the #include lines. The table is the one of src/README.md; `base` and `config` are open to all.
Exit status 1 and one line per offence; silent otherwise.
"""
import argparse
import pathlib
import re
import sys

ALLOWED = {
    "base": set(),
    "config": set(),
    "text": set(),
    "data": {"text"},
    "kernels": set(),
    "attention": {"kernels"},
    "model": {"attention", "kernels"},
    "checkpoint": {"model", "text", "kernels"},
    "train": {"checkpoint", "model", "data", "kernels"},
    "search": {"model", "text", "kernels"},
    "metrics": {"text"},
    "analysis": {"attention", "model", "data", "text"},
    "run": {"analysis", "attention", "checkpoint", "data", "kernels", "metrics", "model", "search", "text", "train"},
    "ablation": {"attention", "checkpoint", "data", "metrics", "train"},
    "bench": {"attention", "checkpoint", "data", "kernels", "model", "search", "train"},
    "cli": None,  # everything
}
OPEN = {"base", "config"}
MAX_LINES = 450
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
        lines = text.count("\n")
        if lines > MAX_LINES:
            yield f"{name}: {lines} lines, at most {MAX_LINES} read well: split it"
        if folder != "cli" and re.search(r"#\s*include\s+<torch/torch\.h>", text):
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


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    found = list(offences(root))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
