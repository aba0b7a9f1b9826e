"""Hosts in network namespaces, for end-to-end tests and the demo: real processes, real sockets, nothing outside this sandbox.

enter() re-executes the caller in fresh network, mount and process-name spaces, so that names never clash, nothing outlives the
run, and no root is needed where user namespaces are allowed. A Host is a network namespace; wire() joins two with a veth pair.
"""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import schema

REPO = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("CCIXFER", REPO / "build/release/ccixfer"))
PATIENCE_S = 120.0   # the longest any awaited event may take before the test fails (never a measure of success)


def enter():
    """Re-executes this program in its own namespaces (once)."""
    if os.environ.get("CCIXFER_LAB") == "1":
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        os.environ["XDG_STATE_HOME"] = "/run/state"   # of those that name none: what they write goes with the namespaces
        return
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    env = dict(os.environ, CCIXFER_LAB="1")
    os.execvpe("unshare", ["unshare", *user, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                           sys.executable, *sys.argv], env)


class Failure(Exception):
    """What a test found wrong."""


class Skipped(Exception):
    """What a test needs is not here: it was not tried, or not all of it."""


lacking = []   # what parts of the test that runs needed


def leave_out(words):
    """A part of a test cannot be tried here. The rest goes on; unless it fails, the test counts as skipped."""
    lacking.append(words)


def check(condition, words):
    if not condition:
        raise Failure(words)


def run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, **options)


def check_events(events, name):
    """Each is as app/report/events.schema.json promises scripts."""
    for event in events:
        wrong = schema.fault(event)
        check(wrong is None, f"{name}: an event that the schema does not have: {wrong}")


def events_of(text, name="a command"):
    """The events of a command that ran without a Process."""
    events = [json.loads(line) for line in text.splitlines()]
    check_events(events, name)
    return events


class Process:
    """A ccixfer process with --json. A thread takes its events as they come, so that no pipe ever fills and holds the process up."""

    def __init__(self, host, arguments, name, directory, env=None, prefix=(), stdin=subprocess.DEVNULL, cwd=None,
                 pass_fds=()):
        self.name = name
        self.events = []
        self.news = threading.Condition()
        self.ended = False
        self.stderr_path = directory / f"{name}.stderr"
        self.stderr_file = open(self.stderr_path, "w")
        self.command = [*(host.prefix if host else []), *prefix, str(BINARY), *[str(a) for a in arguments], "--json"]
        self.process = subprocess.Popen(self.command, stdin=stdin, stdout=subprocess.PIPE, stderr=self.stderr_file, cwd=cwd,
                                        env={**os.environ, **(env or {})}, pass_fds=pass_fds)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"event": "not JSON", "line": repr(line)}
            with self.news:
                self.events.append(event)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def wait_event(self, name, predicate=lambda event: True, patience_s=PATIENCE_S):
        deadline = time.monotonic() + patience_s
        seen = 0
        with self.news:
            while True:
                while seen < len(self.events):
                    event = self.events[seen]
                    seen += 1
                    if event["event"] == name and predicate(event):
                        return event
                if self.ended:
                    raise Failure(f"{self.name} ended before event '{name}': {self.tail()}")
                if not self.news.wait(deadline - time.monotonic()):
                    raise Failure(f"{self.name}: no event '{name}' came: {self.tail()}")

    def wait(self, patience_s=PATIENCE_S):
        with self.news:
            if not self.news.wait_for(lambda: self.ended, patience_s):
                self.process.kill()
                raise Failure(f"{self.name} did not end: {self.tail()}")
        code = self.process.wait(timeout=30)
        self.stderr_file.close()
        check(all(e["event"] != "not JSON" for e in self.events), f"{self.name}: something else than events: {self.events}")
        return code

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)

    def stop(self):
        """SIGTERM and the end."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.wait()

    def stderr(self):
        return self.stderr_path.read_text(errors="replace")

    def done(self):
        return next((e for e in reversed(self.events) if e["event"] == "done"), {})

    def tail(self):
        return f"{' '.join(self.command)}\nevents: {self.events[-3:]}\nstderr: {self.stderr()[-1500:]}"

    def peak_kib(self):
        """The most that was resident at any time up to now (VmHWM, KiB): the kernel keeps it, so no moment has to be met."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1])
        return 0


class Host:
    def __init__(self, lab, name):
        self.lab, self.name = lab, name
        run("ip", "netns", "add", name)
        self.prefix = ["ip", "netns", "exec", name]
        self.run("ip", "link", "set", "lo", "up")

    def run(self, *command):
        return run(*self.prefix, *command)


class Lan:
    """One network that several hosts share: a bridge in a namespace of its own."""

    def __init__(self, lab, name):
        self.lab, self.host = lab, lab.host(name)
        self.host.run("ip", "link", "add", "br0", "type", "bridge")
        self.host.run("ip", "link", "set", "br0", "up")

    def join(self, host, address):
        """Gives the name of the host's interface."""
        self.lab.links += 1
        inside, outside = f"l{self.lab.links}a", f"l{self.lab.links}b"
        run("ip", "link", "add", inside, "netns", host.name, "type", "veth", "peer", "name", outside, "netns", self.host.name)
        self.host.run("ip", "link", "set", outside, "master", "br0", "up")
        host.run("ip", "addr", "add", address, "dev", inside)
        host.run("ip", "link", "set", inside, "up")
        return inside


class Lab:
    """A scratch directory (on /dev/shm), hosts, and processes; everything ends with it."""

    def __init__(self, name):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"ccixfer-{name}-", dir="/dev/shm"))
        self.hosts, self.processes, self.links = {}, [], 0

    def __enter__(self):
        return self

    def __exit__(self, broken=None, *_):
        for process in self.processes:
            if process.process.poll() is None:
                process.process.kill()
                process.process.wait()
        for name in self.hosts:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)
        if broken is None:
            for process in self.processes:   # what was killed in the middle of a line has no event there
                check_events([event for event in process.events if event["event"] != "not JSON"], process.name)

    def host(self, name):
        self.hosts[name] = Host(self, name)
        return self.hosts[name]

    def wire(self, a, a_address, b, b_address):
        """Joins two hosts; addresses are like 10.0.0.1/24. Gives the two interface names."""
        self.links += 1
        a_name, b_name = f"l{self.links}a", f"l{self.links}b"
        run("ip", "link", "add", a_name, "netns", a.name, "type", "veth", "peer", "name", b_name, "netns", b.name)
        for host, interface, address in ((a, a_name, a_address), (b, b_name, b_address)):
            host.run("ip", "addr", "add", address, "dev", interface)
            host.run("ip", "link", "set", interface, "up")
        return a_name, b_name

    def file(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path

    def start(self, host, name, *arguments, **options):
        process = Process(host, arguments, f"{name}{len(self.processes)}", self.directory, **options)
        self.processes.append(process)
        return process

    def start_ready(self, host, name, *arguments, **options):
        process = self.start(host, name, *arguments, **options)
        process.uris = process.wait_event("ready")["uris"]
        return process


def device(name, ip, subnet, routers, port=0, autonomous_system=1, rate="10Gb/s", transport="tcp"):
    listed = ", ".join(f'"{r}"' for r in routers)
    return (f'[device.{name}]\ntransport = "{transport}"\nip = "{ip}"\nport = {port}\nas = {autonomous_system}\nsubnet = {subnet}\n'
            f'router = [{listed}]\nrate = "{rate}"\n')


class TwoSites(contextlib.AbstractContextManager):
    """Two facilities that use the same private network 10.0.0.0/24, joined by `borders` pairs of routers over a WAN.

    sender 10.0.0.2 (subnet 1) - west router(s) 10.0.0.1 | 192.0.2.x (subnet 9) | east router(s) 10.0.0.1 - receiver 10.0.0.2 (subnet 2)
    """

    def __init__(self, name, middle=0):
        self.lab = Lab(name)
        lab = self.lab
        self.sender, self.receiver = lab.host("sender"), lab.host("receiver")
        self.west, self.east = lab.host("west"), lab.host("east")
        lab.wire(self.sender, "10.0.0.2/24", self.west, "10.0.0.1/24")
        lab.wire(self.east, "10.0.0.1/24", self.receiver, "10.0.0.2/24")
        if middle:
            self.middle = lab.host("middle")
            lab.wire(self.west, "192.0.2.1/30", self.middle, "192.0.2.2/30")
            lab.wire(self.middle, "198.51.100.1/30", self.east, "198.51.100.2/30")
            west_wan, east_wan = ("192.0.2.1", 9, ["tcp://192.0.2.2:7000"]), ("198.51.100.2", 8, ["tcp://198.51.100.1:7000"])
            self.middle_config = lab.file("middle.toml", device("westward", "192.0.2.2", 9, [], 7000) + device("eastward", "198.51.100.1", 8, [], 7000))
        else:
            lab.wire(self.west, "192.0.2.1/30", self.east, "192.0.2.2/30")
            west_wan, east_wan = ("192.0.2.1", 9, ["tcp://192.0.2.2:7000"]), ("192.0.2.2", 9, ["tcp://192.0.2.1:7000"])
        self.sender_config = lab.file("sender.toml", device("lan", "10.0.0.2", 1, ["tcp://10.0.0.1:7000"]))
        self.receiver_config = lab.file("receiver.toml", device("lan", "10.0.0.2", 2, ["tcp://10.0.0.1:7000"], 7100))
        self.west_config = lab.file("west.toml", device("lan", "10.0.0.1", 1, [], 7000) + device("wan", west_wan[0], west_wan[1], west_wan[2], 7000))
        self.east_config = lab.file("east.toml", device("lan", "10.0.0.1", 2, [], 7000) + device("wan", east_wan[0], east_wan[1], east_wan[2], 7000))
        self.routers = []
        self.verbose = []

    def start_routers(self):
        self.west_router = self.start_router("west")
        if hasattr(self, "middle"):
            self.middle_router = self.start_router("middle")
        self.east_router = self.start_router("east")
        self.wait_routes()

    def start_router(self, name):
        router = self.lab.start_ready(getattr(self, name), name, "route", "-c", getattr(self, name + "_config"), "--insecure",
                                      *self.verbose)
        self.routers.append(router)
        return router

    def wait_routes(self):
        """Until the sender's side knows a way to the receiver's subnet: connects are retried, so nothing is to wait for here."""

    def receive(self, *options):
        self.root = self.lab.directory / "incoming"
        self.root.mkdir(exist_ok=True)
        return self.lab.start_ready(self.receiver, "recv", "recv", "--root", self.root, "-c", self.receiver_config, "--insecure", *options)

    def send(self, *arguments):
        return self.lab.start(self.sender, "send", "send", "-c", self.sender_config, "--insecure", *arguments)

    def __exit__(self, *arguments):
        self.lab.__exit__(*arguments)


class TwoRouters(contextlib.AbstractContextManager):
    """Two routers in parallel between two networks: sender 10.1.0.2 (subnet 1) - r1, r2 - receiver 10.2.0.2 (subnet 2).

    Router rN has 10.1.0.1N and 10.2.0.1N; r2 dials r1 in both networks.
    """

    def __init__(self, name):
        self.lab = Lab(name)
        lab = self.lab
        self.left, self.right = Lan(lab, "left"), Lan(lab, "right")
        self.sender, self.receiver = lab.host("sender"), lab.host("receiver")
        self.left.join(self.sender, "10.1.0.2/24")
        self.right.join(self.receiver, "10.2.0.2/24")
        self.hosts, self.configs, self.routers, self.right_interface = {}, {}, {}, {}
        for number in (1, 2):
            router = f"r{number}"
            self.hosts[router] = lab.host(router)
            self.left.join(self.hosts[router], f"10.1.0.1{number}/24")
            self.right_interface[router] = self.right.join(self.hosts[router], f"10.2.0.1{number}/24")
            self.configs[router] = lab.file(f"{router}.toml", self.config(number))
        both = [f"tcp://10.{{}}.0.1{number}:7000" for number in (1, 2)]
        self.sender_config = lab.file("sender.toml", device("lan", "10.1.0.2", 1, [uri.format(1) for uri in both]))
        self.receiver_config = lab.file("receiver.toml", device("lan", "10.2.0.2", 2, [uri.format(2) for uri in both], 7100))

    @staticmethod
    def config(number):
        peers = [[], []] if number == 1 else [["tcp://10.1.0.11:7000"], ["tcp://10.2.0.11:7000"]]
        return (device("left", f"10.1.0.1{number}", 1, peers[0], 7000) + device("right", f"10.2.0.1{number}", 2, peers[1], 7000))

    def start_routers(self):
        for name in self.configs:
            self.start_router(name)

    def start_router(self, name):
        self.routers[name] = self.lab.start_ready(self.hosts[name], name, "route", "-c", self.configs[name], "--insecure")
        return self.routers[name]

    def receive(self, *options):
        self.root = self.lab.directory / "incoming"
        self.root.mkdir(exist_ok=True)
        return self.lab.start_ready(self.receiver, "recv", "recv", "--root", self.root, "-c", self.receiver_config, "--insecure", *options)

    def send(self, *arguments):
        return self.lab.start(self.sender, "send", "send", "-c", self.sender_config, "--insecure", *arguments)

    def router_of_lane_0(self, sender):
        """Its name, and that of the other one."""
        node = sender.wait_event("session")["path"][0]["node"]
        used = next(name for name in self.configs if f"10.1.0.1{name[1]}:" in node)
        return used, next(name for name in self.configs if name != used)

    def known_to(self, router):
        """The devices of the routers that this one knows, as `ccixfer routes` prints them: a list for each router."""
        ended = subprocess.run([*self.hosts[router].prefix, str(BINARY), "routes", f"tcp://10.1.0.1{router[1]}:7000", "--insecure", "--json"],
                               capture_output=True, text=True, check=True, timeout=60)
        return [event["devices"] for event in map(json.loads, ended.stdout.splitlines()) if event["event"] == "router"]

    def await_known(self, router, wanted):
        """Until this router knows just these subnets of these routers: {"r1": {"1:1", "1:2"}}."""
        wanted = sorted(sorted(subnets) for subnets in wanted.values())
        deadline = time.monotonic() + PATIENCE_S
        while (known := sorted(sorted(device.split()[1].rstrip(",") for device in devices) for devices in self.known_to(router))) != wanted:
            check(time.monotonic() < deadline, f"{router} knows {known}, wanted {wanted}")
            time.sleep(0.1)

    def __exit__(self, *arguments):
        self.lab.__exit__(*arguments)


def routed(uris):
    return next(u for u in uris if u.startswith("cci://"))


def native(uris):
    return next(u for u in uris if not u.startswith("cci://"))


def same_tree(source, destination):
    """rsync's own opinion: an empty list means identical, to the checksum, mode, owner and nanosecond."""
    # without --modify-window=-1 rsync compares times in whole seconds
    listed = run("rsync", "-aHni", "--checksum", "--modify-window=-1", f"{source}/", f"{destination}/").stdout
    check(listed == "", f"trees differ:\n{listed[:2000]}")
    left = [p for p in pathlib.Path(destination).rglob("*") if not os.path.lexists(pathlib.Path(source) / p.relative_to(destination))
            and ".ccixfer" not in p.parts]
    check(not left, f"more than was sent: {left[:5]}")


def staged(root):
    """What stands in the staging directory of a root besides the history of its transfers."""
    directory = root / ".ccixfer"
    return sorted(path.name for path in directory.iterdir() if path.name != "history.jsonl") if directory.exists() else []


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def tree_bytes(path):
    return sum(p.stat().st_size for p in pathlib.Path(path).rglob("*") if p.is_file() and not p.is_symlink())


def big_file(path, size_bytes, seed=7):
    """Pseudo-random, incompressible, quick."""
    import random
    block = random.Random(seed).randbytes(1 << 20)
    with open(path, "wb") as file:
        for index in range(0, size_bytes, len(block)):
            file.write((index.to_bytes(8, "little") + block[8:])[: size_bytes - index])
    return path


def may_give_away():
    """Root of a user namespace of its own (enter()) knows no owner but itself."""
    maps = [pathlib.Path(f"/proc/self/{kind}_map").read_text().splitlines() for kind in ("uid", "gid")]
    return os.geteuid() == 0 and all(sum(int(line.split()[2]) for line in lines) > 1 << 15 for lines in maps)


def small_tree(path, files=300, seed=3):
    """Directories, links, odd names, modes, times before 1970 and with nanoseconds (all that is there), empty and multi-piece files.

    Where we may, some of it is given to others: a uid and a gid that are neither ours nor the same number.
    """
    import random
    rng = random.Random(seed)
    path.mkdir(parents=True)
    directories = [path]
    for index in range(files):
        if rng.random() < 0.1:
            parent = rng.choice(directories) / f"dir {index}\n'é"
            parent.mkdir()
            directories.append(parent)
        file = rng.choice(directories) / f"f{index}"
        file.write_bytes(rng.randbytes(rng.choice([0, 1, 17, 4095, 70000, 1 << 20])))
        if index % 10 == 3 and may_give_away():   # before the mode: chown takes setuid away
            os.chown(file, 1234, 2345)
        file.chmod(rng.choice([0o644, 0o600, 0o755, 0o444, 0o4711]))
    big_file(path / "large", (9 << 20) + 12345)
    big_file(path / "exactly four MiB", 4 << 20)
    big_file(path / "two pieces exactly", 8 << 20)
    os.symlink("f0", path / "link")
    os.symlink("/nowhere/at all", directories[-1] / "dangling")
    os.symlink(".", path / "loop")
    (path / os.fsdecode(b"not utf8 \xff\xfe")).write_bytes(b"x")
    (path / "empty dir").mkdir()
    if may_give_away():
        for entry in (path / "large", path / "link", path / "empty dir", *directories[1::3]):
            os.lchown(entry, 1234, 2345)
    for directory in reversed(directories):
        directory.chmod(rng.choice([0o755, 0o700, 0o2775, 0o555]))
    for entry in [*sorted(path.rglob("*")), path]:   # an odd number: a time that lost its last digits is never the same
        os.utime(entry, ns=(0, rng.randrange(-10**18, 2 * 10**18) | 1), follow_symlinks=False)
    return path
