"""SIGKILL at the n-th call of each kind of system call, while a transfer of three files runs: at the sender, and at the receiver.

Which calls there are is seen in a run that nobody kills. CCIXFER_E2E_KILLS=all kills at each of them, which takes an hour; without it
at so many of them, spread over all, and other ones in each run.
"""
import collections
import contextlib
import os
import pathlib
import random
import re
import signal
import time

from lab import PATIENCE_S, Lab, big_file, check, native, same_tree, sha256
from test_faults import Failing

POINTS = 20
FILES = ("empty", "small", "large/pieces")
# Of a process that begins or sleeps; or that changes nothing that anybody sees.
IDLE = {"execve", "brk", "mmap", "munmap", "mprotect", "madvise", "futex", "rt_sigaction", "rt_sigprocmask", "sched_yield", "clock_nanosleep",
        "exit", "exit_group", "arch_prctl", "set_tid_address", "set_robust_list", "rseq", "prlimit64", "getrandom", "sched_getaffinity"}


def make_source(directory, seed):
    (directory / "large").mkdir(parents=True)
    (directory / "empty").write_bytes(b"")
    (directory / "small").write_bytes(b"content %d" % seed)
    big_file(directory / "large/pieces", (9 << 20) + seed, seed)
    return directory


def calls_of(log, after=None):
    """How often each kind of call was made, by the thread that made it most, from the line on that has `after` in it."""
    counts, before = collections.Counter(), collections.Counter()
    for line in log.read_text(errors="replace").splitlines():
        call = re.match(r"(\d+) +(\w+)\(", line)
        if call is None:
            continue
        if after is not None and after in line:
            before, after = counts.copy(), None
        counts[call[1], call[2]] += 1
    calls = {}
    for (thread, name), count in counts.items():
        count -= before[thread, name]
        if name not in IDLE and count >= calls.get(name, range(1, 1)).stop:
            calls[name] = range(1, count + 1)
    check(after is None and calls, f"no call behind {after}")
    return calls


def points_of(calls):
    every = [(name, number) for name, numbers in sorted(calls.items()) for number in numbers]
    if os.environ.get("CCIXFER_E2E_KILLS") == "all":
        return every
    seed = int(os.environ.get("CCIXFER_E2E_SEED", time.time_ns() % 1_000_000))
    print(f"    {len(every)} calls; CCIXFER_E2E_SEED={seed}", flush=True)
    # Each kind of call is as likely as another one, or most would be reads of a socket;
    chance = random.Random(seed)
    kinds = sorted(calls)
    chance.shuffle(kinds)
    # and rather an early call than a late one, which another run may not come to
    return [(kind, min(chance.choice(calls[kind]) for _ in range(2))) for kind in (kinds * POINTS)[:POINTS]]


def end(process):
    """And whom it traces: they would live on."""
    if process.process.poll() is not None:
        return
    traced = pathlib.Path(f"/proc/{process.process.pid}/task/{process.process.pid}/children").read_text().split()
    for pid in [*map(int, traced), process.process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.process.wait()


class Bench:
    """A receiver whose root has older versions of the files, and a sender."""

    def __init__(self, lab):
        self.lab = lab
        self.new = make_source(lab.directory / "new", 1)
        self.old = make_source(lab.directory / "old", 2)
        self.root = lab.directory / "root"
        self.listen = "127.0.0.1:0"

    def begin(self):
        for process in self.lab.processes:
            end(process)
        self.lab.processes.clear()
        if self.root.exists():
            for path in sorted(self.root.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        (self.root / "d/large").mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (self.root / "d" / name).write_bytes((self.old / name).read_bytes())

    def receive(self, *prefix):
        receiver = self.lab.start_ready(None, "recv", "recv", "--root", self.root, "--listen", self.listen, "--insecure", prefix=prefix)
        self.listen = native(receiver.uris).removeprefix("tcp://")
        return receiver

    def send(self, *prefix):
        return self.lab.start(None, "send", "send", "-a", "--insecure", f"{self.new}/", f"tcp://{self.listen}/d/", prefix=prefix)

    def whole(self, where):
        """Each name has its old content or its new one, and nothing else has a name."""
        for name in FILES:
            there = sha256(self.root / "d" / name)
            check(there in (sha256(self.old / name), sha256(self.new / name)), f"{where}: {name} is neither the old file nor the new one")
        names = {str(path.relative_to(self.root / "d")) for path in (self.root / "d").rglob("*")}
        check(names == {*FILES, "large"}, f"{where}: other names: {names}")

    def arrived(self, where, sender):
        check(sender.wait() == 0, f"{where}: {sender.tail()}")
        same_tree(self.new, self.root / "d")


def killing(point):
    return ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={point[0]}", "-e", f"inject={point[0]}:signal=KILL:when={point[1]}")


def watching(log):
    return ("strace", "-f", "-qq", "-o", str(log), "-s", "64")


def first_to_end(a, b):
    deadline = time.monotonic() + PATIENCE_S
    while a.process.poll() is None and b.process.poll() is None:
        check(time.monotonic() < deadline, f"nobody ends: {a.tail()}\n{b.tail()}")
        time.sleep(0.005)
    return a if a.process.poll() is not None else b


def test_sender_killed_at_its_nth_call__files_are_old_or_new_and_the_next_run_ends_well():
    with Lab("kill-send") as lab:
        bench = Bench(lab)
        bench.begin()
        bench.receive()
        bench.arrived("watched", bench.send(*watching(lab.directory / "calls")))
        killed = 0
        for point in points_of(calls_of(lab.directory / "calls")):
            bench.begin()
            bench.receive()
            sender = bench.send(*killing(point))
            sender.wait()
            killed += sender.done() == {}
            bench.whole(point)
            bench.arrived(point, bench.send())
        check(killed >= POINTS // 3, f"only {killed} were killed: the calls are others in each run")


def test_receiver_killed_at_its_nth_call__files_are_old_or_new_and_the_same_send_ends_well():
    with Lab("kill-recv") as lab:
        bench = Bench(lab)
        bench.begin()
        receiver = bench.receive(*watching(lab.directory / "calls"))
        bench.arrived("watched", bench.send())
        killed = 0
        for point in points_of(calls_of(lab.directory / "calls", after=r'\"event\":\"ready\"')):
            bench.begin()
            receiver = bench.receive()
            with Failing(receiver, point[0], f"signal=KILL:when={point[1]}"):
                sender = bench.send()
                is_killed = first_to_end(receiver, sender) is receiver
            if is_killed:
                killed += 1
                bench.whole(point)
                bench.receive()
            bench.arrived(point, sender)
        check(killed >= POINTS // 3, f"only {killed} were killed: the calls are others in each run")
