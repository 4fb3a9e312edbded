"""A headless Chromium, spoken to over a pipe by the DevTools protocol; needs nothing but Python and the browser."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 120  # for one answer, on a busy machine


def program():
    """The first of PROGRAMS that is installed, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page of a browser that can't reach the network, but for 127.0.0.1. Collects what the page says on its console and what it asks for."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        to_browser, self.commands = os.pipe()
        self.answers, from_browser = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]  # clear of 3 and 4, where the browser wants them

        def place_ends():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        arguments = [program(), "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--user-data-dir={self.folder.name}", "about:blank"]
        self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        pass_fds=(3, 4), preexec_fn=place_ends)
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self.unread, self.last_id, self.session = b"", 0, None
        self.complaints, self.requests = [], []
        page = next(target for target in self.ask("Target.getTargets")["targetInfos"] if target["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self):
        os.close(self.commands)  # it ends with its last reader
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)
        self.folder.cleanup()

    def ask(self, method, **parameters):
        """The answer to a command of the protocol."""
        self.last_id += 1
        command = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self.next_message()
            if message.get("id") == self.last_id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.note(message)

    def next_message(self):
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self.unread:
            if not select.select([self.answers], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError(f"the browser said nothing for {PATIENCE_S} s")
            read = os.read(self.answers, 1 << 20)
            if not read:
                raise RuntimeError(f"the browser ended with {self.process.wait()}")
            self.unread += read
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console.{parameters['type']}: {[part.get('value') for part in parameters['args']]}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, place, width, scheme="light"):
        """Shows a file, or what is behind an http address, in a window of that width."""
        self.complaints, self.requests = [], []
        is_phone = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=is_phone)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Page.navigate", url=place if place.startswith("http:") else "file://" + os.path.abspath(place))
        self.wait_for("document.readyState === 'complete'")

    def value(self, expression):
        """What an expression of JavaScript gives; a promise is waited for."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait_for(self, expression):
        until = time.monotonic() + PATIENCE_S
        while not self.value(expression):
            if time.monotonic() > until:
                raise TimeoutError(f"waited in vain for {expression}")
            time.sleep(0.02)

    def point_at(self, x, y):
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def picture(self, path):
        """The whole page as a PNG."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]))
