"""SIGHUP reads who we are and whom we believe again: revocation lists and keys, without a restart and without an end of what runs."""
import signal
import time

from facility import Facility
from lab import PATIENCE_S, Lab, TwoSites, big_file, check, native, sha256
from test_security import Account, SecuredSites, ends


class Certified:
    """A listener `bob` and a peer `alice` of one facility, who know one another by the names in their certificates."""

    def __init__(self, lab, grants, *arguments):
        self.lab, self.facility = lab, Facility(lab)
        self.alice, self.bob = Account(lab, "alice").keygen(), Account(lab, "bob").keygen()
        self.grants = f'[peer.alice]\nname = "alice.example"\n{grants}\n'
        self.bob.configure(self.facility.identity(self.bob, "bob.example") + self.grants)
        self.listener = lab.start_ready(None, "listener", *arguments, "--listen", "127.0.0.1:0", env=self.bob.env)
        self.uri = native(self.listener.uris)
        self.alice.configure(self.facility.identity(self.alice, "alice.example", with_list=False) + f'[peer.bob]\nname = "bob.example"\naddress = "{self.uri}"\n')

    def run(self, *arguments, name="run", account=None):
        return self.lab.start(None, name, *arguments, env=(account or self.alice).env)

    def hang_up(self):
        self.listener.kill(signal.SIGHUP)

    def until(self, code, *arguments, account=None):
        """The signal and a connection race, so it is tried until it ends so."""
        deadline = time.monotonic() + PATIENCE_S
        while (process := self.run(*arguments, account=account)).wait() != code:
            check(time.monotonic() < deadline, process.tail())
        return process

    def until_said(self, words):
        deadline = time.monotonic() + PATIENCE_S
        while words not in self.listener.stderr():
            check(time.monotonic() < deadline, f"{words!r} is not said: {self.listener.tail()}")
            time.sleep(0.01)


def test_receiver__a_revoked_certificate_and_a_new_key__count_from_sighup_on():
    with Lab("revoked") as lab:
        root = lab.directory / "root"
        root.mkdir()
        site = Certified(lab, 'write = ["x/"]', "recv", "--root", root)
        source = big_file(lab.directory / "f", 40 << 20)
        ends(site.run("send", source, site.uri + "/x/f"), 0)
        runs = site.run("send", "-j", "1", "--bwlimit", "20MB/s", source, site.uri + "/x/slow", name="runs")
        runs.wait_event("progress", lambda event: event["bytes"] > 1 << 20)
        site.facility.revoke("alice.example")
        small = lab.file("small", "x")
        ends(site.run("send", small, site.uri + "/x/before"), 0)   # the list is not looked at by itself
        site.hang_up()
        refused = site.until(41, "send", "--retries", "0", small, site.uri + "/x/after")
        check("revoked" in refused.stderr(), refused.tail())
        ends(runs, 0)                                                 # what runs goes on
        check(sha256(root / "x/slow") == sha256(source), "the transfer that ran came damaged")
        # A list that cannot be used changes nothing.
        good = site.facility.crl.read_text()
        site.facility.crl.write_text("no list\n")
        site.hang_up()
        site.until_said("not reloaded: ")
        line = next(line for line in site.listener.stderr().splitlines() if "not reloaded" in line)
        check(str(site.facility.crl) in line, line)
        ends(site.run("send", "--retries", "0", small, site.uri + "/x/still"), 41)
        # A new key of the receiver, and a sender that takes that one only.
        site.facility.crl.write_text(good)
        new = Account(lab, "new").keygen()
        carol = Account(lab, "carol").keygen()
        carol.configure(f'[peer.bob]\nid = "{new.id}"\naddress = "{site.uri}"\n')
        site.bob.configure(f'[identity]\nkey = "{site.bob.own / "identity.key"}"\n[peer.carol]\nid = "{carol.id}"\nwrite = ["c/"]\n')
        ends(site.run("send", small, site.uri + "/c/f", account=carol), 41)
        (new.own / "identity.key").rename(site.bob.own / "identity.key")
        site.hang_up()
        site.until(0, "send", small, site.uri + "/c/f", account=carol)
        check(site.listener.stop() == 0, site.listener.tail())


def test_server__a_revoked_certificate__counts_from_sighup_on():
    with Lab("served") as lab:
        served = lab.directory / "served"
        served.mkdir()
        (served / "f").write_text("x")
        site = Certified(lab, 'read = ["."]', "send", "--serve", served)
        ends(site.run("recv", site.uri + "/f", lab.directory / "one"), 0)
        site.facility.revoke("alice.example")
        site.hang_up()
        check("revoked" in site.until(41, "recv", site.uri + "/f", lab.directory / "two").stderr(), "it is not said why")


def test_router__a_revoked_certificate__counts_from_sighup_on():
    with TwoSites("revoked") as sites:
        facility = None

        class Sites(SecuredSites):
            """Alice is known to west by her certificate."""

            def __init__(self, sites):
                super().__init__(sites)
                nonlocal facility
                facility = Facility(sites.lab)
                text = self.west.config.read_text()
                self.west.config.write_text(f'[identity]\nca = "{facility.ca}"\ncrl = "{facility.crl}"\n' +
                                            text.replace(f'id = "{self.alice.id}"', 'name = "alice.example"'))
                self.alice.config.write_text(facility.identity(self.alice, "alice.example") + self.alice.config.read_text())

        secured = Sites(sites)
        secured.start_all()
        file = sites.lab.file("f", "x")
        ends(secured.send(file, secured.uri + "/f"), 0)
        facility.revoke("alice.example")
        west = sites.routers[0]
        good = secured.west.config.read_text()
        secured.west.config.write_text(good.replace(str(facility.crl), str(facility.ca)))
        west.kill(signal.SIGHUP)
        check(west.wait_event("reloaded")["status"] != "ok", f"a wrong file was taken: {west.events}")
        ends(secured.send(file, secured.uri + "/g"), 0)
        secured.west.config.write_text(good)
        west.kill(signal.SIGHUP)
        west.wait_event("reloaded", lambda event: event["status"] == "ok")
        ends(secured.send("--retries", "0", file, secured.uri + "/h"), 41, "revoked")
        check(west.stop() == 0, west.tail())
