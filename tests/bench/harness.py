"""What every row needs: processes that end with the run, rounds in turn, medians, rows with what they are held against."""
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CCIXFER_BUILD", REPO / "build/release"))
BINARY = pathlib.Path(os.environ.get("CCIXFER", BUILD / "ccixfer"))
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Row:
    what: str
    value: float
    unit: str
    beside: str = ""             # whose value the ratio is of
    ratio: float | None = None   # ours over theirs
    at_least: float | None = None
    at_most: float | None = None

    def goal(self):
        return f"at least {self.at_least:g}" if self.at_least is not None else f"at most {self.at_most:g}" if self.at_most is not None else ""

    def met(self):
        judged = self.value if self.ratio is None else self.ratio
        return (self.at_least is None or judged >= self.at_least) and (self.at_most is None or judged <= self.at_most)

    def cells(self):
        size = abs(self.value)
        value = f"{self.value:.0f}" if size >= 100 else f"{self.value:.2f}" if size >= 1 else f"{self.value:.3g}"
        return [self.what, value, self.unit, self.beside, "" if self.ratio is None else f"{self.ratio:.2f}", self.goal()]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Watch(threading.Thread):
    """Peak RssAnon (KiB) of a process, sampled."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak_kib, self.ended = pid, 0, threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.02):
            try:
                for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
                    if line.startswith("RssAnon"):
                        self.peak_kib = max(self.peak_kib, int(line.split()[1]))
            except OSError:
                return


def cpu_seconds(pid):
    """Of a process, its ended children, and those that live."""
    def own(number):
        try:
            fields = pathlib.Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return sum(int(field) for field in fields[11:15]) / TICKS_A_SECOND
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return own(pid) + sum(own(child) for child in children)


class Bench:
    """Everything that runs ends with stop(). `directory` is on tmpfs."""

    def __init__(self, directory, rounds):
        self.directory, self.rounds = directory, rounds
        os.environ["XDG_STATE_HOME"] = str(directory / "state")   # what the warm-up finds of paths is known in the rounds
        self.processes, self.watches = [], {}

    def spawn(self, *command, **options):
        process = subprocess.Popen([str(c) for c in command], **options)
        self.processes.append(process)
        return process

    def daemon(self, name, *arguments, env=None):
        """A ccixfer daemon: waits until it is ready, gives the process and its URIs. `env`: beside ours.
        A receiver says nothing, as an rsync daemon says nothing: to read an event of each file would cost more than the file."""
        env = {**os.environ, **(env or {})}
        if arguments[0] == "recv":
            ready = self.directory / f"{name.replace(' ', '-')}.uri"
            ready.unlink(missing_ok=True)
            process = self.spawn(BINARY, *arguments, "-q", "--uri-file", ready, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
            while not ready.exists():   # it appears whole
                if process.poll() is not None:
                    raise SystemExit(f"{name} did not get ready: {' '.join(str(a) for a in arguments)}")
                time.sleep(0.01)
            self.watches[name] = Watch(process.pid)
            return process, ready.read_text().split()
        process = self.spawn(BINARY, *arguments, "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "ready":
                threading.Thread(target=lambda: [None for _ in process.stdout], daemon=True).start()
                self.watches[name] = Watch(process.pid)
                return process, event["uris"]
        raise SystemExit(f"{name} did not get ready: {' '.join(str(a) for a in arguments)}")

    def end(self, process):
        process.terminate()
        process.wait(timeout=20)

    def events(self, *arguments, env=None):
        """A ccixfer command to its end: its JSON events."""
        ended = subprocess.run([str(BINARY), *[str(a) for a in arguments], "--json"], capture_output=True, text=True, check=False,
                               env={**os.environ, **(env or {})})
        if ended.returncode != 0:
            raise SystemExit(f"failed ({ended.returncode}): ccixfer {' '.join(str(a) for a in arguments)}\n{ended.stderr[-500:]}")
        return [json.loads(line) for line in ended.stdout.splitlines()]

    def output(self, *command):
        ended = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise SystemExit(f"failed ({ended.returncode}): {' '.join(str(c) for c in command)}\n{(ended.stdout + ended.stderr)[-500:]}")
        return ended.stdout

    def warm_memory(self, size_bytes):
        """Takes that much memory, touches it and gives it back. A virtual machine returns what is free to its host within
        seconds, and the first touch afterwards costs several times the copy into it: whoever writes files would be measured by
        how long the memory has been free."""
        available = next(int(line.split()[1]) << 10 for line in pathlib.Path("/proc/meminfo").read_text().splitlines()
                         if line.startswith("MemAvailable"))
        block = bytes(1 << 24)
        ballast = self.directory / "ballast"
        with open(ballast, "wb") as out:
            for _ in range(min(size_bytes, available // 2) // len(block)):
                out.write(block)
        ballast.unlink()

    def wait_port(self, port, host="127.0.0.1"):
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection((host, port)).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise SystemExit(f"nobody listens on port {port}") from None
                time.sleep(0.05)

    def wait_listening(self, port):
        """Without connecting: a relay would pass the connection on."""
        deadline = time.monotonic() + 20
        while not any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
                      for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]):
            if time.monotonic() > deadline:
                raise SystemExit(f"nobody listens on port {port}")
            time.sleep(0.05)

    def interleaved(self, measures, turns_a_round=1):
        """Rounds of every measure in turn, there and back so that none always follows the same one, the first round a warm-up; the
        median of each, by name. A measure may give several figures, as a dictionary. Of short ones a round may have many turns: the
        median of more of them is nearer to the truth than that of a few that are longer."""
        figures = {}
        for number in range(self.rounds * turns_a_round + 1):
            for name, measure in list(measures.items())[::-1 if number % 2 else 1]:
                got = measure()
                for key, value in (got if isinstance(got, dict) else {name: got}).items():
                    if number:
                        figures.setdefault(key, []).append(value)
                    print(f"  {f'round {number}' if number else 'warm-up'}: {key}: {value:.6g}", file=sys.stderr, flush=True)
        return {name: statistics.median(values) for name, values in figures.items()}

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
        for watch in self.watches.values():
            watch.ended.set()
        shutil.rmtree(self.directory, ignore_errors=True)
