#!/usr/bin/env python3
"""The Python package: package_test.py PROGRAM SOURCE_FOLDER BUILD_FOLDER

Builds the wheel as `pip wheel .` does, but with the libraries of the build folder, installs it into an environment that has LibTorch and
NumPy beside it, trains a small model, and runs uses.py there. Nothing is fetched: LibTorch, NumPy and what builds are those of .venv.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import small_run  # noqa: E402

# What the environment has of .venv: LibTorch and the two packages that it links to, NumPy, and what others import beside it.
BORROWED = ("torch", "torch-*", "torchgen", "nvidia", "numpy", "numpy-*", "numpy.libs", "sentencepiece", "sentencepiece-*")


def run(*words, **settings):
    ended = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **settings)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in words)}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def build_wheel(python, source, build, folder):
    """The wheel, and the time that a second build of the same takes is that of a look at each file: its build folder is kept."""
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    cuda = "ON" if "LACUNA_CUDA:STRING=ON" in cache else "OFF"
    settings = {"build-dir": build / "tests/python/wheel", "cmake.define.LACUNA_BUILD": build, "cmake.define.LACUNA_CUDA": cuda}
    words = [word for key, value in settings.items() for word in ("-C", f"{key}={value}")]
    run(python, "-m", "pip", "wheel", source, "--no-deps", "--no-build-isolation", "--no-index", "-w", folder, *words)
    [wheel] = folder.glob("*.whl")
    return wheel


def make_environment(python, source, wheel, folder):
    """An environment with nothing but the wheel and what is borrowed; its interpreter."""
    run(python, "-m", "venv", "--without-pip", folder)
    [packages] = folder.glob("lib/python3*/site-packages")
    [borrowed] = (source / ".venv").glob("lib/python3*/site-packages")
    for pattern in BORROWED:
        for place in borrowed.glob(pattern):
            (packages / place.name).symlink_to(place)
    run(python, "-m", "pip", "--python", folder / "bin/python", "install", "--no-deps", "--no-index", wheel)
    return folder / "bin/python"


def main():
    program, source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    python = source / ".venv/bin/python"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wheel = build_wheel(python, source, build, folder)
        environment = make_environment(python, source, wheel, folder / "environment")
        os.environ["OMP_NUM_THREADS"] = "2"
        (folder / "runs").mkdir()
        small_run.train(str(program), str(folder))
        (folder / "runs/bundled").symlink_to(folder / "run")
        shutil.copy(HERE / "uses.py", folder)
        ended = subprocess.run([environment, "uses.py", program, source], cwd=folder, stdin=subprocess.DEVNULL, check=False)
        sys.exit(ended.returncode)


if __name__ == "__main__":
    main()
