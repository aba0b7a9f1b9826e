"""Kills, restarts and dead routers (issue: 'Done when' 2 and 3)."""
import json
import os
import pathlib
import shutil
import signal
import time

from lab import PATIENCE_S, Lab, TwoSites, big_file, check, native, routed, same_tree, sha256, staged

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


def test_one_of_several_sources_is_missing__the_others_are_sent_as_by_rsync_and_nothing_is_deleted():
    with Lab("missrc") as lab:
        for name in ("a/x", "b/y", "root/in/old"):
            path = lab.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        receiver = lab.start_ready(None, "recv", "recv", "--root", lab.directory / "root", "--listen", "127.0.0.1:0", "--insecure")
        for more in ((), ("--delete",)):
            failed = lab.directory / "failed"
            sender = lab.start(None, "send", "send", "-a", "--insecure", "--failed-list", failed, *more, f"{lab.directory}/a/", f"{lab.directory}/gone/",
                               lab.directory / "b", native(receiver.uris) + "/in/")
            check(sender.wait() == 23, sender.tail())
            check(f"{lab.directory}/gone/: No such file or directory" in sender.tail(), sender.tail())
            there = sorted(str(path.relative_to(lab.directory / "root/in")) for path in (lab.directory / "root/in").rglob("*"))
            check(there == ["b", "b/y", "old", "x"], f"{more}: {there}")
        sender = lab.start(None, "send", "send", "-a", "--insecure", f"{lab.directory}/gone/", f"{lab.directory}/lost", native(receiver.uris) + "/in/")
        check(sender.wait() == 3, sender.tail())


def test_stopped_for_longer_than_its_timeout__it_goes_on():
    with Lab("stopped") as lab:
        source = big_file(lab.directory / "big", SIZE // 4)
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        sender = lab.start(None, "send", "send", "--bwlimit", "100MB/s", "--timeout", "3", "--insecure", source, native(receiver.uris) + "/big")
        sender.wait_event("progress", lambda event: event["bytes"] > 0)
        sender.kill(signal.SIGSTOP)
        time.sleep(5)   # more than its timeout: that is what is tried
        sender.kill(signal.SIGCONT)
        check(sender.wait() == 0, sender.tail())
        check(sha256(source) == sha256(root / "big"), "big differs")


def test_hangup__a_transfer_ends_as_by_any_signal_and_says_so():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup the commands would inherit that it is ignored, and heed it
    with Lab("hup") as lab:
        tree, root, told = lab.directory / "tree", lab.directory / "root", lab.directory / "told"
        for each in (tree, root):
            each.mkdir()
        big_file(tree / "big", SIZE)
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        push = ("send", "--insecure", tree, native(receiver.uris) + "/pushed")
        server = lab.start_ready(None, "serve", "send", "--serve", tree, "--listen", "127.0.0.1:0", "--insecure")
        pull = ("recv", "--insecure", native(server.uris) + "/big", lab.directory / "pulled")
        for command, *words in (push, pull):
            told.unlink(missing_ok=True)
            runs = lab.start(None, command, command, "--bwlimit", "100MB/s", "--on-complete", f"cat > {told}", *words)
            runs.wait_event("progress", lambda event: event["bytes"] > 0)
            runs.kill(signal.SIGHUP)
            check(runs.wait() == 20, f"{command}: {runs.tail()}")
            check(json.loads(told.read_text())["exit"] == 20, f"{command}: {told.read_text()}")


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


def growing_file(lab, unreadable, pull, keeps_growing):
    """A file that grows after its transfer has begun, once or as long as that runs: the command that has ended, and whether the
    file is there as it is at the source."""
    source = lab.directory / "source"
    source.mkdir()
    if unreadable:   # a link to itself cannot be read by anybody, root included
        os.symlink("loop", source / "loop")
    growing = big_file(source / "growing", 160 << 20)   # what is read ahead is no part of what can still be seen to change
    target = lab.directory / "target"
    target.mkdir()
    slowly = ["--bwlimit", "100MB/s", "--insecure"]
    if pull:
        other = lab.start_ready(None, "serve", "send", "--serve", source, "--listen", "127.0.0.1:0", "--insecure", "--once")
        command = lab.start(None, "pull", "recv", *slowly, native(other.uris) + "/", target)
    else:
        other = lab.start_ready(None, "recv", "recv", "--root", target, "--listen", "127.0.0.1:0", "--insecure", "--once")
        command = lab.start(None, "send", "send", *slowly, f"{source}/", native(other.uris) + "/")
    command.wait_event("progress", lambda e: e.get("bytes", 0) > 0)
    with open(growing, "ab", buffering=0) as file:
        file.write(b"more")
        while keeps_growing and command.process.poll() is None:
            file.write(b"more")
            time.sleep(0.002)
    command.wait()
    other.wait()
    arrived = target / "growing"
    return command, arrived.exists() and sha256(arrived) == sha256(growing)


def test_file_that_changes_once__is_tried_again_and_arrives_push_and_pull():
    for unreadable in (True, False):
        for pull in (False, True):
            with Lab("changes-once") as lab:
                command, is_there = growing_file(lab, unreadable, pull, keeps_growing=False)
                said = f"(pull {pull}, unreadable {unreadable}): {command.tail()}"
                check(command.process.returncode == (23 if unreadable else 0), f"{command.process.returncode} {said}")
                check(is_there, f"it is not there {said}")
                done = command.done()
                check(done["files_failed"] == unreadable and done["files"] == 1, f"{done} {said}")
                check(any("a file changed while it was read" in e.get("reason", "") for e in command.events if e["event"] == "retry"), said)
                told = [(e["path"], e["status"]) for e in command.events if e["event"] == "file" and e["path"].endswith("growing")]
                check([status for _, status in told] == ["ok"], f"{told} {said}")


def test_one_file_unreadable_and_one_changing__23_and_only_a_changing_one__24_push_and_pull():
    for unreadable in (True, False):
        for pull in (False, True):
            with Lab("precedence") as lab:
                command, is_there = growing_file(lab, unreadable, pull, keeps_growing=True)
                code = command.process.returncode
                check(code == (23 if unreadable else 24), f"{code} (pull {pull}, unreadable {unreadable}): {command.tail()}")
                check(not is_there, "a changing file arrived")
                done = command.done()
                failed = 1 + unreadable
                check(done["files_failed"] == failed and done["files"] == 0, f"{failed} failed, not {done}")
                check(sum(e["event"] == "retry" for e in command.events) == 2, f"two more tries: {command.tail()}")
                check(sum(e.get("status") == "failed" for e in command.events if e["event"] == "file") == failed or pull, command.tail())


def child_of(process):
    """The pid of what a prefix (strace) runs."""
    return int(pathlib.Path(f"/proc/{process.process.pid}/task/{process.process.pid}/children").read_text().split()[0])


def in_the_disk(trace, call):
    """Waits until a traced process is in that call."""
    deadline = time.monotonic() + PATIENCE_S
    while not trace.exists() or f"{call}(" not in trace.read_text():
        check(time.monotonic() < deadline, f"no {call} was seen")
        time.sleep(0.01)


def slow_disk(lab, call, seconds):
    """A prefix that makes each such call take that long, and the file that tells when one began."""
    trace = lab.directory / f"trace-{call}"
    return trace, ["strace", "-f", "-qq", "-o", str(trace), "-e", f"trace={call}", "-e", f"inject={call}:delay_enter={seconds * 1000000}"]


def test_pull_interrupted_while_a_sync_takes_minutes__20_at_once():
    with Lab("farewell") as lab:
        source = lab.directory / "source"
        source.mkdir()
        (source / "small").write_bytes(b"content")
        target = lab.directory / "target"
        server = lab.start_ready(None, "serve", "send", "--serve", source, "--listen", "127.0.0.1:0", "--insecure")
        trace, prefix = slow_disk(lab, "syncfs", 600)
        puller = lab.start(None, "pull", "recv", "--insecure", native(server.uris) + "/", target, prefix=prefix)
        in_the_disk(trace, "syncfs")
        os.kill(child_of(puller), signal.SIGINT)
        check(puller.wait_event("done")["exit"] == 20, puller.tail())
        check(not (target / "small").exists(), "a final name shows what no sync made durable")
        puller.kill()   # strace, which still waits for the delay to pass; without it the sync goes on, and what it made durable may get its name
        puller.wait()
        check("bug:" not in puller.stderr(), puller.tail())
        again = lab.start(None, "pull", "recv", "--insecure", native(server.uris) + "/", target)
        check(again.wait() == 0 and (target / "small").read_bytes() == b"content", again.tail())


def test_receivers_events__a_file_names_its_transfer_and_each_session_has_its_end():
    with Lab("ended") as lab:
        source = lab.directory / "source"
        source.mkdir()
        for number in range(3):
            (source / str(number)).write_bytes(b"x" * number)
        root = lab.directory / "root"
        root.mkdir()
        (root / "1").mkdir()
        (root / "1" / "in the way").write_bytes(b"")
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        sender = lab.start(None, "send", "send", "--insecure", f"{source}/", native(receiver.uris) + "/")
        check(sender.wait() == 23, sender.tail())
        ended = receiver.wait_event("ended")
        transfer = receiver.wait_event("session")["transfer"]
        done = sender.done()
        check(ended["transfer"] == transfer == sender.wait_event("session")["transfer"], f"{ended}")
        check((ended["status"], ended["exit"]) == ("partial", 23), f"{ended}")
        check(ended["reason"] == "1 file failed: the rest is delivered", f"no lines are above this one: {ended}")
        check("1 file failed: the rest is delivered: see the lines above and run again" in sender.stderr(), sender.tail())
        for key, value in {"files": 2, "files_unchanged": 0, "files_failed": 1, "bytes": 2}.items():
            check(ended[key] == value and done[key] == value, f"{key} is {value}: {ended} {done}")
        for process in (receiver, sender):
            files = [e for e in process.events if e["event"] == "file"]
            check(len(files) == 3 and all(e["transfer"] == transfer for e in files), f"{files}")


def test_dry_run__files_would_be_sent_at_both_ends_and_none_is_counted():
    with Lab("would") as lab:
        source, root, target = lab.directory / "source", lab.directory / "root", lab.directory / "target"
        for directory in (source, root, target):
            directory.mkdir()
        (source / "file").write_bytes(b"content")
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        server = lab.start_ready(None, "serve", "send", "--serve", source, "--listen", "127.0.0.1:0", "--insecure")
        for command in (lab.start(None, "send", "send", "-n", "--insecure", f"{source}/", native(receiver.uris) + "/"),
                        lab.start(None, "pull", "recv", "-n", "--insecure", native(server.uris) + "/", target)):
            check(command.wait() == 0, command.tail())
            check([e["status"] for e in command.events if e["event"] == "file"] == ["would-send"], command.tail())
            check(command.done()["files"] == 0 and command.done()["bytes"] == 0, command.tail())
        check(receiver.wait_event("file")["status"] == "would-send", receiver.tail())
        check(not list(target.iterdir()) and list(root.iterdir()) == [root / ".ccixfer"], "a dry run made something")


def test_one_sync_takes_longer_than_the_timeout__the_transfer_waits_and_ends_with_0():
    for pull in (False, True):
        with Lab("slowsync") as lab:
            source, target = lab.directory / "source", lab.directory / "target"
            source.mkdir()
            target.mkdir()
            (source / "small").write_bytes(b"content")
            _, prefix = slow_disk(lab, "syncfs", 5)
            patience = ["--timeout", "2", "--insecure"]
            if pull:
                server = lab.start_ready(None, "serve", "send", "--serve", source, "--listen", "127.0.0.1:0", "--insecure")
                command = lab.start(None, "pull", "recv", *patience, native(server.uris) + "/", target, prefix=prefix)
            else:
                receiver = lab.start_ready(None, "recv", "recv", "--root", target, "--listen", "127.0.0.1:0", "--insecure", prefix=prefix)
                command = lab.start(None, "send", "send", *patience, f"{source}/", native(receiver.uris) + "/")
            check(command.wait() == 0, f"pull {pull}: {command.tail()}")
            check((target / "small").read_bytes() == b"content", "the file differs")


def test_receivers_disk_does_not_answer__30_that_says_so():
    with Lab("stucksync") as lab:
        source, root = lab.directory / "file", lab.directory / "root"
        source.write_bytes(b"content")
        root.mkdir()
        _, prefix = slow_disk(lab, "syncfs", 600)
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure", prefix=prefix)
        sender = lab.start(None, "send", "send", "--timeout", "2", "--insecure", source, native(receiver.uris) + "/file")
        check(sender.wait() == 30, sender.tail())
        check("the receiver's disk has not answered for" in sender.stderr(), sender.stderr())


def test_directory_and_root_moved_by_an_administrator__files_go_where_the_path_leads():
    with Lab("moved") as lab:
        root, archive, source = (lab.directory / name for name in ("root", "archive", "run"))
        for directory in (root, archive, source):
            directory.mkdir()
        (source / "small").write_bytes(b"abc")
        big_file(source / "big", 9 << 20)
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")

        def send():
            sender = lab.start(None, "send", "send", "-a", "--insecure", source, native(receiver.uris) + "/")
            check(sender.wait() == 0, sender.tail())
            same_tree(source, root / "run")

        send()
        (root / "run").rename(archive / "run")
        send()
        shutil.rmtree(root / "run")
        send()
        (root / "run").rename(archive / "run2")
        (root / "run").mkdir()
        send()
        shutil.rmtree(root / ".ccixfer")
        send()
        root.rename(archive / "root")
        root.mkdir()
        # A confined process reaches what it opened and nothing that takes its place, so a receiver ends and its service manager
        # starts it again. The sender, which was told to try again, finds the new one.
        port = native(receiver.uris).rsplit(":", 1)[1]
        sender = lab.start(None, "send", "send", "-a", "--insecure", source, native(receiver.uris) + "/")
        check(receiver.wait() == 11, receiver.tail())
        check("was moved or replaced" in receiver.stderr(), receiver.tail())
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", f"127.0.0.1:{port}", "--insecure")
        check(sender.wait() == 0, sender.tail())
        same_tree(source, root / "run")
        same_tree(source, archive / "run")
        check(not staged(archive / "root"), f"the moved root keeps {staged(archive / 'root')}")
