"""A transfer over udp beside a flow of the kernel's cubic, through one bottleneck that drops what its queue does not hold. tests/bench/wan_link.cc
is the bottleneck. The same in simulated time, over more paths: tests/unit/reliability/fairness_test.cc."""
import json
import os
import pathlib
import subprocess
import sys
import time

from lab import Lab, check, run

RATE_MBPS = 50
LINK_SOURCE = pathlib.Path(__file__).resolve().parents[1] / "bench/wan_link.cc"

SINK = """
import socket
listener = socket.create_server(("10.0.0.2", 7000))
print("ready", flush=True)
taker = listener.accept()[0]
while taker.recv(1 << 20):
    pass
"""
SOURCE = """
import socket
flow = socket.socket()
flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
flow.connect(("10.0.0.2", 7000))
print("ready", flush=True)
while True:
    flow.sendall(bytes(1 << 16))
"""


class Bottleneck:
    """near (10.0.0.1) - the link - far (10.0.0.2)."""

    def __init__(self, lab, round_trip_ms, products):
        self.lab, self.children = lab, []
        self.program = lab.directory / "wan_link"
        run("g++", "-std=c++20", "-O2", "-pthread", "-o", self.program, LINK_SOURCE)
        self.near, self.far, self.middle = (lab.host(f"fair-{name}") for name in ("near", "far", "middle"))
        for host, inner, address in ((self.near, "side1", "10.0.0.1/24"), (self.far, "side2", "10.0.0.2/24")):
            run("ip", "link", "add", inner, "netns", self.middle.name, "type", "veth", "peer", "name", "wan", "netns", host.name)
            self.middle.run("ip", "link", "set", inner, "up")
            host.run("ip", "addr", "add", address, "dev", "wan")
            host.run("ip", "link", "set", "wan", "up")
            host.run(self.program, "prepare", "wan")
        self.middle.run(self.program, "prepare", "side1", "side2")
        queue_kb = int(RATE_MBPS * round_trip_ms / 8 * products)
        self.child(self.middle, self.program, "join", "side1", "side2", RATE_MBPS, round_trip_ms / 2, 0, queue_kb, 1)

    def child(self, host, *command):
        """A helper of the test that says one line when it is ready."""
        process = subprocess.Popen([*host.prefix, *map(str, command)], stdout=subprocess.PIPE, text=True)
        self.children.append(process)
        check(process.stdout.readline().strip() == "ready", f"not ready: {command}")

    def received_bytes(self, host):
        counters = host.run("ip", "-j", "-s", "link", "show", "wan").stdout
        return json.loads(counters)[0]["stats64"]["rx"]["bytes"]

    def end(self):
        for process in self.children:
            process.kill()
            process.wait()


def received_by_tcp(host):
    """Bytes that came to the sink, as its socket counts them."""
    listed = host.run("ss", "-tinH", "state", "established", "src", "10.0.0.2:7000").stdout
    return next((int(word.split(":")[1]) for word in listed.split() if word.startswith("bytes_received:")), 0)


def shares(round_trip_ms, products, first, warm, seconds):
    """What the link carries of udp over what it carries of tcp. Up to three windows of time, all of them together, until the verdict is good."""
    with Lab("fair") as lab:
        path = Bottleneck(lab, round_trip_ms, products)
        try:
            root = lab.directory / "incoming"
            root.mkdir()
            source = lab.directory / "source"
            with open(source, "wb") as out:   # never all of it arrives
                piece = os.urandom(1 << 20)
                for _ in range(400):
                    out.write(piece)
            receiver = lab.start_ready(path.far, "recv", "recv", "--root", root, "--insecure", "--listen", "udp://10.0.0.2:0")
            uri = next(u for u in receiver.uris if u.startswith("udp://"))

            def udp():
                return lab.start(path.near, "send", "send", "--insecure", source, f"{uri}/copy")

            def tcp():
                path.child(path.far, sys.executable, "-c", SINK)
                path.child(path.near, sys.executable, "-c", SOURCE)

            begin = [udp, tcp] if first == "udp" else [tcp, udp]
            begin[0]()
            time.sleep(3)
            begin[1]()
            time.sleep(warm)
            all_before, tcp_before = path.received_bytes(path.far), received_by_tcp(path.far)
            for _ in range(3):
                time.sleep(seconds)
                everything = path.received_bytes(path.far) - all_before
                of_tcp = (received_by_tcp(path.far) - tcp_before) * 1514 / 1448
                print(f"  {round_trip_ms} ms, queue of {products} products, {first} first: udp {(everything - of_tcp) / of_tcp:.2f} of tcp", flush=True)
                if 0.5 < (everything - of_tcp) / of_tcp < 2:
                    break
            return (everything - of_tcp) / of_tcp
        finally:
            path.end()


# Real time and a kernel's flow: the windows are long, and a second and a third one make a verdict that the first would make by chance.
def test_fairness__a_long_path_with_a_queue_of_one_product__neither_has_twice_what_the_other_has():
    ratio = shares(100, 1, "udp", warm=15, seconds=15)
    check(0.5 < ratio < 2, f"udp has {ratio:.2f} of what cubic has")
