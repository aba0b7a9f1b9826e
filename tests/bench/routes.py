"""Routers, memory to memory: RMA writes through 1, 2 and 3 of them beside iperf3 through as many `socat -b 1048576` relays, in the same run; and
what one router costs in CPU beside one relay."""
import concurrent.futures
import json
import os
import subprocess

from harness import Row, cpu_seconds, free_port

SOCAT_BYTES = 1048576


def device(name, ip, port, subnet, routers):
    listed = ", ".join(f'"tcp://{router}"' for router in routers)
    return (f'[device.{name}]\ntransport = "tcp"\nip = "{ip}"\nport = {port}\nas = 1\nsubnet = {subnet}\nrouter = [{listed}]\nrate = "40Gb/s"\n')


class Chain:
    """asker (subnet 1) - router 1 - subnet 2 - ... - router n - server (subnet n + 1). Each subnet its own loopback addresses."""

    def __init__(self, bench, count):
        self.bench, directory = bench, bench.directory
        near = [(f"127.1.{i}.1", free_port()) for i in range(1, count + 1)]   # router i towards the asker, on subnet i
        far = [(f"127.1.{i + 1}.2", free_port()) for i in range(1, count + 1)]   # and towards the server, on subnet i + 1

        def at(place):
            return f"{place[0]}:{place[1]}"

        self.routers = []
        for i in range(count):
            back = [at(far[i - 1])] if i > 0 else []
            onward = [at(near[i + 1])] if i + 1 < count else []
            config = directory / f"router-{count}-{i}.toml"
            config.write_text(device("near", *near[i], i + 1, back) + device("far", *far[i], i + 2, onward))
            process, _ = bench.daemon(f"router {i + 1} of {count}", "route", "-c", config, "--insecure")
            self.routers.append(process)
        self.asker = directory / f"asker-{count}.toml"
        self.asker.write_text(device("lan", "127.1.1.3", 0, 1, [at(near[0])]))
        server = directory / f"server-{count}.toml"
        server.write_text(device("lan", f"127.1.{count + 1}.3", free_port(), count + 1, [at(far[-1])]))
        self.server, uris = bench.daemon(f"server behind {count}", "bench", "--serve", "--insecure", "-c", server)
        self.uri = next(u for u in uris if u.startswith("cci"))

    def measure(self, seconds):
        """MB/s, and CPU seconds a GB of the first router."""
        before = cpu_seconds(self.routers[0].pid)
        events = self.bench.events("bench", "--insecure", "-c", self.asker, "--tests", "rma-write", "--sizes", "4MiB", "--seconds", seconds,
                                   "--timeout", 60, self.uri)
        row = next(e for e in events if e["event"] == "bench")
        moved = events[-1]["counters"]["bytes_out"]   # check and warm-up too
        return row["bytes_per_s"] / 1e6, (cpu_seconds(self.routers[0].pid) - before) / (moved / 1e9)


class Relays:
    """iperf3 through a chain of relays."""

    def __init__(self, bench, count):
        self.bench = bench
        port = free_port()
        bench.spawn("iperf3", "-s", "-B", "127.0.0.1", "-p", port, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        bench.wait_listening(port)
        self.relays = []
        for _ in range(count):
            here = free_port()
            self.relays.append(bench.spawn("socat", "-b", SOCAT_BYTES, f"TCP-LISTEN:{here},bind=127.0.0.1,fork,reuseaddr", f"TCP:127.0.0.1:{port}",
                                           stderr=subprocess.DEVNULL))
            port = here
            bench.wait_listening(here)
        self.port = port

    def measure(self, seconds):
        before = cpu_seconds(self.relays[0].pid)
        report = json.loads(self.bench.output("iperf3", "-c", "127.0.0.1", "-p", self.port, "-t", seconds, "-J"))
        received = report["end"]["sum_received"]
        return received["bits_per_second"] / 8e6, (cpu_seconds(self.relays[0].pid) - before) / (received["bytes"] / 1e9)


def routers(bench, options):
    rows = []
    for count in (1, 2, 3):
        chain, relays = Chain(bench, count), Relays(bench, count)

        def named(name, side):
            rate, cpu = side.measure(options.seconds)
            return {name: rate, f"{name} CPU": cpu}

        figures = bench.interleaved({"socat": lambda: named("socat", relays), "ccixfer": lambda: named("ccixfer", chain)})
        noun = "relay" if count == 1 else "relays"
        rows += [Row(f"iperf3 through {count} socat {noun}", figures["socat"], "MB/s"),
                 Row(f"ccixfer RMA write through {count} router{'s' if count > 1 else ''}", figures["ccixfer"], "MB/s", "socat",
                     figures["ccixfer"] / figures["socat"], at_least=0.9)]
        if count == 1:
            rows += [Row("one socat relay", figures["socat CPU"], "CPU seconds a GB"),
                     Row("one router", figures["ccixfer CPU"], "CPU seconds a GB", "socat", figures["ccixfer CPU"] / figures["socat CPU"], at_most=0.8)]
        for process in [*chain.routers, chain.server, *relays.relays]:
            bench.end(process)
    return rows


class Pairs:
    """`count` askers (subnet 1) and as many servers (subnet 2) at once, through one router with so many workers."""

    def __init__(self, bench, count, workers):
        self.bench, self.uris, self.askers = bench, [], []
        near, far = ("127.2.1.1", free_port()), ("127.2.2.1", free_port())
        config = bench.directory / f"workers-{workers}.toml"
        config.write_text(device("near", *near, 1, []) + device("far", *far, 2, []))
        self.router, _ = bench.daemon(f"router of {workers}", "route", "-c", config, "--insecure", "--workers", workers)
        for number in range(count):
            asker = bench.directory / f"asker-{workers}-{number}.toml"
            asker.write_text(device("lan", "127.2.1.2", 0, 1, [f"{near[0]}:{near[1]}"]))
            self.askers.append(asker)
            server = bench.directory / f"server-{workers}-{number}.toml"
            server.write_text(device("lan", "127.2.2.2", free_port(), 2, [f"{far[0]}:{far[1]}"]))
            _, uris = bench.daemon(f"server {number} of {workers}", "bench", "--serve", "--insecure", "-c", server)
            self.uris.append(next(u for u in uris if u.startswith("cci")))

    def run(self, test, seconds, *options):
        """What all of them did at once: their rows, all bytes that they sent, and the CPU seconds of the router."""
        before = cpu_seconds(self.router.pid)

        def ask(asker, uri):
            return self.bench.events("bench", "--insecure", "-c", asker, "--tests", test, *options, "--seconds", seconds, "--timeout", 60, uri)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            ended = list(pool.map(ask, self.askers, self.uris))
        rows = [next(e for e in events if e["event"] == "bench") for events in ended]
        return rows, sum(events[-1]["counters"]["bytes_out"] for events in ended), cpu_seconds(self.router.pid) - before

    def measure(self, name, seconds):
        rows, _, cpu = self.run("message-rate", seconds, "--message-size", 64)
        messages = sum(row["per_s"] for row in rows)
        figures = {f"{name} messages": messages, f"{name} CPU a message": cpu / sum(row["count"] for row in rows) * 1e6}
        rows, moved, cpu = self.run("rma-write", seconds, "--sizes", "4MiB")
        return {**figures, f"{name} MB": sum(row["bytes_per_s"] for row in rows) / 1e6, f"{name} CPU": cpu / (moved / 1e9)}


def workers(bench, options):
    """One router with two workers beside one with one; askers and servers are on the same processors."""
    pairs = {"one": Pairs(bench, 2, 1), "two": Pairs(bench, 2, 2)}
    figures = bench.interleaved({name: lambda name=name, side=side: side.measure(name, options.seconds) for name, side in pairs.items()})
    rows, has_room = [], os.cpu_count() >= 6   # else the six threads wait for one another, and the router is no bottleneck
    for what, key, unit, goal in (("messages of 64 bytes, 2 pairs", "messages", "messages/s", {"at_least": 1.6}),
                                  ("RMA writes, 2 pairs", "MB", "MB/s", {}),
                                  ("the router, 2 pairs", "CPU a message", "CPU microseconds a message", {}),
                                  ("the router, 2 pairs", "CPU", "CPU seconds a GB", {"at_most": 1.1})):
        one, two = figures[f"one {key}"], figures[f"two {key}"]
        rows += [Row(f"one worker: {what}", one, unit), Row(f"two workers: {what}", two, unit, "one worker", two / one, **(goal if has_room else {}))]
    return rows
