"""Two hosts joined by an emulated link with a rate, a round trip, random loss and a bounded queue: tests/bench/wan_link.cc."""
import json
import pathlib
import subprocess

from lab import check, run

LINK_SOURCE = pathlib.Path(__file__).resolve().parents[1] / "bench/wan_link.cc"


class Bottleneck:
    """near (10.0.0.1) - the link - far (10.0.0.2). The queue holds so many products of rate and round trip."""

    def __init__(self, lab, rate_mbps, round_trip_ms, products=1, loss_percent=0):
        self.lab, self.children = lab, []
        self.program = lab.directory / "wan_link"
        run("g++", "-std=c++20", "-O2", "-pthread", "-o", self.program, LINK_SOURCE)
        self.near, self.far, self.middle = (lab.host(f"link-{name}") for name in ("near", "far", "middle"))
        for host, inner, address in ((self.near, "side1", "10.0.0.1/24"), (self.far, "side2", "10.0.0.2/24")):
            run("ip", "link", "add", inner, "netns", self.middle.name, "type", "veth", "peer", "name", "wan", "netns", host.name)
            self.middle.run("ip", "link", "set", inner, "up")
            host.run("ip", "addr", "add", address, "dev", "wan")
            host.run("ip", "link", "set", "wan", "up")
            host.run(self.program, "prepare", "wan")
        self.middle.run(self.program, "prepare", "side1", "side2")
        queue_kb = int(rate_mbps * round_trip_ms / 8 * products)
        self.child(self.middle, self.program, "join", "side1", "side2", rate_mbps, round_trip_ms / 2, loss_percent, queue_kb, 1)

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
