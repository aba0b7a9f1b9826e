"""Files: GridFTP -fast (no encryption), an rsync daemon, ccixfer direct and through one router. The whole command, start to exit."""
import json
import os
import shutil
import subprocess
import time

from harness import BINARY, Row, free_port

PIECE = 4 << 20
POOL_MIB = 256   # the configured pool of receiver and router: the default


class Peers:
    def __init__(self, bench):
        self.bench = bench
        self.destination = bench.directory / "dst"
        self.far_destination = bench.directory / "far"   # a root belongs to one receiver
        self.roots = []
        os.chmod(bench.directory, 0o777)
        for path in (self.destination, self.far_destination):
            self.add_root(path)
        self.start_others()
        self.start_ccixfer()

    def start_others(self):
        bench = self.bench
        self.gridftp, self.rsyncd = free_port(), free_port()
        log = bench.directory / "gridftp.log"
        log.touch()
        bench.spawn("globus-gridftp-server", "-aa", "-p", self.gridftp, "-data-interface", "127.0.0.1", "-l", log, "-anonymous-user", "nobody",
                    "-anonymous-group", "nogroup", "-anonymous-names-allowed", "*", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        conf = bench.directory / "rsyncd.conf"
        conf.write_text(f"use chroot = no\nuid = root\ngid = root\n[dst]\npath = {self.destination}\nread only = no\n")
        bench.spawn("rsync", "--daemon", "--no-detach", f"--config={conf}", f"--port={self.rsyncd}", "--address=127.0.0.1")
        for port in (self.gridftp, self.rsyncd):
            bench.wait_port(port)

    def start_ccixfer(self):
        bench = self.bench
        _, uris = bench.daemon("receiver", "recv", "--root", self.destination, "--listen", "127.0.0.1:0", "--insecure")
        self.direct = next(u for u in uris if u.startswith("tcp"))
        ports = [free_port() for _ in range(3)]

        def device(name, ip, port, subnet, router):
            listed = f'"tcp://{router}"' if router else ""
            return (f'[device.{name}]\ntransport = "tcp"\nip = "{ip}"\nport = {port}\nas = 1\nsubnet = {subnet}\nrouter = [{listed}]\nrate = "40Gb/s"\n')

        directory = bench.directory
        (directory / "router.toml").write_text(device("a", "127.0.0.2", ports[0], 1, "") + device("b", "127.0.0.3", ports[1], 2, ""))
        (directory / "sender.toml").write_text(device("a", "127.0.0.1", 0, 1, f"127.0.0.2:{ports[0]}"))
        (directory / "receiver.toml").write_text(device("b", "127.0.0.1", ports[2], 2, f"127.0.0.3:{ports[1]}"))
        self.router, _ = bench.daemon("router", "route", "-c", directory / "router.toml", "--insecure")
        _, uris = bench.daemon("routed receiver", "recv", "--root", self.far_destination, "-c", directory / "receiver.toml", "--insecure")
        self.routed = next(u for u in uris if u.startswith("cci"))

    def add_root(self, path):
        path.mkdir()
        os.chmod(path, 0o777)
        self.roots.append(path)
        return path

    def clean(self):
        for path in [path for root in self.roots for path in root.iterdir()]:
            if path.name != ".ccixfer":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def rate(self, amount, size_bytes, *command):
        """`amount` a second of a command that writes so many bytes of files."""
        def measure():
            self.clean()
            self.bench.warm_memory(size_bytes + size_bytes // 2)
            start = time.monotonic()
            self.bench.output(*command)
            return amount / (time.monotonic() - start)
        return measure


def peers_of(bench):
    if not hasattr(bench, "file_peers"):
        bench.file_peers = Peers(bench)
    return bench.file_peers


def make_file(bench, options):
    """One large file: its place and size."""
    source = bench.directory / "src.dat"
    size = int(options.size_gib * (1 << 30))
    block = os.urandom(1 << 24)
    with open(source, "wb") as out:
        for offset in range(0, size, len(block)):
            out.write(block[: size - offset])
    os.chmod(source, 0o644)
    return source, size


def file(bench, options):
    peers = peers_of(bench)
    source, size = make_file(bench, options)
    amount = size / 1e6
    rates = bench.interleaved({
        "GridFTP -fast": peers.rate(amount, size, "globus-url-copy", "-fast", f"file://{source}", f"ftp://127.0.0.1:{peers.gridftp}{peers.destination}/f"),
        "ccixfer direct": peers.rate(amount, size, BINARY, "send", "--insecure", "-q", source, peers.direct + "/f"),
        "ccixfer, one router": peers.rate(amount, size, BINARY, "send", "--insecure", "-q", "-c", bench.directory / "sender.toml", source, peers.routed + "/f"),
        "rsync daemon": peers.rate(amount, size, "rsync", "-W", "--inplace", source, f"rsync://127.0.0.1:{peers.rsyncd}/dst/"),
        "cp": peers.rate(amount, size, "cp", source, peers.destination / "f"),
    })
    source.unlink()
    peers.clean()
    unit = f"MB/s, one {options.size_gib:g} GiB file"
    direct = rates["ccixfer direct"]
    rows = [Row("GridFTP -fast", rates["GridFTP -fast"], unit), Row("rsync daemon", rates["rsync daemon"], unit),
            Row("ccixfer direct tcp", direct, unit, "GridFTP", direct / rates["GridFTP -fast"], at_least=1.6),
            Row("ccixfer direct tcp, again", direct, unit, "cp", direct / rates["cp"], at_least=0.92),
            Row("ccixfer through one router", rates["ccixfer, one router"], unit, "direct", rates["ccixfer, one router"] / direct, at_least=0.6)]
    for name in ("receiver", "router", "routed receiver"):
        peak_mib = bench.watches[name].peak_kib / 1024
        rows.append(Row(f"peak RssAnon, {name}", peak_mib, "MiB", f"pool {POOL_MIB} + 64 MiB", peak_mib / (POOL_MIB + 64), at_most=1.0))
    return rows


def changed(bench, options):
    """A hundredth of the pieces of a large file has changed. What rsync writes is not synced; what it would cost is not its fault."""
    peers = peers_of(bench)
    source, size = make_file(bench, options)
    times = iter(range(10**9, 2 * 10**9))
    pieces, shares = size // PIECE, []

    def change():
        with open(source, "r+b") as file:
            for piece in range(0, pieces, 100):
                file.seek(piece * PIECE + 1000)
                file.write(os.urandom(8))
        os.utime(source, (next(times),) * 2)

    def run(*command):
        def measure():
            change()
            bench.warm_memory(size + size // 2)
            start = time.monotonic()
            output = bench.output(*command)
            seconds = time.monotonic() - start
            if command[0] == BINARY:
                done = json.loads(output.splitlines()[-1])
                shares.append(done["bytes_sent"] / size)
            return 1 / seconds
        return measure

    ours = [BINARY, "send", "-a", "--insecure", "--json", source, peers.direct + "/ours"]
    theirs = ["rsync", "-a", "--no-whole-file", source, f"rsync://127.0.0.1:{peers.rsyncd}/dst/theirs"]
    bench.output(*ours)
    bench.output(*theirs)
    shares.clear()
    rates = bench.interleaved({"ccixfer direct": run(*ours), "rsync daemon": run(*theirs)})
    source.unlink()
    peers.clean()
    unit = f"times a second, {options.size_gib:g} GiB file, 1 % changed"
    return [Row("rsync daemon, changed file", rates["rsync daemon"], unit),
            Row("ccixfer, changed file", rates["ccixfer direct"], unit, "rsync daemon", rates["ccixfer direct"] / rates["rsync daemon"], at_least=5),
            Row("ccixfer, changed file, sent", max(shares), "of its size", at_most=0.02)]


def make_tree(bench):
    """/usr/share, as often as it takes: its place, and how many files and bytes it has."""
    path = bench.directory / "tree"
    subprocess.run(["cp", "-a", "/usr/share", path], check=True)
    count = sum(len(files) for _, _, files in os.walk(path))
    index = 0
    while count < 60_000:   # as many files as the figure is stated for, whatever this machine's /usr/share holds
        subprocess.run(["cp", "-a", "/usr/share/doc", path / f"more-{index}"], check=True)
        count, index = sum(len(files) for _, _, files in os.walk(path)), index + 1
    size = int(subprocess.run(["du", "-s", "-B1", path], capture_output=True, text=True, check=True).stdout.split()[0])
    return path, count, size


def tree(bench, _):
    peers = peers_of(bench)
    path, count, size = make_tree(bench)
    rates = bench.interleaved({
        "rsync daemon": peers.rate(count, size, "rsync", "-a", f"{path}/", f"rsync://127.0.0.1:{peers.rsyncd}/dst/t/"),
        "cp -a": peers.rate(count, size, "cp", "-a", f"{path}/", peers.destination / "t"),
        "ccixfer direct": peers.rate(count, size, BINARY, "send", "-a", "--insecure", "-q", f"{path}/", peers.direct + "/t/"),
    })
    rows = tree_rows(count, rates, "rsync daemon", 2.0)
    unit, ours = rows[0].unit, rates["ccixfer direct"]
    rows.append(Row("ccixfer direct tcp, again", ours, unit, "cp -a", ours / rates["cp -a"], at_least=0.95))

    def once_more(*command):
        """Both destinations have the tree already."""
        def measure():
            start = time.monotonic()
            bench.output(*command)
            return count / (time.monotonic() - start)
        return measure

    peers.clean()
    unchanged = bench.interleaved({
        "rsync daemon": once_more("rsync", "-a", f"{path}/", f"rsync://127.0.0.1:{peers.rsyncd}/dst/by-rsync/"),
        "ccixfer direct": once_more(BINARY, "send", "-a", "--insecure", "-q", f"{path}/", peers.direct + "/by-ccixfer/"),
    })
    shutil.rmtree(path)
    peers.clean()
    ratio = unchanged["ccixfer direct"] / unchanged["rsync daemon"]
    return [*rows, Row("ccixfer, nothing changed", unchanged["ccixfer direct"], unit, "rsync daemon, nothing changed", ratio, at_least=2.0)]


def tree_rows(count, rates, peer, at_least):
    unit, ours = f"files/s, tree of {count}", rates["ccixfer direct"]
    return [Row(peer, rates[peer], unit), Row("ccixfer direct tcp", ours, unit, peer, ours / rates[peer], at_least=at_least)]


def make_small_files(path, count):
    """Files of 4 KiB in directories of 1,000."""
    content = os.urandom(4096)
    for number in range(count):
        if number % 1000 == 0:
            directory = path / f"{number // 1000:06}"
            directory.mkdir(parents=True)
        (directory / f"{number:07}").write_bytes(content)


def million(bench, _):
    """Whether a large tree goes as fast as a small one of the same files."""
    peers = peers_of(bench)
    rates = {}
    for count, turns in ((60_000, 5), (1_000_000, 1)):
        path = bench.directory / f"files-{count}"
        make_small_files(path, count)
        measures = {str(count): peers.rate(count, count * 4096, BINARY, "send", "-a", "--insecure", "-q", f"{path}/", peers.direct + "/t/")}
        rates.update(bench.interleaved(measures, turns_a_round=turns))
        shutil.rmtree(path)
        peers.clean()
    small, large = rates["60000"], rates["1000000"]
    unit = "files/s, files of 4 KiB"
    return [Row("ccixfer, 60,000 files", small, unit), Row("ccixfer, 1,000,000 files", large, unit, "60,000 files", large / small, at_least=0.9)]
