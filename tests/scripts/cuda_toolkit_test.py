"""cmake/Cuda.cmake takes only an nvcc that can compile the kernels, and names the one that can't."""
import pathlib
import subprocess
import tempfile
import unittest

CUDA = pathlib.Path(__file__).resolve().parents[2] / "cmake/Cuda.cmake"
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES NONE)
set(LIBTORCH_DIR /nowhere)
include("{CUDA}")
message(STATUS "fit: ${{nvcc_is_fit}}")
"""


class CudaToolkit(unittest.TestCase):
    def configured(self, release, cuda):
        with tempfile.TemporaryDirectory() as folder:
            nvcc = pathlib.Path(folder) / "nvcc"
            nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.89'\n")
            nvcc.chmod(0o755)
            (pathlib.Path(folder) / "CMakeLists.txt").write_text(PROJECT)
            ended = subprocess.run(["cmake", "-S", folder, "-B", f"{folder}/build", f"-DLACUNA_NVCC={nvcc}", f"-DLACUNA_CUDA={cuda}"],
                                   capture_output=True, text=True, timeout=60, check=False)
            return ended.returncode, " ".join((ended.stdout + ended.stderr).split())

    def test_old_ones_are_passed_over_or_named(self):
        for release in ("11.8", "12.3"):
            code, said = self.configured(release, "AUTO")
            self.assertEqual(code, 0, said)
            self.assertIn("CUDA: OFF -- fit: FALSE", said)
            code, said = self.configured(release, "ON")
            self.assertEqual(code, 1)
            self.assertRegex(said, rf"12\.4 or later; .*nvcc is of another \(release {release}\)")

    def test_new_ones_are_taken(self):
        for release in ("12.4", "13.0"):
            self.assertIn("fit: TRUE", self.configured(release, "OFF")[1])
            self.assertIn("/nowhere has no libtorch_cuda.so", self.configured(release, "ON")[1])


if __name__ == "__main__":
    unittest.main()
