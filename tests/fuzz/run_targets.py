#!/usr/bin/env python3
"""Runs targets of libFuzzer one after the other: run_targets.py build/fuzz [NAME ...] [--seconds N] [--record FILE]

Each gets N seconds of processor time, so that one that is stopped meanwhile (kill -STOP -PROCESS_GROUP) loses nothing. What it finds stays in
build/fuzz/found, if it comes again when the input is run alone: an input during which the machine stood still is no finding.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMITS = ["-timeout=5", "-rss_limit_mb=1024", "-malloc_limit_mb=1024"]


def processor_seconds(process):
    """What a process has used so far; None once it has ended."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return None if fields[0] in "ZX" else (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Target:
    def __init__(self, build, name):
        self.name, self.program = name, os.path.join(build, "tests/fuzz", f"fuzz_{name}")
        self.corpus, self.seeds = os.path.join(build, "corpus", name), os.path.join(build, "seeds", name)
        self.found = os.path.join(build, "found")
        self.used, self.executions, self.findings = 0.0, 0, 0
        self.edges, self.memory = 0, 0
        for folder in (self.corpus, self.seeds, self.found):
            os.makedirs(folder, exist_ok=True)

    def run(self, seconds):
        """Goes on until the time is used up or something is found."""
        while self.used < seconds and self.findings == 0:
            before = self.executions, self.used
            with tempfile.TemporaryDirectory() as artifacts:
                self.start(seconds - self.used, artifacts)
                self.judge(artifacts)
            if (self.executions, self.used) == before and self.findings == 0:
                sys.exit(f"run_targets.py: {self.program} ends at once; start it by itself to see why")

    def start(self, seconds, artifacts):
        command = [self.program, *LIMITS, "-print_final_stats=1", "-print_funcs=0", f"-artifact_prefix={artifacts}/", self.corpus, self.seeds]
        with tempfile.TemporaryFile() as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
            used = 0.0
            try:
                while (now := processor_seconds(process)) is not None:
                    used = now
                    if used >= seconds:
                        process.send_signal(signal.SIGUSR1)  # by which libFuzzer ends with its figures
                    time.sleep(0.2)
            except BaseException:
                process.kill()
                raise
            process.wait()
            said.seek(0)
            text = said.read().decode(errors="replace")
        self.used += used
        self.executions += sum(map(int, re.findall(r"stat::number_of_executed_units: *(\d+)", text)))
        self.edges = max(self.edges, *map(int, re.findall(r" cov: (\d+) ", text)), 0)
        self.memory = max(self.memory, *map(int, re.findall(r"stat::peak_rss_mb: *(\d+)", text)), 0)
        if os.listdir(artifacts):
            print("\n".join(line for line in text.splitlines() if not line.startswith("#")), flush=True)  # but for lines of progress

    def judge(self, artifacts):
        """Keeps the inputs that break something again."""
        for name in sorted(os.listdir(artifacts)):
            again = subprocess.run([self.program, *LIMITS, os.path.join(artifacts, name)], capture_output=True, check=False)
            if again.returncode == 0:
                continue
            self.findings += 1
            shutil.copy(os.path.join(artifacts, name), os.path.join(self.found, f"{self.name}-{name}"))
            print(f"{self.name}: {os.path.join(self.found, f'{self.name}-{name}')} breaks it", flush=True)

    def facts(self):
        return {
            "target": self.name,
            "seconds": round(self.used),
            "executions": self.executions,
            "edges": self.edges,
            "memory_mib": self.memory,
            "findings": self.findings,
        }


def recorded(record, name):
    """What a target has had in earlier starts: seconds and findings."""
    if not record or not os.path.exists(record):
        return 0, 0
    with open(record, encoding="utf-8") as file:
        facts = [one for one in map(json.loads, file) if one["target"] == name]
    return sum(one["seconds"] for one in facts), sum(one["findings"] for one in facts)


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("build", help="the build folder")
    flags.add_argument("targets", nargs="*", help="all that are built there unless given")
    flags.add_argument("--seconds", type=float, default=10, help="of processor time for each (10)")
    flags.add_argument("--record", metavar="FILE", help="gets a line of JSON for each target; seconds that a target has there count")
    asked = flags.parse_args()
    built = os.listdir(os.path.join(asked.build, "tests/fuzz"))
    names = asked.targets or sorted(name[len("fuzz_"):] for name in built if name.startswith("fuzz_") and "." not in name)
    failed = False
    for name in names:
        seconds, findings = recorded(asked.record, name)
        if seconds >= int(asked.seconds) or findings > 0:
            print(f"{name}: done before", flush=True)
            continue
        target = Target(os.path.abspath(asked.build), name)
        target.run(asked.seconds - seconds)
        failed = failed or target.findings > 0
        line = json.dumps(target.facts())
        print(line, flush=True)
        if asked.record:
            with open(asked.record, "a", encoding="utf-8") as file:
                file.write(line + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
