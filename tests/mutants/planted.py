#!/usr/bin/env python3
"""Errors that somebody planted on purpose, each a patch in planted/: do the tests still catch them?

README.md in this folder has the format of a patch and what is done with it.
Usage: planted.py [NAME-PART... | --sample N] [--list] [--check] [--jobs N] [--root TREE]
Prints a row for each patch; the last line is `caught N of M`. Exit code 1: an error survived.
2: a patch does not apply or does not build, or its tests fail without it.
"""
import argparse
import dataclasses
import fcntl
import fnmatch
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import programs
import weave

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE_S = 30.0   # what a test may take beyond eight times its time without the error
DEFAULT_SEEDS = 40  # of each kind of swarm


class Problem(Exception):
    """A patch that cannot be tried; the words say why."""


@dataclasses.dataclass
class Hunk:
    file: str
    before: str   # whole lines: what stands there, and the context
    after: str


@dataclasses.dataclass(frozen=True)
class Run:
    """A line `tests:`, as `unit_recv "pieces__*"`, `sim "swarm__*" seeds 60`, `e2e test_part` or `rdma CASE`."""
    program: str
    pattern: str
    build: str
    seeds: int
    first: int   # 0: the default

    def words(self):
        return f"{self.program} {self.pattern}"


@dataclasses.dataclass
class Patch:
    name: str
    error: str = ""
    runs: list = dataclasses.field(default_factory=list)
    hunks: list = dataclasses.field(default_factory=list)


def read_run(name, words):
    fields = shlex.split(words)
    if len(fields) < 2 or len(fields) % 2:
        raise Problem(f"{name}: 'tests: {words}' is not PROGRAM \"PATTERN\" [seeds N] [first N] [build dev|release]")
    options = dict(zip(fields[2::2], fields[3::2]))
    build = options.pop("build", "dev" if fields[0].startswith(("unit_", "contract")) else "release")
    seeds, first = int(options.pop("seeds", DEFAULT_SEEDS)), int(options.pop("first", 0))
    if options or build not in ("dev", "release"):
        raise Problem(f"{name}: 'tests: {words}' has a word that means nothing here")
    return Run(fields[0], fields[1], build, seeds, first)


def read_patch(path):
    """A header of `key: value` lines up to the first `--- a/FILE`, then a unified diff."""
    patch = Patch(path.stem)
    lines = path.read_text().splitlines()
    diff_at = next((i for i, line in enumerate(lines) if line.startswith("--- a/")), len(lines))
    for line in lines[:diff_at]:
        key, _, value = line.partition(": ")
        if key == "error":
            patch.error = value
        elif key == "tests":
            patch.runs.append(read_run(patch.name, value))
        elif line.strip():
            raise Problem(f"{patch.name}: '{line}' is neither 'error: ...' nor 'tests: ...'")
    patch.hunks = read_hunks(patch.name, lines[diff_at:])
    if not (patch.error and patch.runs and patch.hunks):
        raise Problem(f"{patch.name}: it needs 'error: ...', 'tests: ...' and a diff")
    return patch


def read_hunks(name, lines):
    hunks, file = [], ""
    for line in lines:
        if line.startswith("--- a/"):
            file = line[len("--- a/"):]
        elif line.startswith("+++ b/"):
            continue
        elif line.startswith("@@"):
            hunks.append(Hunk(file, "", ""))
        elif line[:1] in ("-", " ", "+") and hunks:
            if line[0] != "+":
                hunks[-1].before += line[1:] + "\n"
            if line[0] != "-":
                hunks[-1].after += line[1:] + "\n"
        else:
            raise Problem(f"{name}: '{line}' belongs to no diff")
    return hunks


def applied(patch, content_of):
    """{file: its content with the error}. What a hunk replaces must stand once in its file; line
    numbers are not looked at."""
    contents = {}
    for hunk in patch.hunks:
        if hunk.file not in contents:
            try:
                contents[hunk.file] = content_of(hunk.file)
            except FileNotFoundError:
                raise Problem(f"{patch.name} does not apply: there is no {hunk.file}") from None
        content = "\n" + contents[hunk.file]
        count = content.count("\n" + hunk.before)
        if count != 1 or not hunk.before:
            places = "no place" if count == 0 else f"{count} places"
            raise Problem(f"{patch.name} does not apply: {hunk.file} has {places} for it")
        contents[hunk.file] = content.replace("\n" + hunk.before, "\n" + hunk.after)[1:]
    return contents


def case_names(run, names):
    """The cases among names that a run asks for: by a pattern with *, or end-to-end tests by a part."""
    if run.program == "e2e":
        return [n for n in names if run.pattern in n]
    return [n for n in names if fnmatch.fnmatchcase(n, run.pattern.replace("[", "[[]"))]


class Names:
    """The programs of the checkout and the names of their cases, read from the sources."""

    def __init__(self, root):
        self.tests = programs.Tests(root, root / "build", root, 1)
        self.programs = {p.name: p for p in self.tests.programs}
        self.literals = set()
        for path in (root / "tests").rglob("*.cc"):
            self.literals.update(re.findall(r'"((?:[^"\\\n]|\\.)+)"', path.read_text()))

    def check(self, patch):
        for run in patch.runs:
            if run.program == "e2e":
                names = [c.name for c in self.tests.end_to_end()]
            elif run.program == "rdma":
                names = [c.name for c in self.tests.in_machine()]
            elif run.program in self.programs:
                names = self.literals
            else:
                raise Problem(f"{patch.name}: there is no program {run.program}")
            if not case_names(run, names):
                raise Problem(f"{patch.name}: no case of {run.program} is called {run.pattern}")


def commit_of(root):
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else "no commit"


def chosen(patches, options):
    if options.sample is not None:
        commit = options.commit or commit_of(options.root)
        patches = sorted(patches, key=lambda p: hashlib.sha256(f"{commit} {p.name}".encode()).digest())[:options.sample]
    elif options.name_part:
        patches = [p for p in patches if any(part in p.name for part in options.name_part)]
    # Patches of one program and file follow one another: less is compiled and linked again.
    return sorted(patches, key=lambda p: (p.runs[0].build, p.runs[0].program, p.hunks[0].file, p.name))


def run_to_its_end(command, folder):
    """(exit code, output). A group of its own, which ends with us: a build has many processes."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    programs.running.add(process.pid)
    output, _ = process.communicate()
    programs.running.discard(process.pid)
    return process.returncode, output


class TestTree:
    """A copy of the checkout into which one error at a time is planted. The checkout itself is never
    written to."""

    def __init__(self, root, home, jobs, patience_s):
        self.root, self.tree, self.scratch = root, home / "tree", home / "scratch"
        self.jobs, self.patience_s = jobs, patience_s
        self.planted = []      # files of the copy that have an error
        self.without = {}      # run: (seconds that it takes without an error, cases)
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        self.tree.mkdir(exist_ok=True)
        weave.write(root, self.tree, {})

    def plant(self, patch):
        for file, content in applied(patch, lambda name: (self.root / name).read_text()).items():
            (self.tree / file).write_text(content)
            self.planted.append(file)

    def revert(self):
        for file in self.planted:
            (self.tree / file).write_bytes((self.root / file).read_bytes())
        self.planted = []

    def build(self, folder, targets):
        """The words of the compiler, or nothing when all is built."""
        if not (self.tree / "build" / folder / "build.ninja").exists():
            code, output = run_to_its_end(["cmake", "--preset", folder], self.tree)
            if code:
                raise Problem(f"cmake --preset {folder}: {output}")
        command = ["cmake", "--build", f"build/{folder}", "-j", str(self.jobs), "--target", *targets]
        code, output = run_to_its_end(command, self.tree)
        if code == 0:
            return ""
        errors = [line.strip() for line in output.splitlines() if "error:" in line]
        return errors[0] if errors else output[-3000:]

    def build_for(self, runs):
        for folder in ("dev", "release"):
            targets = sorted({target for r in runs if r.build == folder for target in self.targets(r)})
            words = self.build(folder, targets) if targets else ""
            if words:
                return words
        return ""

    def targets(self, run):
        if run.program == "rdma":
            _, words = run_to_its_end([sys.executable, "tests/rdma/run.py", "--programs", run.pattern], self.tree)
            return words.split()
        return ["ccixfer" if run.program == "e2e" else run.program]

    def prove_green(self, run):
        """Once for each run, in the copy without any error: its cases exist, and they pass."""
        if run in self.without:
            return
        tests = self.tests(run)
        if run.program == "rdma":
            cases = tests.in_machine()
        else:
            cases = tests.end_to_end() if run.program == "e2e" else tests.cases(self.program(tests, run))
        wanted = set(case_names(run, [c.name for c in cases]))
        cases = [c for c in cases if c.name in wanted]
        if not cases:
            raise Problem(f"no case of {run.program} is called {run.pattern}")
        green, seconds, words = self.go(run, cases, 900.0)
        if not green and run.program == "e2e":  # on a busy machine real processes may fail by themselves
            green, seconds, words = self.go(run, cases, 900.0)
        if not green:
            raise Problem(f"its tests fail without it: {run.words()}: {words}")
        self.without[run] = (seconds, cases)

    def try_run(self, run):
        """(caught, words) of one run in the copy with an error."""
        seconds, cases = self.without[run]
        limit_s = self.patience_s + 8.0 * seconds
        green, _, words = self.go(run, cases, limit_s)
        if not green and run.program == "e2e":
            green, _, words = self.go(run, cases, limit_s)
        return not green, words

    def go(self, run, cases, limit_s):
        more = {"CCIXFER_SIM_SEEDS": str(run.seeds)}
        if run.first:
            more["CCIXFER_SIM_FIRST"] = str(run.first)
        if run.build == "dev":  # the address sanitizer reserves more addresses than a limit would allow
            more["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":hard_rss_limit_mb=8000"
        return self.tests(run).run(cases, limit_s, more=more, memory_bytes=None if run.build == "dev" else programs.MEMORY_BYTES)

    def tests(self, run):
        return programs.Tests(self.tree, self.tree / "build" / run.build, self.scratch, run.seeds)

    @staticmethod
    def program(tests, run):
        return next(p for p in tests.programs if p.name == run.program)


def judge(tree, patch):
    """(verdict, words): caught only if each of its runs fails."""
    words = tree.build_for(patch.runs)
    if words:
        return "no build", words
    told = []
    for run in patch.runs:
        caught, words = tree.try_run(run)
        if not caught:
            return "survived", run.words()
        told.append(f"{run.program}: {words}")
    return "caught", "; ".join(told)


def row(verdict, patch, seconds, words):
    words = " ".join(words.split())
    words = words if len(words) < 200 else words[:200] + "..."
    print(f"{verdict:9} {patch.name:44} {seconds:5.0f} s  {words}", flush=True)


def measure(tree, patches):
    """Prints the table. Returns the exit code."""
    words = tree.build_for({run for p in patches for run in p.runs})
    if words:
        raise Problem(f"the tree does not build without an error in it:\n{words}")
    verdicts = []
    unfit = {}
    for patch in patches:  # all of them first: the programs without an error are built once
        try:
            for run in patch.runs:
                tree.prove_green(run)
        except Problem as problem:
            unfit[patch.name] = str(problem)
    for patch in patches:
        start = time.monotonic()
        verdict, words = "unfit", unfit.get(patch.name)
        if words is None:
            try:
                tree.plant(patch)
                verdict, words = judge(tree, patch)
            finally:
                tree.revert()
        row(verdict, patch, time.monotonic() - start, words)
        verdicts.append(verdict)
    print(f"caught {verdicts.count('caught')} of {len(verdicts)}")
    if {"unfit", "no build"} & set(verdicts):
        return 2
    return 1 if "survived" in verdicts else 0


def arguments():
    parser = argparse.ArgumentParser(prog="./do mutants --planted", description=__doc__.splitlines()[0])
    parser.add_argument("name_part", nargs="*", help="only patches whose name contains one of these (default: all)")
    parser.add_argument("--sample", type=int, help="so many, chosen by the commit: the same commit gives the same")
    parser.add_argument("--list", action="store_true", help="list the patches and run nothing")
    parser.add_argument("--check", action="store_true", help="only look whether each applies and its tests exist")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1], help=argparse.SUPPRESS)
    parser.add_argument("--home", type=pathlib.Path, help=argparse.SUPPRESS)   # where the copy is
    parser.add_argument("--commit", default="", help=argparse.SUPPRESS)
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help=argparse.SUPPRESS)
    return parser.parse_args()


def read_all(root):
    """The patches that apply and whose tests exist, and the words about the others."""
    patches, problems = [], []
    names = Names(root)
    for path in sorted((root / "tests/mutants/planted").glob("*.patch")):
        try:
            patch = read_patch(path)
            applied(patch, lambda name: (root / name).read_text())
            names.check(patch)
            patches.append(patch)
        except Problem as problem:
            problems.append(str(problem))
    return patches, problems


def main():
    options = arguments()
    options.root = options.root.resolve()
    patches, problems = read_all(options.root)
    for words in problems:
        print(f"planted: {words}")
    if options.check:
        print(f"planted: {len(patches)} patches apply")
        return 2 if problems else 0
    some = chosen(patches, options)
    if options.list:
        for patch in some:
            print(f"{patch.name}: {patch.error}")
        return 0
    if not some:
        raise Problem("no patch has such a name")
    home = options.home or options.root / "build/planted"
    home.mkdir(parents=True, exist_ok=True)
    lock = open(home / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Problem(f"another ./do mutants --planted works in {home}: wait for its end") from None
    code = measure(TestTree(options.root, home, options.jobs, options.patience), some)
    return 2 if problems else code


def stop(*_):
    """Told to stop: nothing that was started stays behind."""
    programs.end_all()
    os._exit(130)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        sys.exit(main())
    except Problem as problem:
        print(f"planted: {problem}", file=sys.stderr)
        sys.exit(2)
