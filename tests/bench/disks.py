"""ext4 and xfs on a loop device over a file of the real disk, with cold caches: what a transfer costs until it is durable."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import files
from harness import BINARY, Row, free_port

SYSTEMS = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}


class Disk:
    """A file system of its own, as large as asked for. It is gone with the bench."""

    def __init__(self, system, size_bytes):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="ccixfer-bench-disk-", dir="/var/tmp"))
        self.image, self.mount = self.directory / "image", self.directory / "mount"
        self.mount.mkdir()
        with open(self.image, "wb") as out:
            os.posix_fallocate(out.fileno(), 0, size_bytes)
        # Without the second cache of the file below: what is synced is on the disk, and what is read comes from there.
        self.device = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", self.image], capture_output=True, text=True, check=True).stdout.strip()
        try:
            subprocess.run([*SYSTEMS[system], self.device], check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["mount", self.device, self.mount], check=True)
        except BaseException:
            self.gone()
            raise

    def gone(self):
        subprocess.run(["umount", self.mount], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["losetup", "--detach", self.device], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


def forget_caches():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


class Peers:
    """A GridFTP server, an rsync daemon and a receiver that write to that disk."""

    def __init__(self, bench, mount):
        self.bench, self.mount = bench, mount
        self.root, self.other = mount / "root", mount / "other"
        for path in (self.root, self.other):
            path.mkdir()
            os.chmod(path, 0o777)
        os.chmod(mount, 0o777)
        os.chmod(mount.parent, 0o755)
        self.gridftp, self.rsyncd = free_port(), free_port()
        self.processes = [
            bench.spawn("globus-gridftp-server", "-aa", "-p", self.gridftp, "-data-interface", "127.0.0.1", "-anonymous-user", "root",
                        "-anonymous-names-allowed", "*", "-allow-root", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]
        conf = bench.directory / f"rsyncd-{mount.parent.name}.conf"
        conf.write_text(f"use chroot = no\nuid = root\ngid = root\n[dst]\npath = {self.other}\nread only = no\n")
        self.processes.append(bench.spawn("rsync", "--daemon", "--no-detach", f"--config={conf}", f"--port={self.rsyncd}", "--address=127.0.0.1"))
        for port in (self.gridftp, self.rsyncd):
            bench.wait_port(port)
        receiver, uris = bench.daemon(f"receiver at {mount}", "recv", "--root", self.root, "--listen", "127.0.0.1:0", "--insecure")
        self.processes.append(receiver)
        self.direct = next(u for u in uris if u.startswith("tcp"))

    def clean(self):
        for path in [path for root in (self.root, self.other) for path in root.iterdir()]:
            if path.name != ".ccixfer":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def rate(self, amount, *commands):
        """`amount` a second of commands, one after the other, all with cold caches at the start."""
        def measure():
            self.clean()
            forget_caches()
            start = time.monotonic()
            for command in commands:
                self.bench.output(*command)
            return amount / (time.monotonic() - start)
        return measure

    def end(self):
        for process in self.processes:
            self.bench.end(process)


def disk(bench, options):
    """One file of twice the size of the other rows, so that no cache holds it twice."""
    rows = []
    for system in SYSTEMS:
        size = int(options.size_gib * (1 << 31))
        on = Disk(system, 2 * size + (4 << 30))
        peers = None
        try:
            peers = Peers(bench, on.mount)
            source = on.mount / "src.dat"
            block = os.urandom(1 << 24)
            with open(source, "wb") as out:
                for offset in range(0, size, len(block)):
                    out.write(block[: size - offset])
            sync = ("sync", "-f", on.mount)
            amount = size / 1e6
            rates = bench.interleaved({
                "cp, sync": peers.rate(amount, ("cp", "--reflink=never", source, peers.other / "f"), sync),
                "GridFTP": peers.rate(amount, ("globus-url-copy", "-fast", f"file://{source}", f"ftp://127.0.0.1:{peers.gridftp}{peers.other}/f")),
                "GridFTP, sync": peers.rate(amount, ("globus-url-copy", "-fast", f"file://{source}", f"ftp://127.0.0.1:{peers.gridftp}{peers.other}/f"), sync),
                "ccixfer": peers.rate(amount, (BINARY, "send", "--insecure", "-q", source, peers.direct + "/f")),
            })
        finally:
            if peers:
                peers.end()
            on.gone()
        unit, ours = f"MB/s, one {2 * options.size_gib:g} GiB file, {system}, cold", rates["ccixfer"]
        rows += [Row("cp, then sync", rates["cp, sync"], unit), Row("GridFTP -fast, not durable", rates["GridFTP"], unit),
                 Row("ccixfer direct tcp", ours, unit, "GridFTP, then sync", ours / rates["GridFTP, sync"], at_least=1.0),
                 Row("ccixfer direct tcp, again", ours, unit, "cp, then sync", ours / rates["cp, sync"], at_least=1.0)]
    return rows


def disk_tree(bench, _):
    """60,000 small files on ext4, durable at both."""
    path, count, size = files.make_tree(bench)
    on = Disk("ext4", 3 * size + (4 << 30))
    peers = None
    try:
        peers = Peers(bench, on.mount)
        rates = bench.interleaved({
            "rsync --fsync": peers.rate(count, ("rsync", "-a", "--fsync", f"{path}/", f"rsync://127.0.0.1:{peers.rsyncd}/dst/t/")),
            "rsync": peers.rate(count, ("rsync", "-a", f"{path}/", f"rsync://127.0.0.1:{peers.rsyncd}/dst/t/")),
            "ccixfer": peers.rate(count, (BINARY, "send", "-a", "--insecure", "-q", f"{path}/", peers.direct + "/t/")),
        })
    finally:
        if peers:
            peers.end()
        on.gone()
        shutil.rmtree(path)
    unit, ours = f"files/s, tree of {count}, ext4", rates["ccixfer"]
    return [Row("rsync daemon, --no-fsync", rates["rsync"], unit), Row("rsync daemon, --fsync", rates["rsync --fsync"], unit),
            Row("ccixfer tree, direct tcp", ours, unit, "rsync daemon, --fsync", ours / rates["rsync --fsync"], at_least=1.0)]
