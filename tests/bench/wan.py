"""An emulated wide-area link, 1 Gb/s with a round trip of 100 ms: a file of 1 GiB over udp and over tcp, at several rates of random loss. The
whole command, start-up and durability included, as a share of the link's rate. wan_link.cc is the link; hosts are network namespaces."""
import os
import subprocess
import time

from harness import BINARY, REPO, Row

RATE_MBPS, ONE_WAY_MS = 1000, 50
QUEUE_KB = RATE_MBPS * 2 * ONE_WAY_MS // 8   # one product of rate and round trip
WANTED = {"udp": {0: 0.90, 0.01: 0.90, 0.1: 0.88, 1: 0.82}, "tcp": {0: 0.88, 0.01: 0.88, 0.1: 0.85, 1: 0.78}}
SIZE_MIB = int(os.environ.get("CCIXFER_WAN_MIB", 1024))
MIDDLE, NEAR, FAR = (f"ccixfer-bench-{os.getpid()}-{part}" for part in ("middle", "near", "far"))


class Wan:
    """near (10.0.0.1) - the link - far (10.0.0.2), each in a namespace."""

    def __init__(self, bench):
        self.bench = bench
        self.link_program = bench.directory / "wan_link"
        bench.output("g++", "-std=c++20", "-O2", "-pthread", "-o", self.link_program, REPO / "tests/bench/wan_link.cc")
        for name in (MIDDLE, NEAR, FAR):
            bench.output("ip", "netns", "add", name)
        for name, inner, address in ((NEAR, "side1", "10.0.0.1/24"), (FAR, "side2", "10.0.0.2/24")):
            bench.output("ip", "link", "add", inner, "netns", MIDDLE, "type", "veth", "peer", "name", "wan", "netns", name)
            self.inside(MIDDLE, "ip", "link", "set", inner, "up")
            self.inside(name, "ip", "addr", "add", address, "dev", "wan")
            self.inside(name, "ip", "link", "set", "wan", "up")
            self.inside(name, self.link_program, "prepare", "wan")
        self.inside(MIDDLE, self.link_program, "prepare", "side1", "side2")

    def inside(self, name, *command):
        return self.bench.output("ip", "netns", "exec", name, *command)

    def spawn(self, name, *command, **options):
        return self.bench.spawn("ip", "netns", "exec", name, *command, **options)

    def join(self, loss_percent, seed):
        link = self.spawn(MIDDLE, self.link_program, "join", "side1", "side2", RATE_MBPS, ONE_WAY_MS, loss_percent, QUEUE_KB, seed, stdout=subprocess.PIPE)
        link.stdout.readline()
        return link



def end_namespaces():
    for name in (NEAR, FAR, MIDDLE):
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def wan(bench, _):
    try:
        hosts = Wan(bench)
        source = bench.directory / "wan-file"
        with open(source, "wb") as out:
            for _ in range(SIZE_MIB):
                out.write(os.urandom(1 << 20))
        root = bench.directory / "wan-in"
        root.mkdir()
        seeds = iter(range(1, 1000))

        def share(transport, loss):
            link = hosts.join(loss, next(seeds))
            ready = bench.directory / "wan.uri"
            ready.unlink(missing_ok=True)
            receiver = hosts.spawn(FAR, BINARY, "recv", "--root", root, "--insecure", "--listen", f"{transport}://10.0.0.2:0", "-q", "--uri-file", ready,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not ready.exists():
                time.sleep(0.01)
            (root / "file").unlink(missing_ok=True)
            start = time.monotonic()
            hosts.inside(NEAR, BINARY, "send", "-q", "--insecure", source, f"{ready.read_text().split()[0]}/file")
            seconds = time.monotonic() - start
            bench.end(receiver)
            bench.end(link)
            return source.stat().st_size * 8 / seconds / (RATE_MBPS * 1e6)

        measures = {f"{transport} {loss}": lambda transport=transport, loss=loss: share(transport, loss) for loss in WANTED["udp"] for transport in WANTED}
        figures = bench.interleaved(measures)
    finally:
        end_namespaces()
    return [Row(f"file of {SIZE_MIB} MiB over {transport}, {loss:g} % lost", figures[f"{transport} {loss}"], "of 1 Gb/s, round trip 100 ms",
                at_least=wanted) for transport, losses in WANTED.items() for loss, wanted in losses.items()]
