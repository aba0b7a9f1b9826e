#!/usr/bin/env python3
"""The include DAG of tests/layers.txt holds; protocol rooms name no clock, thread or system header; no file is past 600 lines;
the READMEs of the rooms of a transfer have a row for each file.

Usage: check_layers.py [ROOT]. Prints each violation as FILE:LINE: what, exits 1 if there is any.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
PURE = ("core/base", "core/wire", "core/ports", "core/memory", "core/trust", "core/rvma", "core/cci", "core/reliability", "transports/connection", "transports/stream",
        "transports/datagram", "transports/rdma", "routing/map", "routing/transport", "routing/router", "app/filter", "app/session", "app/send", "app/recv",
        "app/bench")
WORLD = re.compile(r"<(thread|mutex|condition_variable|random|sys/socket\.h|sys/epoll\.h|time\.h|ctime|unistd\.h|boost/.*)>")
CLOCK = re.compile(r"\b(steady_clock|system_clock|high_resolution_clock|random_device|clock_gettime|gettimeofday)\b")
HEAVY = re.compile(r"<(boost/asio.*|toml\.hpp|CLI/.*|sqlite3\.h|nlohmann/(?!json_fwd).*|spdlog/.*)>")
# recv and send: what a job of the work pool shares with the protocol thread is behind a mutex
ALLOWED_WORLD = {("core/memory", "unistd.h"), ("app/recv", "mutex"), ("app/send", "mutex")}
LINES_MAX = 600
# A row of a table in their README.md names each file, without its ending; `walk_*` names all that begin so.
LISTED_ROOMS = ("app/main", "app/recv", "app/send", "app/session")


def rooms():
    table = {}
    for line in (ROOT / "tests/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            room, seen = line.split(":")
            table[room.strip()] = set(seen.split())
    return table


def main():
    table = rooms()
    bad = []
    order = {}
    for room, seen in table.items():   # the table itself is acyclic: every room names only rooms above it
        for other in seen - {"*"}:
            if other not in order:
                bad.append(f"tests/layers.txt: {room} names {other}, which does not stand above it")
        order[room] = len(order)
    listed = subprocess.run(["git", "ls-files", "*.cc", "*.h"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        path = ROOT / name
        if not path.exists():
            continue
        room = "tests" if name.startswith("tests/") else "/".join(name.split("/")[:2])
        if room not in table:
            bad.append(f"{name}:1: no room {room} in tests/layers.txt")
            continue
        lines = path.read_text(errors="replace").splitlines()
        if len(lines) > LINES_MAX:
            bad.append(f"{name}:1: {len(lines)} lines, more than {LINES_MAX}: it has two jobs")
        for number, line in enumerate(lines, 1):
            include = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
            if include and include.group(1) == '"':
                target = include.group(2)
                other = "tests" if target.startswith("tests/") else "/".join(target.split("/")[:2])
                if other != room and "*" not in table[room] and other not in table[room]:
                    bad.append(f"{name}:{number}: {room} may not include {target}")
                if not (ROOT / target).exists():
                    bad.append(f"{name}:{number}: includes are written from the root: {target}")
            if include and name.endswith(".h") and HEAVY.search(line) and room != "tests":
                bad.append(f"{name}:{number}: heavy header in a header: {line.strip()}")
            if room in PURE:
                world = WORLD.search(line) if include else None
                if world and (room, world.group(1)) not in ALLOWED_WORLD:
                    bad.append(f"{name}:{number}: {room} is protocol code: {line.strip()}")
                if CLOCK.search(line.split("//")[0]):
                    bad.append(f"{name}:{number}: {room} reads no clock and no random device")
    for room in LISTED_ROOMS:
        rows = [row for row in (ROOT / room / "README.md").read_text().splitlines() if row.startswith("|")]
        names = {name for row in rows for name in re.findall(r"`([a-z_*]+)`", row)}
        for stem in sorted({pathlib.Path(name).stem for name in listed if (ROOT / name).exists() and name.rpartition("/")[0] == room}):
            if not any(fnmatch.fnmatchcase(stem, name) for name in names):
                bad.append(f"{room}/README.md: no row of a table names `{stem}`")
    starred = set()
    for row in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        told = re.match(r"\| (?:\[(?P<linked>[a-z]+/?[a-z]*)\]\([^)]*\)(?P<rest>/[a-z]+)?|(?P<plain>[a-z]+/[a-z]+)) \* \|", row)
        if told:
            starred.add(told["plain"] or told["linked"] + (told["rest"] or ""))
    for room in starred ^ set(PURE):
        bad.append(f"ARCHITECTURE.md: {room} has a star there or is in PURE of tests/check_layers.py, and not both")
    stages = {}
    for name in listed:
        if name.startswith("tests/"):
            continue
        for number, line in enumerate((ROOT / name).read_text(errors="replace").splitlines(), 1):
            for stage in re.findall(r"\[stage (\d+)\]", line):
                stages.setdefault(int(stage), []).append(f"{name}:{number}")
    for stage in range(1, 12):
        where = stages.get(stage, [])
        if len(where) != 1:
            bad.append(f"data path: [stage {stage}] stands {len(where)} times, must be once: {' '.join(where)}")
    for line in bad:
        print(line)
    print(f"layers: {len(listed)} files, {len(bad)} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
