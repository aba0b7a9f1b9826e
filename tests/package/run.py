#!/usr/bin/env python3
"""The Debian package in a fresh root: run.py PACKAGE.deb [ROOT.tar]. Installed by apt, used, upgraded while a transfer goes through its
router, removed and purged. Needs root, mmdebstrap and a Debian mirror, as apt of this host has it. ROOT.tar is what
`mmdebstrap --variant=apt` made earlier, in place of a root that is made now.

systemd is not the first process of a chroot, so the maintainer scripts meet a double of systemctl (beside this file), which starts and
stops units by their own lines. Everything but apt's downloads is in a network of its own.
"""
import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
SIZE = 256 * MIB
RATE = "16MB/s"                          # the transfer lasts longer than a router may drain
SENDER, ROUTER_1, ROUTER_2, RECEIVER = "10.9.1.2", "10.9.1.1", "10.9.2.1", "10.9.2.2"
NOT_INTERACTIVE = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                   "HOME": "/root"}


class Failure(Exception):
    pass


def check(condition, words):
    if not condition:
        raise Failure(words)


def say(words):
    print(f"package: {words}", flush=True)


class Root:
    """A root directory, and commands in it."""

    def __init__(self, path):
        self.path = path

    def command(self, *arguments, user=None):
        account = [] if user is None else ["runuser", "-u", user, "--"]
        return ["chroot", str(self.path), *account, *(str(a) for a in arguments)]

    def try_run(self, *arguments, user=None):
        return subprocess.run(self.command(*arguments, user=user), env=NOT_INTERACTIVE, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)

    def run(self, *arguments, user=None):
        done = self.try_run(*arguments, user=user)
        check(done.returncode == 0, f"{' '.join(map(str, arguments))}: exit {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def popen(self, *arguments, user=None, **options):
        return subprocess.Popen(self.command(*arguments, user=user), env=NOT_INTERACTIVE, stdin=subprocess.DEVNULL, text=True, **options)

    def at(self, path):
        return self.path / path.lstrip("/")

    def write(self, path, text, owner=None):
        self.at(path).write_text(text)
        if owner is not None:
            self.run("chown", f"{owner}:", path)

    def account(self, name):
        return next((line.split(":") for line in self.at("/etc/passwd").read_text().splitlines() if line.startswith(name + ":")), None)


def version_of(deb):
    return subprocess.run(["dpkg-deb", "-f", deb, "Version"], capture_output=True, text=True, check=True).stdout.strip()


def newer(deb, directory):
    """The same package with a higher version."""
    tree = directory / "newer"
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    control = tree / "DEBIAN/control"
    version = version_of(deb)
    control.write_text(control.read_text().replace(f"Version: {version}\n", f"Version: {version}+next\n"))
    path = directory / "ccixfer_next.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, path], check=True, capture_output=True)
    return path


def big_file(path):
    block = random.Random(7).randbytes(MIB)
    with open(path, "wb") as file:
        for index in range(0, SIZE, MIB):
            file.write(index.to_bytes(8, "little") + block[8:])


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def names_of_ours(root):
    """What has our name, of files that a package or a service may have made."""
    elsewhere = [word for place in ("/proc", "/run/double", "/srv", "/root", "/home", "/tmp") for word in ("-not", "-path", f"{place}/*")]
    found = root.run("find", "/", "-xdev", "-name", "*ccixfer*", *elsewhere, "-prune", "-print")
    return sorted(found.split())


def installed(root, deb):
    shutil.copy(deb, root.at("/root/ccixfer.deb"))
    before = names_of_ours(root)
    check(before == [], f"the root is not fresh: {before}")
    root.run("apt-get", "update", "-q")
    root.run("apt-get", "install", "-y", "-q", "/root/ccixfer.deb")
    check("ccixfer" in root.run("ccixfer", "--version"), "no version")
    account = root.account("ccixfer")
    check(account is not None and account[6] == "/usr/sbin/nologin" and int(account[2]) < 1000, f"the account: {account}")
    etc = root.at("/etc/ccixfer").stat()
    check(etc.st_uid == int(account[2]) and etc.st_mode & 0o777 == 0o755, f"/etc/ccixfer: {etc}")
    for path in ("/usr/share/man/man8/ccixfer-route.8.gz", "/usr/share/bash-completion/completions/ccixfer",
                 "/usr/share/zsh/vendor-completions/_ccixfer", "/usr/share/fish/vendor_completions.d/ccixfer.fish",
                 "/lib/systemd/system/ccixfer-route.service", "/lib/systemd/system/ccixfer-recv@.service",
                 "/lib/systemd/system/ccixfer-recv.socket", "/etc/logrotate.d/ccixfer", "/usr/share/doc/ccixfer/examples/border-west.toml"):
        check(root.at(path).exists(), f"{path} is not there")
    listed = root.run("dpkg", "-L", "ccixfer").split()
    check(all(path.startswith(("/usr", "/lib", "/etc/ccixfer", "/etc", "/.")) for path in listed), f"files: {listed}")
    check(root.run("find", "/etc/systemd", "-name", "*ccixfer*") == "", "a unit is enabled that nobody has configured")
    say("installed")


def used_by_hand(root):
    """The first transfer of the README, over the loopback."""
    root.run("useradd", "--create-home", "bob")
    root.run("install", "-d", "-o", "bob", "/home/bob/incoming")
    receiver = root.popen("ccixfer", "recv", "--root", "/home/bob/incoming", "--listen", "127.0.0.1:0", "--ticket", "--once", user="bob",
                          stdout=subprocess.PIPE)
    ticket = receiver.stdout.readline().strip()
    check(ticket.startswith("cxt1"), f"no ticket: {ticket}")
    root.run("ccixfer", "send", "-a", "/usr/share/doc/ccixfer/examples/", ticket)
    check(receiver.wait(timeout=60) == 0, "the receiver failed")
    same = subprocess.run(["diff", "-r", root.at("/usr/share/doc/ccixfer/examples"), root.at("/home/bob/incoming")], check=False,
                          capture_output=True, text=True)
    left = [line for line in same.stdout.splitlines() if ".ccixfer" not in line]
    check(left == [], f"it came damaged: {left}")
    say("a first transfer")


def configure_services(root):
    """A router, and a receiver of the account bob behind it: /etc/ccixfer as the manual pages say."""
    root.run("install", "-d", "-o", "bob", "-m", "700", "/etc/ccixfer/bob", "/srv/ccixfer/bob")
    ids = {}
    for name, user, key in (("border", "ccixfer", "/etc/ccixfer/identity.key"), ("bob", "bob", "/etc/ccixfer/bob/identity.key"),
                            ("sender", None, "/root/identity.key")):
        root.run("ccixfer", "keygen", "--out", key, user=user)
        config = f"/tmp/{name}.toml"
        root.write(config, f'[identity]\nkey = "{key}"\n')
        ids[name] = root.run("ccixfer", "id", "-c", config, user=user).split()[0]

    def device(name, ip, port, subnet, router):
        return (f'[device.{name}]\ntransport = "tcp"\nip = "{ip}"\nport = {port}\nas = 1\nsubnet = {subnet}\nrouter = [{router}]\n'
                'rate = "1Gb/s"\n')

    def peer(name, grants=""):
        return f'[peer.{name}]\nid = "{ids[name]}"\n{grants}\n'

    near, far = f'"tcp://{ROUTER_1}:7000"', f'"tcp://{ROUTER_2}:7000"'
    root.write("/etc/ccixfer/border.toml", device("near", ROUTER_1, 7000, 1, "") + device("far", ROUTER_2, 7000, 2, "") +
               peer("sender", "route = true") + peer("bob"), owner="ccixfer")
    root.write("/etc/ccixfer/bob/receiver.toml", '[identity]\nkey = "/etc/ccixfer/bob/identity.key"\n' + device("lan", RECEIVER, 7100, 2, far) +
               peer("border", 'router = true\nwrite = ["nightly/"]') + peer("sender", 'write = ["."]'), owner="bob")
    # A job of the account that the router has, too.
    root.write("/etc/ccixfer/ccixfer.toml", peer("bob"))
    root.at("/etc/ccixfer/jobs").mkdir()
    root.write("/etc/ccixfer/jobs/nightly.toml", f'sources = ["/usr/share/doc/ccixfer/examples/"]\ndestination = "tcp://{RECEIVER}:7100/nightly/"\n'
               '[options]\narchive = true\nlog-file = "/var/log/ccixfer/nightly"\n')
    root.write("/root/sender.toml", '[identity]\nkey = "/root/identity.key"\n' + device("lan", SENDER, 0, 1, near) + peer("border") + peer("bob"))


class Transfer:
    """A push through the router, with events as they come."""

    def __init__(self, root, source):
        self.process = root.popen("ccixfer", "send", "-c", "/root/sender.toml", "--bwlimit", RATE, "--json", source,
                                  f"cci://1:2:{RECEIVER}:7100/{pathlib.PurePath(source).name}", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.events, self.half_way, self.words = [], threading.Event(), []
        self.readers = [threading.Thread(target=self.read), threading.Thread(target=lambda: self.words.append(self.process.stderr.read()))]
        for reader in self.readers:
            reader.start()

    def read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            self.events.append(event)
            if event["event"] == "progress" and event["bytes"] > SIZE // 8:
                self.half_way.set()
        self.half_way.set()

    def end(self):
        code = self.process.wait()
        for reader in self.readers:
            reader.join()
        check(code == 0, f"the transfer ended with {code}: {self.events[-3:]}{self.words}")


def a_job_runs(root):
    """As ccixfer-job(1) says it: the account finds key, peers, jobs and history without a word in its environment."""
    checked = root.try_run("ccixfer", "job", "--check", "nightly", user="ccixfer")
    check(checked.returncode == 0 and checked.stdout == "nightly: fine\n", f"{checked}")
    check(root.run("ccixfer", "id", user="ccixfer").startswith("cx1-"), "the account does not find its key")
    root.run("systemctl", "start", "ccixfer-job@nightly.service")
    listed = root.run("ccixfer", "status", "--history", user="ccixfer")
    check(listed.count("\n") == 1 and ": nightly to " in listed and ": ok: " in listed, listed)
    check(root.at("/var/log/ccixfer/nightly").exists(), "no log")
    check(root.at("/var/log/ccixfer").stat().st_mode & 0o007 == 0, "others read the names of files in the logs")
    check(sorted(path.name for path in root.at("/srv/ccixfer/bob/nightly").iterdir()) ==
          sorted(path.name for path in root.at("/usr/share/doc/ccixfer/examples").iterdir()), "another tree")
    say("a job by its unit")


def upgraded_while_it_routes(root, deb):
    root.run("dpkg-divert", "--local", "--rename", "--add", "/bin/systemctl")   # apt's own PATH leads there
    shutil.copy(HERE / "systemctl", root.at("/bin/systemctl"))
    root.at("/run/systemd/system").mkdir(parents=True)
    configure_services(root)
    for unit in ("ccixfer-route.service", "ccixfer-recv@bob.service"):
        done = subprocess.run(root.command("systemctl", "start", unit), env=NOT_INTERACTIVE, stdin=subprocess.DEVNULL, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        check(done.returncode == 0, f"{unit} does not start: {root.at(f'/run/double/{unit}.log').read_text()}")
    # Each account has a place for its tickets, and neither that of the other one.
    for path, owner, other in (("/var/lib/ccixfer-accounts/bob", "bob", "ccixfer"), ("/var/lib/ccixfer", "ccixfer", "bob")):
        check(root.try_run("ls", path, user=owner).returncode == 0, f"{owner} cannot read {path}")
        check(root.try_run("ls", path, user=other).returncode != 0, f"{other} can read {path}")
    pids = {unit: root.at(f"/run/double/{unit}.pid").read_text() for unit in ("ccixfer-route.service", "ccixfer-recv@bob.service")}
    a_job_runs(root)
    big_file(root.at("/root/big"))
    transfer = Transfer(root, "/root/big")
    transfer.half_way.wait()
    check(transfer.process.poll() is None, f"it ended before the upgrade: {transfer.events[-2:]}")
    shutil.copy(deb, root.at("/root/next.deb"))
    done = subprocess.run(root.command("apt-get", "install", "-y", "-q", "/root/next.deb"), env=NOT_INTERACTIVE,
                          stdin=subprocess.DEVNULL, stdout=open(root.at("/root/upgrade.log"), "w"), stderr=subprocess.STDOUT, check=False)
    check(done.returncode == 0, root.at("/root/upgrade.log").read_text())
    check(root.run("dpkg-query", "-W", "-f", "${Version}", "ccixfer") == version_of(deb), "another version")
    transfer.end()
    check(sha256(root.at("/srv/ccixfer/bob/big")) == sha256(root.at("/root/big")), "it came damaged")
    calls = root.at("/run/double/calls").read_text()
    check("killed" not in calls, f"a unit was killed: {calls}")
    for unit, pid in pids.items():
        check(root.at(f"/run/double/{unit}.pid").read_text() != pid, f"{unit} was not started again: {calls}")
    drained = root.at("/run/double/ccixfer-route.service.log.stopped").read_text()
    check("draining: " in drained, f"the router did not drain: {drained}")
    say("upgraded while a transfer went through the router")


def removed_and_purged(root):
    running = [root.at(f"/run/double/{unit}.pid").read_text().strip() for unit in ("ccixfer-route.service", "ccixfer-recv@bob.service")]
    root.run("apt-get", "remove", "-y", "-q", "ccixfer")
    for pid in running:
        state = pathlib.Path(f"/proc/{pid}/status")
        check(not state.exists() or "State:\tZ" in state.read_text(), f"{pid} still runs: {root.at('/run/double/calls').read_text()}")
    check(not root.at("/usr/bin/ccixfer").exists(), "the program stays")
    check(root.at("/etc/ccixfer/border.toml").exists() and root.account("ccixfer"), "the configuration went before it was purged")
    # What was received, wherever it is, keeps the name of its owner.
    root.run("install", "-d", "-o", "ccixfer", "/srv/elsewhere")
    wants = root.at("/etc/systemd/system/timers.target.wants")
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "ccixfer-job@nightly.timer").symlink_to("/lib/systemd/system/ccixfer-job@.timer")
    said = root.try_run("dpkg", "--purge", "ccixfer")
    check(said.returncode == 0 and "so does the account ccixfer" in said.stderr, f"{said}")
    check(root.account("ccixfer") is not None and root.at("/srv/elsewhere").exists(), "the owner of what was received went")
    left = names_of_ours(root)
    check(left == [], f"purge leaves {left}")
    check(root.at("/srv/ccixfer/bob/big").exists(), "purge took what was received")
    say("removed and purged")


def installed_and_purged_again(root, deb):
    before = root.account("ccixfer")
    shutil.copy(deb, root.at("/root/ccixfer.deb"))
    root.run("apt-get", "install", "-y", "-q", "/root/ccixfer.deb")
    check(root.account("ccixfer") == before, f"another account: {root.account('ccixfer')}, and it was {before}")
    # Removed with nothing in it, and installed again: dpkg makes the directory anew, as root's.
    root.run("apt-get", "remove", "-y", "-q", "ccixfer")
    root.run("apt-get", "install", "-y", "-q", "/root/ccixfer.deb")
    check(root.at("/etc/ccixfer").stat().st_uid == int(before[2]), "/etc/ccixfer is not the account's after a removal")
    root.run("ccixfer", "keygen", "--out", "/etc/ccixfer/identity.key", user="ccixfer")
    root.run("apt-get", "purge", "-y", "-q", "ccixfer")
    check(root.account("ccixfer") == before and names_of_ours(root) == [], f"purge leaves {names_of_ours(root)}")
    say("installed and purged again, with the account that stayed")


def without_network(root, deb, next_deb):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in (SENDER, ROUTER_1, ROUTER_2, RECEIVER):
        subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", "lo"], check=True)
    used_by_hand(root)
    upgraded_while_it_routes(root, next_deb)
    removed_and_purged(root)
    installed_and_purged_again(root, deb)


def inside(step, path, *debs):
    """In mounts and process names of our own, which end with us."""
    root = Root(pathlib.Path(path))
    for mount in (["-t", "proc", "proc", root.at("/proc")], ["--rbind", "/dev", root.at("/dev")], ["-t", "tmpfs", "tmpfs", root.at("/run")]):
        subprocess.run(["mount", *mount], check=True)
    try:
        {"installed": installed, "without_network": without_network}[step](root, *debs)
    except Failure as failure:
        print(f"package: FAILED: {failure}", flush=True)
        return 1
    return 0


def step_inside(name, root, *debs, spaces=()):
    return subprocess.run(["unshare", *spaces, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__, "--inside",
                           name, root.path, *debs], check=False).returncode == 0


def main():
    if sys.argv[1] == "--inside":
        return inside(*sys.argv[2:])
    if os.geteuid() != 0:
        print("package: the test needs root, for a root of its own", file=sys.stderr)
        return 1
    deb = pathlib.Path(sys.argv[1]).resolve()
    with contextlib.ExitStack() as stack:
        scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ccixfer-package-", dir="/var/tmp")))
        root = Root(scratch / "root")
        make = ["mmdebstrap", "--quiet", "--variant=apt", "bookworm", root.path]
        if len(sys.argv) > 2:
            root.path.mkdir()
            make = ["tar", "-C", root.path, "-xf", sys.argv[2]]
        done = subprocess.run(make, check=False, capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        for file in ("resolv.conf", "hosts"):   # apt of the root goes where that of this host goes
            shutil.copy(f"/etc/{file}", root.at(f"/etc/{file}"))
        scratch.chmod(0o755)
        say("a fresh root")
        passed = step_inside("installed", root, deb) and step_inside("without_network", root, deb, newer(deb, scratch), spaces=["--net"])
        print("package: all steps passed" if passed else "package: FAILED", flush=True)
        return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
