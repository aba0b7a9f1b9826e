"""Shared memory, two processes of one host: `ccixfer bench` over shm beside a bare ping-pong and a bare memcpy (shm_bare.cc)."""
import os

from core import asked
from harness import REPO, Row

LATENCY_AT_MOST = 1.3
COPY_AT_LEAST = 0.9


def bare_program(bench):
    program = bench.directory / "shm_bare"
    if not program.exists():
        bench.output("g++", "-std=c++20", "-O2", "-o", program, REPO / "tests/bench/shm_bare.cc")
    return program


def ours(bench, wait, *arguments):
    row, = asked(bench, wait, *arguments, transport="shm", place=f"bench-{os.getpid()}")
    return row


def shm(bench, options):
    rows = []
    for wait in ("spin", "poll"):
        figures = bench.interleaved({
            "bare": lambda wait=wait: int(bench.output(bare_program(bench), "latency", 64, options.count, wait)) / 1e3,
            "ours": lambda wait=wait: ours(bench, wait, "--tests", "message-latency", "--count", options.count)["half_round_trip_s"]["p50"] * 1e6})
        bare, own = figures["bare"], figures["ours"]
        rows += [Row(f"bare shared memory ping-pong, both {wait}", bare, "us, half round trip of 64 bytes"),
                 Row(f"ccixfer message over shm, both {wait}", own, "us, half round trip of 64 bytes", "bare shared memory", own / bare, at_most=LATENCY_AT_MOST)]

    def moved(test):
        return ours(bench, "poll", "--tests", test, "--sizes", "4MiB", "--seconds", options.seconds)["bytes_per_s"] / 1e6

    figures = bench.interleaved({"copy": lambda: int(bench.output(bare_program(bench), "copy", 4 << 20, options.seconds)) / 1e6,
                                 "write": lambda: moved("rma-write"), "read": lambda: moved("rma-read")})
    copy = figures["copy"]
    return rows + [Row("one memcpy into memory of another process", copy, "MB/s, 4 MiB, depth 16")] + [
        Row(f"ccixfer RMA {name} over shm", figures[name], "MB/s, 4 MiB, depth 16", "the memcpy", figures[name] / copy, at_least=COPY_AT_LEAST)
        for name in ("write", "read")]
