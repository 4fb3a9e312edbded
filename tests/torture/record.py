"""Results that outlast the walk that found them: it may be stopped, and goes on with what is left."""
import hashlib
import json
import os
import threading


class Record:
    """A file with a line of JSON for each result. Those of another program, library of faults or scenario do not count."""

    def __init__(self, path, workshop):
        self.path, self.lock, self.results = path, threading.Lock(), {}
        self.programs = hashlib.sha256()
        for program in (workshop.program, workshop.library):
            with open(program, "rb") as file:
                self.programs.update(file.read())
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as lines:
                for line in map(json.loads, lines):
                    self.results[line["of"], line["what"]] = line["result"]

    def stamp(self, *scenario):
        """What results of a scenario are kept under; `scenario` is all that makes it what it is."""
        whole = self.programs.copy()
        whole.update(json.dumps(scenario).encode())
        return whole.hexdigest()[:32]

    def find(self, stamp, what):
        return self.results.get((stamp, what))

    def add(self, stamp, what, result):
        with self.lock:
            self.results[stamp, what] = result
            if self.path:
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"of": stamp, "what": what, "result": result}) + "\n")
