"""Somebody on the wire before, between and behind real processes that prove who they are: records everything, and flips, drops,
doubles, reorders, cuts, makes up. What is shown: the recording has no word of what was sent, every transfer ends with 0 and the right
files or with a named error, and no file with its final name has a wrong byte. CCIXFER_E2E_SEEDS sets how many attacks (else 48).
"""
import concurrent.futures
import collections
import os
import random
import re

from lab import Lab, big_file, check, device, native, routed, same_tree
from test_security import Account
from wire import BYTES, RECORDS, STALL, WAYS, Attack, Wire

SEEDS = int(os.environ.get("CCIXFER_E2E_SEEDS", 48))
AT_A_TIME = 6
NAME, TEXT = "the-canary-in-a-name-ß", "a canary in the text, ünseen. "
NAMES_OF_EXITS = {0: "ok", 2: "protocol", 10: "network", 30: "timeout", 35: "no_answer", 40: "integrity", 41: "authentication"}


def canary_tree(path):
    path.mkdir()
    (path / NAME).mkdir()
    (path / NAME / f"{NAME}.txt").write_text(TEXT * 50)
    (path / "two pieces").write_text(TEXT * (5 * 1024 * 1024 // len(TEXT.encode())))
    big_file(path / "some", 300_000)
    os.symlink(NAME, path / f"link-{NAME}")
    for index in range(20):
        (path / f"f{index}").write_text(f"{index} {TEXT}")
    return path


def says_nothing(wire):
    for words in (NAME, TEXT, NAME[:12], TEXT[:12]):
        check(not wire.holds(words.encode()), f"{words!r} is in the recording")


def all_right(source, target):
    """Whether all that has its final name is as it was sent; it need not be all."""
    for path in target.rglob("*") if target.exists() else ():
        if ".ccixfer" in path.parts or path.name.endswith(".part"):
            continue
        wanted = source / path.relative_to(target)
        check(os.path.lexists(wanted), f"{path} was never sent")
        if path.is_symlink():
            check(os.readlink(path) == os.readlink(wanted), f"{path} leads elsewhere")
        elif path.is_file():
            check(path.read_bytes() == wanted.read_bytes(), f"{path} has wrong bytes")


class Direct:
    """alice - the wire - bob."""

    hops = 1

    def __init__(self, lab):
        self.lab = lab
        self.alice, self.bob = Account(lab, "alice").keygen(), Account(lab, "bob").keygen()
        self.bob.configure(f'[peer.alice]\nid = "{self.alice.id}"\nwrite = ["."]\nread = ["."]\n')
        self.alice.configure(f'[peer.bob]\nid = "{self.bob.id}"\n')
        self.root = lab.directory / "incoming"
        self.root.mkdir()
        self.receiver = lab.start_ready(None, "recv", "recv", "--root", self.root, "--listen", "127.0.0.1:0", env=self.bob.env)
        self.port = int(native(self.receiver.uris).rsplit(":", 1)[1])

    def wires(self, attacks):
        return [Wire(self.port, attacks[0])]

    def command(self, name, wires):
        return (), f"tcp://127.0.0.1:{wires[0].port}/{name}/"

    def start(self, source, name, wires, options):
        more, uri = self.command(name, wires)
        return self.lab.start(None, name, "send", "-a", "--timeout", "4", "--lanes", "2", *options, *more, f"{source}/", uri, env=self.alice.env)

    def processes(self):
        return [self.receiver]


class Pull(Direct):
    """bob serves, and alice pulls through the wire."""

    def __init__(self, lab):
        self.lab = lab
        self.alice, self.bob = Account(lab, "alice").keygen(), Account(lab, "bob").keygen()
        self.bob.configure(f'[peer.alice]\nid = "{self.alice.id}"\nread = ["."]\n')
        self.alice.configure(f'[peer.bob]\nid = "{self.bob.id}"\n')
        self.root = lab.directory / "incoming"
        self.root.mkdir()
        self.receiver = lab.start_ready(None, "serve", "send", "--serve", lab.directory, "--listen", "127.0.0.1:0", env=self.bob.env)
        self.port = int(native(self.receiver.uris).rsplit(":", 1)[1])

    def start(self, source, name, wires, options):
        return self.lab.start(None, name, "recv", "-a", "--timeout", "4", "--lanes", "2", *options,
                              f"tcp://127.0.0.1:{wires[0].port}/{source.name}/", self.root / name, env=self.alice.env)


class ThroughRouter(Direct):
    """alice - the wire - a router - the wire - bob."""

    hops = 2

    def __init__(self, lab):
        self.lab = lab
        self.alice, self.west, self.bob = (Account(lab, name).keygen() for name in ("alice", "west", "bob"))
        self.west.configure(device("a", "127.0.0.1", 1, []) + device("b", "127.0.0.1", 2, []) +
                            f'[peer.alice]\nid = "{self.alice.id}"\nroute = true\n[peer.bob]\nid = "{self.bob.id}"\n')
        self.router = lab.start_ready(None, "route", "route", env=self.west.env)
        near, self.far = (next(uri.rsplit(":", 1)[1] for uri in self.router.uris if uri.startswith(f"cci://1:{subnet}:")) for subnet in (1, 2))
        self.near = int(near)
        self.bob.configure(device("x", "127.0.0.1", 2, [f"tcp://127.0.0.1:{self.far}"]) + f'[peer.west]\nid = "{self.west.id}"\nrouter = true\n'
                           f'[peer.alice]\nid = "{self.alice.id}"\nwrite = ["."]\nread = ["."]\n')
        self.root = lab.directory / "incoming"
        self.root.mkdir()
        self.receiver = lab.start_ready(None, "recv", "recv", "--root", self.root, env=self.bob.env)
        self.port = int(routed(self.receiver.uris).rsplit(":", 1)[1])

    def wires(self, attacks):
        return [Wire(self.near, attacks[0]), Wire(self.port, attacks[1])]

    def command(self, name, wires):
        config = self.lab.file(f"{name}.toml", device("x", "127.0.0.1", 1, [f"tcp://127.0.0.1:{wires[0].port}"]) +
                               f'[peer.west]\nid = "{self.west.id}"\n[peer.bob]\nid = "{self.bob.id}"\n')
        return ("-c", config), f"cci://1:2:127.0.0.1:{wires[1].port}/{name}/"

    def processes(self):
        return [self.receiver, self.router]


def send(way, source, name, attacks, options=()):
    """The transfer, and what somebody on the wire had of it."""
    wires = way.wires(attacks)
    try:
        sender = way.start(source, name, wires, options)
        code = sender.wait()
        for wire in wires:
            says_nothing(wire)
        return code, sender, wires
    finally:
        for wire in wires:
            wire.__exit__()


def draw(seed, hops, lengths):
    """An attack on one of the hops: at every kind of place, and more often near the beginning of a connection."""
    rng = random.Random(seed)
    hop = rng.randrange(hops)
    kind, way = (BYTES + RECORDS)[seed % 8], WAYS[seed // 8 % 2]
    connection = rng.choice([number for number, there in lengths[hop] if there == way])
    length = lengths[hop][connection, way]
    at = rng.randrange(length) if rng.random() < 0.3 else int(length ** rng.random()) - 1
    attacks = [None] * hops
    attacks[hop] = Attack(kind, way, max(0, at), None if rng.random() < 0.25 else connection, seed)
    return attacks


def attacked(way, source, seed, lengths):
    attacks = draw(seed, way.hops, lengths)
    words = f"seed {seed}: " + ", ".join(f"hop {hop}: {attack}" for hop, attack in enumerate(attacks) if attack)
    name = f"seed{seed}"
    try:
        retries = ("--retries", "2") if any(attack and attack.connection is None for attack in attacks) else ()
        code, sender, wires = send(way, source, name, attacks, retries)
        check(code in NAMES_OF_EXITS, f"exit {code}")
        check(sender.done().get("exit") == code and sender.done().get("status") == NAMES_OF_EXITS[code], f"{sender.done()}")
        if code == 0:
            same_tree(source, way.root / name)
        else:
            lines = [line for line in sender.stderr().splitlines() if line.startswith("ccixfer: ")]
            check(lines and re.search(r"\w: .*\w: ", lines[-1]), f"no line that says what, where, and what to do: {lines}")
            check("beginning" not in lines[-1], f"it says that it goes on, and has ended: {lines[-1]}")
            all_right(source, way.root / name)
        if os.environ.get("CCIXFER_E2E_VERBOSE"):
            print(code, words, "" if code == 0 else lines[-1], flush=True)
        return kinds_of(attacks), code, sum(wire.attacked for wire in wires)
    except Exception as error:
        raise type(error)(f"{words}: {error}") from error


def kinds_of(attacks):
    return next(attack.kind for attack in attacks if attack)


def hostile(name, kind_of_way):
    with Lab(name) as lab:
        source = canary_tree(lab.directory / "tree")
        way = kind_of_way(lab)
        code, sender, wires = send(way, source, "alone", [None] * kind_of_way.hops)
        check(code == 0, sender.tail())
        same_tree(source, way.root / "alone")
        lengths = [wire.lengths() for wire in wires]
        sent = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
        for hop in lengths:
            check(sum(hop.values()) > sent, f"the wire saw {hop}, which is less than was sent")
        codes, happened = collections.Counter(), collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            for kind, code, times in pool.map(lambda seed: attacked(way, source, seed, lengths), range(SEEDS)):
                codes[code] += 1
                happened[kind] += times > 0
        if os.environ.get("CCIXFER_E2E_VERBOSE"):
            print(name, dict(codes), dict(happened))
        check(all(happened[kind] for kind in (BYTES + RECORDS)[:SEEDS]), f"not every attack came about: {happened}")
        # Whoever served all of them serves on.
        code, sender, _ = send(way, source, "after", [None] * kind_of_way.hops)
        check(code == 0, sender.tail())
        same_tree(source, way.root / "after")
        for process in way.processes():
            check(process.stop() in (0, 20), process.tail())   # 20: a transfer that was cut off may still be kept for its sender


def test_hostile_wire__direct__nothing_read_and_nothing_wrong_accepted():
    hostile("wire", Direct)


def test_hostile_wire__pull__nothing_read_and_nothing_wrong_accepted():
    hostile("wirepull", Pull)


def test_wire_stalls_in_the_middle_of_a_piece__30_at_either_side_and_the_next_run_resumes():
    """The buffer that the piece comes into is the network's when the puller gives up."""
    for kind_of_way, direction in ((Pull, "down"), (Direct, "up")):
        with Lab("stall") as lab:
            source = canary_tree(lab.directory / "tree")
            way = kind_of_way(lab)
            for at in (1_200_000, 2_000_000):
                code, sender, wires = send(way, source, f"at{at}", [Attack(STALL, direction, at)])
                check(wires[0].attacked > 0, f"stalled at {at}: nothing came so far")
                check(code == 30 and sender.done().get("status") == "timeout", f"stalled at {at}: exit {code}: {sender.tail()}")
            code, sender, _ = send(way, source, f"at{at}", [None])
            check(code == 0, sender.tail())
            same_tree(source, way.root / f"at{at}")


def test_hostile_wire__before_and_behind_a_router__nothing_read_and_nothing_wrong_accepted():
    hostile("wires", ThroughRouter)


def test_hostile_wire__without_encryption__the_recording_has_it_all():
    """That what the tests above look for would be found."""
    with Lab("plainwire") as lab:
        source = canary_tree(lab.directory / "tree")
        root = lab.directory / "incoming"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--insecure", "--listen", "127.0.0.1:0")
        with Wire(int(native(receiver.uris).rsplit(":", 1)[1])) as wire:
            sender = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", f"tcp://127.0.0.1:{wire.port}/x/")
            check(sender.wait() == 0, sender.tail())
            check(wire.holds(NAME.encode()) and wire.holds(TEXT.encode()), "the recording misses what passed in clear")
