"""Kills, restarts and dead routers (issue: 'Done when' 2 and 3)."""
import signal

from lab import Lab, TwoSites, big_file, check, native, routed, same_tree, sha256

SIZE = 1 << 30


def half(event):
    return event.get("bytes", 0) >= SIZE // 3


def test_router_killed_and_restarted_in_mid_transfer__same_send_ends_with_0():
    with TwoSites("rkill") as sites:
        source = big_file(sites.lab.directory / "big", SIZE)
        sites.start_routers()
        receiver = sites.receive()
        sender = sites.send("--bwlimit", "300MB/s", source, routed(receiver.uris) + "/big")
        sender.wait_event("progress", half)
        sites.west_router.kill()
        sites.west_router.wait()
        sender.wait_event("retry")
        sites.start_router("west")
        check(sender.wait() == 0, sender.tail())
        check(sha256(source) == sha256(sites.root / "big"), "big differs")
        done = sender.done()
        check(done["bytes_sent"] <= SIZE + (600 << 20), f"too much was sent again: {done}")


def test_sender_killed_at_half__next_run_sends_what_was_not_durable():
    with Lab("skill") as lab:
        source = big_file(lab.directory / "big", SIZE)
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        sender = lab.start(None, "send", "send", "--bwlimit", "400MB/s", "--insecure", source, native(receiver.uris) + "/big")
        durable = sender.wait_event("progress", lambda e: e.get("bytes", 0) >= SIZE // 2)["bytes"]
        sender.kill()
        sender.wait()
        check(not (root / "big").exists(), "a final name shows partial bytes")
        again = lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + "/big")
        check(again.wait() == 0, again.tail())
        sent = again.done()["bytes_sent"]
        check(sent <= SIZE - durable, f"sent {sent} again although {durable} of {SIZE} were durable")
        check(sha256(source) == sha256(root / "big"), "big differs")


def test_receiver_killed_and_restarted__same_send_ends_with_0():
    with Lab("dkill") as lab:
        source = big_file(lab.directory / "big", SIZE)
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        address = native(receiver.uris).removeprefix("tcp://")
        sender = lab.start(None, "send", "send", "--bwlimit", "400MB/s", "--insecure", source, f"tcp://{address}/big")
        durable = sender.wait_event("progress", half)["bytes"]
        receiver.kill()
        receiver.wait()
        lab.start_ready(None, "recv", "recv", "--root", root, "--listen", address, "--insecure")
        check(sender.wait() == 0, sender.tail())
        check(sha256(source) == sha256(root / "big"), "big differs")
        sent = sender.done()["bytes_sent"]
        check(sent <= 2 * SIZE - durable, f"sent {sent}; {durable} were durable at the kill")


def test_clients_only_router_down__35():
    with TwoSites("down") as sites:
        source = big_file(sites.lab.directory / "f", 1000)
        sites.start_routers()
        receiver = sites.receive()
        sites.west_router.kill()
        sites.west_router.wait()
        sender = sites.send("--timeout", "3", source, routed(receiver.uris) + "/f")
        check(sender.wait() == 35, sender.tail())
        check(len(sender.stderr().strip().splitlines()) <= 2, f"one line and the warning: {sender.stderr()}")


def test_every_router_of_the_far_subnet_down__43_then_resumes():
    with TwoSites("far") as sites:
        source = big_file(sites.lab.directory / "f", 1000)
        sites.west_router = sites.start_router("west")
        receiver = sites.receive()
        sender = sites.send("--timeout", "3", source, routed(receiver.uris) + "/f")
        check(sender.wait() == 43, sender.tail())
        sites.start_router("east")
        sender = sites.send(source, routed(receiver.uris) + "/f")
        check(sender.wait() == 0, sender.tail())
        check(sha256(source) == sha256(sites.root / "f"), "f differs")


def test_interrupted__20_then_resumes():
    with Lab("int") as lab:
        source = big_file(lab.directory / "big", SIZE)
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        sender = lab.start(None, "send", "send", "--bwlimit", "400MB/s", "--insecure", source, native(receiver.uris) + "/big")
        durable = sender.wait_event("progress", half)["bytes"]
        sender.kill(signal.SIGINT)
        check(sender.wait() == 20, sender.tail())
        again = lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + "/big")
        check(again.wait() == 0, again.tail())
        check(again.done()["bytes_sent"] <= SIZE - durable, f"sent again what was durable: {again.done()}")
        check(sha256(source) == sha256(root / "big"), "big differs")


def test_receivers_address_is_taken_away__it_says_so_and_serves_again_when_it_is_back():
    with Lab("gone") as lab:
        near, far = lab.host("near"), lab.host("far")
        _, interface = lab.wire(near, "10.0.0.1/24", far, "10.0.0.2/24")
        source = big_file(lab.directory / "big", 1 << 20)
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(far, "recv", "recv", "--root", root, "--listen", "10.0.0.2:7000", "--insecure")
        for take, give in ((("addr", "del", "10.0.0.2/24", "dev", interface), ("addr", "add", "10.0.0.2/24", "dev", interface)),
                           (("link", "set", interface, "down"), ("link", "set", interface, "up"))):
            far.run("ip", *take)
            far.run("ip", *give)
            sender = lab.start(near, "send", "send", "--insecure", source, native(receiver.uris) + f"/{take[0]}")
            check(sender.wait() == 0, sender.tail())
        far.run("ip", "addr", "del", "10.0.0.2/24", "dev", interface)   # the kernel has told before `ip` ends
        check(receiver.stop() == 0, receiver.tail())
        told = [line for line in receiver.stderr().splitlines() if "the device failed" in line]
        check(told and all("tcp://10.0.0.2:7000" in line for line in told), receiver.stderr())


def test_router_stopped_for_a_while__the_transfer_waits_and_ends():
    with TwoSites("stop") as sites:
        source = big_file(sites.lab.directory / "big", SIZE // 2)
        sites.start_routers()
        receiver = sites.receive()
        sender = sites.send("--bwlimit", "300MB/s", source, routed(receiver.uris) + "/big")
        sender.wait_event("progress", lambda e: e.get("bytes", 0) >= SIZE // 8)
        sites.east_router.kill(signal.SIGSTOP)
        stopped_at = sender.events[-1]["t"]
        stuck = sender.wait_event("progress", lambda e: e["t"] > stopped_at)["bytes"]
        sites.east_router.kill(signal.SIGCONT)
        check(stuck < SIZE // 2, "the router was stopped too late")
        check(sender.wait() == 0, sender.tail())
        same = sha256(source) == sha256(sites.root / "big")
        check(same, "big differs")
