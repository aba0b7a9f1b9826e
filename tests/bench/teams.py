"""A team: several processes on this host that send one source together, beside one process that sends it alone. What is shared is the work and the
two processors; what a team costs beside is in the CPU seconds of all its processes and of the receiver."""
import os
import shutil
import subprocess
import time

import files
from harness import BINARY, Row, cpu_seconds

MEMBERS = 4


class Site:
    """A receiver, and transfers to it by one process or by several."""

    def __init__(self, bench):
        self.bench, self.root = bench, bench.directory / "team"
        self.root.mkdir()
        self.receiver, uris = bench.daemon("team's receiver", "recv", "--root", self.root, "--listen", "127.0.0.1:0", "--insecure")
        self.uri = next(u for u in uris if u.startswith("tcp"))

    def send(self, members, source, size_bytes):
        """Seconds from the first start to the last end, and CPU seconds of all that took part."""
        for path in self.root.iterdir():
            if path.name != ".ccixfer":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.bench.warm_memory(size_bytes + size_bytes // 2)
        before, start = cpu_seconds(self.receiver.pid), time.monotonic()
        parts = [["--part", f"{number}/{members}"] for number in range(1, members + 1)] if members > 1 else [[]]
        senders = [subprocess.Popen([str(BINARY), "send", "-a", "--insecure", "-q", *part, str(source), f"{self.uri}/t"]) for part in parts]
        cpu = 0.0
        for sender in senders:
            _, status, usage = os.wait4(sender.pid, 0)
            sender.returncode = os.waitstatus_to_exitcode(status)
            cpu += usage.ru_utime + usage.ru_stime
        seconds = time.monotonic() - start
        if any(sender.returncode for sender in senders):
            raise SystemExit(f"team: the senders ended with {[sender.returncode for sender in senders]}")
        return seconds, cpu + cpu_seconds(self.receiver.pid) - before

    def compare(self, source, amount, size_bytes, turns=1):
        def by(name, members):
            seconds, cpu = self.send(members, source, size_bytes)
            return {f"{name} rate": amount / seconds, f"{name} CPU": cpu}
        return self.bench.interleaved({"one": lambda: by("one", 1), "team": lambda: by("team", MEMBERS)}, turns_a_round=turns)

    def end(self):
        self.bench.end(self.receiver)
        shutil.rmtree(self.root)


def rows_of(figures, what, unit, rate_goal, cpu_goal):
    team = f"{MEMBERS} processes together"
    return [Row(f"one process: {what}", figures["one rate"], unit),
            Row(f"{team}: {what}", figures["team rate"], unit, "one process", figures["team rate"] / figures["one rate"], **rate_goal),
            Row(f"one process: {what}", figures["one CPU"], "CPU seconds"),
            Row(f"{team}: {what}", figures["team CPU"], "CPU seconds", "one process", figures["team CPU"] / figures["one CPU"], **cpu_goal)]


def team(bench, options):
    site = Site(bench)
    source, size = files.make_file(bench, options)
    figures = site.compare(source, size / 1e6, size)
    source.unlink()
    rows = rows_of(figures, f"one {options.size_gib:g} GiB file", "MB/s", {"at_least": 1.0}, {})
    path, count, size = files.make_tree(bench)
    figures = site.compare(f"{path}/", count, size)
    shutil.rmtree(path)
    rows += rows_of(figures, f"tree of {count} files", "files/s", {"at_least": 1.0}, {"at_most": 1.1})
    site.end()
    return rows


def team_million(bench, _):
    """What it costs to share out a million files and to merge what became of them."""
    site = Site(bench)
    path, count = bench.directory / "million", 1_000_000
    files.make_small_files(path, count)
    figures = site.compare(f"{path}/", count, count * 4096)
    shutil.rmtree(path)
    site.end()
    return rows_of(figures, "1,000,000 files of 4 KiB", "files/s", {"at_least": 0.98}, {})
