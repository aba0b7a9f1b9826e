"""What a receiver says of itself: what stands staged, what ended, commands that are run at the end."""
import json
import os
import signal
import subprocess
import time

from lab import BINARY, Lab, PATIENCE_S, big_file, check, native
from test_options import receiver_on
from test_security import Account, Pair, ends


def status(root, *options, code=0):
    ended = subprocess.run([BINARY, "status", root, "--json", *options], capture_output=True, text=True, check=False, timeout=60)
    check(ended.returncode == code, f"{ended.returncode}: {ended.stderr}")
    return [json.loads(line) for line in ended.stdout.splitlines()]


def staged(root, *options):
    return [event for event in status(root, *options) if event["event"] == "staged"]


def until(what, words):
    deadline = time.monotonic() + PATIENCE_S
    while not (found := what()):
        check(time.monotonic() < deadline, words)
        time.sleep(0.1)
    return found


def test_status__unfinished_file__listed_beside_a_receiver_that_runs_and_removed_on_demand():
    with Lab("status") as lab:
        pair = Pair(lab)
        source = big_file(lab.directory / "f", 64 << 20)
        check(staged(pair.root) == [], "nothing has come yet")
        sender = pair.send("--bwlimit", "8MB/s", source, pair.uri + "/x/f")
        until(lambda: [one for one in staged(pair.root) if one["bytes"] > 0], "no piece is durable")
        # A transfer that writes it keeps it.
        (one,) = staged(pair.root, "--expire", "0s")
        check(one["path"] == "x/f" and one["bytes_total"] == 64 << 20 and one["peer"] == "alice", f"{one}")
        check(abs(one["since"] - time.time()) < 120 and abs(one["active"] - time.time()) < 60, f"{one}")
        sender.kill(signal.SIGKILL)
        sender.wait()
        check(pair.receiver.stop() in (0, 20), pair.receiver.tail())
        (one,) = staged(pair.root)
        check(0 < one["bytes"] < 64 << 20, f"{one}")
        again = lab.start_ready(None, "recv", "recv", "--root", pair.root, "--listen", "127.0.0.1:0", env=pair.bob.env)
        check(len(staged(pair.root, "--expire", "1h")) == 1, "it is not so old")
        check(staged(pair.root, "--expire", "0s") == [], "it stays beside a receiver that runs")
        check(not list((pair.root / ".ccixfer").glob("*.part")), "its file stays")
        check(again.stop() == 0, again.tail())


def test_status__nobody_runs__expire_removes_and_leaves_nothing():
    with Lab("status-idle") as lab:
        receiver = receiver_on(lab)
        source = big_file(lab.directory / "f", 64 << 20)
        sender = lab.start(None, "send", "send", "--insecure", "--bwlimit", "8MB/s", source, native(receiver.uris) + "/f")
        until(lambda: [one for one in staged(lab.directory / "root") if one["bytes"] > 0], "no piece is durable")
        for process in (receiver, sender):
            process.kill(signal.SIGKILL)
            process.wait()
        check(len(staged(lab.directory / "root")) == 1, "it is not listed")
        check(staged(lab.directory / "root", "--expire", "0s") == [], "it stays")
        check(list((lab.directory / "root").iterdir()) == [], "something stays")
        check(status(lab.directory / "nothing", code=11)[-1]["exit"] == 11, "no such root")


def test_history__transfers_that_ended__listed_with_peer_and_result():
    with Lab("history") as lab:
        pair = Pair(lab)
        ends(pair.send(lab.file("f", "x"), pair.uri + "/x/f"), 0)
        (pair.root / "x/in the way").mkdir()
        (pair.root / "x/in the way/f").write_text("y")
        ends(pair.send("-n", lab.file("g", "x"), pair.uri + "/x/g"), 0)   # a dry run is no transfer
        ends(pair.send(lab.file("in the way", "x"), pair.uri + "/x/"), 23)
        events = until(lambda: (lines := [e for e in status(pair.root, "--history") if e["event"] == "transfer"]) and len(lines) == 2 and lines,
                       "two transfers ended")
        first, second = events
        check((first["peer"], first["identity"], first["path"], first["status"], first["files"], first["bytes"]) ==
              ("alice", pair.alice.id, "x/f", "ok", 1, 1), f"{first}")
        check((second["exit"], second["files_failed"]) == (23, 1) and abs(second["finished"] - time.time()) < 120, f"{second}")
        check([event["transfer"] for event in pair.receiver.events if event["event"] == "transfer"] == [first["transfer"], second["transfer"]],
              f"{pair.receiver.events}")
        check(pair.receiver.stop() == 0, pair.receiver.tail())
        text = subprocess.run([BINARY, "status", "--history", pair.root], capture_output=True, text=True, check=True).stdout.splitlines()
        check(len(text) == 2 and "push from alice into x/f: ok: 1 file," in text[0], f"{text}")


def test_on_complete__each_transfer_of_a_receiver_and_the_sender__gets_the_result():
    with Lab("on-complete") as lab:
        out = lab.directory / "out"
        pair = Pair(lab, ("--on-complete", f"cat >> {out}; echo heard"))
        for index in range(3):
            sender = pair.send("--on-complete", f"cat > {lab.directory}/sent{index}", lab.file("f", "x" * index), f"{pair.uri}/x/f{index}")
            ends(sender, 0)
            said = json.loads((lab.directory / f"sent{index}").read_text())
            check(said["status"] == "ok" and said["bytes"] == index and said["direction"] == "push" and said["identity"] == pair.bob.id, f"{said}")
        lines = until(lambda: out.exists() and len(out.read_text().splitlines()) == 3 and out.read_text().splitlines(), "not all are told")
        check([json.loads(line)["path"] for line in lines] == ["x/f0", "x/f1", "x/f2"], f"{lines}")
        check(pair.receiver.stop() == 0, pair.receiver.tail())
        check("heard" in pair.receiver.stderr(), "what it prints is lost")


def test_on_complete__fails_or_is_interrupted__a_warning_and_the_transfer_ends_as_ever():
    with Lab("on-complete-fails") as lab:
        receiver = receiver_on(lab, "--on-complete", "exit 3")
        failing = lab.start(None, "send", "send", "--insecure", "--on-complete", "kill -9 $$", lab.file("f", "x"), native(receiver.uris) + "/f")
        ends(failing, 0, "--on-complete: the command was ended by signal 9")
        source = big_file(lab.directory / "g", 64 << 20)
        slow = lab.start(None, "slow", "send", "--insecure", "--bwlimit", "8MB/s", "--on-complete", f"cat > {lab.directory}/told", source,
                         native(receiver.uris) + "/g")
        slow.wait_event("progress", lambda event: event["bytes"] > 0)
        slow.kill(signal.SIGINT)
        ends(slow, 20)
        check(json.loads((lab.directory / "told").read_text())["exit"] == 20, "another result")
        check(receiver.stop() in (0, 20), receiver.tail())
        check("the command failed: exit code 3" in receiver.stderr(), receiver.tail())
        check(os.path.exists(lab.directory / "root/f"), "it is delivered all the same")
