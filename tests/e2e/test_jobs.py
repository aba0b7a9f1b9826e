"""What a job that a timer starts needs: one run at a time, a time to stop at, a list of what failed."""
import datetime
import os
import signal
import subprocess

from lab import Lab, big_file, check, native, same_tree
from test_clocks import clock


def receiver_on(lab, *options):
    lab.root = lab.directory / "root"
    lab.root.mkdir(exist_ok=True)
    return lab.start_ready(None, "recv", "recv", "--root", lab.root, "--listen", "127.0.0.1:0", "--insecure", *options)


def test_lock__a_second_run_of_the_job__ends_with_6_at_once_and_the_first_goes_on():
    with Lab("job-lock") as lab:
        receiver = receiver_on(lab)
        source = lab.directory / "run42"
        source.mkdir()
        big_file(source / "f", 24 << 20)
        job = ("send", "--insecure", "--lock", lab.directory / "job.lock", f"{source}/", native(receiver.uris) + "/d/")
        first = lab.start(None, "first", *job, "--bwlimit", "8MB/s")
        first.wait_event("session")
        second = lab.start(None, "second", *job)
        check(second.wait() == 6, second.tail())
        check(second.done()["status"] == "already_running", second.tail())
        check(f"process {first.process.pid} has the lock" in second.stderr(), second.tail())
        pull = lab.start(None, "pull", "recv", "--insecure", "--lock", lab.directory / "job.lock", native(receiver.uris), lab.directory / "x")
        check(pull.wait() == 6 and not (lab.directory / "x").exists(), pull.tail())
        check(first.wait() == 0, first.tail())
        third = lab.start(None, "third", *job)
        check(third.wait() == 0, third.tail())
        receiver.stop()
        check(os.path.exists(lab.root / "d/f"), "nothing came")


def test_lock__a_run_that_was_killed__locks_nobody_out():
    with Lab("job-killed") as lab:
        receiver = receiver_on(lab)
        source = lab.directory / "run42"
        source.mkdir()
        big_file(source / "f", 24 << 20)
        job = ("send", "--insecure", "-a", "--lock", lab.directory / "job.lock", f"{source}/", native(receiver.uris) + "/d/")
        first = lab.start(None, "first", *job, "--bwlimit", "8MB/s")
        first.wait_event("session")
        first.kill(signal.SIGKILL)
        check(first.wait() == -9, first.tail())
        second = lab.start(None, "second", *job)
        check(second.wait() == 0, second.tail())
        receiver.stop()
        same_tree(source, lab.root / "d")


def soon(seconds):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_stop_at__the_time_comes__exit_30_and_the_same_command_resumes():
    """Push and pull: what is not done by then is done by the next run."""
    with Lab("job-stop") as lab:
        receiver = receiver_on(lab)
        source = lab.directory / "run42"
        source.mkdir()
        big_file(source / "f", 64 << 20)
        server = lab.start_ready(None, "serve", "send", "--serve", source, "--listen", "127.0.0.1:0", "--insecure")
        pulled = lab.directory / "pulled"
        for job, arrived in ((("send", "--insecure", "-a", f"{source}/", native(receiver.uris) + "/d/"), lab.root / "d"),
                             (("recv", "--insecure", "-a", native(server.uris), pulled), pulled)):
            stopped = lab.start(None, "stopped", *job, "--bwlimit", "4MB/s", "--stop-at", soon(4))
            check(stopped.wait() == 30, stopped.tail())
            check(stopped.done()["status"] == "timeout", stopped.tail())
            check("stopped in time: --stop-at" in stopped.stderr(), stopped.tail())
            check(0 < stopped.done()["bytes"] < 64 << 20 and not (arrived / "f").exists(), stopped.tail())
            again = lab.start(None, "again", *job)
            check(again.wait() == 0, again.tail())
            check(again.done()["bytes_sent"] < 64 << 20, f"nothing was resumed: {again.tail()}")
            same_tree(source, arrived)
        late = lab.start(None, "late", "send", "--insecure", "--stop-at", soon(-60), source, native(receiver.uris))
        check(late.wait() == 1 and "it is past" in late.stderr(), late.tail())
        receiver.stop()
        server.stop()


def test_bwlimit_timetable__its_hour_comes__the_transfer_that_runs_goes_on_with_the_other_rate():
    """At 1 MB/s the file takes ten minutes: it arrives in time only because the cap ends at eight, wherever it was given."""
    size = 600 << 20
    table = ("--bwlimit", "07:00,1MB/s 08:00,off")
    early = {**clock("@2026-11-25 07:59:56"), "TZ": "UTC"}
    with Lab("job-table") as lab:
        source = lab.directory / "published"
        source.mkdir()
        big_file(source / "f", size)
        listen = ("--listen", "127.0.0.1:0", "--insecure")
        lab.root = lab.directory / "root"
        lab.root.mkdir()

        def ends_well(process):
            check(process.wait() == 0, process.tail())
            check(process.done()["seconds"] >= 1, f"the cap did not hold: {process.tail()}")
            (lab.root / "f").unlink(missing_ok=True)

        receiver = lab.start_ready(None, "recv", "recv", "--root", lab.root, *listen)
        ends_well(lab.start(None, "push", "send", "--insecure", *table, source / "f", native(receiver.uris), env=early))
        receiver.stop()
        server = lab.start_ready(None, "serve", "send", "--serve", source, *listen)
        ends_well(lab.start(None, "pull", "recv", "--insecure", *table, native(server.uris) + "/f", lab.root, env=early))
        server.stop()
        receiver = lab.start_ready(None, "recv", "recv", "--root", lab.root, *listen, *table, env=early)
        ends_well(lab.start(None, "push", "send", "--insecure", source / "f", native(receiver.uris)))
        receiver.stop()


def test_failed_list__names_what_failed__and_is_empty_when_nothing_did():
    """A directory stands where a file is to come: at the receiver, so that each side that dials hears of it from the other."""
    with Lab("job-failed") as lab:
        receiver = receiver_on(lab)
        source = lab.directory / "run42"
        source.mkdir()
        names = [b"plain", b"sub/odd \xff", b"#comment", b"line\nbreak"]
        (source / "sub").mkdir()
        for name in [*names, b"good"]:
            (source / os.fsdecode(name)).write_text("x")
        server = lab.start_ready(None, "serve", "send", "--serve", source, "--listen", "127.0.0.1:0", "--insecure")
        pulled = lab.directory / "pulled"
        failed = lab.directory / "failed"
        for job, arrived in ((("send", "--insecure", "-a", f"{source}/", native(receiver.uris) + "/d/"), lab.root / "d"),
                             (("recv", "--insecure", "-a", native(server.uris), pulled), pulled)):
            for name in names:
                (arrived / os.fsdecode(name) / "in the way").mkdir(parents=True)
            some = lab.start(None, "some", *job, "--failed-list", failed)
            check(some.wait() == 23, some.tail())
            check(sorted(failed.read_bytes().splitlines()) == sorted([b"plain", b"sub/odd \xff", b"./#comment"]), f"{failed.read_bytes()}")
            check("1 names with line breaks are left out" in some.stderr(), some.tail())
            failed.write_bytes(b"last night's\n")
            dry = lab.start(None, "dry", *job, "-n", "--failed-list", failed)
            check(dry.wait() in (0, 23) and failed.read_bytes() == b"last night's\n", f"{dry.tail()}: {failed.read_bytes()}")
            zeros = lab.start(None, "zeros", *job, "--failed-list", failed, "-0")
            check(zeros.wait() == 23, zeros.tail())
            escaped = [b"./" + name if name.startswith(b"#") else name for name in names]   # --files-from -0 has comments too
            check(sorted(failed.read_bytes().split(b"\0")) == sorted([*escaped, b""]), f"{failed.read_bytes()}")
            subprocess.run(["find", arrived, "-name", "in the way", "-execdir", "rmdir", "{}", "+"], check=True)
            before = failed.read_bytes()
            there = native((receiver if job[0] == "send" else server).uris)
            nobody = [str(word).replace(there, "tcp://127.0.0.1:9") for word in job]
            away = lab.start(None, "away", *nobody, "--retries", "0", "--failed-list", failed)
            check(away.wait() == 35 and failed.read_bytes() == before, f"{away.tail()}: {failed.read_bytes()}")
            good = lab.start(None, "good", *job, "--failed-list", failed)
            check(good.wait() == 0, good.tail())
            check(failed.read_bytes() == b"", f"{failed.read_bytes()}")
            same_tree(source, arrived)
        left = [path for path in lab.directory.iterdir() if path.name.startswith("failed") and path != failed]
        check(not left, f"left: {left}")
        receiver.stop()
        server.stop()
