"""Ethernet frames between two namespaces that a veth pair joins: `ccixfer bench` over eth beside a bare AF_PACKET blast (eth_blast.cc)."""
import json
import os
import subprocess

from harness import BINARY, REPO, Row

NEAR, FAR = (f"ccixfer-bench-{os.getpid()}-{part}" for part in ("near", "far"))
FAR_MAC = "02:00:00:00:00:02"
AT_LEAST = 0.8
MTUS = (1500, 9000)


def inside(name, *command):
    return ["ip", "netns", "exec", name, *(str(word) for word in command)]


def cable(bench, mtu):
    for name in (NEAR, FAR):
        bench.output("ip", "netns", "add", name)
    bench.output("ip", "link", "add", "lan", "netns", NEAR, "mtu", mtu, "type", "veth", "peer", "name", "lan", "address", FAR_MAC, "mtu", mtu, "netns", FAR)
    for name in (NEAR, FAR):
        bench.output(*inside(name, "ip", "link", "set", "lan", "up"))


def uncable():
    for name in (NEAR, FAR):
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def ready(process, wanted):
    for line in process.stdout:
        if wanted in line:
            return line
    raise SystemExit("a bench process over eth did not get ready")


def figures_of(bench, options, program, mtu):
    def blast():
        taker = bench.spawn(*inside(FAR, program, "take", "lan", mtu), stdout=subprocess.PIPE, text=True)
        ready(taker, "ready")
        bench.output(*inside(NEAR, program, "send", "lan", mtu, FAR_MAC, options.seconds))
        return int(taker.communicate(timeout=30)[0]) / 1e6

    def ours(test):
        server = bench.spawn(*inside(FAR, BINARY, "bench", "--serve", "--insecure", "--json", "--listen", f"eth://{FAR_MAC}:7", "--wait", "poll"),
                             stdout=subprocess.PIPE, text=True)
        ready(server, '"ready"')
        words = bench.output(*inside(NEAR, BINARY, "bench", "--insecure", "--json", "--wait", "poll", "--tests", test, "--sizes", "4MiB",
                                     "--seconds", options.seconds, f"eth://{FAR_MAC}:7"))
        bench.end(server)
        row, = [event for event in map(json.loads, words.splitlines()) if event["event"] == "bench"]
        return row["bytes_per_s"] / 1e6

    return bench.interleaved({"blast": blast, "write": lambda: ours("rma-write"), "read": lambda: ours("rma-read")})


def eth(bench, options):
    program = bench.directory / "eth_blast"
    bench.output("g++", "-std=c++20", "-O2", "-o", program, REPO / "tests/bench/eth_blast.cc")
    rows = []
    for mtu in MTUS:
        try:
            cable(bench, mtu)
            figures = figures_of(bench, options, program, mtu)
        finally:
            uncable()
        blast = figures["blast"]
        rows.append(Row(f"bare AF_PACKET blast, veth, MTU {mtu:,}", blast, "MB/s"))
        rows += [Row(f"ccixfer RMA {name} over eth, veth, MTU {mtu:,}", figures[name], "MB/s, 4 MiB, depth 16", "the blast", figures[name] / blast,
                     at_least=AT_LEAST) for name in ("write", "read")]
    return rows
