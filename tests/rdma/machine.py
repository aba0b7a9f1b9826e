"""Boots the emulated machine, follows what its cases report, and judges it. It never waits longer than it was told to.

The machine has two serial ports: the kernel's messages go to a file, the reports of /init (see there) come through a pipe. Whatever
happens, the emulator has ended when run() returns; it is ended by its process id.
"""
import os
import pathlib
import selectors
import subprocess
import time

import image

READY_LIMIT_S = 90  # to boot; takes about five seconds on a machine that is idle


class Case:
    def __init__(self, name, limit_s):
        self.name = name
        self.limit_s = limit_s
        self.code = None  # its exit code
        self.seconds = 0.0
        self.lines = []


def emulator(kernel, ram_disk, cases, console, sample=0, memory_mib=1536):
    """The command that boots the machine and has it run these cases. `sample`: by which they choose what to try, where they do."""
    asked = ",".join(f"{case.name}:{case.limit_s}" for case in cases)
    return [
        image.program_path("qemu-system-x86_64"), "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", str(memory_mib),
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
        "-serial", f"file:{console}", "-serial", "stdio",
        "-kernel", str(kernel), "-initrd", str(ram_disk), "-append", f"console=ttyS0 quiet panic=-1 sample={sample} cases={asked}",
    ]  # fmt: skip


class Machine:
    def __init__(self, command, cases, console, limit_s, ready_limit_s=READY_LIMIT_S):
        self.command = command
        self.cases = {case.name: case for case in cases}
        self.console = pathlib.Path(console)
        self.limit_s = limit_s
        self.ready_limit_s = min(ready_limit_s, limit_s)
        self.ready = self.done = False
        self.current = None
        self.said = None  # by @failed
        self.other = []  # lines outside of any case

    def run(self, tell=lambda line: None):
        """None if the machine booted and every case ended; else why not, in words. Exit codes are left to the caller."""
        process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            return self._follow(process, tell)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def _follow(self, process, tell):
        start = time.monotonic()
        stop = start + self.limit_s
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not self.done:
                now = time.monotonic()
                until = stop if self.ready else start + self.ready_limit_s
                if now >= until:
                    return self._too_long()
                if not selector.select(until - now):
                    continue
                data = os.read(process.stdout.fileno(), 65536)
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._line(line.decode(errors="replace").rstrip("\r"), time.monotonic() - start, tell)
        if self.done:
            return None
        if self.said:
            return f"the machine gave up: {self.said}\n{self._last_words()}"
        where = f"in the case {self.current.name}" if self.current else ("between two cases" if self.ready else "while it booted")
        return f"the machine ended {where}\n{self._last_words()}"

    def _too_long(self):
        if not self.ready:
            return f"the machine did not boot within {self.ready_limit_s} s\n{self._last_words()}"
        where = f", in the case {self.current.name}" if self.current else ""
        return f"the machine was not done within {self.limit_s} s{where}\n{self._last_words()}"

    def _last_words(self):
        kernel = self.console.read_text(errors="replace").splitlines()[-15:] if self.console.exists() else []
        return "\n".join(["  its last messages:", *("    " + line for line in [*self.other[-10:], *kernel])])

    def _line(self, line, seconds, tell):
        word, _, words = line.partition(" ")
        if word == "@ready":
            self.ready = True
            tell(f"booted ({seconds:.1f} s)")
        elif word == "@begin" and words in self.cases:
            self.current = self.cases[words]
            self.current.seconds = -seconds
        elif word == "@end" and self.current is not None and words.startswith(self.current.name + " "):
            self.current.code = int(words.rpartition(" ")[2])
            self.current.seconds += seconds
            tell(verdict(self.current))
            self.current = None
        elif word == "@done":
            self.done = True
        elif word == "@failed":
            self.said = words
        elif self.current is not None:
            self.current.lines.append(line)
            if line.startswith("figure: "):
                tell("    " + line.removeprefix("figure: "))
        else:
            self.other.append(line)


def verdict(case):
    if case.code is None:
        return f"FAILED {case.name}: it did not end"
    if case.code == 0:
        return f"ok     {case.name} ({case.seconds:.1f} s)"
    why = f"not within {case.limit_s} s" if case.code in (124, 137, 143) and case.seconds >= case.limit_s else f"exit code {case.code}"
    return "\n".join([f"FAILED {case.name}: {why}", *("    " + line for line in case.lines[-150:])])
