"""Several processes that serve one run, started as a shell's loop would, or by `lacuna launch`."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def environment(**changes):
    """This process's environment, without what a launcher would say, and with one thread."""
    kept = {name: value for name, value in os.environ.items() if not re.match(r"(RANK|WORLD_SIZE|LOCAL_|MASTER_|SLURM_|OMPI_|PMI_)", name)}
    return {**kept, "OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "1000", **changes}


class Ranks:
    """Processes `program words...`, one a rank. `own` gives ranks words of their own, `before` a command that starts the program; `absent`
    ranks are not started."""

    def __init__(self, program, words, size, own=None, folders=None, before=None, absent=(), address="127.0.0.1", variables=None):
        port = free_port()
        self.said = [tempfile.TemporaryFile() for _ in range(size)]  # pylint: disable=consider-using-with
        self.processes = []
        for rank in range(size):
            if rank in absent:
                continue
            place = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": address, "MASTER_PORT": port, **(variables or {})}
            self.processes.append(subprocess.Popen(  # pylint: disable=consider-using-with
                [*(before or {}).get(rank, []), program, *words, *(own or {}).get(rank, [])], stdin=subprocess.DEVNULL, stdout=self.said[rank],
                stderr=subprocess.STDOUT, env=environment(**{name: str(value) for name, value in place.items()}), cwd=(folders or {}).get(rank)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for said in self.said:
            said.close()

    def text(self, rank):
        self.said[rank].seek(0)
        return self.said[rank].read().decode(errors="replace")

    def texts(self):
        return "\n".join(f"--- rank {rank}\n{self.text(rank)}" for rank in range(len(self.processes)))

    def send(self, number, ranks=None):
        for rank in range(len(self.processes)) if ranks is None else ranks:
            self.processes[rank].send_signal(number)

    def wait(self, seconds=300):
        """The exit codes of all, in the order of ranks; the processes are killed and an error is raised where they take longer."""
        end = time.monotonic() + seconds
        for process in self.processes:
            try:
                process.wait(max(0.01, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                codes, said = [one.poll() for one in self.processes], self.texts()
                self.send(signal.SIGKILL)
                raise AssertionError(f"not all ranks have ended within {seconds} s: {codes}\n{said}") from None
        return [process.returncode for process in self.processes]


def wait_for(what, seconds=120):
    """Waits until what() is true; returns its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := what():
            return value
        time.sleep(0.005)
    raise AssertionError("it has not come about")


TIMES = {"time", "tokens_per_second", "data_wait", "rank_wait", "peak_mebibytes"}


def records(run):
    """What metrics.jsonl says, but for times, memory and the name of the run."""
    try:
        with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []
    for line in lines:
        if "weights" in line:
            line["weights"] = os.path.basename(line["weights"])
    return [{key: value for key, value in line.items() if key not in TIMES} for line in lines]


def results(run):
    """All that must not depend on how many ranks have served the run: names and contents."""
    found = {"metrics": records(run)}
    for name in ("last/model.safetensors", "last/ema.safetensors", "last/trainer.safetensors"):
        path = os.path.join(run, name)
        if os.path.exists(path):
            with open(path, "rb") as file:
                found[name] = file.read()
    with open(os.path.join(run, "last", "trainer.json"), encoding="utf-8") as file:
        found["trainer.json"] = {key: value for key, value in json.load(file).items() if key != "hours"}
    for kind in ("valid", "test"):
        folder = os.path.join(run, kind)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name), "rb") as file:
                found[f"{kind}/{name}"] = file.read()
    return found


def different(one, other):
    """The names of results that differ; empty if none does."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
