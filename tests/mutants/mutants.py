#!/usr/bin/env python3
"""Small semantic changes to the product, each alone: do the tests tell? See README.md in this folder.

Usage: mutants.py [--room ROOM]... [--count N] [--seed S] [--until room|unit|contract|sim|e2e] [--limit SECONDS] [--jobs N]
                  [--only TEXT] [--list] [--root TREE]
Prints each mutant as caught, survived or does not build, with file, line and change; the last line is `caught N of M`.
"""
import argparse
import concurrent.futures
import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import threading
import tomllib

import build
import programs
import weave

HERE = pathlib.Path(__file__).resolve().parent
TABLE_BYTES = 1 << 17
BATCH_S = 4.0    # cases of a program that run together, by the time they took without a mutant


class Stop(Exception):
    """The measurement cannot be made; the words say why."""


def arguments():
    parser = argparse.ArgumentParser(prog="./do mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--room", action="append", default=[], help="a room of tests/layers.txt, again for several (default: all)")
    parser.add_argument("--count", type=int, default=50, help="how many mutants (default 50; 0: all)")
    parser.add_argument("--seed", default="1", help="which ones: the same seed gives the same (default 1)")
    parser.add_argument("--until", choices=programs.STAGES, default="e2e", help="the last kind of test that is run (default e2e)")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of tests a mutant before it has survived (default 120)")
    parser.add_argument("--seeds", type=int, default=4, help="seeds of each kind of swarm (default 4)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--headers", action="store_true", help="headers too: all that includes them is built again")
    parser.add_argument("--only", default="", help="only mutants whose FILE:LINE KIND CHANGE contains this")
    parser.add_argument("--list", action="store_true", help="list the mutants and run nothing")
    parser.add_argument("--patience", type=float, default=10.0, help=argparse.SUPPRESS)  # seconds that a hang has beyond a multiple of its time
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1], help=argparse.SUPPRESS)
    return parser.parse_args()


def rooms_of(root):
    names = []
    for line in (root / "tests/layers.txt").read_text().splitlines():
        name = line.split("#")[0].partition(":")[0].strip()
        if name and name != "tests":
            names.append(name)
    return names


class Equivalents:
    """What was looked at by a person and changes nothing that anybody could observe; found by file, line's text, kind and change."""

    def __init__(self, path):
        self.entries = tomllib.loads(path.read_text()).get("equivalent", []) if path.exists() else []
        self.why = {(e["file"], " ".join(e["line"].split()), e["kind"], e["change"]): e["why"] for e in self.entries}

    def missing(self, sites_by_file, root):
        """Those listed that are there no more: the line is gone, or (in a file that was read) nothing on it mutates so."""
        for file, line, kind, change in self.why:
            path = root / file
            if not path.exists() or line not in {" ".join(x.split()) for x in path.read_text().splitlines()}:
                yield f"{file}: {line}"
            elif file in sites_by_file and (file, line, kind, change) not in {s.key() for s in sites_by_file[file]}:
                yield f"{file}: {kind} {change}"


class Reach:
    """Which mutants each case of each test reaches, and how long it takes, from one run of each alone without any mutant. Kept as long
    as the program is the same, byte by byte."""

    def __init__(self, tests, home, jobs):
        self.tests, self.home, self.jobs = tests, home, jobs
        self.versions = {}
        self.path = home / "reach.json"
        self.kept = json.loads(self.path.read_text()) if self.path.exists() else {}

    def of(self, cases):
        wanted = [c for c in cases if self.key(c) not in self.kept]
        if wanted:
            print(f"mutants: {len(wanted)} cases without a mutant first", flush=True)
            with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
                for case, result in zip(wanted, pool.map(self.measure, wanted)):
                    self.kept[self.key(case)] = result
            self.path.write_text(json.dumps(self.kept))
        return {c: self.kept[self.key(c)] for c in cases}

    def key(self, case):
        name = case.program.name
        if name not in self.versions:
            self.versions[name] = self.tests.version(case.program)
        return f"{self.versions[name]} {name} {case.name}"

    def measure(self, case):
        table = self.home / f"reached-{threading.get_ident()}"
        for attempt in range(2):
            table.write_bytes(bytes(TABLE_BYTES))
            table.chmod(0o666)
            green, seconds, words = self.tests.run([case], 900.0, reached=table)
            if green:
                break
        else:
            raise Stop(f"the tests are not green without a mutant: {case.program.name}: {case.name}: {words}")
        reached = [n for n, byte in enumerate(table.read_bytes()) if byte]
        table.unlink()
        return [round(seconds, 3), reached]


class Hunt:
    """One mutant after the other against the tests that reach it."""

    def __init__(self, tests, reach, options):
        self.tests, self.reach, self.options = tests, reach, options

    def plan(self, stages, rooms):
        """cases by mutant: {number: [case]} in the order of nearness, quick ones first."""
        self.seconds, self.by_mutant = {}, {}
        near = {}
        for room in rooms:
            for program in self.tests.near(room):
                if self.tests.stage(program, room) in stages:
                    near.setdefault(program, []).append(room)
        cases = [case for program in near for case in self.tests.cases(program)]
        if "e2e" in stages:
            cases += self.tests.end_to_end()
        for case, (seconds, reached) in self.reach.of(cases).items():
            self.seconds[case] = seconds
            for number in reached:
                self.by_mutant.setdefault(number, []).append(case)

    def batches(self, number, room):
        order = {p: i for i, p in enumerate(self.tests.near(room))}
        cases = sorted(self.by_mutant.get(number, []), key=lambda c: (order.get(c.program, len(order)), self.seconds[c], c.name))
        left, batch = self.options.limit, []
        for case in cases:
            if self.seconds[case] > left:
                continue
            left -= self.seconds[case]
            alone = case.program.stage == "e2e"
            if batch and (alone or batch[0].program != case.program or sum(self.seconds[c] for c in batch) + self.seconds[case] > BATCH_S):
                yield batch
                batch = []
            batch.append(case)
        if batch:
            yield batch

    def hunt(self, number, room):
        """The words for who caught it, or None."""
        for batch in self.batches(number, room):
            limit_s = self.options.patience + 8.0 * sum(self.seconds[c] for c in batch)
            green, _, words = self.tests.run(batch, limit_s, mutant=number)
            if not green and batch[0].program.stage == "e2e":  # real processes on a busy machine: only what fails twice is caught
                green, _, words = self.tests.run(batch, limit_s, mutant=number)
            if not green:
                return f"{batch[0].program.name}: {words}"
        return None


def main():
    options = arguments()
    root = options.root.resolve()
    rooms = options.room or rooms_of(root)
    unknown = [r for r in rooms if r not in rooms_of(root)]
    if unknown:
        raise Stop(f"no room {unknown[0]} in tests/layers.txt")
    home = root / "build/mutants"
    home.mkdir(parents=True, exist_ok=True)
    lock = open(home / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Stop(f"another ./do mutants works in {home}: wait for its end") from None
    files = [n for n in weave.listed(root) if weave.room_of(n) in rooms and n.endswith((".cc", ".h") if options.headers else ".cc")]
    sites = weave.sites_of(files, root, home / "sites", options.jobs)
    numbered, number_of = {}, {}
    for name in files:
        numbered[name] = []
        for site in sites[name]:
            number = len(number_of)
            number_of[number] = site
            numbered[name].append((number, site))
    if len(number_of) >= TABLE_BYTES:
        raise Stop(f"{len(number_of)} mutants, more than switch.h has room for")
    equivalents = Equivalents(root / "tests/mutants/equivalent.toml")
    for words in equivalents.missing(sites, root):
        print(f"mutants: listed as equivalent and there no more: {words}")
    chosen = choose(number_of, options)
    if options.list:
        for number in chosen:
            print(line_of("", number_of[number]))
        return
    measure(options, root, home, rooms, numbered, number_of, chosen, equivalents)


def choose(number_of, options):
    numbers = sorted(number_of)
    if options.only:
        numbers = [n for n in numbers if options.only in line_of("", number_of[n])]
    elif options.count and options.count < len(numbers):
        numbers = sorted(random.Random(f"{options.seed}").sample(numbers, options.count))
    return numbers


def line_of(verdict, site, words=""):
    return f"{verdict:9}{' ' if verdict else ''}{site.file}:{site.line} {site.kind} {site.change}{'  (' + words + ')' if words else ''}".strip()


def measure(options, root, home, rooms, numbered, number_of, chosen, equivalents):
    tree = home / "tree"
    scratch = home / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    stages = programs.STAGES[:programs.STAGES.index(options.until) + 1]
    # What is to be built is asked of the checkout: the copy may be of before a test was added.
    targets = programs.Tests(root, tree / "build/release", scratch, options.seeds).targets(rooms, stages)
    builder = build.Builder(root, tree, targets, options.jobs)
    print(f"mutants: {len(number_of)} places in {len(numbered)} files of {len(rooms)} rooms; builds a private copy", flush=True)
    broken = builder.build(numbered)
    tests = programs.Tests(tree, tree / "build/release", scratch, options.seeds)
    reach = Reach(tests, home, options.jobs)
    hunt = Hunt(tests, reach, options)

    verdicts = {}
    for number in chosen:
        site = number_of[number]
        if number in broken:
            verdicts[number] = ("no build", "")
        elif site.key() in equivalents.why:
            verdicts[number] = ("equal", equivalents.why[site.key()])
    out = threading.Lock()

    def one(number):
        words = hunt.hunt(number, weave.room_of(number_of[number].file))
        if words is not None:
            verdicts[number] = ("caught", words)
            with out:
                print(line_of("caught", number_of[number], words), flush=True)

    reached = set()
    # The end-to-end tests are slow to begin with: only for what all others let through.
    for some in (stages[:-1], stages[-1:]) if "e2e" in stages else (stages,):
        left = [n for n in chosen if n not in verdicts]
        if not left:
            continue
        hunt.plan(some, rooms)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(one, left))
        reached.update(hunt.by_mutant)
    for number in chosen:
        if number not in verdicts:
            verdicts[number] = ("survived", "" if number in reached else "no test reaches it")
    shutil.rmtree(scratch, ignore_errors=True)
    report(options, home, rooms, number_of, chosen, verdicts)


def report(options, home, rooms, number_of, chosen, verdicts):
    words = {"no build": "does not build", "equal": "equivalent", "survived": "survived"}
    for verdict in ("no build", "equal", "survived"):
        for number in chosen:
            if verdicts[number][0] == verdict:
                print(line_of(words[verdict], number_of[number], verdicts[number][1]))
    by_room = {}
    for number in chosen:
        room = weave.room_of(number_of[number].file)
        row = by_room.setdefault(room, {"caught": 0, "survived": 0, "equal": 0, "no build": 0})
        row[verdicts[number][0]] += 1
    for room, row in sorted(by_room.items()):
        print(f"{room}: caught {row['caught']} of {row['caught'] + row['survived']}, {row['equal']} equivalent, {row['no build']} do not build")
    results = [{"verdict": verdicts[n][0], "by": verdicts[n][1], **{k: v for k, v in vars(number_of[n]).items() if k in ("file", "line", "text", "kind", "change")}}
               for n in chosen]
    (home / "last.json").write_text(json.dumps(results, indent=1))
    with open(home / "survivors.toml", "w") as file:  # to be copied into equivalent.toml, with a reason, where one is equivalent
        for r in results:
            if r["verdict"] == "survived":
                file.write(f"[[equivalent]]\nfile = {json.dumps(r['file'])}\nline = {json.dumps(r['text'], ensure_ascii=False)}\nkind = {json.dumps(r['kind'])}\n"
                           f"change = {json.dumps(r['change'], ensure_ascii=False)}\nwhy = \"\"\n\n")
    caught = sum(v[0] == "caught" for v in verdicts.values())
    print(f"caught {caught} of {caught + sum(v[0] == 'survived' for v in verdicts.values())}")


def stop(*_):
    """Told to stop: nothing that was started stays behind."""
    programs.end_all()
    os._exit(130)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        main()
    except (Stop, build.BuildFailed) as problem:
        sys.exit(f"mutants: {problem}")
