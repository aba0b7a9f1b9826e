"""`ccixfer send --stripe` and `--part i/k`: several processes share one transfer."""
import json
import os
import random
import subprocess
import threading

from lab import BINARY, Lab, TwoSites, big_file, check, native, same_tree
from test_security import Account, Pair, SecuredSites
from wire import Wire

PIECE = 4 << 20


class Site:
    """A receiver, and a source that several senders see."""

    def __init__(self, lab, *options):
        self.lab = lab
        self.root = lab.directory / "root"
        self.root.mkdir()
        self.receiver = lab.start_ready(None, "recv", "recv", "--root", self.root, "--listen", "127.0.0.1:0", "--insecure", *options)
        self.uri = native(self.receiver.uris)
        self.source = lab.directory / "run42"
        self.source.mkdir()

    def tree(self, files=1500, seed=1):
        """Small files, some larger ones, and one that all send together."""
        chance = random.Random(seed)
        for i in range(files):
            place = self.source / f"d{i % 17}"
            place.mkdir(exist_ok=True)
            (place / f"f{i}").write_bytes(chance.randbytes(chance.randrange(20_000)))
        for i in range(4):
            big_file(self.source / f"larger{i}", 9 << 20)
        big_file(self.source / "largest", (260 << 20) + 12345)
        (self.source / "empty").write_bytes(b"")
        os.symlink("largest", self.source / "link")

    def bytes(self):
        return sum(path.stat().st_size for path in self.source.rglob("*") if path.is_file() and not path.is_symlink())

    def start(self, part, *options, name=None, source=None, uri=None):
        return self.lab.start(None, name or f"send{part.replace('/', '-')}", "send", "-a", "--part", part, "--insecure", *options,
                              source or self.source, uri or f"{self.uri}/in/")

    def start_three(self):
        """Slow ones: the first leads."""
        leader = self.start("1/3", "--bwlimit", "20MB/s")
        leader.wait_event("session")
        return leader, [self.start(f"{i}/3", "--bwlimit", "20MB/s") for i in (2, 3)]

    def arrived(self):
        same_tree(self.source, self.root / "in/run42")


def roles(senders):
    """(the one that leads, those that help): the leader tells of each file."""
    leaders = [sender for sender in senders if any(event["event"] == "file" for event in sender.events)]
    check(len(leaders) == 1, f"{[sender.name for sender in leaders]} lead: {senders[0].tail()}")
    return leaders[0], [sender for sender in senders if sender is not leaders[0]]


def all_end_well(senders):
    for sender in senders:
        check(sender.wait() == 0, sender.tail())


def leads(sender):
    return any(event["event"] == "file" for event in sender.events)


def receiver_says(site):
    return [event for event in site.receiver.events if event["event"] == "ended"]


def test_team__shares_a_tree_and_a_large_file_and_no_byte_goes_twice():
    with Lab("team") as lab:
        site = Site(lab)
        site.tree()
        senders = [site.start(f"{i}/4", "--bwlimit", "60MB/s") for i in range(1, 5)]
        all_end_well(senders)
        site.arrived()
        leader, helpers = roles(senders)
        sent = [sender.done()["bytes_sent"] for sender in senders]
        check(sum(sent) == site.bytes(), f"{sent} of {site.bytes()} bytes")
        check(min(sent) > site.bytes() // 20, f"one of them did next to nothing: {sent}")
        check(leader.done()["files"] == 1506 and leader.done()["bytes"] == site.bytes(), leader.tail())
        files = [event for event in leader.events if event["event"] == "file" and event["status"] == "ok"]
        check(len(files) == len({event["path"] for event in files}) == 1506, f"{len(files)} files are told of")
        check(all(not any(event["event"] == "file" for event in helper.events) for helper in helpers), "a helper tells of files")
        check([sender.done().get("helped", False) for sender in (leader, *helpers)] == [False, True, True, True], "who helped is not told")
        (ended,) = receiver_says(site)
        check(ended["files"] == 1506 and ended["bytes"] == site.bytes() and ended["exit"] == 0, f"{ended}")


def test_team__several_sources__are_shared_and_arrive_as_rsync_has_them():
    """Two sources have the same directory, and the same file in it: the first one's is sent, by whoever sends it."""
    with Lab("team-sources") as lab:
        site = Site(lab)
        chance = random.Random(3)
        named, inside, single = lab.directory / "named", lab.directory / "inside", lab.directory / "single"
        for top in (named, inside / "named", inside / "other"):
            for i in range(600):
                place = top / f"d{i % 7}"
                place.mkdir(parents=True, exist_ok=True)
                (place / (f"both{i}" if i < 100 else f"{top.parent.name}{i}")).write_bytes(chance.randbytes(chance.randrange(1, 20_000)))
        big_file(inside / "named/largest", (260 << 20) + 77)
        big_file(inside / "larger", 9 << 20)
        big_file(single, 5 << 20)
        sources = (named, f"{inside}/", single)
        senders = [lab.start(None, f"send{i}", "send", "-a", "--part", f"{i}/3", "--insecure", "--bwlimit", "60MB/s", *sources, f"{site.uri}/in")
                   for i in (1, 2, 3)]
        all_end_well(senders)
        expected = lab.directory / "expected"
        subprocess.run(["rsync", "-a", *map(str, sources), f"{expected}/"], check=True)
        same_tree(expected, site.root / "in")
        sent = [sender.done()["bytes_sent"] for sender in senders]
        total = sum(path.stat().st_size for path in expected.rglob("*") if path.is_file())
        check(sum(sent) == total, f"{sent} of {total} bytes")
        check(min(sent) > total // 20, f"one of them did next to nothing: {sent}")


def test_team__one_process__is_an_ordinary_transfer():
    with Lab("team-one") as lab:
        site = Site(lab)
        site.tree(files=50)
        sender = site.start("1/1")
        check(sender.wait() == 0, sender.tail())
        site.arrived()
        check(sender.done()["bytes_sent"] == site.bytes(), sender.tail())


def test_team__a_helper_is_killed__the_others_do_its_work():
    with Lab("team-helper") as lab:
        site = Site(lab)
        site.tree()
        leader, helpers = site.start_three()
        leader.wait_event("progress", lambda event: event["bytes"] > 60 << 20)
        check(helpers[0].process.poll() is None, helpers[0].tail())
        helpers[0].kill()
        helpers[0].wait()
        all_end_well((leader, helpers[1]))
        site.arrived()
        check(leader.done()["files"] == 1506 and leader.done()["bytes"] == site.bytes(), leader.tail())


def test_team__the_leader_is_killed__a_helper_leads_and_nothing_durable_goes_again():
    with Lab("team-leader") as lab:
        site = Site(lab)
        site.tree()
        leader, helpers = site.start_three()
        durable = leader.wait_event("progress", lambda event: event["bytes"] > 100 << 20)["bytes"]
        leader.kill()
        leader.wait()
        all_end_well(helpers)
        site.arrived()
        again = sum(helper.done()["bytes_sent"] for helper in helpers)
        check(again < 2 * site.bytes() - durable, f"{again} bytes by the others")
        ended = receiver_says(site)[-1]
        check(ended["exit"] == 0 and ended["bytes"] == site.bytes(), f"{ended}")
        done = roles(helpers)[0].done()
        check(done["files"] == 1506 and done["files_unchanged"] == 0, f"what the first leader's session brought counts as unchanged: {done}")


def test_team__a_file_that_changes_once__is_tried_again_and_all_end_well():
    with Lab("team-changes") as lab:
        site = Site(lab)
        site.tree(files=300)
        leader, helpers = site.start_three()
        leader.wait_event("progress", lambda event: event["bytes"] > 0)
        for name in ("largest", "larger3"):
            with open(site.source / name, "ab", buffering=0) as file:
                file.write(b"more")
        all_end_well([leader, *helpers])
        site.arrived()
        check(any("changed while" in event.get("reason", "") for event in leader.events if event["event"] == "retry"), leader.tail())
        done = leader.done()
        check(done["files"] == 306 and done["files_failed"] == 0 and not done.get("helped", False), f"{done}")
        check(all(helper.done().get("helped", False) for helper in helpers), "another one leads")


def test_team__files_that_grow_fill_the_leaders_window__the_others_are_sent_and_all_end_well():
    with Lab("team-grow") as lab:
        site = Site(lab)
        growing = [site.source / f"a{i}" for i in range(3)]  # the first to be handed out
        for path in growing:
            big_file(path, 100 << 20)
        for i in range(12):
            big_file(site.source / f"f{i:02}", 10 << 20)
        stop = threading.Event()

        def grow():
            while not stop.wait(0.02):
                for path in growing:
                    with open(path, "ab", buffering=0) as file:
                        file.write(b"more")

        thread = threading.Thread(target=grow)
        thread.start()
        try:
            leader = site.start("1/2", "--bwlimit", "40MB/s", "--timeout", "20")
            leader.wait_event("session")
            helper = site.start("2/2", "--bwlimit", "40MB/s", "--timeout", "20")
            leader.wait_event("progress", lambda event: event["bytes"] >= 60 << 20)
        finally:
            stop.set()
            thread.join()
        all_end_well([leader, helper])
        site.arrived()


def test_team__all_are_killed__the_next_run_resumes():
    with Lab("team-all") as lab:
        site = Site(lab)
        site.tree()
        senders = [site.start(f"{i}/2", "--bwlimit", "20MB/s") for i in (1, 2)]
        for sender in senders:
            sender.wait_event("session")
        leader = next(iter(senders))  # whichever it is: what it says of all is what the receiver has
        while not leads(leader):
            leader = senders[1 - senders.index(leader)]
            check(all(sender.process.poll() is None for sender in senders), senders[0].tail())
        leader.wait_event("progress", lambda event: event["bytes"] > 100 << 20)
        for sender in senders:
            sender.kill()
            sender.wait()
        again = [site.start(f"{i}/2", name=f"again{i}") for i in (1, 2)]
        all_end_well(again)
        site.arrived()
        sent = sum(sender.done()["bytes_sent"] for sender in again)
        # What was written and not yet synced goes again: on a busy machine that is more than a second of both.
        check(sent < site.bytes() - (50 << 20), f"{sent} of {site.bytes()} bytes again")


def test_team__parts_that_do_not_fit__are_refused_by_name():
    with Lab("team-misfit") as lab:
        site = Site(lab)
        big_file(site.source / "f", 100 << 20)
        leader = site.start("1/3", "--bwlimit", "10MB/s")
        leader.wait_event("session")
        twice = site.start("1/3", name="twice")
        check(twice.wait() == 1 and "part 1/3 is here already" in twice.stderr(), twice.tail())
        other = site.start("2/3", "--verify", name="other")
        check(other.wait() == 1 and "part 2/3 asks for something else than part 1/3" in other.stderr(), other.tail())
        inside = site.start("2/3", name="inside", source=f"{site.source}/")
        check(inside.wait() == 1 and "part 2/3 asks for something else than part 1/3" in inside.stderr(), inside.tail())
        more = site.start("2/4", name="more")
        check(more.wait() == 1 and "part 2/4 asks for something else" in more.stderr(), more.tail())
        check(leader.process.poll() is None, leader.tail())
        leader.stop()


def test_team__a_part_that_comes_when_all_is_done__hears_it_and_sends_nothing():
    with Lab("team-late") as lab:
        site = Site(lab)
        site.tree(files=20)
        first = site.start("1/2")
        check(first.wait() == 0, first.tail())
        late = site.start("2/2", name="late")
        check(late.wait() == 0, late.tail())
        check(late.done()["bytes_sent"] == 0, late.tail())
        again = site.start("2/2", name="again")  # it had its part: this is the next run
        check(again.wait() == 0 and again.done()["files_unchanged"] == 26, again.tail())


def test_team__a_receiver_for_one_transfer__takes_all_of_its_processes():
    with Lab("team-once") as lab:
        site = Site(lab, "--once")
        site.tree(files=100)
        senders = [site.start(f"{i}/3") for i in (1, 2, 3)]
        all_end_well(senders)
        check(site.receiver.wait() == 0, site.receiver.tail())
        site.arrived()


def test_team__a_file_that_one_process_cannot_see__goes_by_another():
    with Lab("team-blind") as lab:
        site = Site(lab)
        site.tree(files=300)
        elsewhere = lab.directory / "elsewhere"
        elsewhere.mkdir()
        blind = ("unshare", "-m", "sh", "-c", f'for i in $(seq 0 16); do mount --bind {elsewhere} {site.source}/d$i; done; exec "$@"', "sh")
        leader = site.start("1/2", "--bwlimit", "40MB/s")
        leader.wait_event("session")
        helper = lab.start(None, "blind", "send", "-a", "--part", "2/2", "--insecure", site.source, f"{site.uri}/in/", prefix=blind)
        check(leader.wait() == 0, leader.tail())
        site.arrived()
        code = helper.wait()
        check(code == 0 or (code == 3 and "every process must see the same source" in helper.stderr()), helper.tail())
        check("vanished" not in helper.stderr() and helper.done()["files_failed"] == 0, helper.tail())


def test_team__something_else_is_mounted_at_the_source__that_process_is_refused_by_name():
    with Lab("team-mount") as lab:
        site = Site(lab)
        site.tree(files=300)
        elsewhere = lab.directory / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "f").write_text("of another source")
        blind = ("unshare", "-m", "sh", "-c", f'mount --bind {elsewhere} {site.source} && exec "$@"', "sh")
        leader = site.start("1/3", "--bwlimit", "60MB/s")
        leader.wait_event("session")
        start = lambda part: lab.start(None, f"blind{part[0]}", "send", "-a", "--part", part, "--insecure", site.source, f"{site.uri}/in/", prefix=blind)
        helper = start("2/3")
        check(helper.wait() == 1 and "part 2/3 sees another source than part 1/3" in helper.stderr(), helper.tail())
        check(leader.wait() == 0, leader.tail())
        late = start("3/3")
        check(late.wait() == 1 and "part 3/3 sees another source than part 1/3" in late.stderr(), late.tail())
        site.arrived()


def test_team__encrypted_and_compressed__shares_the_tree_and_keeps_others_out():
    with Lab("team-sealed") as lab:
        site = Site.__new__(Site)
        pair = Pair(lab, grants='write = ["in/"]')
        site.source = lab.directory / "run42"
        site.source.mkdir()
        site.tree(files=600)
        start = lambda part, *options, **account: pair.send("-a", "--part", part, *options, site.source, pair.uri + "/in/",
                                                            name=f"send{part.replace('/', '-')}", **account)
        all_end_well([start(f"{i}/3", "-z", "--bwlimit", "80MB/s") for i in (1, 2, 3)])
        same_tree(site.source, pair.root / "in/run42")
        check(sum(event["event"] == "ended" for event in pair.receiver.events) == 1, pair.receiver.tail())
        eve = Account(lab, "eve").keygen()
        eve.knows(pair.uri, pair.bob)
        check(start("2/3", account=eve).wait() == 42, "a stranger is of the team")


def test_team__through_two_routers_with_proofs__shares_the_tree():
    with TwoSites("team-routed") as sites:
        secured = SecuredSites(sites)
        secured.start_all()
        site = Site.__new__(Site)
        site.source = sites.lab.directory / "run42"
        site.source.mkdir()
        site.tree(files=600)
        senders = [secured.send("-a", "--part", f"{i}/3", "--bwlimit", "60MB/s", site.source, secured.uri + "/in/", name=f"send{i}") for i in (1, 2, 3)]
        all_end_well(senders)
        same_tree(site.source, sites.root / "in/run42")
        sent = [sender.done()["bytes_sent"] for sender in senders]
        check(sum(sent) == site.bytes() and min(sent) > 0, f"{sent} of {site.bytes()}")


def test_team__again_with_changes_and_delete__the_tree_is_the_source():
    with Lab("team-delete") as lab:
        site = Site(lab)
        site.tree(files=400)
        options = ("--delete", "-H")
        os.link(site.source / "larger0", site.source / "name of larger0")
        all_end_well([site.start(f"{i}/3", *options) for i in (1, 2, 3)])
        site.arrived()
        for i in range(0, 400, 7):
            (site.source / f"d{i % 17}" / f"f{i}").unlink()
        for i in range(0, 400, 10):
            (site.source / f"d{i % 17}" / f"f{i}").write_bytes(b"another" * i)
        with open(site.source / "largest", "r+b") as file:
            file.seek(100 << 20)
            file.write(b"other bytes")
        again = [site.start(f"{i}/3", *options, name=f"again{i}") for i in (1, 2, 3)]
        all_end_well(again)
        site.arrived()
        check(sum(sender.done()["bytes_sent"] for sender in again) < 20 << 20, again[0].tail())
        check((site.root / "in/run42/larger0").stat().st_ino == (site.root / "in/run42/name of larger0").stat().st_ino, "two files")


def test_team__little_memory_at_a_receiver_for_one_transfer__keeps_no_process_waiting_for_ever():
    with Lab("team-memory") as lab:
        site = Site(lab, "--once", "--memory", "20MiB")
        site.tree(files=400)
        senders = [site.start(f"{i}/5") for i in range(1, 6)]
        for sender in senders:
            check(sender.wait(60) == 0, sender.tail())
        site.arrived()


def test_team__a_process_that_has_nothing_to_do__waits_for_the_others():
    with Lab("team-idle") as lab:
        site = Site(lab)
        big_file(site.source / "one", 100 << 20)  # too short to be shared
        leader = site.start("1/2", "--bwlimit", "20MB/s")
        leader.wait_event("session")
        helper = site.start("2/2", "--timeout", "1", "--bwlimit", "20MB/s")
        check(leader.wait() == 0, leader.tail())
        check(helper.wait() == 0, helper.tail())
        check(not any(event["event"] == "retry" for event in helper.events), helper.tail())


def test_team__receipt_list_and_command__are_those_of_the_whole_and_come_once():
    with Lab("team-papers") as lab:
        site = Site(lab)
        site.tree(files=200)
        (site.source / "d0/secret").write_text("x")
        os.chmod(site.source / "d0/secret", 0)
        as_user = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all") if os.geteuid() == 0 else ()
        receipt, failed, ran = (lab.directory / name for name in ("receipt", "failed", "ran"))
        senders = [lab.start(None, f"send{i}", "send", "-a", "--part", f"{i}/3", "--insecure", "--receipt", receipt, "--failed-list", failed,
                             "--on-complete", f"cat >> {ran}", site.source, f"{site.uri}/in/", prefix=as_user) for i in (1, 2, 3)]
        for sender in senders:
            check(sender.wait() == 23, sender.tail())
        check(failed.read_text() == "run42/d0/secret\n", f"{failed.read_text()}")
        listed = subprocess.run([BINARY, "verify", "--insecure", "--sha256sum", receipt], capture_output=True, text=True, check=False, timeout=60)
        check(len(listed.stdout.splitlines()) == 206, f"{len(listed.stdout.splitlines())} files in the receipt: {listed.stderr}")
        (result,) = map(json.loads, ran.read_text().splitlines())
        check(result["files"] == 206 and result["exit"] == 23, f"{result}")


def test_team__what_vanishes__ends_all_of_them_alike():
    with Lab("team-vanish") as lab:
        site = Site(lab)
        site.tree(files=300)
        (site.source / "d0/secret").write_text("x")
        os.chmod(site.source / "d0/secret", 0)
        as_user = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all") if os.geteuid() == 0 else ()
        senders = [lab.start(None, f"send{i}", "send", "-a", "--part", f"{i}/2", "--insecure", site.source, f"{site.uri}/in/",
                             prefix=as_user) for i in (1, 2)]
        codes = [sender.wait() for sender in senders]
        check(codes == [23, 23], f"{codes}: {senders[0].tail()}")


def test_team__bad_use__is_one_line_and_exit_1():
    with Lab("team-usage") as lab:
        source = lab.directory / "f"
        source.write_text("x")
        for options, words in ((("--stripe",), "no task of a Slurm job step"), (("--part", "0/3"), "--part"), (("--part", "4/3"), "--part"),
                               (("--part", "x"), "--part"), (("--part", "1/2", "-"), "name as SRC files or directories"),
                               (("--part", "1/2", "--lock", lab.directory / "lock"), "--lock")):
            sources = () if options[-1] == "-" else (source,)
            env = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
            ended = subprocess.run([BINARY, "send", "--insecure", *options, *sources, "tcp://127.0.0.1:9/x"], env=env,
                                   capture_output=True, text=True, check=False, timeout=60)
            check(ended.returncode == 1 and words in ended.stderr and len(ended.stderr.splitlines()) <= 2, f"{options}: {ended}")


def test_team__a_helper_loses_its_connection__it_comes_again_and_all_end_well():
    with Lab("team-cut") as lab:
        site = Site(lab)
        big_file(site.source / "f", 400 << 20)
        with Wire(int(site.uri.rsplit(":", 1)[1]), keeps=False) as wire:
            site.uri = f"tcp://127.0.0.1:{wire.port}"
            leader = site.start("1/2", "--bwlimit", "20MB/s")
            leader.wait_event("session")
            before = len(wire.ends)
            helper = site.start("2/2", "--bwlimit", "60MB/s")
            leader.wait_event("progress", lambda event: event["bytes"] > 60 << 20)
            wire.cut(before)
            helper.wait_event("retry")
            all_end_well([leader, helper])
        site.arrived()


def test_team__sparse_files__keep_their_holes_and_no_helper_is_lost():
    with Lab("team-holes") as lab:
        site = Site(lab)
        for number in range(12):  # whole files of a member each
            with open(site.source / f"f{number}", "wb") as file:
                file.truncate(40 << 20)
                file.seek(20 << 20)
                file.write(os.urandom(1 << 20))
        with open(site.source / "large", "wb") as file:  # all send pieces of it
            file.truncate(1 << 30)
            file.seek(512 << 20)
            file.write(os.urandom(1 << 20))
        senders = [site.start(f"{i}/3") for i in (1, 2, 3)]
        all_end_well(senders)
        site.arrived()
        sent = sum(sender.done()["bytes_sent"] for sender in senders)
        check(sent < 13 * (8 << 20) + (160 << 20), f"{sent} bytes were sent")  # a helper may have begun before the leader told of holes
        there = sum(path.stat().st_blocks * 512 for path in site.root.joinpath("in").rglob("*") if path.is_file())
        check(there < sent + (8 << 20), f"{there} bytes are allocated, and {sent} were sent")


def test_team__recv_once__stays_until_all_parts_have_come():
    with Lab("team-once-late") as lab:
        site = Site(lab, "--once")
        (site.source / "f").write_text("x")
        first = site.start("1/3")
        check(first.wait() == 0, first.tail())
        rest = [site.start(f"{i}/3") for i in (2, 3)]
        all_end_well(rest)
        check(site.receiver.wait() == 0, site.receiver.tail())


def test_team__recv_once__goes_on_when_the_leader_is_killed():
    with Lab("team-once-lost") as lab:
        site = Site(lab, "--once")
        for number in range(30):
            big_file(site.source / f"f{number}", 4 << 20)
        senders = [site.start(f"{i}/2", "--bwlimit", "10MB/s") for i in (1, 2)]
        for sender in senders:
            sender.wait_event("session")
        lost = senders[0] if leads(senders[0]) else senders[1]
        lost.kill()
        stays = senders[1 - senders.index(lost)]
        check(stays.wait() == 0, stays.tail())
        check(site.receiver.wait() == 0, site.receiver.tail())
        site.arrived()


def test_team__a_ticket__is_refused_since_each_process_would_be_somebody_else():
    with Lab("team-ticket") as lab:
        bob, alice = Account(lab, "bob").keygen(), Account(lab, "alice")
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--ticket", "--uses", "3", env=bob.env)
        tickets = []
        while not tickets:  # it is said right behind `ready`, on standard error
            tickets = [line for line in receiver.stderr().splitlines() if line.startswith("cxt1")]
        refused = alice.run("send", "-a", "--part", "1/3", lab.file("f", "x"), tickets[0])
        check(refused.returncode == 1 and "one identity" in refused.stderr and tickets[0] not in refused.stderr, f"{refused}")


def test_team__slurm_says_who_is_who():
    with Lab("team-env") as lab:
        site = Site(lab)
        site.tree(files=60)
        step = {"SLURM_CLUSTER_NAME": "c", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}
        senders = [lab.start(None, f"task{i}", "send", "-a", "--stripe", "--insecure", site.source, f"{site.uri}/in/",
                             env={**step, "SLURM_PROCID": str(i)}) for i in (0, 1)]
        all_end_well(senders)
        site.arrived()
        check(sum(sender.done()["bytes_sent"] for sender in senders) == site.bytes(), senders[0].tail())
