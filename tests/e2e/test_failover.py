"""Two routers in parallel, real processes: a planned stop, a kill, a hang, a lost subnet; and a reload in mid-transfer."""
import signal
import subprocess

from lab import BINARY, TwoRouters, TwoSites, big_file, check, device, routed, sha256

MIB = 1 << 20
SIZE = 512 * MIB


def begin(sites, size=SIZE, lanes="8", rate="100MB/s"):
    """Routers, receiver and a sender whose transfer is under way. Gives the source, the sender, and the durable bytes now."""
    source = big_file(sites.lab.directory / "big", size)
    sites.start_routers()
    receiver = sites.receive()
    sender = sites.send("-j", lanes, "--bwlimit", rate, source, routed(receiver.uris) + "/big")
    durable = sender.wait_event("progress", lambda event: event.get("bytes", 0) >= size // 8)["bytes"]
    return source, sender, durable


def ends_well(sites, source, sender):
    check(sender.wait() == 0, sender.tail())
    check(sha256(source) == sha256(sites.root / "big"), "big differs")
    return sender.done()


def test_router_stopped_as_planned__its_lanes_move_and_nothing_is_sent_twice():
    with TwoRouters("drain") as sites:
        source, sender, _ = begin(sites)
        used, other = sites.router_of_lane_0(sender)
        check(len(sites.known_to(other)) == 2, "the routers do not know each other")
        check(sites.routers[used].stop() == 0, sites.routers[used].tail())
        check(not sender.ended, "the router was stopped too late")
        check(len(sites.known_to(other)) == 1, "the record of a router that stopped as planned is still there")
        check(sites.routers[used].done()["counters"]["routed_bytes"] > 0, "no lane went through the router that was stopped")
        done = ends_well(sites, source, sender)
        check(done["segments_resent"] == 0 and done["bytes_sent"] == SIZE, f"sent twice: {done}")
        check(not any(event["event"] == "retry" for event in sender.events), f"it was noticed: {sender.events[-5:]}")


def test_only_router_stopped_as_planned__a_transfer_that_ends_soon_ends():
    with TwoSites("drain1") as sites:
        source = big_file(sites.lab.directory / "big", 200 * MIB)
        sites.start_routers()
        receiver = sites.receive()
        sender = sites.send("--bwlimit", "60MB/s", source, routed(receiver.uris) + "/big")
        sender.wait_event("progress", lambda event: event.get("bytes", 0) >= 20 * MIB)
        code = sites.west_router.stop()
        check(code == 0, sites.west_router.tail())
        done = ends_well(sites, source, sender)
        check(done["bytes_sent"] == 200 * MIB, f"sent twice: {done}")
        late = sites.send("--timeout", "1", source, routed(receiver.uris) + "/again")
        check(late.wait() == 35, late.tail())


def test_second_signal__the_router_ends_at_once_with_20_and_the_transfer_resumes():
    with TwoSites("drain2") as sites:
        source = big_file(sites.lab.directory / "big", SIZE)
        sites.start_routers()
        uri_file = sites.lab.directory / "middle.uris"
        sites.west_router.stop()
        sites.west_router = sites.lab.start_ready(sites.west, "west", "route", "-c", sites.west_config, "--insecure", "--uri-file", uri_file)
        check(uri_file.exists(), "no uri file")
        receiver = sites.receive()
        sender = sites.send("--bwlimit", "100MB/s", source, routed(receiver.uris) + "/big")
        durable = sender.wait_event("progress", lambda event: event.get("bytes", 0) >= SIZE // 8)["bytes"]
        sites.west_router.kill(signal.SIGTERM)
        refused = subprocess.run([*sites.sender.prefix, str(BINARY), "ping", "-c", str(sites.sender_config), "--timeout", "5", "--insecure",
                                  routed(receiver.uris)], capture_output=True, text=True, check=False, timeout=60)
        check(refused.returncode != 0 and "drain" in refused.stderr, f"a router that drains took a connection: {refused.stderr}")
        sites.west_router.kill(signal.SIGINT)
        check(sites.west_router.wait() == 20, sites.west_router.tail())
        check(not uri_file.exists(), "the uri file is still there")
        sites.start_router("west")
        done = ends_well(sites, source, sender)
        check(done["bytes_sent"] <= 2 * SIZE - durable, f"sent again what was durable: {done}")


def fails_over(name, break_it):
    """One of two routers breaks in mid-transfer. The lanes through it go through the other, and only what was not durable goes again."""
    with TwoRouters(name) as sites:
        source, sender, durable = begin(sites)
        used, other = sites.router_of_lane_0(sender)
        before = sites.known_to(other)
        check(len(before) == 2, "the routers do not know each other")
        break_it(sites, used)
        sender.wait_event("progress", lambda event: event.get("bytes", 0) > durable)  # the others go on, and say so, meanwhile
        done = ends_well(sites, source, sender)
        check(done["bytes_sent"] <= 2 * SIZE - durable, f"sent again what was durable: {done}")
        check(done["counters"]["connections_lost"] > 0, f"no lane went through the broken router: {done}")


def test_router_killed__its_lanes_go_through_the_other_one():
    fails_over("kill2", lambda sites, router: sites.routers[router].kill(signal.SIGKILL))


def test_router_that_hangs__its_lanes_go_through_the_other_one():
    fails_over("hang2", lambda sites, router: sites.routers[router].kill(signal.SIGSTOP))


def test_router_that_loses_one_subnet__its_lanes_go_through_the_other_one():
    def cut(sites, router):
        sites.hosts[router].run("ip", "link", "set", sites.right_interface[router], "down")
    fails_over("cut2", cut)


def test_router_that_loses_one_subnet__withdraws_it_while_nobody_uses_it_and_takes_it_back():
    with TwoRouters("lost2") as sites:
        lost, kept = "r1", "r2"
        sites.start_routers()
        receiver = sites.receive()
        sites.await_known(kept, {lost: {"1:1", "1:2"}, kept: {"1:1", "1:2"}})
        sites.hosts[lost].run("ip", "link", "set", sites.right_interface[lost], "down")
        sites.await_known(kept, {lost: {"1:1"}, kept: {"1:1", "1:2"}})
        # Asked for its lost subnet, it hands on to the router that has it, at once: it does not try by itself until that fails.
        config = sites.lab.file("only.toml", device("lan", "10.1.0.2", 1, ["tcp://10.1.0.11:7000"]))
        small = big_file(sites.lab.directory / "small", MIB)
        sender = sites.lab.start(sites.sender, "only", "send", "-c", config, "--insecure", small, routed(receiver.uris) + "/small")
        path = sender.wait_event("session")["path"]
        check(sender.wait() == 0, sender.tail())
        check([hop["node"] for hop in path][:2] == ["tcp://10.1.0.11:7000", "tcp://10.1.0.12:7000"], f"{path}")
        sites.hosts[lost].run("ip", "link", "set", sites.right_interface[lost], "up")
        sites.await_known(kept, {lost: {"1:1", "1:2"}, kept: {"1:1", "1:2"}})
        # An address that is taken away is lost as well, though the link is up.
        sites.hosts[lost].run("ip", "addr", "del", "10.2.0.11/24", "dev", sites.right_interface[lost])
        sites.await_known(kept, {lost: {"1:1"}, kept: {"1:1", "1:2"}})


def test_reload_in_mid_transfer__metric_static_route_and_device_change_and_no_connection_ends():
    with TwoRouters("reload") as sites:
        source, sender, _ = begin(sites)
        used, _ = sites.router_of_lane_0(sender)
        number = int(used[1])
        host, router = sites.hosts[used], sites.routers[used]
        # A third network behind this router, made while it runs.
        third = sites.lab.host("third")
        sites.lab.wire(host, "10.3.0.1/24", third, "10.3.0.2/24")
        config = sites.config(number)
        sites.configs[used].write_text(config + device("new", "10.3.0.1", 3, [], 7000) +
                                       '[router]\nmetric = ["hops", "bandwidth"]\n[[router.static]]\nfrom = 1\nto = 2\nvia = [1, 2]\n')
        router.kill(signal.SIGHUP)
        reloaded = router.wait_event("reloaded")
        check(reloaded["devices"] == 3, f"{reloaded}")
        # The new network is reached from the old one while the transfer goes on.
        config = sites.lab.file("third.toml", device("lan", "10.3.0.2", 3, ["tcp://10.3.0.1:7000"], 7100))
        root = sites.lab.directory / "third-root"
        root.mkdir()
        receiver = sites.lab.start_ready(third, "third", "recv", "--root", root, "-c", config, "--insecure")
        small = big_file(sites.lab.directory / "small", MIB)
        to_third = sites.send("--timeout", "30", small, routed(receiver.uris) + "/small")
        check(to_third.wait() == 0, to_third.tail())
        check(sha256(small) == sha256(root / "small"), "small differs")
        # A file that cannot be used changes nothing.
        sites.configs[used].write_text("[device.left]\ntransport = 7\n")
        router.kill(signal.SIGHUP)
        check(not sender.ended, "the transfer ended before the second reload")
        done = ends_well(sites, source, sender)
        check(done["segments_resent"] == 0 and done["bytes_sent"] == SIZE, f"a connection was lost: {done}")
        check(not any(event["event"] == "retry" for event in sender.events), f"a connection was lost: {sender.events[-5:]}")
        check(router.stop() == 0, router.tail())
        check("not reloaded" in router.stderr(), router.stderr())
