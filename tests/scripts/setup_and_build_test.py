"""scripts/setup.sh, build.sh and format.sh, in a copy of the project whose apt-get, python3, cmake and the like only note how they were called."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTE = 'echo "$(basename "$0") $*" >> "$CALLS"\n'
# `python3 -m venv` makes a .venv whose python has pip, torch and sacrebleu.
PYTHON = NOTE + 'mkdir -p .venv/bin && printf \'#!/bin/sh\\necho "venv $*" >> "$CALLS"\\n\' > .venv/bin/python && chmod +x .venv/bin/python\n'
CMAKE = NOTE + 'case "$*" in *--preset*) mkdir -p build/cpu && touch build/cpu/build.ninja && echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" > build/cpu/CMakeCache.txt ;; esac\n'
INSTALLED = 'shift 3; for package in "$@"; do echo "$package installed"; done\n'


class Project(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.root = self.folder / "a project"
        shutil.copytree(ROOT / "scripts", self.root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        for file in [*ROOT.glob("requirements*.txt"), ROOT / "CMakePresets.json"]:
            shutil.copy(file, self.root)
        self.calls = self.folder / "calls"
        for name, text in (("dpkg-query", INSTALLED), ("python3", PYTHON), ("cmake", CMAKE), ("apt-get", NOTE), ("sudo", NOTE)):
            self.program(name, text)

    def program(self, name, text):
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)

    def start(self, script, *arguments, **environment):
        """How it ended, and the commands that it called."""
        self.calls.write_text("")
        inherited = {name: value for name, value in os.environ.items() if name != "CMAKE_BUILD_PARALLEL_LEVEL"}
        environment = {**inherited, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "CALLS": str(self.calls), **environment}
        ended = subprocess.run([self.root / "scripts" / script, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               timeout=60, check=False)
        return ended, self.calls.read_text().splitlines()

    def calls_of(self, script, *arguments, **environment):
        ended, calls = self.start(script, *arguments, **environment)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return calls


class Setup(Project):
    def installs(self, *arguments):
        return [call for call in self.calls_of("setup.sh", *arguments) if "install" in call or call.startswith("python3")]

    def test_a_second_start_installs_nothing(self):
        self.assertIn("python3 -m venv --clear .venv", self.installs())
        self.assertEqual(self.installs(), [])

    def test_an_environment_with_more_serves_too(self):
        self.installs("--tests", "--cuda")
        for arguments in ([], ["--tests"], ["--cuda"]):
            self.assertEqual(self.installs(*arguments), [])

    def test_an_environment_whose_python_no_longer_runs_is_made_anew(self):
        self.installs()
        (self.root / ".venv/bin/python").write_text("#!/bin/sh\nexit 1\n")
        self.assertIn("python3 -m venv --clear .venv", self.installs())
        self.assertEqual(self.installs(), [])

    def test_what_is_there_is_kept_when_something_is_added(self):
        self.installs("--cuda")
        added = self.installs("--tests")
        self.assertTrue(any("requirements-test.txt" in call for call in added), added)
        self.assertFalse(any("--no-deps" in call for call in added), added)
        self.assertEqual(self.installs("--cuda", "--tests"), [])

    def test_missing_packages_are_installed(self):
        self.program("dpkg-query", "exit 1\n")
        self.program("id", "echo 0\n")
        calls = self.calls_of("setup.sh")
        self.assertEqual(calls[0], "apt-get update -qq")
        self.assertRegex(calls[1], r"^apt-get -o DPkg::Lock::Timeout=300 install -y .* g\+\+ cmake ")

    def test_sudo_passes_the_proxy_on(self):
        self.program("dpkg-query", "exit 1\n")
        self.program("id", "echo 1000\n")
        calls = self.calls_of("setup.sh", http_proxy="http://proxy:3128")
        self.assertRegex("\n".join(calls), r"sudo env http_proxy=http://proxy:3128 .*apt-get update")

    def test_a_user_who_may_not_install_is_told_what_is_missing(self):
        self.program("dpkg-query", "exit 1\n")
        self.program("id", "echo 1000\n")
        self.program("sudo", "exit 1\n")
        ended, calls = self.start("setup.sh")
        self.assertEqual((ended.returncode, calls), (1, []))
        self.assertIn("sudo apt-get install g++ cmake", ended.stderr)


class Build(Project):
    def configured(self, **environment):
        return [call for call in self.calls_of("build.sh", **environment) if "--preset" in call]

    def test_configures_once_and_again_when_the_presets_change(self):
        self.assertEqual(self.configured(), ["cmake --preset cpu"])
        self.assertEqual(self.configured(), [])
        later = time.time() + 5
        os.utime(self.root / "CMakePresets.json", (later, later))
        self.assertEqual(self.configured(), ["cmake --preset cpu"])
        os.utime(self.root / "build/cpu/configured", (later + 1, later + 1))
        os.utime(self.root / "build/cpu/CMakeCache.txt", (1, 1))  # as CMake leaves it where the change was none to it
        self.assertEqual(self.configured(), [])

    def test_a_project_that_was_moved_is_configured_from_nothing(self):
        self.configured()
        self.root = self.root.rename(self.folder / "moved")
        self.assertEqual(self.configured(), ["cmake --fresh --preset cpu"])
        self.assertEqual(self.configured(), [])

    def test_starts_no_more_compilers_than_memory_holds(self):
        self.program("getconf", "echo 64\n")
        for kibibytes, jobs in ((8 << 20, 4), (1 << 20, 1)):
            self.program("awk", f"echo {kibibytes << 10}\n")
            self.assertIn(f"cmake --build build/cpu --parallel {jobs} --target lacuna", self.calls_of("build.sh"))
        self.assertIn("cmake --build build/cpu --target lacuna", self.calls_of("build.sh", CMAKE_BUILD_PARALLEL_LEVEL="7"))
        self.program("getconf", "echo 2\n")
        self.program("awk", f"echo {24 << 30}\n")
        if not os.path.exists("/sys/fs/cgroup/memory.max"):  # or the control group's limit goes before
            self.assertIn("cmake --build build/cpu --target lacuna", self.calls_of("build.sh"))


class Format(Project):
    def test_another_clang_format_is_not_used(self):
        for name in ("clang-format", "clang-format-14"):
            self.program(name, NOTE + "echo Debian clang-format version 19.1.7\n")
        ended, calls = self.start("format.sh")
        self.assertEqual((ended.returncode, [call for call in calls if "--version" not in call]), (77, []))
        self.assertIn("apt-get install clang-format-14", ended.stderr)


if __name__ == "__main__":
    unittest.main()
