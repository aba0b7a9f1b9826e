"""The status page and the metrics: how soon a router with many connections answers, and what a transfer notices of those who ask."""
import contextlib
import json
import os
import pathlib
import random
import resource
import socket
import statistics
import subprocess
import threading
import time

from harness import BINARY, Row, free_port
from routes import device

CONNECTIONS = 1000    # through the router
IDLE = 1000           # at the place of its metrics
HOLD_S = 20
REQUESTS = 100        # of each kind
FILE_GIB = 1          # of a transfer, of which a round has so many turns
TURNS = 5
SCRAPES_A_S = 10
STRANGERS_A_S = 100   # who come anew; each stays until 1,000 more have come


def allow_descriptors():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def dial(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def answer_of(one):
    """A whole answer; b"" if there is none."""
    said = b""
    while b"\r\n\r\n" not in said:
        part = one.recv(65536)
        if not part:
            return b""
        said += part
    head, _, body = said.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += one.recv(65536)
    return head + b"\r\n\r\n" + body


def ask(port, path):
    with contextlib.closing(dial(port)) as one:
        one.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        said = answer_of(one)
    if not said.startswith(b"HTTP/1.1 200 "):
        raise SystemExit(f"page: no answer to {path}: {said[:60]!r}")
    return said.partition(b"\r\n\r\n")[2]


def connections_of(port):
    return json.loads(ask(port, "/status.json"))["router"]["connections"]["count"]


def many_connections(bench):
    """A router with so many connections through it, for HOLD_S from now on: the port of its metrics, and the processes."""
    near, far, metrics = ("127.3.1.1", free_port()), ("127.3.2.1", free_port()), free_port()
    directory = bench.directory
    (directory / "page-router.toml").write_text(device("near", *near, 1, []) + device("far", *far, 2, []) +
                                                f'[metrics]\nlisten = "127.0.0.1:{metrics}"\n')
    (directory / "page-asker.toml").write_text(device("lan", "127.3.1.2", 0, 1, [f"{near[0]}:{near[1]}"]))
    (directory / "page-server.toml").write_text(device("lan", "127.3.2.2", free_port(), 2, [f"{far[0]}:{far[1]}"]))
    router, _ = bench.daemon("router that is asked", "route", "-c", directory / "page-router.toml", "--insecure")
    server, uris = bench.daemon("server behind it", "bench", "--serve", "--insecure", "-c", directory / "page-server.toml")
    uri = next(u for u in uris if u.startswith("cci"))
    # It has one connection for that long, and then all of them. It never sleeps, and shall take nothing from those who are measured.
    holder = bench.spawn("nice", "-n", 19, BINARY, "bench", "--insecure", "-c", directory / "page-asker.toml", "--tests", "empty-turn", "--connections", CONNECTIONS,
                         "--seconds", HOLD_S, uri, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while (there := connections_of(metrics)) < CONNECTIONS:
        if holder.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"page: {there} of {CONNECTIONS} connections came")
        time.sleep(0.2)
    return metrics, [holder, server, router]


def answers(bench, options):
    port, processes = many_connections(bench)
    took = {"/": [], "/metrics": [], "/status.json": []}
    for _ in range(options.rounds):
        with contextlib.ExitStack() as stack:
            for _ in range(IDLE):
                stack.enter_context(contextlib.closing(dial(port)))
            for number in range(REQUESTS * len(took)):
                path = list(took)[number % len(took)]
                begin = time.monotonic()
                ask(port, path)
                took[path].append((time.monotonic() - begin) * 1000)
    if (there := connections_of(port)) < CONNECTIONS:
        raise SystemExit(f"page: {there} of {CONNECTIONS} connections were there at the end")
    for process in processes:
        bench.end(process)
    rows = []
    for path, times in took.items():
        what = f"{path} of a router with {CONNECTIONS} connections and {IDLE} idle ones here"
        rows += [Row(what, statistics.median(times), "ms", at_most=50), Row(f"the same, the slowest of {len(times)}", max(times), "ms", at_most=50)]
    return rows


class Busy(contextlib.AbstractContextManager):
    """Somebody who asks while a transfer goes on."""

    def __init__(self, port):
        self.port, self.ended, self.done = port, threading.Event(), 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        # They would be on other hosts, and take nothing of the processors here.
        os.setpriority(os.PRIO_PROCESS, self.thread.native_id, 19)
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


class Scraper(Busy):
    def run(self):
        with contextlib.closing(dial(self.port)) as one:
            while not self.ended.wait(1 / SCRAPES_A_S):
                one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n\r\n")
                if not answer_of(one).startswith(b"HTTP/1.1 200 "):
                    raise SystemExit("page: a scrape failed")
                self.done += 1


class Strangers(Busy):
    """Idle ones, the begin of a request that goes on by a byte now and then, garbage, and a request of 1 GiB."""

    def __enter__(self):
        self.chance, self.open = random.Random(7), []
        for _ in range(IDLE):
            self.open.append(dial(self.port))
        return super().__enter__()

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        for one in self.open:
            one.close()

    def run(self):
        block = bytes(1 << 16)
        while not self.ended.wait(1 / STRANGERS_A_S):
            self.done += 1
            one = dial(self.port)
            self.open.append(one)
            self.open.pop(0).close()
            with contextlib.suppress(OSError):
                if self.done % 4 == 1:
                    one.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
                elif self.done % 4 == 2:
                    one.sendall(self.chance.randbytes(300))
                elif self.done % 4 == 3:
                    one.sendall(b"POST /metrics HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n")
                    for _ in range((1 << 30) // len(block)):
                        one.sendall(block)
            with contextlib.suppress(OSError):
                self.open[self.chance.randrange(IDLE)].send(b"x", socket.MSG_DONTWAIT)


def cpu_of_threads(pid):
    """Seconds, to the nanosecond."""
    return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def transfers(bench, options):
    directory = bench.directory
    root, source, port = directory / "page-root", directory / "page.dat", free_port()
    root.mkdir()
    gib = min(options.size_gib, FILE_GIB)
    size_bytes = int(gib * (1 << 30))
    block = os.urandom(1 << 24)
    with open(source, "wb") as out:
        for _ in range(max(1, size_bytes // len(block))):
            out.write(block)
    config = directory / "page-receiver.toml"
    config.write_text(f'[metrics]\nlisten = "127.0.0.1:{port}"\n')
    receiver, uris = bench.daemon("receiver that is asked", "recv", "-c", config, "--root", root, "--listen", "127.0.0.1:0", "--insecure")
    uri = next(u for u in uris if u.startswith("tcp"))

    def seconds(busy=None):
        def measure():
            (root / "f").unlink(missing_ok=True)
            bench.warm_memory(size_bytes + size_bytes // 2)
            with busy(port) if busy else contextlib.nullcontext():
                begin = time.monotonic()
                bench.output(BINARY, "send", "--insecure", "-q", source, f"{uri}/f")
                return time.monotonic() - begin
        return measure

    def share(busy):
        """Of one processor, in %, of who answers, while there is nothing else to do."""
        with busy(port):
            begin, cpu = time.monotonic(), cpu_of_threads(receiver.pid)
            time.sleep(options.seconds)
            return 100 * (cpu_of_threads(receiver.pid) - cpu) / (time.monotonic() - begin)
    kinds = {f"{SCRAPES_A_S} scrapes a second": (Scraper, 1.01, 1), f"{IDLE} idle strangers, {STRANGERS_A_S} others a second": (Strangers, 1.05, 5)}
    figures = bench.interleaved({"alone": seconds(), **{name: seconds(busy) for name, (busy, _, _) in kinds.items()}}, TURNS)
    shares = bench.interleaved({name: lambda busy=busy: share(busy) for name, (busy, _, _) in kinds.items()})
    bench.end(receiver)
    source.unlink()
    unit = f"s, one file of {gib:g} GiB"
    rows = [Row("a transfer that nobody asks", figures["alone"], unit)]
    for name, (_, longer, most) in kinds.items():
        rows += [Row(f"the same, {name}", figures[name], unit, "nobody", figures[name] / figures["alone"], at_most=longer),
                 Row(f"to answer {name}", shares[name], "% of a processor", at_most=most)]
    return rows


def page(bench, options):
    allow_descriptors()
    return answers(bench, options) + transfers(bench, options)
