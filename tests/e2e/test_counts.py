"""A transfer that is cut in the middle: what was delivered stays delivered, and each file and byte is counted and told once."""

from lab import Lab, big_file, check, native, sha256, staged, tree_bytes

FILES = 6
FILE_BYTES = 48 << 20
AHEAD = 160 << 20   # not yet durable when a side dies: a batch, and what buffers hold


def make_tree(lab):
    source = lab.directory / "source"
    (source / "small").mkdir(parents=True)
    for number in range(FILES):
        big_file(source / f"large {number}", FILE_BYTES + number, seed=number)
    for number in range(40):
        (source / "small" / str(number)).write_bytes(b"s" * number)
    return source, FILES + 40, tree_bytes(source)


def told_once(command, files):
    """Every path once, and delivered."""
    told = [e["path"] for e in command.events if e["event"] == "file"]
    check(len(told) == len(set(told)) == files, f"{len(told)} file events, {len(set(told))} paths, {files} files")
    check(all(e["status"] == "ok" for e in command.events if e["event"] == "file"), command.tail())


def never_more_than_all(command):
    for event in command.events:
        if event["event"] == "progress":
            check(event["bytes"] <= event["bytes_total"], f"more than all: {event}")


def delivered_files(command, count):
    """Waits until that many large files are delivered."""
    seen = set()

    def is_another(event):
        if event["path"].startswith("large") and event["status"] == "ok":
            seen.add(event["path"])
        return len(seen) >= count

    command.wait_event("file", is_another)


def same_files(source, target):
    for path in (p for p in source.rglob("*") if p.is_file()):
        check(sha256(path) == sha256(target / path.relative_to(source)), f"{path} differs")


def cut_receiver(options):
    with Lab("counts") as lab:
        source, files, size = make_tree(lab)
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        address = native(receiver.uris)
        sender = lab.start(None, "send", "send", *options, "--bwlimit", "150MB/s", "--insecure", f"{source}/", address + "/")
        delivered_files(sender, FILES * 2 // 3)
        receiver.kill()
        receiver.wait()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", address.removeprefix("tcp://"), "--insecure")
        check(sender.wait() == 0, sender.tail())
        same_files(source, root)
        done = sender.done()
        for key, value in {"files": files, "files_unchanged": 0, "files_failed": 0, "bytes": size}.items():
            check(done[key] == value, f"{key} is {value}, not {done}")
        check(done["bytes_sent"] <= size + AHEAD, f"what was delivered was sent again: {done['bytes_sent']} for {size}")
        told_once(sender, files)
        never_more_than_all(sender)
        ended = receiver.wait_event("ended")
        check(ended["status"] == "ok" and ended["files"] + ended["files_unchanged"] == files, f"{ended}")


def test_receiver_killed_in_mid_transfer__with_archive__each_file_and_byte_once():
    cut_receiver(["-a"])


def test_receiver_killed_in_mid_transfer__without_archive__each_file_and_byte_once():
    cut_receiver([])


def test_sender_killed_without_archive__the_rerun_sends_the_rest_and_the_next_run_all():
    with Lab("rerun") as lab:
        source, files, size = make_tree(lab)
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        command = ["send", "--insecure", f"{source}/", native(receiver.uris) + "/"]
        sender = lab.start(None, "send", *command, "--bwlimit", "150MB/s")
        delivered_files(sender, FILES * 2 // 3)
        sender.kill()
        sender.wait()
        again = lab.start(None, "send", *command)
        check(again.wait() == 0, again.tail())
        done = again.done()
        check(done["files"] + done["files_unchanged"] == files and done["files_unchanged"] >= FILES * 2 // 3, f"{done}")
        check(done["bytes_sent"] <= size - FILES * 2 // 3 * FILE_BYTES, f"what was delivered was sent again: {done}")
        same_files(source, root)
        # the transfer has ended well: from here on a run without -a copies everything, as cp does; with -W it sends it too
        once_more = lab.start(None, "send", *command, "-W")
        check(once_more.wait() == 0, once_more.tail())
        check(once_more.done()["bytes_sent"] == size and once_more.done()["files"] == files, f"{once_more.done()}")
        check(receiver.stop() == 0, receiver.tail())
        check(not staged(root), f"staged: {staged(root)}")
