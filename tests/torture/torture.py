#!/usr/bin/env python3
"""Walks the operations on files of small runs, lets each fail, and looks whether the same command then comes to the same end.

scripts/torture.sh starts it: torture.py PROGRAM LIBRARY [--all] [--scenario NAME ...] [--kills N] [--record FILE] [--jobs N]
"""
import argparse
import concurrent.futures
import dataclasses
import os
import signal
import sys
import tempfile
import time

import kills
from record import Record
from runs import Workshop
from scenarios import CONFIGURATION, SCENARIOS, TEMPLATES
from walk import HARMLESS, Case, Walk, template

MOST_IN_SHORT_FORM = 2  # cases of a scenario


@dataclasses.dataclass
class Row:
    """What came of a scenario."""
    name: str
    operations: int
    cases: list
    seconds: float

    def failed(self):
        return [case for case in self.cases if case.problems]

    def missed(self):
        return [case for case in self.cases if case.missed]


def walk(workshop, scenario, options, pool, record):
    start = time.monotonic()
    one = Walk(workshop, scenario)
    cases = one.all_cases(options.kinds) if options.all else one.some_cases(options.kinds, MOST_IN_SHORT_FORM)
    stamp = record.stamp(CONFIGURATION, TEMPLATES, scenario.name, scenario.template, scenario.before, scenario.command)

    def judged(case):
        problems = record.find(stamp, case.words())
        if problems is not None:
            return dataclasses.replace(case, problems=tuple(problems))
        case = one.judge(case)
        if not case.missed:
            record.add(stamp, case.words(), case.problems)
        return case

    for kind in HARMLESS if options.all and not scenario.change else ():
        of_kind = [case for case in cases if case.kind == kind and record.find(stamp, case.words()) is None]
        if of_kind and not one.together(kind, of_kind):
            for case in of_kind:
                record.add(stamp, case.words(), ())
    return Row(scenario.name, len(one.operations), list(pool.map(judged, cases)), time.monotonic() - start)


def show(row):
    """Says what failed, with the command that repeats it."""
    print(f"{row.name}: {len(row.cases)} faults, {len(row.failed())} failed, {len(row.missed())} missed, {row.seconds:.0f} s", file=sys.stderr, flush=True)
    for case in row.failed():
        print(f"FAILED {row.name} {case.name()}, {case.words()}: {'; '.join(case.problems)}\n       {command_of(row, case)}", flush=True)


def command_of(row, case):
    which = f"--scenario {row.name} --case {case.name()}" if row.operations else f"--kills 1 --seed {case.seed}"
    return f"scripts/torture.sh {which}"


def table(rows):
    lines = ["| scenario | operations | faults | recovered | failed | missed | seconds |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    cases = [case for row in rows for case in row.cases]
    everything = Row("all", sum(row.operations for row in rows), cases, sum(row.seconds for row in rows))
    for row in (*rows, everything):
        faults, failed, missed = len(row.cases), len(row.failed()), len(row.missed())
        lines.append(f"| {row.name} | {row.operations or ''} | {faults} | {faults - failed - missed} | {failed} | {missed} | {row.seconds:.0f} |")
    return "\n".join(lines)


def show_case(workshop, scenario, name):
    """Repeats one case, and leaves its folder."""
    number, kind = name.split(":")
    one = Walk(workshop, scenario)
    operations = [operation.place() for operation in one.operations if operation.number == int(number)]
    case = one.judge(Case(int(number), kind, "".join(operations)), keeps=True)
    print(f"lacuna {scenario.command}\n{case.name()}, {case.words()}: {'; '.join(case.problems) or ('missed' if case.missed else 'recovered')}")
    return 1 if case.problems or case.missed else 0


def chosen(names):
    known = {scenario.name: scenario for scenario in SCENARIOS}
    for name in names:
        if name not in known:
            raise SystemExit(f"torture.py: there is no scenario \"{name}\"; known: {', '.join(known)}")
    return [known[name] for name in names] or SCENARIOS


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="lacuna")
    parser.add_argument("library", help="what faults.cpp becomes")
    parser.add_argument("--all", action="store_true", help="every operation and every fault; without it, a part of each scenario")
    parser.add_argument("--scenario", action="append", default=[], metavar="NAME", help="only this; may be given more than once")
    parser.add_argument("--kinds", type=lambda names: names.split(","), help="only these faults, between commas: kill,torn")
    parser.add_argument("--case", metavar="NUMBER:KIND", help="only this fault, of one scenario; its folder stays")
    parser.add_argument("--kills", type=int, default=0, metavar="N",
                        help="in place of scenarios: SIGKILL at random moments of N runs, and other signals in a fifth as many each")
    parser.add_argument("--record", default="", metavar="FILE",
                        help="gets a line for each result; those that it has of this program are not sought again")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases at once (default: as many as there are CPUs)")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    options = parser.parse_args()
    if options.case and len(options.scenario) != 1:
        parser.error("--case needs one --scenario")
    return options


def main():
    options = parse()
    if options.list:
        print("\n".join(f"{scenario.name:18}{scenario.about}" for scenario in SCENARIOS))
        return 0
    scenarios = chosen(options.scenario)
    workshop = Workshop(options.program, options.library, tempfile.mkdtemp(prefix="lacuna_torture_"))
    record = Record(options.record, workshop)
    rows, pool = [], concurrent.futures.ThreadPoolExecutor(options.jobs)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        if options.case:
            return show_case(workshop, scenarios[0], options.case)
        if options.kills:
            for found in kills.interrupt(workshop, template(workshop, "texts"), options.kills, options.seed, pool, record):
                rows.append(Row(*found))
                show(rows[-1])
        for scenario in [] if options.kills else scenarios:
            rows.append(walk(workshop, scenario, options, pool, record))
            show(rows[-1])
    finally:
        pool.shutdown(cancel_futures=True)
        workshop.close(keeps=bool(options.case))
    print(table(rows))
    return 1 if any(row.failed() for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
