"""Who may not come is told so at once, however long those wait who may."""
import signal

from lab import Lab, big_file, check
from test_security import Account, Pair, ends


def test_full_receiver__a_stranger_and_a_wrong_path__need_not_wait_to_be_refused():
    with Lab("full") as lab:
        pair = Pair(lab, ("--sessions", "1"))
        runs = pair.send("-j", "1", "--bwlimit", "10MB/s", big_file(lab.directory / "f", 100 << 20), pair.uri + "/x/f", name="runs")
        runs.wait_event("progress", lambda event: event["bytes"] > 1 << 20)
        small = lab.file("small", "x")
        waits = pair.send(small, pair.uri + "/x/small", name="waits")
        eve = Account(lab, "eve").keygen()
        eve.knows(pair.uri, pair.bob)
        ends(pair.send(small, pair.uri + "/x/eve", account=eve, name="eve"), 42, eve.id, "[peer.NAME]")
        ends(pair.send(small, pair.uri + "/y/small", name="elsewhere"), 42, pair.alice.id)
        check(runs.process.poll() is None and waits.process.poll() is None, "they were refused when there was room")
        runs.kill(signal.SIGINT)
        ends(waits, 0)
