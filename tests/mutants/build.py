"""Builds the private copy. A mutant whose guard the compiler refuses is taken out, by itself, and the rest goes on."""
import os
import pathlib
import re
import shlex
import subprocess

import weave

ERROR = re.compile(r"^(?:In file included from )?(\S+?):(\d+)(?::\d+)?: (?:fatal )?error:", re.M)
FLAGS = "-O1 -w -Wno-narrowing -fpermissive -D_GLIBCXX_ASSERTIONS"


class BuildFailed(Exception):
    pass


class Builder:
    def __init__(self, root, tree, targets, jobs):
        self.root, self.tree, self.targets, self.jobs = root, tree, targets, jobs
        self.folder = tree / "build/release"  # where the end-to-end tests look for the program

    def configure(self):
        if (self.folder / "build.ninja").exists():
            return
        run = subprocess.run(["cmake", "-S", str(self.tree), "-B", str(self.folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                              f"-DCMAKE_CXX_FLAGS_DEBUG={FLAGS}"], capture_output=True, text=True)
        if run.returncode:
            raise BuildFailed(run.stdout + run.stderr)

    def ninja(self, keep_going=True):
        command = ["ninja", "-C", str(self.folder), "-j", str(self.jobs), *(["-k", "0"] if keep_going else []), *self.targets]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})

    def build(self, numbered_by_file):
        """Weaves, builds, takes out what does not build. Returns the numbers of those that do not."""
        broken = set()
        self.write(numbered_by_file, broken)
        self.configure()
        for _ in range(40):
            run = self.ninja()
            if run.returncode == 0:
                return broken
            found = self.blame(run.stdout + run.stderr, numbered_by_file, broken)
            if not found:
                raise BuildFailed((run.stdout + run.stderr)[-6000:])
            broken |= found
            self.write(numbered_by_file, broken)
        raise BuildFailed("mutants that do not build are found again and again")

    def write(self, numbered_by_file, without):
        weave.write(self.root, self.tree, {f: [(n, s) for n, s in sites if n not in without] for f, sites in numbered_by_file.items()})

    def blame(self, output, numbered_by_file, broken):
        """Which mutants the compiler's errors are about: those on the lines it names; of several on a line each is tried alone."""
        suspects = {}
        lines_of = {}
        for name, line in ERROR.findall(output):
            path = pathlib.Path(name)
            path = path if path.is_absolute() else self.folder / path
            try:
                file = str(path.resolve().relative_to(self.tree.resolve()))
            except ValueError:
                continue
            lines_of.setdefault(file, set()).add(int(line))
        for block in output.split("FAILED: ")[1:]:  # an error in a template of the library: the lines that led there
            for name, line in re.findall(r"^(\S+?):(\d+):\d+:\s+required from", block, re.M):
                path = pathlib.Path(name)
                path = path if path.is_absolute() else self.folder / path
                if path.resolve().is_relative_to(self.tree.resolve()):
                    lines_of.setdefault(str(path.resolve().relative_to(self.tree.resolve())), set()).add(int(line))
        for file, lines in lines_of.items():
            source = None
            for number, site in numbered_by_file.get(file, []):
                if number in broken:
                    continue
                if source is None:
                    source = (self.root / file).read_bytes()
                first = source.count(b"\n", 0, site.start) + 1
                last = source.count(b"\n", 0, site.end) + 1
                if any(first <= line <= last for line in lines):
                    suspects.setdefault(file, []).append((number, site, last - first))
        found = set()
        for file, listed in suspects.items():
            if len(listed) == 1:
                found.add(listed[0][0])
                continue
            alone = self.each_alone(file, [(n, s) for n, s, _ in listed])
            found |= alone if alone else {min(listed, key=lambda item: item[2])[0]}
        return found

    def each_alone(self, file, suspects):
        """Those of the suspects with which alone the file does not compile (a header: a file that includes it alone)."""
        command = self.syntax_command(file)
        found = set()
        source = (self.root / file).read_bytes()
        target = self.tree / file
        whole = target.read_bytes()
        try:
            for number, site in suspects:
                target.write_bytes(weave.with_include(weave.woven(source, [(number, site)])))
                if subprocess.run(command, cwd=self.folder, capture_output=True, shell=True).returncode:
                    found.add(number)
        finally:
            target.write_bytes(whole)
        return found

    def syntax_command(self, file):
        flags = f"{FLAGS} -std=c++20 -I{shlex.quote(str(self.tree))} -DBOOST_ASIO_SEPARATE_COMPILATION -DBOOST_ASIO_DISABLE_CO_AWAIT " \
                "-DSPDLOG_FMT_EXTERNAL -DSPDLOG_COMPILED_LIB"
        return f"g++ -x c++ {flags} -fsyntax-only {shlex.quote(str(self.tree / file))}"
