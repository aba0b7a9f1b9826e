"""The tests as ./do mutants sees them: programs with cases, in the order of their nearness to a room, each run with a limit."""
import dataclasses
import hashlib
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOM = re.compile(r"^ccixfer_room\((\S+)([^)]*)\)", re.M)
TEST = re.compile(r"^ccixfer_test\((\S+) LABEL (\S+) ROOMS ([^)]*)\)", re.M)
MEMORY_BYTES = 12 << 30   # a mutant that takes memory without end stops here
SCRIPTS = ("e2e", "rdma")   # their cases are run by tests/NAME/run.py
STAGES = ("room", "unit", "contract", "sim", "e2e")  # unit tests of the room; those of the rooms right on it; then by ctest's labels


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    stage: str
    rooms: tuple   # those it is about, nearest first; all that it links: Tests.linked


@dataclasses.dataclass(frozen=True)
class Case:
    program: Program
    name: str


class Tests:
    def __init__(self, tree, folder, scratch, seeds):
        self.tree, self.folder, self.scratch = tree, folder, scratch
        self.seeds = seeds
        self.beneath = {}   # room: the rooms it links
        self.programs = []
        layers = (tree / "tests/layers.txt").read_text().splitlines()
        self.on_all = {line.partition(":")[0] for line in layers if line.partition(":")[2].strip() == "*"}  # near to no room
        for path in sorted(tree.rglob("CMakeLists.txt")):
            if "build" in path.relative_to(tree).parts:
                continue
            text = path.read_text()
            for name, rest in ROOM.findall(text):
                rooms = re.search(r"\bROOMS\b(.*?)(\bDEPS\b|$)", rest, re.S)
                self.beneath[name] = rooms.group(1).split() if rooms else []
            for folder_name, label, rooms in TEST.findall(text):
                self.programs.append(Program(folder_name.replace("/", "_"), label, tuple(rooms.split())))

    def linked(self, rooms):
        found, open_rooms = set(), list(rooms)
        while open_rooms:
            room = open_rooms.pop()
            if room not in found:
                found.add(room)
                open_rooms += self.beneath.get(room, [])
        return found

    def near(self, room):
        """The programs that can reach a room, nearest first; of the unit tests those of the room and of the rooms right on it."""
        able = [p for p in self.programs if room in self.linked(p.rooms) and p.stage in STAGES]
        direct = [p for p in able if p.stage != "unit" or room in p.rooms or (room in self.beneath.get(p.rooms[0], ()) and p.rooms[0] not in self.on_all)]
        return sorted(direct, key=lambda p: (STAGES.index(self.stage(p, room)), p.rooms.index(room) if room in p.rooms else 0))

    @staticmethod
    def stage(program, room):
        return "room" if program.stage == "unit" and room in program.rooms else program.stage

    def targets(self, rooms, stages):
        names = {p.name for room in rooms for p in self.near(room) if self.stage(p, room) in stages}
        return sorted(names) + (["ccixfer"] if "e2e" in stages and self.end_to_end() else [])

    def cases(self, program):
        if program.stage == "e2e":
            return self.end_to_end()
        run = subprocess.run([str(self.folder / "tests" / program.name), "--list-test-names-only"], cwd=self.tree, capture_output=True, text=True)
        return [Case(program, line) for line in run.stdout.splitlines() if line]

    def version(self, program):
        """Changes when what the program does may have changed."""
        files = [self.folder / "tests" / program.name]
        if program.stage == "e2e":
            files = [self.folder / "ccixfer", *sorted((self.tree / "tests/e2e").glob("*.py"))]
        return hashlib.sha256(str(self.seeds).encode() + b"".join(f.read_bytes() for f in files)).hexdigest()[:16]

    def end_to_end(self):
        program = Program("e2e", "e2e", ())
        names = []
        for path in sorted((self.tree / "tests/e2e").glob("test_*.py")):
            names += re.findall(r"^def (test_\w+)", path.read_text(), re.M)
        return [Case(program, name) for name in names]

    def in_machine(self):
        """Cases of tests/rdma, which the emulated machine runs."""
        folder = self.tree / "tests/rdma/cases"
        names = sorted(path.name for path in folder.iterdir() if path.name != "lib") if folder.exists() else []
        return [Case(Program("rdma", "rdma", ()), name) for name in names]

    def run(self, cases, limit_s, mutant=None, reached=None, more=None, memory_bytes=MEMORY_BYTES):
        """Runs cases of one program. (green, seconds, words)."""
        program = cases[0].program
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        environment = {**os.environ, "TMPDIR": str(folder), "CCIXFER_SIM_SEEDS": str(self.seeds), **(more or {})}
        environment.pop("CCIXFER_MUTANT", None)
        environment.pop("CCIXFER_MUTANTS_REACHED", None)
        if mutant is not None:
            environment["CCIXFER_MUTANT"] = str(mutant)
        if reached is not None:
            environment["CCIXFER_MUTANTS_REACHED"] = str(reached)
        if program.name in SCRIPTS:
            command = [sys.executable, str(self.tree / "tests" / program.name / "run.py"), *[c.name for c in cases]]
        else:
            names = folder / "cases"
            names.write_text("".join(c.name.replace("\\", "\\\\").replace(",", "\\,") + "\n" for c in cases))
            command = [str(self.folder / "tests" / program.name), "--abort", "-f", str(names)]
        start = time.monotonic()
        output = open(folder / "output", "w+", errors="replace")
        process = subprocess.Popen(command, cwd=self.tree, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   start_new_session=True, preexec_fn=(lambda: limits(None if program.name in SCRIPTS else memory_bytes)))
        running.add(process.pid)
        try:
            code = process.wait(timeout=limit_s)
            words = "" if code == 0 else self.words(program, output, code)
        except subprocess.TimeoutExpired:
            code, words = -1, f"no end in {limit_s:.0f} s"
        finally:
            end(process.pid)  # also what it left behind
            process.wait()
            running.discard(process.pid)
            output.close()
            shutil.rmtree(folder, ignore_errors=True)
        return code == 0, time.monotonic() - start, words

    def words(self, program, output, code):
        output.seek(0)
        text = output.read()[-200000:]
        if program.name in SCRIPTS:
            found = re.search(r"^FAILED (\S+)", text, re.M)
        else:
            found = re.search(r"^-{40,}\n(.+)\n", text, re.M)
        return found.group(1) if found else f"exit code {code}: {text.strip()[-200:]}"


running = set()   # process groups


def end(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end_all():
    for group in list(running):
        end(group)


def limits(memory_bytes):
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    if memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
