"""Builds what the emulated machine boots: Debian's stock kernel, and an initial RAM disk with its modules and programs.

Everything lies below build/rdma. The kernel is downloaded once, with apt-get, and kept; what comes from the project is packed anew
for each boot. Failures are raised as Failure, with words for the person who runs the test.
"""
import os
import pathlib
import re
import shutil
import stat
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / "build/rdma"
HERE = pathlib.Path(__file__).resolve().parent
MODULES = ["rdma_rxe", "ib_uverbs", "rdma_ucm", "veth", "crc32c_generic", "crc32_generic"]
STOCK_PROGRAMS = ["ip", "rdma", "ibv_devices", "ibv_rc_pingpong", "ib_write_bw", "ib_read_bw", "rping"]
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class Failure(Exception):
    pass


def call(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def program_path(name):
    path = shutil.which(name, path=SYSTEM_PATH)
    if path is None:
        raise Failure(f"no program {name}: ./do test-rdma installs the packages that it needs")
    return path


class Archive:
    """An uncompressed cpio archive ("newc"), as the kernel unpacks it at boot. Everything in it belongs to root, whoever made it."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.names = set()

    def _entry(self, name, mode, data):
        fields = [len(self.names) + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self.file.write(head + b"\0" * (-len(head) % 4))
        self.file.write(data)
        self.file.write(b"\0" * (-len(data) % 4))

    def directory(self, name):
        if not name or name in self.names:
            return
        self.directory(os.path.dirname(name))
        self.names.add(name)
        self._entry(name, stat.S_IFDIR | 0o755, b"")

    def add(self, name, data, mode=0o755):
        name = name.lstrip("/")
        if name in self.names:
            return
        self.directory(os.path.dirname(name))
        self.names.add(name)
        self._entry(name, stat.S_IFREG | mode, data)

    def program(self, source, name=None):
        """A program or library, with the shared libraries that it needs, each at the place where it is on this host."""
        source = pathlib.Path(source)
        self.add(name or str(source), source.read_bytes())
        for library in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", source], capture_output=True, text=True).stdout):
            self.add(library, pathlib.Path(library).read_bytes())

    def close(self):
        self._entry("TRAILER!!!", 0, b"")
        self.file.close()


def kernel():
    """The unpacked kernel package: one that is there, or else the newest of Debian."""
    for complete in sorted(CACHE.glob("linux-image-*/complete")):
        return complete.parent
    depends = re.search(r"Depends: (linux-image-\S+)", call("apt-cache", "depends", "linux-image-amd64"))
    if depends is None:
        raise Failure("apt knows no kernel linux-image-amd64: is this Debian on amd64, and has apt-get update run?")
    package = depends.group(1)
    target = CACHE / package
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    call("apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", package, cwd=target)
    for deb in target.glob("*.deb"):
        call("dpkg-deb", "-x", deb, target)
        deb.unlink()
    call(program_path("depmod"), "-b", target, package.removeprefix("linux-image-"))
    (target / "complete").touch()
    return target


def modules_in_load_order(tree):
    """The files of MODULES and of what these depend on, each behind what it depends on."""
    needs = {}
    for line in (tree / "modules.dep").read_text().splitlines():
        name, _, others = line.partition(":")
        needs[name] = others.split()
    order = []
    for module in MODULES:
        found = [name for name in needs if name.endswith(f"/{module}.ko")]
        if not found:
            raise Failure(f"the kernel has no module {module}")
        for name in [*reversed(needs[found[0]]), found[0]]:
            if name not in order:
                order.append(name)
    return order


def make(programs):
    """The kernel and the RAM disk to boot. `programs`: name in the machine's /bin -> file on this host."""
    CACHE.mkdir(parents=True, exist_ok=True)
    unpacked = kernel()
    tree = next((unpacked / "lib/modules").iterdir())
    order = modules_in_load_order(tree)
    archive = Archive(CACHE / "machine.cpio")
    for name in ("dev", "proc", "sys", "tmp", "run", "root"):
        archive.directory(name)
    archive.add("init", (HERE / "init").read_bytes())
    archive.add("bin/busybox", pathlib.Path(program_path("busybox")).read_bytes())
    for module in order:
        archive.add("modules/" + os.path.basename(module), (tree / module).read_bytes())
    archive.add("modules/order", "".join(os.path.basename(module) + "\n" for module in order).encode(), 0o644)
    for name in STOCK_PROGRAMS:
        archive.program(program_path(name), "bin/" + name)
    for driver in pathlib.Path("/usr/lib").glob("*/libibverbs/librxe-rdmav*.so"):
        archive.program(driver)
    archive.add("etc/libibverbs.d/rxe.driver", pathlib.Path("/etc/libibverbs.d/rxe.driver").read_bytes(), 0o644)
    archive.add("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n", 0o644)
    archive.add("etc/group", b"root:x:0:\n", 0o644)
    for path in sorted((HERE / "cases").iterdir()):
        archive.add("cases/" + path.name, path.read_bytes())
    for name, path in programs.items():
        archive.program(path, "bin/" + name)
    archive.close()
    return next((unpacked / "boot").glob("vmlinuz-*")), CACHE / "machine.cpio"
