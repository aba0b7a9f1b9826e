"""Many senders of one receiver, a receiver without room, and what cannot be sent twice."""
import signal
import subprocess
import time

from lab import Lab, big_file, check, native, same_tree, sha256, small_tree


def receiver_on(lab, *options, listen="127.0.0.1:0", name="recv"):
    root = lab.directory / "root"
    root.mkdir(exist_ok=True)
    return lab.start_ready(None, name, "recv", "--root", root, "--listen", listen, "--insecure", *options)


def test_sixty_four_senders_at_once__none_waits_and_all_arrive():
    with Lab("many") as lab:
        receiver = receiver_on(lab)
        source = lab.directory / "tree"
        small_tree(source, files=40)
        began = time.monotonic()
        senders = [lab.start(None, f"send{i}", "send", "-a", "--insecure", "--memory", "32MiB", f"{source}/", f"{native(receiver.uris)}/t{i}/")
                   for i in range(64)]
        for sender in senders:
            check(sender.wait() == 0, sender.tail())
            check(all(event["event"] not in ("waiting", "retry") for event in sender.events), sender.tail())
        print(f"    64 senders: {time.monotonic() - began:.1f} s")
        for i in range(64):
            same_tree(source, lab.directory / "root" / f"t{i}")
        receiver.stop()


def test_receiver_without_room__senders_are_told_their_place_and_have_no_timeout_while_others_get_on():
    with Lab("queue") as lab:
        receiver = receiver_on(lab, "--sessions", "1")
        source = big_file(lab.directory / "f", 16 << 20)
        # Each takes longer than the timeout of those who wait for it together.
        senders = []
        for i in range(4):
            senders.append(lab.start(None, f"send{i}", "send", "--insecure", "--bwlimit", "8MB/s", "--timeout", "3", source,
                                     f"{native(receiver.uris)}/f{i}"))
            senders[i].wait_event("waiting" if i > 0 else "session", (lambda e, n=i - 1: e["before"] == n) if i > 0 else lambda e: True)
        for i, sender in enumerate(senders):
            check(sender.wait() == 0, sender.tail())
            check(sha256(source) == sha256(lab.directory / "root" / f"f{i}"), f"f{i} differs")
        places = [event["before"] for event in senders[3].events if event["event"] == "waiting"]
        check(places == [2, 1, 0], f"places told: {places}")
        check(all("transfer" in event for event in senders[3].events if event["event"] == "waiting"), f"{senders[3].events}")
        receiver.stop()


def test_standard_input_when_the_receiver_is_started_again__10_and_says_why():
    with Lab("stdin-lost") as lab:
        receiver = receiver_on(lab)
        address = native(receiver.uris)
        endless = subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            sender = lab.start(None, "send", "send", "--insecure", "--bwlimit", "20MB/s", "--timeout", "60", "-", address + "/in",
                               stdin=endless.stdout)
            endless.stdout.close()
            sender.wait_event("progress", lambda event: event["bytes_total"] > 0)  # what was read of it
            receiver.kill(signal.SIGKILL)
            receiver.wait()
            receiver = receiver_on(lab, listen=address.removeprefix("tcp://"), name="recv2")
            check(sender.wait() == 10, sender.tail())
            check("standard input cannot be read again" in sender.stderr(), sender.stderr())
            check(not (lab.directory / "root" / "in").exists(), "a final name shows a part of it")
            receiver.stop()
        finally:
            endless.kill()
            endless.wait()
