"""Routers with several workers: connections are spread over them, links and questions for the map stay with the first one, and a
stop, a reload and a changed grant reach all of them."""
import signal

from lab import Lab, TwoRouters, TwoSites, big_file, check, device, routed, same_tree, sha256, small_tree
from test_audit import lines_of
from test_security import SecuredSites, ends

TWO = "\n[router]\nworkers = 2\n"
SENDERS = 6


def add_to(config, text):
    with open(config, "a") as file:
        file.write(text)


def workers_of(router):
    """What each worker of a router that has ended did."""
    return next(event for event in reversed(router.events) if event["event"] == "workers")["workers"]


class Sites:
    """Two sites whose border hosts have two workers each."""

    def __init__(self, sites):
        self.sites = sites
        for config in (sites.west_config, sites.east_config):
            add_to(config, TWO)


def test_two_workers__several_senders_at_once__all_arrive_and_both_forward():
    with TwoSites("spread") as sites:
        Sites(sites)
        sites.start_routers()
        receiver = sites.receive()
        tree = small_tree(sites.lab.directory / "tree")
        sender = sites.send("-a", f"{tree}/", routed(receiver.uris) + "/tree/")
        check(sender.wait() == 0, sender.tail())
        same_tree(tree, sites.root / "tree")
        source = big_file(sites.lab.directory / "big", 24 << 20)
        senders = [sites.send("-j", "1", "--bwlimit", "20MB/s", source, routed(receiver.uris) + f"/big{n}") for n in range(SENDERS)]
        for sender in senders:
            sender.wait_event("session")
        for router in sites.routers:   # while all are under way
            router.kill(signal.SIGUSR1)
            now = router.wait_event("workers")["workers"]
            check(len(now) == 2 and sum(one["connections"] for one in now) >= 1, f"{now}")
        for number, sender in enumerate(senders):
            check(sender.wait() == 0, sender.tail())
            check(sha256(source) == sha256(sites.root / f"big{number}"), "it came damaged")
        for router in sites.routers:
            check(router.stop() == 0, router.tail())
            each = workers_of(router)
            check([one["worker"] for one in each] == [0, 1], f"{each}")
            check(all(one["routed_connections"] >= 2 and one["routed_bytes"] >= 24 << 20 for one in each), f"{each}")
            told = router.done()["counters"]
            for key in ("routed_connections", "routed_bytes"):
                check(told[key] == sum(one[key] for one in each), f"{key}: {told[key]}, {each}")


def test_two_workers__proved_peers__each_worker_knows_them_and_tells_the_audit_log():
    with TwoSites("proved") as sites:
        secured, lab = SecuredSites(sites), sites.lab
        Sites(sites)
        log = lab.directory / "log"
        secured.start_all({"west": ("--audit-log", log)})
        source = big_file(lab.directory / "f", 3_000_000)
        for number in range(4):
            ends(secured.send("-j", "1", source, secured.uri + f"/f{number}"), 0)
        for _ in range(4):   # questions for the map find the worker that has it, every time
            ends(secured.start(sites.sender, secured.alice, "routes", "routes", "tcp://10.0.0.1:7000"), 0)
        check(sites.routers[0].stop() == 0, sites.routers[0].tail())
        each = workers_of(sites.routers[0])
        check(all(one["routed_connections"] > 0 for one in each), f"{each}")
        lines = lines_of(log)
        ended = [line for line in lines if line["event"] == "connection"]
        check(len(ended) == sum(one["routed_connections"] for one in each), f"{each}: {lines}")
        check({(line["peer"], line["name"], line["outcome"]) for line in ended} == {(secured.alice.id, "alice", "ok")}, f"{ended}")
        check(len([line for line in lines if line["direction"] == "admin"]) == 4, f"{lines}")


def test_two_workers__a_grant_that_is_gone__counts_in_both_from_sighup_on():
    with TwoSites("granted") as sites:
        secured, lab = SecuredSites(sites), sites.lab
        Sites(sites)
        secured.start_all()
        small = lab.file("small", "x")
        for number in range(2):
            ends(secured.send("-j", "1", small, secured.uri + f"/f{number}"), 0)
        west = sites.routers[0]
        text = sites.west_config.read_text()
        sites.west_config.write_text(text.replace("route = true\n", "route = false\n"))
        west.kill(signal.SIGHUP)
        check(west.wait_event("reloaded")["status"] == "ok", west.tail())
        for number in range(4):
            ends(secured.send("-j", "1", "--retries", "0", small, secured.uri + f"/g{number}"), 42, "route = true")
        sites.west_config.write_text(text)
        west.kill(signal.SIGHUP)
        seen = len([event for event in west.events if event["event"] == "reloaded"])
        west.wait_event("reloaded", lambda event: len([e for e in west.events if e["event"] == "reloaded"]) >= max(seen, 2))
        for number in range(4):
            ends(secured.send("-j", "1", small, secured.uri + f"/h{number}"), 0)


def test_two_workers__sigterm_with_connections_in_both__they_move_to_the_other_router():
    with TwoRouters("moves") as sites:
        for config in sites.configs.values():
            add_to(config, TWO)
        sites.start_routers()
        receiver = sites.receive()
        source = big_file(sites.lab.directory / "big", 40 << 20)
        senders = [sites.send("-j", "2", "--bwlimit", "10MB/s", source, routed(receiver.uris) + f"/big{n}") for n in range(3)]
        for sender in senders:
            sender.wait_event("progress", lambda event: event["bytes"] > 1 << 20)
        check(sites.routers["r1"].stop() == 0, sites.routers["r1"].tail())
        each = workers_of(sites.routers["r1"])
        check(all(one["routed_bytes"] > 0 and one["connections"] == 0 for one in each), f"{each}")
        for number, sender in enumerate(senders):
            check(sender.wait() == 0, sender.tail())
            check(sha256(source) == sha256(sites.root / f"big{number}"), "it came damaged")


def test_two_workers__a_second_router_on_the_same_port__is_refused_as_ever():
    with Lab("taken") as lab:
        config = lab.file("r.toml", device("a", "127.0.0.1", 1, []) + device("b", "127.0.0.2", 2, []) + TWO)
        first = lab.start_ready(None, "first", "route", "-c", config, "--insecure")
        port = first.uris[0].rsplit(":", 1)[1]
        again = lab.file("again.toml", device("a", "127.0.0.1", 1, [], int(port)) + device("b", "127.0.0.2", 2, []) + TWO)
        second = lab.start(None, "second", "route", "-c", again, "--insecure")
        check(second.wait() == 10, second.tail())
        check("cannot listen on" in second.stderr(), second.tail())
        check(first.stop() == 0, first.tail())
