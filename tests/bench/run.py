#!/usr/bin/env python3
"""./do bench: ccixfer beside the tools its users would pick instead, in one run, in turn, three times after a warm-up.

  run.py [--before BUILD] [--only NAME,...] [--rounds 3] [--json FILE] [--readme] [--size-gib 4] [--seconds 3] [--count 20000] [--seeds 100]

Names: file, changed, tree, crowd, million, team, team-million (several processes, one transfer), disk, disk-tree, secured, secured-tree (whole commands, start to exit), handshakes, secured-latency, secured-router (what proved ends and
hops cost), latency, rma, udp, udp-veth, eth, shm, empty-turn, rvma, simulator, scaling (of workers and senders, in simulated time), map, routers (memory to memory), workers (of a router), page (of a router with 1,000 connections), wan (an emulated link of 1 Gb/s and 100 ms). Everything is on tmpfs and loopback; disk and disk-tree are on a loop device. A rate is decimal MB/s or files/s. Medians; a ratio compares medians of this run only. --readme writes the table between the README's
<!-- bench --> marks. Exit 1 when a figure is not met. --before: beside the build of an earlier version (a directory as build/release)
in place of its peers; a figure may have 3 % less than there.
"""
import argparse
import json
import os
import pathlib
import platform
import sys
import tempfile
import time

import before
import core
import crowd
import disks
import files
import harness
import hops
import page
import routes
import secured
import shm
import teams
import veth
import wan

SUITES = {"file": files.file, "changed": files.changed, "tree": files.tree, "crowd": crowd.crowd, "million": files.million, "team": teams.team, "team-million": teams.team_million, "disk": disks.disk, "disk-tree": disks.disk_tree,
          "secured": secured.secured, "secured-tree": secured.secured_tree,
          "handshakes": hops.handshakes, "secured-latency": hops.latency, "secured-router": hops.router_cpu, "latency": core.latency,
          "rma": core.rma, "udp": core.udp, "udp-veth": veth.udp, "eth": veth.eth, "shm": shm.shm, "empty-turn": core.empty_turn, "rvma": core.rvma, "simulator": core.simulator, "scaling": core.scaling, "map": core.router_map,
          "routers": routes.routers, "workers": routes.workers, "page": page.page, "wan": wan.wan}
MARKS = ("<!-- bench -->\n", "<!-- /bench -->")


def selected(text):
    names = text.split(",")
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no rows named {', '.join(unknown)}: there are {', '.join(SUITES)}")
    return names


def whole_seconds(text):
    """iperf3 reads the whole number in front, and takes 0 for ever."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError("whole seconds, at least 1")
    return int(text)


def table(rows, rounds):
    cpu = next((l.split(":")[1].strip() for l in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if l.startswith("model name")), "?")
    lines = [f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {cpu}, Linux {platform.release()}, tmpfs and loopback, medians of {rounds}.", "",
             "| what | figure | unit | beside | ratio | wanted |", "| --- | --- | --- | --- | --- | --- |"]
    return "\n".join(lines + [f"| {' | '.join(row.cells())} |" for row in rows]) + "\n"


def write_readme(text):
    readme = harness.REPO / "README.md"
    whole = readme.read_text()
    start, end = whole.index(MARKS[0]) + len(MARKS[0]), whole.index(MARKS[1])
    readme.write_text(whole[:start] + text + whole[end:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, default=harness.REPO / "build/bench.json")
    parser.add_argument("--before", type=pathlib.Path, help="a build directory: the same figures of that one in turn with this one's")
    parser.add_argument("--only", type=selected, default=list(SUITES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("--size-gib", type=float, default=4)
    parser.add_argument("--seconds", type=whole_seconds, default=3, help="of each memory to memory rate")
    parser.add_argument("--count", type=int, default=20_000, help="round trips of each latency")
    parser.add_argument("--seeds", type=int, default=100, help="simulated seeds of each scenario")
    options = parser.parse_args()
    rows = before.compare(options) if options.before else measured(options)
    text = table(rows, options.rounds)
    print("\n" + text)
    missed = [row.what for row in rows if not row.met()]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps([{**vars(row), "met": row.met()} for row in rows], indent=1) + "\n")
    if options.readme:
        write_readme(text)
    print(f"not met: {'; '.join(missed)}" if missed else "every figure is met")
    return 1 if missed else 0


def measured(options):
    bench = harness.Bench(pathlib.Path(tempfile.mkdtemp(prefix="ccixfer-bench-", dir="/dev/shm")), options.rounds)
    rows = []
    try:
        for name in options.only:
            print(f"{name}:", file=sys.stderr, flush=True)
            rows += SUITES[name](bench, options)
    finally:
        bench.stop()
    return rows


if __name__ == "__main__":
    sys.exit(main())
