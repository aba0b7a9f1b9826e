"""Transfers over UDP: direct, and over routes that mix it with tcp; kills at every part of the way; what is refused."""
import os
import signal
import time

from bottleneck import Bottleneck
from lab import Lab, big_file, check, device, native, routed, same_tree, sha256, small_tree
from test_security import Account, Pair, ends

ROUTES = {"tcp_udp_tcp": ("tcp", "udp", "tcp"), "udp_tcp_udp": ("udp", "tcp", "udp"), "udp_udp": ("udp", "udp")}


def tree(lab):
    source = lab.directory / "tree"
    small_tree(source, files=400)
    big_file(source / "large", 40_000_000)
    return source


class Chain:
    """Subnets 1, 2 ... of the loopback, one transport each, with a router between neighbours; a receiver on the last one."""

    def __init__(self, lab, transports, *options):
        self.lab, self.transports = lab, transports
        self.routers, self.first = [], ""
        for number in range(1, len(transports)):
            self.routers.append(self.start_router(number))
        self.root = lab.directory / "incoming"
        self.root.mkdir(exist_ok=True)
        config = lab.file("receiver.toml", device("x", "127.0.0.1", len(transports), [self.last], transport=transports[-1]))
        self.config = lab.file("sender.toml", device("x", "127.0.0.1", 1, [self.first], transport=transports[0]))
        self.receiver = lab.start_ready(None, "recv", "recv", "-c", config, "--root", self.root, "--insecure", *options)

    # Each keeps its ports, so that one that was killed can be started again as it was.
    def start_router(self, number):
        near = [self.last] if number > 1 else []
        self.config_of = getattr(self, "config_of", {})
        if number not in self.config_of:
            self.config_of[number] = (device("a", "127.0.0.1", number, near, transport=self.transports[number - 1]) +
                                      device("b", "127.0.0.1", number + 1, [], transport=self.transports[number]))
        router = self.lab.start_ready(None, f"route{number}", "route", "--insecure",
                                      "-c", self.lab.file(f"router{number}.toml", self.config_of[number]))
        ports = {subnet: next(uri.rsplit(":", 1)[1] for uri in router.uris if uri.startswith(f"cci://1:{subnet}:"))
                 for subnet in (number, number + 1)}
        self.config_of[number] = (
            device("a", "127.0.0.1", number, near, port=ports[number], transport=self.transports[number - 1]) +
            device("b", "127.0.0.1", number + 1, [], port=ports[number + 1], transport=self.transports[number]))
        if number == 1:
            self.first = f"{self.transports[0]}://127.0.0.1:{ports[1]}"
        self.last = f"{self.transports[number]}://127.0.0.1:{ports[number + 1]}"
        return router

    def send(self, name, *arguments):
        return self.lab.start(None, name, "send", "-c", self.config, "--insecure", *arguments)


def test_udp_direct__push_and_pull_are_identical_and_a_second_run_sends_nothing():
    with Lab("udp") as lab:
        source = tree(lab)
        root = lab.directory / "incoming"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--insecure", "--listen", "udp://127.0.0.1:0")
        check(native(receiver.uris).startswith("udp://127.0.0.1:"), receiver.uris)
        for sent in (True, False):
            sender = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", f"{native(receiver.uris)}/x/")
            check(sender.wait() == 0, sender.tail())
            check((sender.done()["bytes_sent"] > 40_000_000) == sent, sender.done())
        same_tree(source, root / "x")
        hops = next(event for event in sender.events if event["event"] == "session")["path"]
        check([hop["transport"] for hop in hops] == ["udp"], hops)
        server = lab.start_ready(None, "serve", "send", "--serve", source, "--insecure", "--listen", "udp://127.0.0.1:0")
        puller = lab.start(None, "pull", "recv", "-a", "--insecure", f"{native(server.uris)}/", lab.directory / "pulled")
        check(puller.wait() == 0, puller.tail())
        same_tree(source, lab.directory / "pulled")
        for process in (receiver, server):
            check(process.stop() == 0, process.tail())


def test_udp_over_ethernet__both_families_and_one_listener_of_all__identical():
    """1,500 bytes a packet; over IPv6 a datagram travels in two fragments, and the kernel joins none."""
    with Lab("udpeth") as lab:
        a, b = lab.host("a"), lab.host("b")
        names = lab.wire(a, "10.0.0.1/24", b, "10.0.0.2/24")
        for host, name, address in ((a, names[0], "fd00::1/64"), (b, names[1], "fd00::2/64")):
            host.run("ip", "-6", "addr", "add", address, "dev", name, "nodad")
        source = lab.directory / "tree"
        small_tree(source, files=20)
        big_file(source / "large", 30_000_000)
        root = lab.directory / "incoming"
        root.mkdir()
        for port, host in ((7001, "10.0.0.2"), (7002, "[fd00::2]"), (7003, "*")):
            receiver = lab.start_ready(b, "recv", "recv", "--root", root, "--insecure", "--listen", f"udp://{host}:{port}")
            for uri in receiver.uris:
                sender = lab.start(a, "send", "send", "-a", "--insecure", f"{source}/", f"{uri}/{len(lab.processes)}/")
                check(sender.wait() == 0, sender.tail())
                same_tree(source, root / str(len(lab.processes) - 1))
            check(len(receiver.uris) == (2 if host == "*" else 1), receiver.uris)
            check(receiver.stop() == 0, receiver.tail())


def mixed(kind):
    with Lab(kind) as lab:
        source = tree(lab)
        chain = Chain(lab, ROUTES[kind])
        sender = chain.send("send", "-a", f"{source}/", f"{routed(chain.receiver.uris)}/x/")
        check(sender.wait() == 0, sender.tail())
        same_tree(source, chain.root / "x")
        hops = next(event for event in sender.events if event["event"] == "session")["path"]
        check(tuple(hop["transport"] for hop in hops) == ROUTES[kind], hops)
        for router in chain.routers:
            check(router.stop() == 0, router.tail())


def test_udp_mixed_route__tcp_udp_tcp__identical():
    mixed("tcp_udp_tcp")


def test_udp_mixed_route__udp_tcp_udp__identical():
    mixed("udp_tcp_udp")


def test_udp_route__a_router_killed_and_started_again__the_transfer_goes_on():
    with Lab("udpkill") as lab:
        source = tree(lab)
        big_file(source / "larger", 120_000_000, seed=9)
        chain = Chain(lab, ROUTES["udp_udp"])
        sender = chain.send("send", "-a", "--bwlimit", "40MB/s", "--timeout", "60", f"{source}/", f"{routed(chain.receiver.uris)}/x/")
        sender.wait_event("progress", lambda event: event["bytes"] > 30_000_000)
        chain.routers[0].kill()
        chain.routers[0].wait()
        chain.start_router(1)
        check(sender.wait() == 0, sender.tail())
        same_tree(source, chain.root / "x")


def test_udp_direct__the_receiver_killed__the_same_command_resumes():
    with Lab("udpresume") as lab:
        source = tree(lab)
        big_file(source / "larger", 200_000_000, seed=9)
        root = lab.directory / "incoming"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--insecure", "--listen", "udp://127.0.0.1:0")
        uri = native(receiver.uris)
        sender = lab.start(None, "send", "send", "-a", "--bwlimit", "80MB/s", "--timeout", "3", "--insecure", f"{source}/", f"{uri}/x/")
        sender.wait_event("progress", lambda event: event["bytes"] > 220_000_000)
        receiver.kill(signal.SIGKILL)
        check(sender.wait() in (10, 30, 35), sender.tail())
        receiver = lab.start_ready(None, "recv2", "recv", "--root", root, "--insecure", "--listen", uri)
        again = lab.start(None, "again", "send", "-a", "--insecure", f"{source}/", f"{uri}/x/")
        check(again.wait() == 0, again.tail())
        check(again.done()["bytes_sent"] < 170_000_000, again.done())  # of 330 MB
        same_tree(source, root / "x")


def test_udp_refused__another_transports_device__nobody_there():
    with Lab("udprefused") as lab:
        source = lab.directory / "tree"
        small_tree(source, files=3)

        def fails(code, words, *command):
            process = lab.start(None, "refused", *command)
            check(process.wait() == code and words in process.stderr(), f"{process.wait()}: {process.stderr()}")

        config = lab.file("tcp.toml", '[device.lan]\nip = "127.0.0.1"\n')
        fails(1, "device lan is of tcp: name one of udp (--device)", "send", "--insecure", "-c", config, "--device", "lan", f"{source}/",
              "udp://127.0.0.1:9/x/")
        fails(1, "cannot listen there: tdp://h:1", "recv", "--insecure", "--root", lab.directory, "--listen", "tdp://h:1")
        fails(35, "no answer", "send", "--insecure", "--timeout", "2", f"{source}/", "udp://127.0.0.1:9/x/")


def test_udp_secured__push_and_ticket__identical_and_strangers_are_refused():
    with Lab("udpsecured") as lab:
        source = tree(lab)
        pair = Pair(lab, listen="udp://127.0.0.1:0")
        check(pair.uri.startswith("udp://127.0.0.1:"), pair.uri)
        for _ in range(2):
            sender = pair.send("-a", f"{source}/", pair.uri + "/x/")
            ends(sender, 0)
        session = sender.wait_event("session")
        check(session["identity"] == pair.bob.id, session)
        check([hop["protection"] for hop in session["path"]] in (["aes-256-gcm"], ["chacha20-poly1305"]), session)
        same_tree(source, pair.root / "x")
        stranger = Account(lab, "eve").keygen()
        stranger.knows(pair.uri, pair.bob)
        ends(pair.send("-a", f"{source}/", pair.uri + "/x/", account=stranger), 42, stranger.id)
        ends(lab.start(None, "plain", "send", "-a", "--insecure", f"{source}/", pair.uri + "/x/"), 41, "--insecure")
        check(pair.receiver.stop() == 0, pair.receiver.tail())

        once = lab.directory / "once"
        once.mkdir()
        receiver = lab.start_ready(None, "once", "recv", "--root", once, "--ticket", "--listen", "udp://127.0.0.1:0",
                                   env=Account(lab, "carol").env)
        lines = []
        while not lines:   # it is said right behind `ready`
            lines = [line for line in receiver.stderr().splitlines() if line.startswith("cxt1")]
        ends(lab.start(None, "with_ticket", "send", "-a", source / "large", lines[0], env=Account(lab, "dave").env), 0)
        check(sha256(once / "large") == sha256(source / "large"), "what went by the ticket differs")


# A command that ends early says its goodbye three times and waits for no answer; the receiver that hears none of them would wait for a minute.
def test_udp__a_path_that_loses_much__a_receiver_of_one_transfer_ends_with_it():
    with Lab("udp") as lab:
        path = Bottleneck(lab, 50, 20, loss_percent=15)
        try:
            source = lab.directory / "source"
            source.write_bytes(os.urandom(20_000))
            for number in range(12):
                root = lab.directory / f"incoming{number}"
                root.mkdir()
                receiver = lab.start_ready(path.far, "recv", "recv", "--once", "--root", root, "--insecure", "--listen", "udp://10.0.0.2:0")
                sender = lab.start(path.near, "send", "send", "--insecure", source, f"{native(receiver.uris)}/copy")
                check(sender.wait() == 0, sender.tail())
                check(receiver.wait(patience_s=30) == 0, receiver.tail())
                check(sha256(root / "copy") == sha256(source), f"another content: {root}")
        finally:
            path.end()


def test_udp__a_path_that_was_full__is_remembered_and_the_file_is_a_help_and_no_more():
    with Lab("udp") as lab:
        root = lab.directory / "incoming"
        root.mkdir()
        source = big_file(lab.directory / "source", 128 << 20)
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--insecure", "--listen", "udp://127.0.0.1:0")
        state = lab.directory / "state"
        paths = state / "ccixfer/paths"

        def transfer():
            (root / "copy").unlink(missing_ok=True)
            sender = lab.start(None, "send", "send", "--insecure", source, f"{native(receiver.uris)}/copy", env={"XDG_STATE_HOME": str(state)})
            check(sender.wait() == 0, sender.tail())
            lines = [line for line in sender.stderr().splitlines() if "--insecure" not in line]
            check(not lines, f"{lines}")
            check(sha256(root / "copy") == sha256(source), "another content")

        def remembered():
            for _ in range(6):   # a short one may end before it knows what its path carries
                transfer()
                if paths.read_text().startswith("127.0.0.1 "):
                    return True
            return False

        check(remembered(), f"nothing is remembered: {paths.read_text()!r}")
        check(paths.stat().st_mode & 0o777 == 0o600, f"mode {paths.stat().st_mode:o}")
        host, rate, round_trip, at = paths.read_text().split()
        check(int(rate) > 1_000_000 and 0 < int(round_trip) < 10_000_000 and abs(int(at) - time.time()) < 3600, paths.read_text())
        paths.write_text(f"127.0.0.1 {10**12} {round_trip} {at}\n")   # far more than there is
        transfer()
        paths.write_bytes(os.urandom(5000))
        check(remembered(), "what makes no sense was kept")
        paths.unlink()
        paths.parent.rmdir()
        paths.parent.write_text("no directory")
        transfer()
