#!/usr/bin/env python3
"""Writes what the attention kernels need of a GPU, as ptxas says, into src/attention/gpu/registers.md.

    scripts/kernel_registers.py           from the objects that `scripts/build.sh cpu lacuna_cuda_kernels` has compiled; names
                                          the kernels that spill registers
    scripts/kernel_registers.py --check   writes nothing; exit status 1 where the table of this nvcc differs; 77 where nvcc has
                                          not compiled them all, or there is no table

--build FOLDER reads another build than build/cpu.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/attention/gpu/registers.md"
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(sm_\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHORT = re.compile(r"\bshort_kernel<.*::types::(\w+)::RowMap, .*, (?:\(int\))?(\d+), (?:\(bool\))?(\w+)>")
LONG = re.compile(r"\blong_kernel<.*::types::(\w+)::RowMap, .*, \((?:lacuna::cuda::)?LongPass\)(\d)>")
TILES = re.compile(r"\b(forward|backward)_kernel<.*::types::(\w+)::RowMap, (?:lacuna::cuda::)?(\w+)>")
ONE_QUERY = re.compile(r"\bone_query_kernel<.*::types::(\w+)::RowMap, (?:lacuna::cuda::)?(\w+)>")
ARCHITECTURES = {"sm_80": 164 << 10, "sm_90a": 228 << 10}  # shared memory of a multiprocessor
RESERVED = 1 << 10  # of it, by each block
REGISTERS, WARPS, BLOCKS, LANES = 65536, 64, 32, 32  # of a multiprocessor
D_HEAD, TILE, MOST_WARPS = 64, 16, 8
LONG_WARPS, LONG_KEYS = 4, 512
LONG_PASSES = ["forward", "gradients of queries", "gradients of keys"]  # LongPass
TILE_KEYS, TILE_WARPS, SEGMENTS = 256, 4, 20 * TILE  # bytes of RowSegments
HEADER = """# Registers of the attention kernels

`scripts/kernel_registers.py` writes this page from what ptxas says ({release}); a test compares it where that nvcc is. The bytes on
the stack of a kernel and those that it spills are 0 unless a cell says more. Shared memory is that of heads of 64 columns, and of warps a
multiprocessor holds as many as its registers and shared memory have room for, by the sizes that NVIDIA gives.

"""
SHORT_HEADER = """## Short rows, in registers

In bf16, with as many queries and keys as the kernel takes.

"""
LONG_HEADER = f"""
## Long rows

In bf16, with {LONG_KEYS} keys.

"""
TILES_HEADER = f"""
## Tiles

With rows of {TILE_KEYS} keys side by side, and no positions. Shorter rows leave room for few warps more: most of the shared memory is for the
factors of products.

"""
ONE_QUERY_HEADER = """
## One query a row

"""


def notes_of(build, name):
    """What ptxas said of a type's kernels."""
    return build / f"src/attention/attention_on_gpu/gpu_{name}.o.ptxas"


def entries(all_notes):
    """(demangled kernel, architecture) -> (registers, bytes of stack, spilled bytes)."""
    found = {}
    for notes in all_notes:
        kernel = stack = None
        for line in notes.read_text(encoding="utf-8").splitlines():
            if match := ENTRY.search(line):
                kernel = match.groups()
            elif match := SPILLS.search(line):
                stack = [int(number) for number in match.groups()]
            elif (match := USED.search(line)) and kernel and stack:
                found[kernel] = (int(match[1]), stack[0], stack[1] + stack[2])
                kernel = stack = None
    names = sorted({name for name, _ in found})
    plain = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()
    demangled = dict(zip(names, plain))
    return {(demangled[name], architecture): used for (name, architecture), used in found.items()}


def shared_bytes(width, is_backward):
    """ShortRowsMemory of a sentence of `width` queries and keys."""
    stride, score_stride, warps = D_HEAD + 8, width + 8, min(MOST_WARPS, width // TILE)
    rows = (4 if is_backward else 2) * width + warps * TILE
    return 2 * (rows * stride + (2 * width * score_stride if is_backward else 0))


def long_bytes(which):
    """LongRowsMemory of a tile of 16 queries over LONG_KEYS keys, or LongKeysMemory."""
    stride, right, left = D_HEAD + 8, 64 + 8, TILE + 8
    if which == 2:
        return 2 * (2 * 64 * stride + 4 * TILE * stride + 2 * LONG_WARPS * TILE * left) + 2 * TILE * 64
    groups = LONG_KEYS // 32
    shared = 2 * (which + 1) * TILE * stride + 2 * 2 * 32 * right * LONG_WARPS + 4 * LONG_WARPS * 4 * TILE + 4 * 8 * TILE + -(-groups // 16) * 16
    return shared + (which + 1) * 4 * LONG_KEYS * TILE


def tile_bytes(numbers, is_backward):
    """SharedMemory of tiles of rows with TILE_KEYS keys."""
    size = 2 if numbers == "bf16" else 4
    kinds, padding, scores = 2 if is_backward else 1, 16 // size, TILE_KEYS + 8
    factors = 2 * TILE * (TILE + padding + D_HEAD + padding) * size
    return kinds * TILE * ((D_HEAD + padding) * size + scores * 4) + SEGMENTS + TILE_WARPS * (factors + scores * 4)


def warps_at_once(architecture, registers, warps, shared):
    of_warp = -(-registers * LANES // 256) * 256
    blocks = min(BLOCKS, WARPS // warps, REGISTERS // (of_warp * warps), ARCHITECTURES[architecture] // (shared + RESERVED))
    return blocks * warps


def cell(used):
    registers, stack, spilled = used
    more = [f"{bytes_} {what}" for bytes_, what in ((stack, "on the stack"), (spilled, "spilled")) if bytes_]
    return f"{registers} ({', '.join(more)})" if more else str(registers)


def cells(of, warps, shared):
    """Of one kernel: registers, shared memory, warps of a multiprocessor."""
    return ([cell(of[a]) for a in ARCHITECTURES] + [f"{shared:,}"]
            + [str(warps_at_once(a, of[a][0], warps, shared)) for a in ARCHITECTURES])


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def page(found, release):
    short, long, tiles, one_query = {}, {}, {}, {}
    for (kernel, architecture), used in found.items():
        if match := SHORT.search(kernel):
            is_backward = match[3] in ("true", "1")
            short.setdefault((match[1], is_backward, int(match[2])), {})[architecture] = used
        elif match := LONG.search(kernel):
            long.setdefault((match[1], int(match[2])), {})[architecture] = used
        elif match := TILES.search(kernel):
            tiles.setdefault((match[2], match[1], "bf16" if match[3] == "Bf16" else "fp32"), {})[architecture] = used
        elif match := ONE_QUERY.search(kernel):
            one_query.setdefault((match[1], "bf16" if match[2] == "Bf16" else "fp32"), {})[architecture] = used
    more = [*(f"registers, {a}" for a in ARCHITECTURES), "shared bytes", *(f"warps, {a}" for a in ARCHITECTURES)]
    rows = [[name, "backward" if is_backward else "forward", str(width),
             *cells(of, min(MOST_WARPS, width // TILE), shared_bytes(width, is_backward))]
            for (name, is_backward, width), of in sorted(short.items())]
    text = HEADER.format(release=release) + SHORT_HEADER + table(["type", "pass", "keys", *more], rows)
    rows = [[name, LONG_PASSES[which], *cells(of, LONG_WARPS, long_bytes(which))] for (name, which), of in sorted(long.items())]
    text += LONG_HEADER + table(["type", "pass", *more], rows)
    rows = [[*names, *cells(of, TILE_WARPS, tile_bytes(names[2], names[1] == "backward"))] for names, of in sorted(tiles.items())]
    text += TILES_HEADER + table(["type", "pass", "numbers", *more], rows)
    rows = [[*names, *(cell(of[a]) for a in ARCHITECTURES)] for names, of in sorted(one_query.items())]
    return text + ONE_QUERY_HEADER + table(["type", "numbers", *more[:2]], rows)


def release_of(build):
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    nvcc = re.search(r"LACUNA_NVCC:FILEPATH=(.*)", cache)[1]
    return "nvcc " + re.search(r"V([0-9.]+)", subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout)[1]


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--check", action="store_true", help="compare, write nothing")
    flags.add_argument("--build", type=pathlib.Path, default=ROOT / "build/cpu", help="folder of the build")
    given = flags.parse_args()
    types = re.search(r"set\(attention_types ([\w ]+)\)", (ROOT / "src/attention/CMakeLists.txt").read_text(encoding="utf-8"))[1].split()
    missing = [name for name in types if not notes_of(given.build, name).exists()]
    if missing:
        print(f"scripts/kernel_registers.py: nvcc has not compiled {', '.join(missing)} in {given.build}: "
              "scripts/build.sh cpu lacuna_cuda_kernels", file=sys.stderr)
        return 77 if given.check else 1
    found = entries(notes_of(given.build, name) for name in types)
    spills = [f"{kernel} for {architecture} spills {used[2]} bytes of registers" for (kernel, architecture), used in sorted(found.items()) if used[2]]
    release = release_of(given.build)
    text = page(found, release)
    if not given.check:
        TABLE.write_text(text, encoding="utf-8")
        print("".join(f"{spill}\n" for spill in spills), end="")
        return 0
    if not TABLE.exists():
        print(f"{TABLE.relative_to(ROOT)} is not there yet; run scripts/kernel_registers.py", file=sys.stderr)
        return 77
    known = TABLE.read_text(encoding="utf-8")
    differs = f"({release})" in known and known != text
    if differs:
        print(f"{TABLE.relative_to(ROOT)} is not what ptxas says; run scripts/kernel_registers.py", file=sys.stderr)
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
