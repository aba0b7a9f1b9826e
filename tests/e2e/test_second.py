"""Several receivers of one file system: one owns the transfer, the others write pieces of large files into its staged files."""
import os
import signal
import subprocess

from lab import BINARY, Lab, big_file, check, native, same_tree
from test_security import Account, Pair, ends
from test_team import Site, all_end_well, leads


class Shared(Site):
    """A site whose root other receivers serve too."""

    def __init__(self, lab, *options, seconds=1, root=None):
        super().__init__(lab, *options)
        self.seconds = [lab.start_ready(None, f"second{i}", "recv", "--root", root or self.root, "--shares-root", "--listen", "127.0.0.1:0",
                                        "--insecure") for i in range(seconds)]

    def places(self, path="in/"):
        return [f"{native(receiver.uris)}/{path}" for receiver in (self.receiver, *self.seconds)]

    def large(self, files=2, bytes_each=(320 << 20) + 4321):
        for i in range(files):
            big_file(self.source / f"large{i}", bytes_each)
        for i in range(50):
            (self.source / f"small{i}").write_bytes(bytes([i]) * 3000)

    def begin(self, parts, *options, name="part"):
        """The first part leads."""
        start = lambda i: self.lab.start(None, f"{name}{i}", "send", "-a", "--part", f"{i}/{parts}", "--insecure", *options, self.source,
                                         *self.places())
        senders = [start(1)]
        senders[0].wait_event("session")
        return senders + [start(i) for i in range(2, parts + 1)]


def placed(receiver):
    """Bytes that a second receiver wrote, by its word."""
    return sum(event["bytes"] for event in receiver.events if event["event"] == "ended")


def staging_is_empty(site):
    left = list((site.root / ".ccixfer").iterdir()) if (site.root / ".ccixfer").exists() else []
    check(not [path for path in left if path.name.endswith((".part", ".share", ".tmp"))], f"{left}")


def test_second__three_processes_and_two_second_receivers__each_brings_its_part_and_no_byte_goes_twice():
    with Lab("second") as lab:
        site = Shared(lab, seconds=2)
        site.large()
        senders = site.begin(3, "--bwlimit", "60MB/s")
        all_end_well(senders)
        site.arrived()
        check(leads(senders[0]), senders[0].tail())
        sent = [sender.done()["bytes_sent"] for sender in senders]
        check(sum(sent) == site.bytes(), f"{sent} of {site.bytes()} bytes")
        for receiver in site.seconds:
            receiver.wait_event("ended")
            check(placed(receiver) > site.bytes() // 10, f"{placed(receiver)} bytes of {site.bytes()}: {receiver.tail()}")
        done = senders[0].done()
        check(done["files"] == 52 and done["bytes"] == site.bytes(), f"{done}")
        staging_is_empty(site)


def test_second__encrypted_and_compressed__shares_large_files_and_keeps_others_out():
    with Lab("second-sealed") as lab:
        site = Shared.__new__(Shared)
        pair = Pair(lab, grants='write = ["in/"]')
        site.source = lab.directory / "run42"
        site.source.mkdir()
        site.large(1)
        carol = Account(lab, "carol").keygen()
        carol.configure(f'[peer.alice]\nid = "{pair.alice.id}"\nwrite = ["in/"]\n')
        second = lab.start_ready(None, "second", "recv", "--root", pair.root, "--shares-root", "--listen", "127.0.0.1:0", env=carol.env)
        there = native(second.uris)
        pair.alice.knows(there, carol)
        start = lambda part, account=pair.alice: pair.send("-a", "-z", "--bwlimit", "80MB/s", "--part", part, site.source,
                                                           pair.uri + "/in/", there + "/in/", account=account, name=f"send{part[0]}")
        first = start("1/2")
        first.wait_event("session")
        all_end_well([first, start("2/2")])
        same_tree(site.source, pair.root / "in/run42")
        second.wait_event("ended")
        check(placed(second) > 30 << 20, second.tail())
        # Who is permitted at the first receiver and not at the second one sends all to the first.
        carol.configure("")
        second.process.send_signal(signal.SIGHUP)
        again = lambda part: pair.send("-a", "--bwlimit", "80MB/s", "--part", part, "--checksum", site.source, pair.uri + "/in/more/",
                                       there + "/in/more/", name=f"again{part[0]}")
        leader = again("1/2")
        leader.wait_event("session")
        helper = again("2/2")
        all_end_well([leader, helper])
        same_tree(site.source, pair.root / "in/more/run42")
        check("second receiver" in helper.stderr() and "all goes to the first one" in helper.stderr(), helper.tail())


def test_second__the_second_receiver_is_killed__its_pieces_go_to_the_first():
    with Lab("second-killed") as lab:
        site = Shared(lab)
        site.large()
        senders = site.begin(2, "--bwlimit", "40MB/s", "--timeout", "20")
        senders[0].wait_event("progress", lambda event: event["bytes"] > 150 << 20)
        check(all(sender.process.poll() is None for sender in senders), senders[0].tail())
        site.seconds[0].kill()
        site.seconds[0].wait()
        all_end_well(senders)
        site.arrived()
        staging_is_empty(site)


def test_second__the_second_receiver_comes_again__and_is_used_again():
    with Lab("second-again") as lab:
        site = Shared(lab)
        site.large()
        senders = site.begin(2, "--bwlimit", "30MB/s")
        senders[0].wait_event("progress", lambda event: event["bytes"] > 100 << 20)
        port = native(site.seconds[0].uris).rsplit(":", 1)[1]
        site.seconds[0].kill()
        site.seconds[0].wait()
        again = lab.start_ready(None, "second-again", "recv", "--root", site.root, "--shares-root", "--listen", f"127.0.0.1:{port}",
                                "--insecure")
        all_end_well(senders)
        site.arrived()
        again.wait_event("ended")
        check(placed(again) > 20 << 20, again.tail())


def test_second__the_second_receiver_is_stopped_for_a_while__the_others_go_on_and_nothing_is_lost():
    with Lab("second-stopped") as lab:
        site = Shared(lab)
        site.large()
        senders = site.begin(2, "--bwlimit", "40MB/s")
        senders[0].wait_event("progress", lambda event: event["bytes"] > 150 << 20)
        site.seconds[0].process.send_signal(signal.SIGSTOP)
        senders[0].wait_event("progress", lambda event: event["bytes"] > 400 << 20)
        site.seconds[0].process.send_signal(signal.SIGCONT)
        all_end_well(senders)
        site.arrived()
        staging_is_empty(site)


def test_second__a_helper_is_killed__the_others_do_its_work():
    with Lab("second-helper") as lab:
        site = Shared(lab)
        site.large()
        senders = site.begin(3, "--bwlimit", "25MB/s")  # the second part has the second receiver
        senders[0].wait_event("progress", lambda event: event["bytes"] > 150 << 20)
        check(senders[1].process.poll() is None, senders[1].tail())
        senders[1].kill()
        senders[1].wait()
        all_end_well([senders[0], senders[2]])
        site.arrived()
        staging_is_empty(site)


def test_second__the_first_receiver_is_killed__the_transfer_resumes():
    with Lab("second-first") as lab:
        site = Shared(lab)
        site.large()
        senders = site.begin(2, "--bwlimit", "40MB/s")
        durable = senders[0].wait_event("progress", lambda event: event["bytes"] > 250 << 20)["bytes"]
        port = native(site.receiver.uris).rsplit(":", 1)[1]
        site.receiver.kill()
        site.receiver.wait()
        site.receiver = lab.start_ready(None, "recv-again", "recv", "--root", site.root, "--listen", f"127.0.0.1:{port}", "--insecure")
        all_end_well(senders)
        site.arrived()
        sent = sum(sender.done()["bytes_sent"] for sender in senders)
        # What was on its way to two receivers, or not synced yet, goes again.
        check(sent < 2 * site.bytes() - durable + (200 << 20), f"{sent} of {site.bytes()} bytes, {durable} were durable")
        staging_is_empty(site)


def test_second__another_directory__is_told_once_and_all_goes_to_the_first():
    with Lab("second-elsewhere") as lab:
        other = lab.directory / "other"
        other.mkdir()
        site = Shared(lab, root=other)
        site.large(3, 270 << 20)
        senders = site.begin(2, "--bwlimit", "80MB/s")
        all_end_well(senders)
        site.arrived()
        told = [line for line in senders[1].stderr().splitlines() if "another directory" in line]
        check(len(told) == 1 and "second receiver" in told[0], senders[1].tail())
        check(not list(other.iterdir()), f"something was written there: {list(other.iterdir())}")


def test_second__a_sparse_transfer__keeps_its_holes():
    with Lab("second-sparse") as lab:
        site = Shared(lab)
        big_file(site.source / "data", 280 << 20)
        with open(site.source / "zeros", "wb") as file:  # no hole at the source
            for _ in range(70):
                file.write(bytes(4 << 20))
        senders = site.begin(2, "--sparse", "--bwlimit", "80MB/s")
        all_end_well(senders)
        site.arrived()
        check((site.root / "in/run42/zeros").stat().st_blocks == 0, "zeros take room")
        said = [line for line in senders[1].stderr().splitlines() if "second receiver" in line]
        check(len(said) == 1 and "only the first receiver writes" in said[0], senders[1].tail())
        check(not any(event["event"] == "session" for event in site.seconds[0].events), "the second receiver was dialled for nothing")


def test_second__bad_use__is_one_line_and_exit_1():
    with Lab("second-usage") as lab:
        site = Shared(lab)
        source = site.source / "f"
        source.write_text("x")
        first, second = site.places()
        alone = lambda *arguments: subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60,
                                                  stdin=subprocess.DEVNULL)
        for arguments, words in (
            (("send", "--insecure", source, first, second), "several DEST"),
            (("send", "--insecure", "--part", "2/2", source, first, second + "deeper/"), "the path of the first"),
            (("send", "--insecure", source, second), "name that one first"),
            (("send", "--insecure", "--part", "1/2", source, second, first), "name that one first"),
            (("recv", "--insecure", "--shares-root", first, lab.directory), "--shares-root without --root"),
            (("recv", "--insecure", "--root", site.root, "--shares-root", "--receipt", lab.directory), "--receipt with --shares-root"),
            (("recv", "--insecure", "--root", site.root, "--shares-root", "--once"), "--once with --shares-root"),
        ):
            ended = alone(*arguments)
            check(ended.returncode == 1 and words in ended.stderr and len(ended.stderr.splitlines()) <= 2, f"{arguments}: {ended}")
        ended = alone("recv", "--insecure", "--root", lab.directory / "nothing", "--shares-root", "--listen", "127.0.0.1:0")
        check(ended.returncode != 0 and "cannot open the directory" in ended.stderr, f"{ended}")


def test_second__one_that_owns_its_root__is_told_and_not_used():
    with Lab("second-owner") as lab:
        site = Site(lab)
        big_file(site.source / "large", 300 << 20)
        other = lab.directory / "other"
        other.mkdir()
        owner = lab.start_ready(None, "owner", "recv", "--root", other, "--listen", "127.0.0.1:0", "--insecure")
        places = [f"{site.uri}/in/", f"{native(owner.uris)}/in/"]
        start = lambda i: lab.start(None, f"part{i}", "send", "-a", "--part", f"{i}/2", "--insecure", "--bwlimit", "80MB/s", site.source,
                                    *places)
        leader = start(1)
        leader.wait_event("session")
        helper = start(2)
        all_end_well([leader, helper])
        site.arrived()
        check("--shares-root" in helper.stderr(), helper.tail())
        check(not [name for name in os.listdir(other) if name != ".ccixfer"], f"{os.listdir(other)}")
