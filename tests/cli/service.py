"""`lacuna serve`, started for a test, and requests to it."""
import http.client
import json
import subprocess
import threading

from patience import seconds
from program import PROGRAM


class Service:
    """A running service. Its log is read as it comes."""

    def __init__(self, *words):
        self.process = subprocess.Popen([PROGRAM, "serve", "--listen", "127.0.0.1:0", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self.events, self.other_lines = [], []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read_log)
        self.reader.start()
        self.port = int(self.event("ready")["listen"].rsplit(":", 1)[1])

    def read_log(self):
        for line in self.process.stderr:
            with self.changed:
                if line.startswith("{"):
                    self.events.append(json.loads(line))
                else:
                    self.other_lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.events.append({"event": "end"})
            self.changed.notify_all()

    def event(self, name, count=1, patience_s=120):
        """The last of the first `count` events of this name; waits for it."""
        def found():
            return [event for event in self.events if event["event"] == name]

        with self.changed:
            self.changed.wait_for(lambda: len(found()) >= count or self.events[-1:] == [{"event": "end"}], seconds(patience_s))
            if len(found()) < count:
                raise AssertionError(f"no {name}: {self.events} {self.other_lines}")
            return found()[count - 1]

    def connect(self, patience_s=120):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds(patience_s))

    def ask(self, method, path, body=None, kind="application/json", **headers):
        """Status, headers and body."""
        connection = self.connect()
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        connection.request(method, path, body, {"Content-Type": kind, **headers} if body is not None else headers)
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read().decode()
        connection.close()
        return found

    def metric(self, name):
        for line in self.ask("GET", "/metrics")[2].splitlines():
            if line.startswith(f"lacuna_{name} "):
                return float(line.split()[-1])
        raise AssertionError(f"no metric {name}")

    def wait_for_metric(self, name, is_right, patience_s=60):
        pause = threading.Event()
        for _ in range(int(seconds(patience_s) / 0.05)):
            value = self.metric(name)
            if is_right(value):
                return value
            pause.wait(0.05)
        raise AssertionError(f"{name} is {value}")

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, patience_s=120):
        code = self.process.wait(seconds(patience_s))
        self.reader.join()
        self.process.stderr.close()
        return code

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.wait()
