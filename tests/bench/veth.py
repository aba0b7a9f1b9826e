"""Two namespaces that a veth pair joins: `ccixfer bench` over eth and udp beside bare blasts (eth_blast.cc, udp_blast.cc)."""
import json
import os
import subprocess

from harness import BINARY, REPO, Row

NEAR, FAR = (f"ccixfer-bench-{os.getpid()}-{part}" for part in ("near", "far"))
FAR_MAC = "02:00:00:00:00:02"
NEAR_ADDRESS, FAR_ADDRESS = "10.0.0.1", "10.0.0.2"
PORT = 5201
HEADERS_BYTES = 28   # IPv4 and UDP
AT_LEAST = 0.8


def inside(name, *command):
    return ["ip", "netns", "exec", name, *(str(word) for word in command)]


def cable(bench, mtu):
    for name in (NEAR, FAR):
        bench.output("ip", "netns", "add", name)
    bench.output("ip", "link", "add", "lan", "netns", NEAR, "mtu", mtu, "type", "veth", "peer", "name", "lan", "address", FAR_MAC, "mtu", mtu, "netns", FAR)
    for name, address in ((NEAR, NEAR_ADDRESS), (FAR, FAR_ADDRESS)):
        bench.output(*inside(name, "ip", "link", "set", "lan", "up"))
        bench.output(*inside(name, "ip", "address", "add", f"{address}/24", "dev", "lan"))


def uncable():
    for name in (NEAR, FAR):
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def ready(process, wanted):
    for line in process.stdout:
        if wanted in line:
            return line
    raise SystemExit("a bench process over a veth pair did not get ready")


def figures_of(bench, options, program, place, length, uri):
    """MB/s: of the bare program, which names the other end by `place` and its packets by `length`; and of ours, where `uri` listens."""
    def blast():
        take, send = place
        taker = bench.spawn(*inside(FAR, program, "take", *take, length), stdout=subprocess.PIPE, text=True)
        ready(taker, "ready")
        bench.output(*inside(NEAR, program, "send", *take, length, *send, options.seconds))
        return int(taker.communicate(timeout=30)[0]) / 1e6

    def ours(test):
        server = bench.spawn(*inside(FAR, BINARY, "bench", "--serve", "--insecure", "--json", "--listen", uri, "--wait", "poll"),
                             stdout=subprocess.PIPE, text=True)
        ready(server, '"ready"')
        words = bench.output(*inside(NEAR, BINARY, "bench", "--insecure", "--json", "--wait", "poll", "--tests", test, "--sizes", "4MiB",
                                     "--seconds", options.seconds, uri))
        bench.end(server)
        row, = [event for event in map(json.loads, words.splitlines()) if event["event"] == "bench"]
        return row["bytes_per_s"] / 1e6

    return bench.interleaved({"blast": blast, "write": lambda: ours("rma-write"), "read": lambda: ours("rma-read")})


def beside_a_blast(bench, options, source, mtu, what, *figures):
    """The rows of one transport: a bare blast over a veth pair of that MTU, and what is written and read through it."""
    program = bench.directory / source.removesuffix(".cc")
    bench.output("g++", "-std=c++20", "-O2", "-o", program, REPO / "tests/bench" / source)
    try:
        cable(bench, mtu)
        found = figures_of(bench, options, program, *figures)
    finally:
        uncable()
    blast, (transport, bare) = found["blast"], what
    return [Row(f"bare {bare} blast, veth, MTU {mtu:,}", blast, "MB/s"),
            *(Row(f"ccixfer RMA {name} over {transport}, veth, MTU {mtu:,}", found[name], "MB/s, 4 MiB, depth 16", "the blast", found[name] / blast,
                  at_least=AT_LEAST) for name in ("write", "read"))]


def eth(bench, options):
    return [row for mtu in (1500, 9000)
            for row in beside_a_blast(bench, options, "eth_blast.cc", mtu, ("eth", "AF_PACKET"), (("lan",), (FAR_MAC,)), mtu, f"eth://{FAR_MAC}:7")]


def udp(bench, options):
    mtu = 1500
    return beside_a_blast(bench, options, "udp_blast.cc", mtu, ("udp", "sendmmsg and GSO"), ((FAR_ADDRESS, PORT), ()), mtu - HEADERS_BYTES,
                          f"udp://{FAR_ADDRESS}:{PORT}")
