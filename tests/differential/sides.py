"""The two sides of a comparison: rsync as it is installed, and the ccixfer of this tree with its long-lived peers."""
import os
import pathlib
import re
import subprocess
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
BINARY = str(pathlib.Path(os.environ.get("CCIXFER", REPO / "build/release/ccixfer")).resolve())
PATIENCE_S = 60
ENVIRONMENT = {**os.environ, "LC_ALL": "C", "HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
ITEM = re.compile(rb"^(\*deleting  |[<>ch.][fdLDS][.+?cstTpoguaxn ]{9}) (.*)$", re.DOTALL)


class Broken(Exception):
    """The comparison could not be made."""


class RsyncBroke(Broken):
    """It ended with an error of its own."""


def run(command, cwd=None):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, env=ENVIRONMENT, cwd=cwd,
                          close_fds=False, check=False)
    return done.returncode, done.stdout, done.stderr


def has_option(name, help_text=[]):
    if not help_text:
        help_text.append(run([BINARY, "send", "--help"])[1].decode())
    return re.search(rf"(^|[\s,]){re.escape(name)}(?![\w-])", help_text[0]) is not None


class Peers:
    """A receiver below `root` and a server of `served`, for many short transfers."""

    def __init__(self, work: pathlib.Path):
        self.work = work
        self.root, self.served = work / "cx", work / "src"
        self.processes = []

    def __enter__(self):
        self.receiver = self.start("recv", "--root", str(self.root))
        self.server = self.start("send", "--serve", str(self.served))
        return self

    def start(self, *words):
        name = words[0]
        uri = self.work / f"{name}.uri"
        with open(self.work / f"{name}.log", "wb") as log:
            process = subprocess.Popen([BINARY, *words, "--insecure", "-q", "--listen", "127.0.0.1:0", "--uri-file", str(uri)],
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT)
        self.processes.append(process)
        deadline = time.monotonic() + PATIENCE_S
        while not (uri.exists() and uri.stat().st_size):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Broken(f"{name} does not begin: see {self.work}")
            time.sleep(0.01)
        return uri.read_text().split()[0]

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(PATIENCE_S)


def printable(name):
    """As core/base/printable.cc shows a name."""
    text = name.decode("utf-8", "surrogateescape")

    def harmful(c):
        value = ord(c)
        return value < 0x20 or 0x7f <= value <= 0x9f or 0x2028 <= value <= 0x202e or 0x2066 <= value <= 0x2069 or \
            0xd800 <= value <= 0xdfff

    if not any(harmful(c) for c in text):
        return name
    out = b""
    for c in text:
        data = c.encode("utf-8", "surrogateescape")
        out += b"".join(b"%%%02X" % byte for byte in data) if harmful(c) or c == "%" else data
    return out


def items_of_rsync(output):
    """The itemised lines, with names as ccixfer shows them."""
    lines = []
    for line in output.split(b"\n"):
        found = ITEM.match(line)
        if not found:
            continue
        letters, rest = found.groups()
        parts = re.split(rb"( -> | => )", rest, maxsplit=1) if letters[1:2] == b"L" or letters[:1] == b"h" else [rest]
        unescaped = [re.sub(rb"\\#(\d{3})", lambda m: bytes([int(m[1], 8)]), part) for part in parts]
        lines.append(letters + b" " + b"".join(printable(p) if i != 1 else p for i, p in enumerate(unescaped)))
    return sorted(lines)


def items_of_ccixfer(output):
    lines = []
    for line in output.split(b"\n"):
        if not line:
            continue
        if not ITEM.match(line):
            raise Broken(f"ccixfer prints a line that is no item: {line!r}")
        lines.append(b">" + line[1:] if line.startswith(b"<") else line)
    return sorted(lines)
