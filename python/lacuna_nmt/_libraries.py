"""Loads LibTorch, which the compiled module needs, from the folder of the package torch, without importing that package."""

import ctypes
import importlib.util
import pathlib
import re
import sys

from ._build import HAS_CUDA, LIBTORCH


def require_processor():
    """Raises ImportError where the compiled module would end Python by an illegal instruction."""
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    if " avx2" not in flags:
        raise ImportError("lacuna_nmt: this processor cannot run Lacuna; expected x86-64 with AVX2 (Haswell or later)")


def torch_folder():
    """The folder of the installed torch, whose LibTorch is of the version that the module was built with."""
    wanted = ".".join(LIBTORCH.split(".")[:2])
    what_to_do = (
        f'python -m pip install "torch=={LIBTORCH}", or for the CPU alone: '
        f"python -m pip install --no-deps torch=={LIBTORCH} nvidia-cuda-runtime nvidia-cuda-cupti"
    )
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        raise ImportError(f"lacuna_nmt: {sys.executable} has no package torch, whose LibTorch computes here; expected {wanted}: {what_to_do}")
    folder = pathlib.Path(spec.origin).parent
    version = re.search(r"""^__version__ = ['"]([^'"]*)""", (folder / "version.py").read_text(encoding="utf-8"), re.MULTILINE)
    found = version.group(1) if version else "unknown"
    if not found.startswith(wanted + "."):
        raise ImportError(f"lacuna_nmt: the package torch in {folder} is of version {found}; expected {wanted}, which this was built with: {what_to_do}")
    return folder


def load():
    """Loads the libraries; where torch was imported before, they are there already, and the same ones serve."""
    require_processor()
    folder = torch_folder() / "lib"
    for name in ["libc10.so", "libtorch_cpu.so"] + (["libc10_cuda.so", "libtorch_cuda.so"] if HAS_CUDA else []):
        try:
            ctypes.CDLL(str(folder / name))
        except OSError as error:
            raise ImportError(f"lacuna_nmt: LibTorch cannot be loaded: {error}") from error
