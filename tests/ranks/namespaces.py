"""Networks of namespaces on this machine, as if each were a machine of its own: slow, late, lossy, cut. Needs root."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile


def why_not():
    """What keeps this machine from making namespaces; empty if nothing does."""
    if os.geteuid() != 0:
        return "namespaces of the network need root"
    missing = [tool for tool in ("ip", "tc", "unshare", "hostname") if shutil.which(tool) is None]
    return f"there is no {', '.join(missing)}" if missing else ""


def call(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True).stdout


class Network:
    """`size` namespaces; `command(i)` are the words before a program that is to run in one of them, under a host name of its own."""
    ADDRESS = None  # of namespace i: ADDRESS.format(i + 1)

    def __init__(self, size):
        self.size, self.prefix = size, f"lacuna{os.getpid()}n"

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # not without __exit__
        try:
            for i in range(self.size):
                call("ip", "netns", "add", self.space(i))
                call("ip", "-n", self.space(i), "link", "set", "lo", "up")
            self.connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.disconnect()
        for i in range(self.size):
            for process in call("ip", "netns", "pids", self.space(i), check=False).split():
                os.kill(int(process), signal.SIGKILL)
            call("ip", "netns", "del", self.space(i), check=False)

    def connect(self):
        raise NotImplementedError

    def disconnect(self):
        pass

    def space(self, i):
        return f"{self.prefix}{i}"

    def command(self, i):
        return ["ip", "netns", "exec", self.space(i), "unshare", "--uts", "sh", "-c", f'hostname node{i}; exec "$@"', "sh"]

    def places(self, size=None):
        """What ranks.Ranks needs to start a rank in each namespace."""
        count = self.size if size is None else size
        return {"before": {i: self.command(i) for i in range(count)}, "address": self.ADDRESS.format(1),
                "variables": {"LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1}}

    def bytes_sent(self, i):
        """Bytes that have left a namespace, by the kernel's count."""
        return int(call("ip", "netns", "exec", self.space(i), "cat", f"/sys/class/net/{self.DEVICE}/statistics/tx_bytes"))


class Bridge(Network):
    """Namespaces on a bridge, each behind a token bucket of `rate` ("1gbit"; None = without limit)."""
    ADDRESS, DEVICE = "10.8.0.{}", "eth0"

    def __init__(self, size, rate=None):
        super().__init__(size)
        self.rate, self.bridge = rate, f"lac{os.getpid()}"

    def outside(self, i):
        return f"{self.bridge}v{i}"

    def connect(self):
        call("ip", "link", "add", self.bridge, "type", "bridge")
        call("ip", "link", "set", self.bridge, "up")
        for i in range(self.size):
            space = self.space(i)
            call("ip", "link", "add", self.outside(i), "type", "veth", "peer", "name", self.DEVICE, "netns", space)
            call("ip", "link", "set", self.outside(i), "master", self.bridge, "up")
            call("ip", "-n", space, "addr", "add", f"{self.ADDRESS.format(i + 1)}/24", "dev", self.DEVICE)
            call("ip", "-n", space, "link", "set", self.DEVICE, "up")
            if self.rate:
                bucket = ("root", "tbf", "rate", self.rate, "burst", "512kb", "latency", "100ms")
                call("tc", "-n", space, "qdisc", "add", "dev", self.DEVICE, *bucket)
                call("tc", "qdisc", "add", "dev", self.outside(i), *bucket)

    def disconnect(self):
        for i in range(self.size):
            call("ip", "link", "del", self.outside(i), check=False)
        call("ip", "link", "del", self.bridge, check=False)


class Relay(Network):
    """Namespaces between which a program carries the packets (relay.cpp): late by `delay` plus up to `jitter` milliseconds, a share `loss` of
    them lost. `cut` drops all of some namespaces."""
    ADDRESS, DEVICE = "10.9.0.{}", "tun0"

    def __init__(self, size, delay=1, jitter=0, loss=0, megabits=0):
        super().__init__(size)
        self.settings = [str(number) for number in (delay, jitter, loss, megabits)]
        self.folder, self.process = None, None

    def connect(self):
        self.folder = tempfile.mkdtemp()
        program, source = os.path.join(self.folder, "relay"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "relay.cpp")
        call(os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-o", program, source)
        self.cut()
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [program, self.prefix, str(self.size), *self.settings, os.path.join(self.folder, "cut")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("the relay does not run")

    def disconnect(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
        if self.folder:
            shutil.rmtree(self.folder)

    def cut(self, *numbers):
        """Cuts these namespaces off, and no others."""
        name = os.path.join(self.folder, "cut")
        with open(name + ".new", "w", encoding="utf-8") as file:
            file.write(" ".join(map(str, numbers)))
        os.rename(name + ".new", name)
