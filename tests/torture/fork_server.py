"""Starts a program many times, without loading it each time: fork_server.cpp, preloaded into it, forks before main()."""
import os
import queue
import signal
import socket
import struct
import subprocess
import threading

TICK = 0.05  # seconds, in which a long wait is counted
ANSWER = struct.Struct("=iiiid")  # process, has it ended, status, KiB of memory at most, seconds of CPU


def ends_within(process, seconds):
    """Waits for a process. Seconds in which this program is stopped do not count."""
    for _ in range(int(seconds / TICK)):
        try:
            process.wait(timeout=TICK)
            return True
        except subprocess.TimeoutExpired:
            pass
    return False


class Process:
    """A process of the server, with the methods of Popen."""

    def __init__(self, pid):
        self.pid, self.returncode, self.most_kib, self.cpu_seconds = pid, None, 0, 0.0
        self.ended = threading.Event()

    def end(self, status, most_kib, cpu_seconds):
        self.returncode, self.most_kib, self.cpu_seconds = os.waitstatus_to_exitcode(status), most_kib, cpu_seconds
        self.ended.set()

    def poll(self):
        return self.returncode

    def wait(self, timeout=None):
        if not self.ended.wait(timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return self.returncode

    def send_signal(self, number):
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class ForkServer:
    def __init__(self, program, library, environment):
        """`environment` is what the program's libraries read before main()."""
        self.program = program
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen([program], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                            env={**environment, "LD_PRELOAD": library, "LD_BIND_NOW": "1", "FAULTS_SERVER": str(theirs.fileno())})
        self.running, self.begun, self.lock = {}, queue.SimpleQueue(), threading.Lock()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        """Notes who has begun and who has ended."""
        while answer := self.socket.recv(ANSWER.size):
            pid, has_ended, status, most_kib, cpu_seconds = ANSWER.unpack(answer)
            if has_ended:
                self.running.pop(pid).end(status, most_kib, cpu_seconds)
            else:
                self.running[pid] = Process(pid)
                self.begun.put(self.running[pid])
        for process in self.running.values():
            process.end(signal.SIGKILL, 0, 0.0)
        self.begun.put(None)

    def start(self, arguments, folder, environment, files):
        """A new process with these files as its standard ones."""
        words = [folder, str(1 + len(arguments)), self.program, *arguments, *(f"{name}={value}" for name, value in environment.items())]
        with self.lock:
            socket.send_fds(self.socket, [b"".join(os.fsencode(word) + b"\0" for word in words)], [file.fileno() for file in files])
            process = self.begun.get()
        if process is None:
            raise SystemExit(f"torture.py: the fork server ended with {self.process.wait()}")
        return process

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.process.wait()
