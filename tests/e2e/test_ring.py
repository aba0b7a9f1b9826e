"""T12: three real routers in a ring on the loopback, all traffic the same way round, with one buffer a class
(tests/sim/deadlock/README.md)."""
import time

from lab import Failure, Lab, big_file, check, device, routed, sha256

RING = 3
SIZE = 96 << 20
QUIET_S = 40.0   # the watchdog: nothing moved in any transfer for so long


def lan(i):
    return 1 + i % RING, f"127.1.{i % RING}"     # of router i


def arc(i):
    return 11 + i % RING, f"127.2.{i % RING}"    # between router i and router i + 1


def router_config(i):
    """Host 1 of each subnet is its first router. Every LAN reaches the next but one clockwise, over all three routers."""
    before, after = arc(i - 1), arc(i)
    statics = "".join(f"[[router.static]]\nfrom = {lan(k)[0]}\nto = {lan(k + 2)[0]}\nvia = [{lan(k)[0]}, {arc(k)[0]}, {arc(k + 1)[0]}]\n" for k in range(RING))
    return (device("lan", lan(i)[1] + ".1", lan(i)[0], [], 7000) + device("on", after[1] + ".1", after[0], [f"tcp://{after[1]}.2:7000"], 7000)
            + device("back", before[1] + ".2", before[0], [f"tcp://{before[1]}.1:7000"], 7000)
            + '[router]\nfragment = "256KiB"\nmemory = "2MiB"\n' + statics)


def watch(processes):
    """Until all have ended; a Failure when none has told of progress for QUIET_S."""
    def moved():
        return [(p.ended, max((e.get("bytes", 0) for e in p.events if e["event"] == "progress"), default=0)) for p in processes]
    last, since = moved(), time.monotonic()
    while not all(p.ended for p in processes):
        first = next(p for p in processes if not p.ended)
        with first.news:
            first.news.wait(1)
        now = moved()
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > QUIET_S:
            raise Failure("the ring stands still: " + "\n".join(p.tail() for p in processes))


def test_ring_of_three_routers_with_one_buffer_a_class__all_is_delivered():
    with Lab("ring") as lab:
        source = big_file(lab.directory / "big", SIZE)
        # The first router's peers are not there yet: it tries again until they are.
        for i in range(RING):
            lab.start_ready(None, f"router{i}", "route", "-c", lab.file(f"router{i}.toml", router_config(i)), "--insecure")
        receivers, senders = [], []
        for i in range(RING):
            subnet, address = lan(i)
            config = lab.file(f"end{i}.toml", device("lan", address + ".9", subnet, [f"tcp://{address}.1:7000"]))
            root = lab.directory / f"in{i}"
            root.mkdir()
            receivers.append(lab.start_ready(None, f"recv{i}", "recv", "--root", root, "-c", config, "--insecure"))
        for i in range(RING):
            config = lab.directory / f"end{i}.toml"
            to = (i + 2) % RING
            senders.append(lab.start(None, f"send{i}", "send", "-c", config, "--insecure", source, routed(receivers[to].uris) + f"/from{i}"))
        watch(senders)
        for i, sender in enumerate(senders):
            check(sender.wait() == 0, sender.tail())
            path = sender.wait_event("session")["path"]
            check(len(path) == RING + 1, f"not the long way round: {path}")
            check(sha256(lab.directory / f"in{(i + 2) % RING}" / f"from{i}") == sha256(source), f"from{i} differs")
