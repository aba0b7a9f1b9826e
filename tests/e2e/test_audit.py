"""Audit logs: of a router, whom it admits and refuses, what passed and how it ended, and nothing of what it was; of a receiver, who proves
nothing."""
import json
import signal

from lab import Lab, TwoSites, big_file, check
from test_security import Account, Pair, SecuredSites, ends


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_router__its_audit_log__has_links_clients_ends_and_strangers():
    with TwoSites("audit") as sites:
        secured, lab = SecuredSites(sites), sites.lab
        logs = lab.directory / "logs"
        logs.mkdir()
        log = logs / "west"
        secured.start_all({"west": ("--audit-log", log)})
        source = big_file(lab.directory / "the canary", 3_000_000)
        ends(secured.send(source, secured.uri + "/f"), 0)
        log.rename(logs / "west.1")
        sites.routers[0].kill(signal.SIGHUP)
        sites.routers[0].wait_event("reloaded")
        eve = Account(lab, "eve").keygen()
        eve.config = secured.alice.config
        eve.knows(secured.uri, secured.bob)
        ends(secured.send(source, secured.uri + "/g", account=eve, name="eve"), 42)
        ends(lab.start(sites.sender, "plain", "send", "--insecure", "-c", secured.alice.config, source, secured.uri + "/h"), 41)
        check(sites.routers[0].stop() == 0, sites.routers[0].tail())
        before, after = lines_of(logs / "west.1"), lines_of(log)
        link = [line for line in before if line["direction"] == "link" and line["event"] == "admitted"]
        check(link and link[0]["peer"] == secured.east.id and link[0]["name"] == "east" and link[0]["address"] == "192.0.2.2", f"{before}")
        alice = [line for line in before if line["direction"] == "route"]
        check({line["peer"] for line in alice} == {secured.alice.id} and {line["name"] for line in alice} == {"alice"} and
              {line["address"] for line in alice} == {"10.0.0.2"} and {line["to"] for line in alice} == {secured.uri}, f"{alice}")
        opened, ended = ([line for line in alice if line["event"] == event] for event in ("admitted", "connection"))
        check(len(opened) == len(ended) >= 1 and {line["outcome"] for line in ended} == {"ok"}, f"{alice}")
        check(3_000_000 < sum(line["bytes"] for line in ended) < 3_300_000, f"{ended}")
        refused = [line for line in after if line["event"] == "refused"]
        known = [line for line in refused if line["peer"] == eve.id]
        check(known and known[0]["exit"] == 42 and known[0]["name"] == "" and "route = true" in known[0]["reason"], f"{after}")
        check(any(line["peer"] == "" and line["exit"] == 41 and "--insecure" in line["reason"] for line in refused), f"{after}")
        check("canary" not in (logs / "west.1").read_text() + log.read_text(), "a file's name is in the audit log of a router")
        check(log.stat().st_mode & 0o777 == 0o600, oct(log.stat().st_mode))


def test_receiver__who_proves_nothing__has_a_line_in_its_audit_log():
    with Lab("knocks") as lab:
        pair = Pair(lab, ("--audit-log", lab.directory / "audit"))
        ends(lab.start(None, "plain", "send", "--insecure", lab.file("f", "x"), pair.uri + "/x/f"), 41)
        check(pair.receiver.stop() == 0, pair.receiver.tail())
        lines = lines_of(lab.directory / "audit")
        check(lines and all((line["event"], line["exit"], line["peer"], line["address"]) == ("refused", 41, "", "127.0.0.1") for line in lines), f"{lines}")
