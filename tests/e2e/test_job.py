"""`ccixfer job NAME`: a job's file, its lock, its window, its history."""
import datetime
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import time

from lab import BINARY, Lab, PATIENCE_S, big_file, check, native, same_tree


class Site:
    """An account with jobs of its own, and a receiver for them."""

    def __init__(self, lab):
        self.lab = lab
        home = lab.directory / "home"
        self.jobs = home / ".config/ccixfer/jobs"
        self.jobs.mkdir(parents=True)
        self.state = home / ".local/state/ccixfer"
        unwanted = ("XDG_CONFIG_HOME", "STATE_DIRECTORY", "CCI_CONFIG")
        self.env = {**{name: value for name, value in os.environ.items() if name not in unwanted}, "HOME": str(home),
                    "XDG_STATE_HOME": ""}   # that of the tests: an empty one is none, as XDG has it
        self.root = lab.directory / "root"
        self.root.mkdir()
        self.receiver = lab.start_ready(None, "recv", "recv", "--root", self.root, "--listen", "127.0.0.1:0", "--insecure")
        self.uri = native(self.receiver.uris)
        self.source = lab.directory / "run42"
        self.source.mkdir()

    def write(self, name, extra="", options="archive = true\n", source=None):
        text = f'sources = ["{source or self.source}/"]\ndestination = "{self.uri}/d/"\n{extra}\n[options]\ninsecure = true\n{options}'
        (self.jobs / f"{name}.toml").write_text(text)

    def start(self, name, *options):
        return self.lab.start(None, "job", "job", name, *options, env=self.env)

    def run(self, *words):
        return subprocess.run([BINARY, *words], env=self.env, capture_output=True, text=True, check=False, timeout=60)

    def history(self, *options):
        listed = self.run("status", "--history", "--json", *options)
        check(listed.returncode == 0, listed.stderr)
        return [event for event in map(json.loads, listed.stdout.splitlines()) if event["event"] == "run"]

    def outcomes(self):
        return [(run["job"], run["status"], run["exit"]) for run in self.history()]


def child_of(process):
    """The process that moves the data."""
    children = pathlib.Path(f"/proc/{process.process.pid}/task/{process.process.pid}/children")
    (child,) = children.read_text().split()
    return int(child)


def until_gone(pid):
    deadline = time.monotonic() + PATIENCE_S
    while os.path.exists(f"/proc/{pid}") and "State:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text():
        check(time.monotonic() < deadline, f"process {pid} runs still")
        time.sleep(0.05)


def test_job__runs__moves_the_tree_and_is_in_the_history():
    with Lab("job") as lab:
        site = Site(lab)
        nothing = site.run("status", "--history")
        check(nothing.returncode == 0 and f"there is no {site.state}/jobs.sqlite" in nothing.stderr, f"{nothing}")
        big_file(site.source / "f", 3 << 20)
        (site.source / "not-this.tmp").write_text("x")
        site.write("nightly", options='archive = true\nfilter = ["- *.tmp"]\n')
        first = site.start("nightly")
        check(first.wait() == 0, first.tail())
        check(first.done()["status"] == "ok" and first.done()["files"] == 1, first.tail())
        check([path.name for path in (site.root / "d").iterdir()] == ["f"], "another tree")
        check((site.root / "d/f").read_bytes() == (site.source / "f").read_bytes(), "another file")
        second = site.start("nightly")
        check(second.wait() == 0, second.tail())
        one, two = site.history()
        check(one["job"] == "nightly" and one["destination"] == f"{site.uri}/d/" and one["exit"] == 0 and one["status"] == "ok", f"{one}")
        check(one["files"] == 1 and one["bytes"] == 3 << 20 and one["bytes_sent"] >= 3 << 20, f"{one}")
        check(abs(one["began"] - time.time()) < 300 and one["ended"] >= one["began"], f"{one}")
        check(two["files"] == 0 and two["files_unchanged"] == 1 and two["bytes_sent"] == 0, f"{two}")
        check(site.history("--job", "other") == [] and len(site.history("--job", "nightly")) == 2, "--job")
        shown = site.run("status", "--history").stdout
        mistyped = site.run("status", "--history", "--job", "nigthly")
        check(mistyped.returncode == 0 and mistyped.stdout == "" and "no run of nigthly is in" in mistyped.stderr, f"{mistyped}")
        check("nightly to tcp://" in shown and "ok: 1 file, 0 unchanged, 0 failed" in shown, shown)
        check(not (site.state / "jobs.sqlite").stat().st_mode & 0o077, "others read the history")


def test_job__killed_with_its_transfer__the_next_run_goes_on_and_the_history_says_so():
    with Lab("job-kill") as lab:
        site = Site(lab)
        big_file(site.source / "f", 24 << 20)
        site.write("nightly", options='archive = true\nbwlimit = "8MB/s"\n')
        first = site.start("nightly")
        first.wait_event("session")
        transfer = child_of(first)
        check(site.outcomes() == [("nightly", "running", None)], f"{site.outcomes()}")
        second = site.start("nightly")
        check(second.wait() == 6 and second.done()["status"] == "already_running", second.tail())
        first.kill(signal.SIGKILL)
        check(first.wait() == -9, first.tail())
        until_gone(transfer)  # nobody is left who moves data for a job that is over
        site.write("nightly")
        third = site.start("nightly")
        check(third.wait() == 0, third.tail())
        same_tree(site.source, site.root / "d")
        check(site.outcomes() == [("nightly", "killed", None), ("nightly", "already_running", 6), ("nightly", "ok", 0)], f"{site.outcomes()}")


def test_job__its_transfer_dies__is_noted_and_is_an_exit_code_of_its_own():
    with Lab("job-dies") as lab:
        site = Site(lab)
        big_file(site.source / "f", 24 << 20)
        site.write("nightly", options='bwlimit = "8MB/s"\n')
        for sent, code, status in ((signal.SIGKILL, 20, "killed"), (signal.SIGSEGV, 70, "bug")):
            job = site.start("nightly")
            job.wait_event("session")
            os.kill(child_of(job), sent)
            check(job.wait() == code, job.tail())
            run = site.history()[-1]
            check(run["status"] == status and run["exit"] == code and f"signal {sent.value}" in run["reason"], f"{run}")


def test_job__stopped__its_transfer_is_told_and_ends_resumable():
    with Lab("job-stop") as lab:
        site = Site(lab)
        big_file(site.source / "f", 24 << 20)
        site.write("nightly", options='bwlimit = "8MB/s"\n')
        job = site.start("nightly")
        job.wait_event("session")
        job.kill(signal.SIGTERM)
        check(job.wait() == 20 and job.done()["status"] == "interrupted", job.tail())
        check(site.outcomes() == [("nightly", "interrupted", 20)], f"{site.outcomes()}")


def test_job__a_signal_to_all_its_processes__is_one_signal():
    """As a service manager, timeout(1) and a session's end send it: the transfer ends in order, and who is to be told is told."""
    with Lab("job-group") as lab:
        site = Site(lab)
        big_file(site.source / "f", 24 << 20)
        told = lab.directory / "told"
        site.write("nightly", extra=f'on_complete = "cat >> {told}"', options='bwlimit = "1MB/s"\n')
        for number in (signal.SIGTERM, signal.SIGINT) * 3:   # whichever of the two processes is the quicker one
            job = lab.start(None, "job", "job", "nightly", env=site.env, prefix=("setsid",))
            job.wait_event("session")
            os.killpg(job.process.pid, number)
            check(job.wait() == 20 and job.done().get("status") == "interrupted", job.tail())
        check(site.outcomes() == [("nightly", "interrupted", 20)] * 6, f"{site.outcomes()}")
        check(told.read_text().count('"status":"interrupted"') == 6, told.read_text())


def test_job__a_signal_to_one_process_and_then_the_other__is_one_signal():
    """In either order, and with the peer held up so that the transfer cannot have ended meanwhile."""
    with Lab("job-one-by-one") as lab:
        site = Site(lab)
        big_file(site.source / "f", 24 << 20)
        site.write("nightly", options='bwlimit = "1MB/s"\n')
        for child_first in (True, False):
            job = site.start("nightly")
            job.wait_event("session")
            pids = [child_of(job), job.process.pid]
            site.receiver.kill(signal.SIGSTOP)
            for pid in pids if child_first else reversed(pids):
                os.kill(pid, signal.SIGTERM)
                deadline = time.monotonic() + PATIENCE_S
                while "interrupted: the peer is told" not in job.stderr():
                    check(time.monotonic() < deadline, f"it heard nothing: {job.tail()}")
                    time.sleep(0.02)
            time.sleep(0.5)   # a second signal would have ended it at once by now
            check(job.process.poll() is None, f"it took one signal for two: {job.tail()}")
            site.receiver.kill(signal.SIGCONT)
            check(job.wait() == 20 and job.done().get("status") == "interrupted", job.tail())
            check(job.stderr().count("interrupted: the peer is told") == 1, job.tail())
        check(site.outcomes() == [("nightly", "interrupted", 20)] * 2, f"{site.outcomes()}")


def test_job__window__closed_nothing_begins_and_open_it_does():
    with Lab("job-window") as lab:
        site = Site(lab)
        (site.source / "f").write_text("x")
        at = [(datetime.datetime.now() + datetime.timedelta(hours=hours)).strftime("%H:%M") for hours in (-2, 2, 4)]
        site.write("early", extra=f'[window]\nfrom = "{at[1]}"\nuntil = "{at[2]}"')
        early = site.start("early")
        check(early.wait() == 30 and "the window of the job is closed" in early.stderr(), early.tail())
        check(not (site.root / "d").exists(), "it began nevertheless")
        site.write("now", extra=f'[window]\nfrom = "{at[0]}"\nuntil = "{at[1]}"')
        now = site.start("now")
        check(now.wait() == 0, now.tail())
        check(site.outcomes() == [("early", "timeout", 30), ("now", "ok", 0)], f"{site.outcomes()}")


def test_job__that_cannot_begin__tells_whom_it_is_to_tell():
    with Lab("job-untold") as lab:
        site = Site(lab)
        told = {name: lab.directory / name for name in ("nokey", "early", "busy")}
        for name, file in told.items():
            site.write(name, extra=f'on_complete = "cat > {file}"')
        nokey = site.jobs / "nokey.toml"
        nokey.write_text(nokey.read_text().replace("insecure = true\n", ""))
        at = [(datetime.datetime.now() + datetime.timedelta(hours=hours)).strftime("%H:%M") for hours in (2, 4)]
        site.write("early", extra=f'on_complete = "cat > {told["early"]}"\n[window]\nfrom = "{at[0]}"\nuntil = "{at[1]}"')
        for name, code in (("nokey", 41), ("early", 30)):
            job = site.start(name)
            check(job.wait() == code, job.tail())
            result = json.loads(told[name].read_text())
            check(result["exit"] == code and result["reason"] and "transfer" not in result, f"{result}")
        lock = lab.file("lock", "")
        site.write("busy", extra=f'lock = "{lock}"\non_complete = "cat > {told["busy"]}"')
        with open(lock, "r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            check(site.start("busy").wait() == 6, "not locked")
        check(not told["busy"].exists(), "the run that has the lock tells")


def test_job__check__names_what_is_wrong_before_the_night():
    with Lab("job-check") as lab:
        site = Site(lab)
        (site.source / "f").write_text("x")
        site.write("fine")
        site.write("rate", options='archive = true\nbwlimit = "800"\n')
        site.write("option", options="archives = true\n")
        site.write("help", options="h = true\n")
        site.write("pair", options="compress-level = 3\nmax-delete = 5\n")
        site.write("gone", source="/nowhere/at/all")
        site.write("lock", extra='lock = "/nowhere/lock"')
        site.write("log", options='log-file = "/nowhere/log"\n')
        os.mkfifo(site.jobs / "pipe")
        site.write("pipe", options=f'log-file = "{site.jobs}/pipe"\n')
        site.write("directory", options=f'log-file = "{site.jobs}"\n')
        site.write("failed", options='failed-list = "/nowhere/failed"\n')
        site.write("list", options='files-from = "/nowhere/list"\n')
        site.write("rule", options='filter = ["* x"]\n')
        site.write("memory", options='memory = "1MiB"\n')
        site.write("device", options='device = "ib9"\n')
        site.write("chown", options='archive = true\nchmod = ["u+y"]\n')
        site.write("older", options='link-dest = ["../../../outside"]\n')
        (site.jobs / "address.toml").write_text(f'sources = ["{site.source}/"]\ndestination = "nowhere"\n[options]\ninsecure = true\n')
        (site.jobs / "broken.toml").write_text("sources = [\n")
        checked = site.run("job", "--check", "fine")
        check(checked.returncode == 0 and checked.stdout == "fine: fine\n", f"{checked}")
        checked = site.run("job", "--check", str(site.jobs / "fine.toml"))
        check(checked.returncode == 0, f"{checked}")
        for name, code, words in (("rate", 1, "rate.toml:7: options.bwlimit"), ("option", 1, "option.toml:6: options.archives: bad command line: "),
                                  ("help", 1, "help.toml:6: options.h: is not given here"),
                                  ("gone", 3, "/nowhere/at/all"), ("address", 1, "nowhere"), ("broken", 1, "broken.toml:"),
                                  ("lock", 1, "lock.toml: cannot write the lock file: /nowhere/lock"),
                                  ("log", 1, "log.toml:6: options.log-file"), ("pipe", 1, "a FIFO that nobody reads"),
                                  ("directory", 1, "directory.toml:6: options.log-file"), ("failed", 1, "failed.toml:6: options.failed-list"),
                                  ("list", 1, "list.toml:6: options.files-from"), ("rule", 1, "rule.toml:6: options.filter"),
                                  ("memory", 1, "memory.toml:6: options.memory: too little memory"),
                                  ("device", 1, "device.toml:6: options.device: no such device: ib9"),
                                  ("chown", 1, "chown.toml:7: options.chmod"), ("older", 42, "older.toml:6: options.link-dest"),
                                  ("missing", 1, "/etc/ccixfer/jobs/missing.toml"), ("a b", 1, "bad name of a job")):
            checked = site.run("job", "--check", name)
            check(checked.returncode == code and words in checked.stderr and checked.stderr.count("\n") == 1, f"{name}: {checked}")
            check(": -- " not in checked.stderr, f"what nobody wrote: {checked}")
            ran = site.run("job", name)
            check(ran.returncode == code, f"{name}: {ran}")
        several = site.run("job", "--check", "rate", "fine", "gone")
        check(several.returncode != 0 and several.stdout == "fine: fine\n" and several.stderr.count("\n") == 2, f"{several}")
        check(site.run("job", "fine", "rate").returncode == 1, "two at a time")
        check(site.run("status").returncode == 1 and site.run("status", "--job", "fine", str(site.root)).returncode == 1, "status")


def test_job__check_of_a_job_with_identities__names_a_missing_key_and_an_unnamed_peer():
    with Lab("job-trust") as lab:
        site = Site(lab)
        (site.source / "f").write_text("x")
        site.write("nightly")
        text = (site.jobs / "nightly.toml").read_text().replace("insecure = true\n", "")
        (site.jobs / "nightly.toml").write_text(text)
        checked = site.run("job", "--check", "nightly")
        check(checked.returncode == 41 and "no identity" in checked.stderr, f"{checked}")
        made = site.run("keygen")
        check(made.returncode == 0, f"{made}")
        checked = site.run("job", "--check", "nightly")
        check(checked.returncode == 41 and f"nobody is known at {site.uri}" in checked.stderr, f"{checked}")
        peers = [f'[peer.archive]\nid = "{made.stdout.strip()}"\naddress = "tcp://elsewhere.example:7100"\n',
                 f'[peer.archive]\nid = "{made.stdout.strip()}"\naddress = "{site.uri}"\n', f'[peer.archive]\nid = "{made.stdout.strip()}"\n']
        for peer, code in zip(peers, (41, 0, 0)):
            (site.jobs.parent / "ccixfer.toml").write_text(peer)
            checked = site.run("job", "--check", "nightly")
            check(checked.returncode == code, f"{peer}: {checked}")
        (site.jobs.parent / "ccixfer.toml").unlink()
        (site.jobs.parent / "known_peers").write_text(f"{site.uri} {made.stdout.strip()}\n")
        check(site.run("job", "--check", "nightly").returncode == 0, "a line of known_peers counts for nothing")


def test_job__check_of_a_pull__names_a_directory_that_cannot_be_made():
    with Lab("job-pull-check") as lab:
        site = Site(lab)
        for name, directory, code in (("new", lab.directory / "new", 0), ("there", site.root, 0), ("nowhere", "/nowhere/at/all", 11)):
            (site.jobs / f"{name}.toml").write_text(f'command = "recv"\nsources = ["{site.uri}/d"]\ndestination = "{directory}"\n'
                                                    "[options]\ninsecure = true\n")
            checked = site.run("job", "--check", name)
            check(checked.returncode == code and (code == 0 or "/nowhere/at: No such file" in checked.stderr), f"{name}: {checked}")
        check(not (lab.directory / "new").exists(), "the check made the directory")


def test_job__history_that_cannot_be_written__costs_no_transfer():
    with Lab("job-history") as lab:
        site = Site(lab)
        (site.source / "f").write_text("x")
        site.write("nightly")
        site.state.mkdir(parents=True)
        (site.state / "jobs.sqlite").write_bytes(b"x" * 8192)
        job = site.start("nightly")
        check(job.wait() == 0, job.tail())
        check("warning:" in job.stderr() and "jobs.sqlite" in job.stderr(), job.tail())
        check((site.root / "d/f").read_text() == "x", "nothing came")
        check((site.state / "jobs.sqlite").read_bytes() == b"x" * 8192, "the file was changed")
        check(site.run("status", "--history").returncode == 11, "a damaged history is one")
