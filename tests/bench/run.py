#!/usr/bin/env python3
"""./do bench: ccixfer beside the tools its users would pick instead, in one run, interleaved, three times after a warm-up.

  run.py [--json FILE] [--size-gib 4] [--rounds 3] [--only file,tree]

Everything is on tmpfs and loopback. A rate is decimal MB/s or files/s of the whole command, start to exit. Medians; a ratio compares medians of
this run only. Peers: globus-url-copy -fast (no encryption) to a GridFTP server, rsync to an rsync daemon.
"""
import argparse
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
BINARY = REPO / "build/release/ccixfer"
POOL_MIB = 256   # the configured pool of receiver and router: the default


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


class Bench:
    def __init__(self, directory):
        self.directory = directory
        self.destination = directory / "dst"
        self.far_destination = directory / "far"   # a root belongs to one receiver
        for path in (directory, self.destination, self.far_destination):
            path.mkdir(exist_ok=True)
            os.chmod(path, 0o777)
        self.processes, self.watches = [], {}

    def spawn(self, *command, **options):
        process = subprocess.Popen([str(c) for c in command], **options)
        self.processes.append(process)
        return process

    def daemon(self, name, *arguments):
        """A ccixfer daemon: waits for its ready event, gives its URIs."""
        process = self.spawn(BINARY, *arguments, "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "ready":
                threading.Thread(target=lambda: [None for _ in process.stdout], daemon=True).start()
                self.watches[name] = Watch(process.pid)
                return event["uris"]
        raise SystemExit(f"{name} did not get ready: {' '.join(str(a) for a in arguments)}")

    def start_peers(self):
        self.gridftp, self.rsyncd = free_port(), free_port()
        log = self.directory / "gridftp.log"
        log.touch()
        self.spawn("globus-gridftp-server", "-aa", "-p", self.gridftp, "-data-interface", "127.0.0.1", "-l", log, "-anonymous-user", "nobody",
                   "-anonymous-group", "nogroup", "-anonymous-names-allowed", "*", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        conf = self.directory / "rsyncd.conf"
        conf.write_text(f"use chroot = no\nuid = root\ngid = root\n[dst]\npath = {self.destination}\nread only = no\n")
        self.spawn("rsync", "--daemon", "--no-detach", f"--config={conf}", f"--port={self.rsyncd}", "--address=127.0.0.1")
        for port in (self.gridftp, self.rsyncd):
            deadline = time.monotonic() + 20
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise SystemExit(f"a peer did not start on port {port}")
                    time.sleep(0.05)

    def start_ccixfer(self):
        self.direct = next(u for u in self.daemon("receiver", "recv", "--root", self.destination, "--listen", "127.0.0.1:0", "--insecure")
                           if u.startswith("tcp"))
        ports = [free_port() for _ in range(3)]

        def device(name, ip, port, subnet, router):
            listed = f'"tcp://{router}"' if router else ""
            return (f'[device.{name}]\ntransport = "tcp"\nip = "{ip}"\nport = {port}\nas = 1\nsubnet = {subnet}\nrouter = [{listed}]\nrate = "40Gb/s"\n')

        (self.directory / "router.toml").write_text(device("a", "127.0.0.2", ports[0], 1, "") + device("b", "127.0.0.3", ports[1], 2, ""))
        (self.directory / "sender.toml").write_text(device("a", "127.0.0.1", 0, 1, f"127.0.0.2:{ports[0]}"))
        (self.directory / "receiver.toml").write_text(device("b", "127.0.0.1", ports[2], 2, f"127.0.0.3:{ports[1]}"))
        self.daemon("router", "route", "-c", self.directory / "router.toml", "--insecure")
        uris = self.daemon("routed receiver", "recv", "--root", self.far_destination, "-c", self.directory / "receiver.toml", "--insecure")
        self.routed = next(u for u in uris if u.startswith("cci"))

    def clean(self):
        for path in [*self.destination.iterdir(), *self.far_destination.iterdir()]:
            if path.name != ".ccixfer":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def seconds(self, *command):
        self.clean()
        start = time.monotonic()
        ended = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
        took = time.monotonic() - start
        if ended.returncode != 0:
            raise SystemExit(f"failed ({ended.returncode}): {' '.join(str(c) for c in command)}\n{ended.stderr[-500:]}")
        return took

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


def interleaved(bench, rounds, amount, commands):
    """Rounds of every command in turn, the first round a warm-up; median rate of each."""
    rates = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            rate = amount / bench.seconds(*command)
            if number:
                rates[name].append(rate)
            print(f"  {'warm-up' if not number else f'round {number}'}: {name}: {rate:.0f}", file=sys.stderr, flush=True)
    return {name: statistics.median(values) for name, values in rates.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=pathlib.Path, default=REPO / "build/bench.json")
    parser.add_argument("--size-gib", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="file,tree")
    options = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="ccixfer-bench-", dir="/dev/shm"))
    bench = Bench(directory)
    rows = []
    try:
        bench.start_peers()
        bench.start_ccixfer()
        if "file" in options.only:
            source = directory / "src.dat"
            size = int(options.size_gib * (1 << 30))
            block = os.urandom(1 << 24)
            with open(source, "wb") as file:
                for offset in range(0, size, len(block)):
                    file.write(block[: size - offset])
            os.chmod(source, 0o644)
            rates = interleaved(bench, options.rounds, size / 1e6, {
                "GridFTP -fast": ["globus-url-copy", "-fast", f"file://{source}", f"ftp://127.0.0.1:{bench.gridftp}{bench.destination}/f"],
                "ccixfer direct": [BINARY, "send", "--insecure", "-q", source, bench.direct + "/f"],
                "ccixfer, one router": [BINARY, "send", "--insecure", "-q", "-c", directory / "sender.toml", source, bench.routed + "/f"],
                "rsync daemon": ["rsync", "-W", "--inplace", source, f"rsync://127.0.0.1:{bench.rsyncd}/dst/"],
            })
            unit = f"MB/s, one {options.size_gib:g} GiB file"
            rows += [
                ("GridFTP -fast", rates["GridFTP -fast"], unit, "", None, None),
                ("rsync daemon", rates["rsync daemon"], unit, "", None, None),
                ("ccixfer direct tcp", rates["ccixfer direct"], unit, "GridFTP", rates["ccixfer direct"] / rates["GridFTP -fast"], 1.0),
                ("ccixfer through one router", rates["ccixfer, one router"], unit, "direct", rates["ccixfer, one router"] / rates["ccixfer direct"], 0.6),
            ]
            source.unlink()
            bench.clean()
            for name, watch in bench.watches.items():
                rows.append((f"peak RssAnon, {name}", watch.peak_kib / 1024, "MiB", f"pool {POOL_MIB} + 64 MiB", watch.peak_kib / 1024 / (POOL_MIB + 64), -1.0))
        if "tree" in options.only:
            tree = directory / "tree"
            subprocess.run(["cp", "-a", "/usr/share", tree], check=True)
            count = sum(len(files) for _, _, files in os.walk(tree))
            index = 0
            while count < 60_000:   # as many files as the figure is stated for, whatever this machine's /usr/share holds
                part = tree / f"more-{index}"
                subprocess.run(["cp", "-a", "/usr/share/doc", part], check=True)
                count, index = sum(len(files) for _, _, files in os.walk(tree)), index + 1
            rates = interleaved(bench, options.rounds, count, {
                "rsync daemon": ["rsync", "-a", f"{tree}/", f"rsync://127.0.0.1:{bench.rsyncd}/dst/t/"],
                "ccixfer direct": [BINARY, "send", "-a", "--insecure", "-q", f"{tree}/", bench.direct + "/t/"],
            })
            unit = f"files/s, tree of {count}"
            rows += [("rsync daemon", rates["rsync daemon"], unit, "", None, None),
                     ("ccixfer direct tcp", rates["ccixfer direct"], unit, "rsync daemon", rates["ccixfer direct"] / rates["rsync daemon"], 1.0)]
    finally:
        bench.stop()
        shutil.rmtree(directory, ignore_errors=True)
    cpu = next((l.split(":")[1].strip() for l in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if l.startswith("model name")), "?")
    print(f"\n{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {cpu}, Linux {platform.release()}; medians of {options.rounds}\n")
    print("| what | rate | unit | beside | ratio | wanted |\n| --- | --- | --- | --- | --- | --- |")
    met = True
    for what, rate, unit, beside, ratio, wanted in rows:
        goal = "" if wanted is None else (f"at least {wanted}" if wanted > 0 else "at most 1.0")
        if wanted is not None:
            met &= ratio >= wanted if wanted > 0 else ratio <= 1.0
        print(f"| {what} | {rate:.0f} | {unit} | {beside} | {'' if ratio is None else f'{ratio:.2f}'} | {goal} |")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps([dict(zip(("what", "rate", "unit", "beside", "ratio", "wanted"), row)) for row in rows], indent=1) + "\n")
    print(f"\n{'every figure is met' if met else 'NOT every figure is met'}; JSON in {options.json.relative_to(REPO) if options.json.is_relative_to(REPO) else options.json}")


if __name__ == "__main__":
    main()
