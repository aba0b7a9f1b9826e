"""The core, memory to memory: `ccixfer bench` beside a bare TCP ping-pong and iperf3, mailboxes beside what they replace, and the simulator."""
import json
import os
import re
import resource
import subprocess

from harness import BUILD, REPO, Row, free_port

PAPER = "the paper's 65.8 % (verbs), 45.8 % (UCX)"
SIM_CASES = ["swarm__direct_and_calm*", "swarm__direct_with_resets_and_cuts*", "swarm__direct_with_crashes*", "swarm__through_routers_and_calm*",
             "swarm__through_routers_with_resets*", "swarm__through_routers_with_crashes*"]


def pingpong_program(bench):
    program = bench.directory / "pingpong"
    if not program.exists():
        bench.output("g++", "-std=c++20", "-O2", "-o", program, REPO / "tests/bench/pingpong.cc")
    return program


def asked(bench, server_wait, *arguments, transport="tcp", place="127.0.0.1:0"):
    """Rows of one asking side against a serving side of its own."""
    server, uris = bench.daemon("bench server", "bench", "--serve", "--insecure", "--listen", f"{transport}://{place}", "--wait", server_wait)
    events = bench.events("bench", "--insecure", "--wait", server_wait, *arguments, next(u for u in uris if u.startswith(transport)))
    bench.end(server)
    return [e for e in events if e["event"] == "bench"]


def latency(bench, options):
    rows = []
    for wait in ("spin", "poll"):
        def bare(wait=wait):
            server = bench.spawn(pingpong_program(bench), "serve", wait, stdout=subprocess.PIPE, text=True)
            port = server.stdout.readline().strip()
            nanoseconds = bench.output(pingpong_program(bench), "ask", port, 64, options.count, wait)
            server.wait(timeout=20)
            return int(nanoseconds) / 1e3

        def ours(wait=wait):
            row, = asked(bench, wait, "--tests", "message-latency", "--count", options.count)
            return row["half_round_trip_s"]["p50"] * 1e6

        figures = bench.interleaved({f"bare TCP, {wait}": bare, f"ccixfer, {wait}": ours})
        theirs, own = figures[f"bare TCP, {wait}"], figures[f"ccixfer, {wait}"]
        rows += [Row(f"bare TCP ping-pong, both {wait}", theirs, "us, half round trip of 64 bytes"),
                 Row(f"ccixfer message, both {wait}", own, "us, half round trip of 64 bytes", "bare TCP", own / theirs, at_most=1.2)]
    return rows


def rma_beside_iperf(bench, options, transport, at_least):
    port = free_port()
    bench.spawn("iperf3", "-s", "-B", "127.0.0.1", "-p", port, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    bench.wait_listening(port)

    def iperf():
        report = json.loads(bench.output("iperf3", "-c", "127.0.0.1", "-p", port, "-t", options.seconds, "-J"))
        return report["end"]["sum_received"]["bits_per_second"] / 8e6

    def ours(test):
        row, = asked(bench, "poll", "--tests", test, "--sizes", "4MiB", "--seconds", options.seconds, transport=transport)
        return row["bytes_per_s"] / 1e6

    figures = bench.interleaved({"iperf3": iperf, "write": lambda: ours("rma-write"), "read": lambda: ours("rma-read")})
    unit = "MB/s, 4 MiB, depth 16"
    over = "" if transport == "tcp" else f" over {transport}"
    return [Row("iperf3, one stream", figures["iperf3"], "MB/s")] + [
        Row(f"ccixfer RMA {name}{over}", figures[name], unit, "iperf3", figures[name] / figures["iperf3"], at_least=at_least) for name in ("write", "read")]


def rma(bench, options):
    return rma_beside_iperf(bench, options, "tcp", 0.85)


def udp(bench, options):
    """Datagrams over the loopback, of 8,972 bytes."""
    return rma_beside_iperf(bench, options, "udp", 0.6)


def empty_turn(bench, _):
    connections = 10_000

    def ours():
        rows = asked(bench, "poll", "--tests", "empty-turn", "--connections", connections, "--seconds", 1, "--timeout", 60)
        return {str(row["connections"]): row["turn_s"]["p50"] * 1e9 for row in rows}

    figures = bench.interleaved({"turn": ours})
    one, many = figures["1"], figures[str(connections)]
    return [Row("empty get_event and turn, 1 connection", one, "ns"),
            Row(f"the same, {connections} connections", many, "ns", "1 connection", many / one, at_most=1.1)]


def rvma(bench, options):
    def ours(wait):
        return {f"{row['test']}, {wait}": row["half_round_trip_s"]["p50"] * 1e6
                for row in asked(bench, wait, "--tests", "completion", "--count", options.count)}

    figures = bench.interleaved({"spin": lambda: ours("spin")})
    put, message, exchange = (figures[f"completion-{way}, spin"] for way in ("put", "message", "exchange"))
    return [Row("RVMA put and its completion", put, "us, 64 bytes, spin"), Row("RMA write and completion message", message, "us, 64 bytes, spin"),
            Row("address exchange, write, message", exchange, "us, 64 bytes, spin"),
            Row("put against completion message", 100 * (1 - put / message), "% less", PAPER),
            Row("put against address exchange", 100 * (1 - put / exchange), "% less", PAPER)]


def router_map(bench, options):
    """What a router's change costs, and what a connect does: 1,000 subnets, 300 routers."""
    def run():
        words = bench.output(BUILD / "tests/unit_map", "map__of_1000_subnets_and_300_routers__figures")
        figures = re.search(r"map ([0-9.e+-]+) ms, .* a lookup ([0-9.e+-]+) ns", words)
        return {"built": float(figures[1]), "lookup": float(figures[2])}

    figures = bench.interleaved({"map": run})
    return [Row("the map of 1,000 subnets and 300 routers, built anew", figures["built"], "ms", at_most=1000),
            Row("a lookup in it", figures["lookup"], "ns", at_most=1000)]


def simulator(bench, options):
    program = BUILD / "tests/sim"

    def run():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run([program, ",".join(SIM_CASES)], capture_output=True, text=True, check=False,
                               env={**os.environ, "CCIXFER_SIM_SEEDS": str(options.seeds)})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
        found = re.findall(r"(\d+) runs, .*?(\d+) events", ended.stdout)
        runs, events = sum(int(r) for r, _ in found), sum(int(e) for _, e in found)
        if ended.returncode != 0 or runs == 0:
            raise SystemExit(f"the simulated seeds failed ({ended.returncode}): {(ended.stdout + ended.stderr)[-500:]}")
        return {"events": events / seconds, "seed": seconds / runs}

    figures = bench.interleaved({"sim": run})
    return [Row("simulator, one core", figures["events"], "events a CPU second", at_least=100_000),
            Row("simulator, a seed of the file swarm", figures["seed"], "CPU seconds", at_most=0.1)]


def scaling(bench, _):
    """Many workers of a router and many senders of a team beside one, in simulated time: it is the same on every machine, so it runs once."""
    workers, members = 8, 64
    ended = subprocess.run([BUILD / "tests/sim", "scaling__*"], capture_output=True, text=True, check=False,
                           env={**os.environ, "CCIXFER_SIM_WORKERS": str(workers), "CCIXFER_SIM_MEMBERS": str(members)})
    found = re.search(rf"efficiency of {workers} workers: ([0-9.]+) of the messages, ([0-9.]+) of the bytes", ended.stdout)
    teams = dict(re.findall(rf"efficiency of {members} members, (.+): ([0-9.]+)", ended.stdout))
    if not found or set(teams) != {"one file", "files"}:
        raise SystemExit(f"scaling: the simulator ended with {ended.returncode}: {(ended.stdout + ended.stderr)[-500:]}")
    figures = [(f"{workers} workers of a router, messages of 64 bytes", found[1]), (f"{workers} workers of a router, RMA writes", found[2]),
               (f"{members} senders of one file", teams["one file"]), (f"{members} senders of files of 1 MiB", teams["files"])]
    return [Row(f"simulated: {what}", float(figure), f"of {what.split(' ')[0]} times one's rate", at_least=0.9) for what, figure in figures]
