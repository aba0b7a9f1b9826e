"""Encrypted transfers: beside GridFTP and an rsync daemon in clear, beside scp and rsync over ssh, and beside our own cleartext."""
import os
import pathlib
import shutil
import subprocess
import time

import files
from accounts import Accounts
from harness import BINARY, Row, free_port


class Secured:
    """A receiver, a routed receiver and a router with identities, a sender whom they know, and an sshd."""

    def __init__(self, bench):
        self.bench, self.plain = bench, files.peers_of(bench)
        self.destination, self.far_destination = (self.plain.add_root(bench.directory / name) for name in ("secured-dst", "secured-far"))
        self.accounts = Accounts(bench, "sender", "receiver", "router")
        self.start_ccixfer()
        self.start_sshd()

    def start_ccixfer(self):
        bench = self.bench
        accounts = self.accounts
        grants = accounts.peer("sender", 'write = ["."]', "setid = true", "route = true")
        router = accounts.peer("router", "router = true")
        receiver = accounts.peer("receiver")
        accounts.configure("receiver", grants)
        accounts.configure("sender", receiver)
        self.receiver, uris = bench.daemon("secured receiver", "recv", "--root", self.destination, "--listen", "127.0.0.1:0",
                                           env=accounts.env("receiver"))
        self.direct = next(uri for uri in uris if uri.startswith("tcp"))
        ports = [free_port() for _ in range(3)]

        def device(name, ip, port, subnet, hop):
            listed = f'"tcp://{hop}"' if hop else ""
            return (f'[device.{name}]\ntransport = "tcp"\nip = "{ip}"\nport = {port}\nas = 1\nsubnet = {subnet}\nrouter = [{listed}]\nrate = "40Gb/s"\n')

        configs = {"router": device("a", "127.0.0.2", ports[0], 1, "") + device("b", "127.0.0.3", ports[1], 2, "") + grants + receiver,
                   "sender": device("a", "127.0.0.1", 0, 1, f"127.0.0.2:{ports[0]}") + receiver + router,
                   "receiver": device("b", "127.0.0.1", ports[2], 2, f"127.0.0.3:{ports[1]}") + grants + router}
        for name, text in configs.items():
            (bench.directory / f"secured-{name}.toml").write_text(text)
        self.sender_config = bench.directory / "secured-sender.toml"
        self.router, _ = bench.daemon("secured router", "route", "-c", bench.directory / "secured-router.toml", env=accounts.env("router"))
        _, uris = bench.daemon("secured routed receiver", "recv", "--root", self.far_destination, "-c",
                               bench.directory / "secured-receiver.toml", env=accounts.env("receiver"))
        self.routed = next(uri for uri in uris if uri.startswith("cci"))

    def start_sshd(self):
        directory = self.bench.directory
        self.ssh_port = free_port()
        for key in ("hostkey", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / key], check=True)
        (directory / "sshd.conf").write_text(
            f"Port {self.ssh_port}\nListenAddress 127.0.0.1\nHostKey {directory}/hostkey\nAuthorizedKeysFile {directory}/key.pub\n"
            f"StrictModes no\nPermitRootLogin yes\nPidFile {directory}/sshd.pid\nSubsystem sftp internal-sftp\n")
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        self.bench.spawn("/usr/sbin/sshd", "-D", "-f", directory / "sshd.conf", "-E", directory / "sshd.log")
        self.bench.wait_port(self.ssh_port)
        self.ssh_options = ["-i", directory / "key", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]

    def send(self, *arguments):
        return ["env", *(f"{key}={value}" for key, value in self.accounts.env("sender").items()), BINARY, "send", "-q", *arguments]

    def scp(self, source, target):
        return ["scp", "-q", "-P", self.ssh_port, *self.ssh_options, source, f"root@127.0.0.1:{target}"]


def secured_of(bench):
    if not hasattr(bench, "secured_peers"):
        bench.secured_peers = Secured(bench)
    return bench.secured_peers


def secured(bench, options):
    """One file, and the smallest transfer there is."""
    peers, plain = secured_of(bench), files.peers_of(bench)
    source, size = files.make_file(bench, options)
    amount = size / 1e6
    rates = bench.interleaved({
        "GridFTP": plain.rate(amount, size, "globus-url-copy", "-fast", f"file://{source}", f"ftp://127.0.0.1:{plain.gridftp}{plain.destination}/f"),
        "clear": plain.rate(amount, size, BINARY, "send", "--insecure", "-q", source, plain.direct + "/f"),
        "direct": plain.rate(amount, size, *peers.send(source, peers.direct + "/f")),
        "routed": plain.rate(amount, size, *peers.send("-c", peers.sender_config, source, peers.routed + "/f")),
        "scp": plain.rate(amount, size, *peers.scp(source, plain.destination / "f")),
    })
    source.write_bytes(b"x")

    def seconds(*command):
        def measure():
            plain.clean()
            start = time.monotonic()
            bench.output(*command)
            return (time.monotonic() - start) * 1e3
        return measure

    times = bench.interleaved({
        "one byte": seconds(*peers.send(source, peers.direct + "/f")),
        "scp": seconds(*peers.scp(source, plain.destination / "f")),
    })
    source.unlink()
    plain.clean()
    unit = f"MB/s, one {options.size_gib:g} GiB file"
    direct = rates["direct"]
    return [Row("scp", rates["scp"], unit), Row("encrypted, direct tcp", direct, unit, "GridFTP in clear", direct / rates["GridFTP"], at_least=1.0),
            Row("encrypted, direct tcp, again", direct, unit, "scp", direct / rates["scp"], at_least=4.0),
            Row("encrypted, direct tcp, and again", direct, unit, "our own cleartext", direct / rates["clear"], at_least=0.75),
            Row("encrypted, through one router", rates["routed"], unit, "encrypted, direct", rates["routed"] / direct, at_least=0.75),
            Row("scp of one byte", times["scp"], "ms, start to exit"),
            Row("encrypted transfer of one byte", times["one byte"], "ms, start to exit", at_most=30)]


def secured_tree(bench, _):
    peers, plain = secured_of(bench), files.peers_of(bench)
    path, count, size = files.make_tree(bench)
    ssh = " ".join(["ssh", "-p", str(peers.ssh_port), *map(str, peers.ssh_options)])
    rates = bench.interleaved({
        "rsync daemon": plain.rate(count, size, "rsync", "-a", f"{path}/", f"rsync://127.0.0.1:{plain.rsyncd}/dst/t/"),
        "rsync over ssh": plain.rate(count, size, "rsync", "-a", "-e", ssh, f"{path}/", f"root@127.0.0.1:{plain.destination}/t/"),
        "direct": plain.rate(count, size, *peers.send("-a", f"{path}/", peers.direct + "/t/")),
    })
    shutil.rmtree(path)
    plain.clean()
    unit = f"files/s, tree of {count}"
    direct = rates["direct"]
    return [Row("rsync over ssh", rates["rsync over ssh"], unit),
            Row("encrypted tree, direct tcp", direct, unit, "rsync daemon in clear", direct / rates["rsync daemon"], at_least=1.0),
            Row("encrypted tree, direct tcp, again", direct, unit, "rsync over ssh", direct / rates["rsync over ssh"], at_least=2.0)]
