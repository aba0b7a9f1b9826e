"""Certificates whose time has not come or is over, and clocks that are a day off or more, at either end."""
import pathlib
import time

from authority import Authority
from lab import Lab, check, native
from test_security import Account, ends

HOUR, DAY, YEAR = 3600, 86400, 365 * 86400
EXPIRED, TOO_EARLY = "expired", "not valid"


def clock(off):
    """The environment of a process whose clock is off by that: +1d, -9y. Times of files and those that only go on stay right."""
    library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    check(library is not None, "faketime is missing: ./do deps")
    return {"LD_PRELOAD": str(library), "FAKETIME": off, "NO_FAKE_STAT": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def around(begin_s, end_s):
    now = time.time()
    return time.gmtime(now + begin_s), time.gmtime(now + end_s)


class Facility:
    """alice and bob with certificates of one authority; `alice`, `bob`: when each is valid, or None for a year before and after."""

    def __init__(self, lab, alice=None, bob=None, bobs_clock=None):
        self.lab = lab
        authority = Authority(lab.directory / "authority")
        self.alice, self.bob = Account(lab, "alice"), Account(lab, "bob")
        usual = (-YEAR, YEAR)
        for account, name, dates, more in ((self.alice, "alice", alice, ""), (self.bob, "bob", bob, '[peer.alice]\nname = "alice.example"\nwrite = ["."]\n')):
            account.own.mkdir(parents=True)
            host = "IP:127.0.0.1" if name == "bob" else "DNS:alice.example"
            account.configure(authority.issue(name, *around(*(dates or usual)), host) + more)
        self.root = lab.directory / "incoming"
        self.root.mkdir()
        self.file = lab.file("f", "x")
        self.receiver = lab.start_ready(None, "recv", "recv", "--root", self.root, "--listen", "127.0.0.1:0", env={**self.bob.env, **(bobs_clock or {})})
        self.uri = native(self.receiver.uris)

    def send(self, name="f", clock_of_alice=None):
        return self.lab.start(None, "send", "send", self.file, f"{self.uri}/{name}", env={**self.alice.env, **(clock_of_alice or {})})

    def refused(self, sender, *words):
        """One clear line; nothing arrives; the receiver goes on."""
        ends(sender, 41, *words)
        lines = sender.stderr().strip().splitlines()
        check(len(lines) == 1 and lines[0].startswith("ccixfer: "), f"not one line: {lines}")
        check(not list(self.root.glob("f*")), "it arrived all the same")
        check(self.receiver.process.poll() is None, self.receiver.tail())


def test_certificates__within_their_time__a_transfer():
    with Lab("intime") as lab:
        facility = Facility(lab)
        ends(facility.send(), 0)
        check((facility.root / "f").read_text() == "x", "it did not arrive")


def test_certificates__expired_or_not_yet_valid_at_either_end__41():
    for who, dates, word in (("alice", (-YEAR, -DAY), EXPIRED), ("alice", (DAY, YEAR), TOO_EARLY), ("bob", (-YEAR, -DAY), EXPIRED),
                             ("bob", (DAY, YEAR), TOO_EARLY)):
        with Lab("dates") as lab:
            facility = Facility(lab, **{who: dates})
            facility.refused(facility.send(), word)


def test_clock_a_day_off__at_either_end__certificates_of_hours_are_refused_with_41():
    for off, word in (("+1d", EXPIRED), ("-1d", TOO_EARLY)):
        with Lab("offsender") as lab:
            facility = Facility(lab, bob=(-HOUR, HOUR))
            facility.refused(facility.send(clock_of_alice=clock(off)), word)
            ends(facility.send("g"), 0)   # with the right time
        with Lab("offreceiver") as lab:
            facility = Facility(lab, alice=(-HOUR, HOUR), bobs_clock=clock(off))
            facility.refused(facility.send(), word)


def test_clock_years_off__keys_without_an_authority__a_transfer():
    with Lab("years") as lab:
        alice, bob = Account(lab, "alice").keygen(), Account(lab, "bob").keygen()
        bob.configure(f'[peer.alice]\nid = "{alice.id}"\nwrite = ["."]\n')
        root = lab.directory / "incoming"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", env={**bob.env, **clock("+9y")})
        alice.knows(native(receiver.uris), bob)
        for off in ("-9y", "+9y"):
            ends(lab.start(None, "send", "send", lab.file("f", off), native(receiver.uris) + "/f", env={**alice.env, **clock(off)}), 0)
            check((root / "f").read_text() == off, "it did not arrive")


def test_tickets__a_clock_a_day_off_at_either_end__41():
    with Lab("tickets") as lab:
        root = lab.directory / "incoming"
        root.mkdir()
        bob, alice = Account(lab, "bob"), Account(lab, "alice")
        # The receiver's clock is two days behind: its tickets of a day are over, for whoever has the right time.
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--ticket", "--listen", "127.0.0.1:0",
                                   env={**bob.env, **clock("-2d")})
        while not (lines := [line for line in receiver.stderr().splitlines() if line.startswith("cxt1")]):
            pass
        file = lab.file("f", "x")
        ends(lab.start(None, "send", "send", file, lines[0], env=alice.env), 41, EXPIRED)
        # Who shares its time may use it; who has a clock that goes slow is refused by the receiver, whose time counts.
        port = native(receiver.uris).rsplit(":", 1)[1]
        receiver.stop()
        again = lab.start_ready(None, "again", "recv", "--root", root, "--listen", f"127.0.0.1:{port}", env=bob.env)
        ends(lab.start(None, "send", "send", file, lines[0], env={**alice.env, **clock("-2d")}), 41, EXPIRED)
        check(not (root / "f").exists(), "an expired ticket was taken")
        again.stop()
