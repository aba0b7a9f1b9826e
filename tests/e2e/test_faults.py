"""Faults of disks, of hosts and of sources that others change. Which row of the fault matrix has which test: tests/README.md."""
import contextlib
import fcntl
import os
import pathlib
import pty
import random
import struct
import subprocess
import threading
import time

from lab import BINARY, PATIENCE_S, Lab, Skipped, big_file, check, native, run, same_tree, sha256
from test_bad_input import ends, receiver_on


def with_fault(call, what):
    """A prefix under which this system call ends as `what` says."""
    return ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{what}")


class Failing(contextlib.AbstractContextManager):
    """From now on, and until it is left, these system calls of a process that runs end as `what` says."""

    def __init__(self, process, calls, what):
        pid = process.process.pid
        self.strace = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={calls}:{what}",
                                        "-p", str(pid)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_S
        while process.process.poll() is None and not self.has_all_of(pid):   # what it does may end the process at once
            check(process.process.poll() is not None or self.strace.poll() is None and time.monotonic() < deadline, "strace cannot attach")
            time.sleep(0.01)

    @staticmethod
    def has_all_of(pid):
        try:
            return all("TracerPid:\t0\n" not in (task / "status").read_text() for task in pathlib.Path(f"/proc/{pid}/task").iterdir())
        except (FileNotFoundError, ProcessLookupError):
            return False

    def __exit__(self, *_):
        self.strace.terminate()
        try:
            self.strace.wait(timeout=10)
        except subprocess.TimeoutExpired:   # it waits for a thread that ended meanwhile: the kernel lets go of all when the tracer dies
            self.strace.kill()
            self.strace.wait()


def on_tmpfs(lab, *options):
    root = lab.directory / "mounted"
    root.mkdir()
    run("mount", "-t", "tmpfs", *options, "tmpfs", root)
    return root


# --- The destination's disk

def test_no_inode_left__44_and_the_next_run_resumes():
    with Lab("inodes") as lab:
        root = on_tmpfs(lab, "-o", "nr_inodes=40")
        try:
            source = lab.directory / "many"
            source.mkdir()
            for number in range(200):
                (source / f"f{number}").write_text(f"{number}")
            receiver = receiver_on(lab, root)
            command = ("send", "--insecure", "-a", f"{source}/", native(receiver.uris) + "/d/")
            ends(lab.start(None, "send", *command), 44, "space")
            check(all(path.read_text() == path.name[1:] for path in (root / "d").glob("f*")), "half a file has a name")
            run("mount", "-o", "remount,nr_inodes=1000", root)
            again = lab.start(None, "again", *command)
            check(again.wait() == 0, again.tail())
            same_tree(source, root / "d")
            receiver.stop()
        finally:
            subprocess.run(["umount", "-l", root], check=False)


def test_quota_exceeded__44_and_the_next_run_resumes():
    with Lab("quota") as lab:
        source = big_file(lab.directory / "big", 24 << 20)
        receiver = receiver_on(lab)
        with Failing(receiver, "pwrite64", "error=EDQUOT:when=20+"):
            ends(lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + "/big"), 44, "quota")
        check(not (lab.directory / "root/big").exists(), "a part of it has the name")
        again = lab.start(None, "again", "send", "--insecure", source, native(receiver.uris) + "/big")
        check(again.wait() == 0, again.tail())
        check(sha256(source) == sha256(lab.directory / "root/big"), "big differs")


def test_file_size_limit_of_the_receiver__44_and_smaller_files_arrive_with_more():
    """A write that stops in the middle, and then is refused."""
    with Lab("fsize") as lab:
        source = big_file(lab.directory / "big", 24 << 20)
        receiver = receiver_on(lab, prefix=("prlimit", f"--fsize={(10 << 20) + 77}"))
        ends(lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + "/big"), 44)
        check(not (lab.directory / "root/big").exists(), "a part of it has the name")
        small = big_file(lab.directory / "small", 9 << 20)
        fits = lab.start(None, "fits", "send", "--insecure", small, native(receiver.uris) + "/small")
        check(fits.wait() == 0, fits.tail())
        check(sha256(small) == sha256(lab.directory / "root/small"), "small differs")
        receiver.stop()


def test_write_or_sync_fails_once__that_data_comes_again_and_exit_0():
    for call in ("pwrite64", "fsync"):
        with Lab(f"eio-{call}") as lab:
            source = big_file(lab.directory / "big", 24 << 20)
            receiver = receiver_on(lab)
            with Failing(receiver, call, "error=EIO:when=2"):
                sender = lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + "/big")
                code = sender.wait()
            check(code in (0, 11), f"{call}: {sender.tail()}")
            if code == 11:   # of the ledger, or of the directory behind the rename: then all of it has the name
                there = lab.directory / "root/big"
                check(not there.exists() or sha256(source) == sha256(there), f"{call}: a part of it has the name")
                sender = lab.start(None, "again", "send", "--insecure", source, native(receiver.uris) + "/big")
                check(sender.wait() == 0, f"{call}: {sender.tail()}")
            check(sha256(source) == sha256(lab.directory / "root/big"), f"{call}: big differs")


def test_every_sync_fails__11_and_nothing_has_its_name():
    with Lab("eio-always") as lab:
        source = big_file(lab.directory / "big", 24 << 20)
        receiver = receiver_on(lab)
        with Failing(receiver, "fsync,fdatasync,syncfs", "error=EIO"):
            ends(lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + "/big"), 11)
        check(not (lab.directory / "root/big").exists(), "it was never durable and has its name")


def test_slow_disk__memory_stays_flat_at_both_ends():
    """Each write takes 5 ms: what is read faster than it is written waits at the source, within its pool."""
    pool = 32 << 20
    with Lab("slowdisk") as lab:
        source = big_file(lab.directory / "big", 96 << 20)
        receiver = receiver_on(lab, None, "--memory", pool)
        with Failing(receiver, "pwrite64", "delay_exit=5000"):
            sender = lab.start(None, "send", "send", "--insecure", "--memory", pool, source, native(receiver.uris) + "/big")
            peaks = {}
            while sender.process.poll() is None:
                peaks = {"sender": max(peaks.get("sender", 0), sender.peak_kib()), "receiver": receiver.peak_kib()}
                time.sleep(0.05)
        check(sender.wait() == 0, sender.tail())
        check(sha256(source) == sha256(lab.directory / "root/big"), "big differs")
        for name, kib in peaks.items():
            check(kib << 10 <= pool + (64 << 20), f"{name}: {kib} KiB with a pool of {pool >> 10}")


# --- The source

def test_file_that_cannot_be_read__23_and_the_rest_arrives():
    """The disk of the source fails in the middle of a file: of a small one, and of a large one."""
    with Lab("eio-read") as lab:
        source = lab.directory / "run42"
        source.mkdir()
        for number in range(8):
            big_file(source / f"large{number}", 9 << 20, number)
            (source / f"small{number}").write_text(f"{number}")
        receiver = receiver_on(lab)
        sender = lab.start(None, "send", "send", "--insecure", "-a", f"{source}/", native(receiver.uris) + "/d/",
                           prefix=with_fault("pread64", "error=EIO:when=5+4"))
        check(sender.wait() == 23, sender.tail())
        failed = {event["path"]: event.get("reason", "") for event in sender.events if event["event"] == "file" and event["status"] == "failed"}
        check(failed and all("Input/output error" in reason for reason in failed.values()), f"{failed}")
        arrived = {path.name for path in (lab.directory / "root/d").iterdir()}
        check(arrived == {path.name for path in source.iterdir()} - set(failed), f"{sorted(arrived)} although {sorted(failed)} failed")
        for name in arrived:
            check(sha256(source / name) == sha256(lab.directory / "root/d" / name), f"{name} differs")
        again = lab.start(None, "again", "send", "--insecure", "-a", f"{source}/", native(receiver.uris) + "/d/")
        check(again.wait() == 0, again.tail())
        same_tree(source, lab.directory / "root/d")


def test_files_that_change_grow_shrink_and_vanish_while_they_are_read__never_a_mixture():
    """Each version of a file has one byte throughout: a mixture shows. What does not arrive is 24."""
    def content(version):
        return bytes([version % 251]) * (12 << 20)

    with Lab("mutator") as lab:
        source = lab.directory / "run42"
        source.mkdir()
        names = [f"f{number}" for number in range(6)]
        for name in names:
            (source / name).write_bytes(content(0))
        stop = threading.Event()

        def mutate():
            chance, version = random.Random(5), 0
            while not stop.is_set():
                version += 1
                path = source / chance.choice(names)
                kind = chance.randrange(4)
                if kind == 0:      # another version in its place
                    (source.parent / "next").write_bytes(content(version))
                    os.replace(source.parent / "next", path)
                elif kind == 1 and path.exists():
                    with open(path, "r+b") as file:   # rewritten where it stands; one that had grown keeps no tail of the old version
                        file.truncate(min(path.stat().st_size, 12 << 20))
                        file.write(content(version))
                elif kind == 2 and path.exists():
                    with open(path, "r+b") as file:
                        byte = file.read(1)
                        os.truncate(path, min(chance.randrange(1, 12 << 20), path.stat().st_size))  # no zeros behind one that had shrunk
                        file.seek(0, os.SEEK_END)
                        file.write(byte * chance.randrange(1 << 20))
                else:
                    path.unlink(missing_ok=True)

        receiver = receiver_on(lab)
        changer = threading.Thread(target=mutate)
        changer.start()
        try:
            for _ in range(4):
                sender = lab.start(None, "send", "send", "--insecure", "-a", "--bwlimit", "100MB/s", f"{source}/", native(receiver.uris) + "/d/")
                code = sender.wait()
                check(code in (0, 24), sender.tail())
                for path in (lab.directory / "root/d").iterdir():
                    held = set(path.read_bytes())
                    check(len(held) <= 1, f"{path.name} is a mixture of versions {held}")
        finally:
            stop.set()
            changer.join()
        for name in names:
            (source / name).write_bytes(content(77))
        last = lab.start(None, "last", "send", "--insecure", "-a", f"{source}/", native(receiver.uris) + "/d/")
        check(last.wait() == 0, last.tail())
        for name in names:
            check((lab.directory / "root/d" / name).read_bytes() == content(77), f"{name} differs")


# --- Hosts

def test_receiver_out_of_descriptors__who_is_in_ends_well_and_who_waits_comes_in_later():
    with Lab("nofile") as lab:
        receiver = receiver_on(lab, prefix=("prlimit", "--nofile=48:48"))
        sources = [big_file(lab.directory / f"f{number}", 6 << 20, number) for number in range(24)]
        senders = [lab.start(None, f"send{number}", "send", "--insecure", "--bwlimit", "8MB/s", source, f"{native(receiver.uris)}/f{number}")
                   for number, source in enumerate(sources)]
        for sender in senders:
            check(sender.wait() == 0, sender.tail())
        for number, source in enumerate(sources):
            check(sha256(source) == sha256(lab.directory / f"root/f{number}"), f"f{number} differs")
        check(receiver.process.poll() is None, f"the receiver has ended: {receiver.tail()}")
        receiver.stop()


def test_receiver_with_few_descriptors__a_tree_of_large_files_arrives():
    """Each waits for its commit with a descriptor of its own."""
    with Lab("nofile-tree") as lab:
        slow_disk = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "-e", "inject=fsync:delay_enter=20000")
        receiver = receiver_on(lab, prefix=(*slow_disk, "prlimit", "--nofile=64:64"))
        source = lab.directory / "many"
        source.mkdir()
        for number in range(150):
            big_file(source / f"f{number}", (4 << 20) + 1000, number)
        sender = lab.start(None, "send", "send", "--insecure", "-a", f"{source}/", native(receiver.uris) + "/d/")
        check(sender.wait() == 0, sender.tail())
        check(sender.done()["files"] == 150, str(sender.done()))
        for path in source.iterdir():
            check(path.read_bytes() == (lab.directory / "root/d" / path.name).read_bytes(), f"{path.name} differs")
        pid = receiver.process.pid
        traced = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(traced[0]), 9)   # strace hands SIGTERM on late
        receiver.wait()


def test_two_senders_of_one_name__one_wins_and_the_other_is_told():
    """The file is of one of them, whole. The other ends with an error that says so, or came before or after."""
    with Lab("race") as lab:
        receiver = receiver_on(lab)
        sources = [big_file(lab.directory / f"v{number}", 24 << 20, number + 1) for number in range(2)]
        senders = [lab.start(None, f"send{number}", "send", "--insecure", "--bwlimit", "24MB/s", source, native(receiver.uris) + "/f")
                   for number, source in enumerate(sources)]
        codes = [sender.wait() for sender in senders]
        check(0 in codes, f"nobody wins: {[sender.tail() for sender in senders]}")
        for sender, code in zip(senders, codes):
            check(code in (0, 23), sender.tail())
            if code == 23:
                failed = [event for event in sender.events if event["event"] == "file" and event["status"] == "failed"]
                check(len(failed) == 1 and failed[0].get("reason"), f"it was not told: {sender.tail()}")
        there = sha256(lab.directory / "root/f")
        winners = [source for source, code in zip(sources, codes) if code == 0]
        check(there in {sha256(source) for source in winners}, "the file is none of the winners'")


# --- A power cut

SHUTDOWN = 0x8004587D   # EXT4_IOC_SHUTDOWN, which xfs has too
NO_LOG_FLUSH = 2        # what the journal has not written yet is lost


class Disk:
    """A file system on a loop device, which can lose its power."""

    def __init__(self, lab, kind):
        self.image, self.root = lab.directory / "disk", lab.directory / "mounted"
        self.root.mkdir()
        run("truncate", "-s", "400M", self.image)
        run(f"mkfs.{kind}", "-q", self.image)
        self.mount()

    def mount(self):
        run("mount", "-o", "loop", self.image, self.root)

    def cut(self):
        descriptor = os.open(self.root, os.O_RDONLY)
        fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        os.close(descriptor)

    def power_again(self):
        run("umount", self.root)
        self.mount()


def power_cuts(kind, cuts):
    """Files are old or new and whole after each cut; what a sender ended with 0 for is there; then the rest arrives."""
    with Lab(f"power-{kind}") as lab:
        try:
            disk = Disk(lab, kind)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            raise Skipped(f"no {kind} on a loop device here: {getattr(error, 'stderr', error)}") from error
        try:
            chance = random.Random(int(os.environ.get("CCIXFER_E2E_SEED", "7")))
            source = lab.directory / "source"
            source.mkdir()
            names = ["large", *(f"small{number}" for number in range(60))]
            known = {name: set() for name in names}   # what each name may hold
            for cut in range(cuts):
                for name in names:
                    size = 20 << 20 if name == "large" else chance.randrange(60_000)
                    big_file(source / name, size, 1000 * cut + names.index(name))
                    os.utime(source / name, ns=(0, 10**18 + cut * 10**9))
                receiver = receiver_on(lab, disk.root)
                job = ("send", "--insecure", "-a", "--bwlimit", "40MB/s", "--timeout", "5", f"{source}/", native(receiver.uris) + "/d/")
                sender = lab.start(None, "send", *job)
                ended = threading.Event()
                threading.Thread(target=lambda process=sender, flag=ended: (process.process.wait(), flag.set()), daemon=True).start()
                ended.wait(chance.uniform(0.05, 1.5))
                disk.cut()
                done = sender.process.poll()
                receiver.kill()
                receiver.wait()
                sender.kill()
                sender.wait()
                delivered = {event["path"] for event in sender.events if event["event"] == "file" and event["status"] == "ok"}
                disk.power_again()
                for name in names:
                    new, path = sha256(source / name), disk.root / "d" / name
                    there = sha256(path) if path.exists() else None
                    must = done == 0 or name in delivered
                    check(there == new or not must, f"cut {cut}: {name} was delivered and is not what is on the disk")
                    check(there is None and not known[name] or there == new or there in known[name],
                          f"cut {cut}: {name} is neither an old file nor the new one")
                    if there is not None:
                        known[name] = {there}
                receiver = receiver_on(lab, disk.root)
                again = lab.start(None, "again", *job[:4], "1GB/s", *job[5:-1], native(receiver.uris) + "/d/")
                check(again.wait() == 0, again.tail())
                same_tree(source, disk.root / "d")
                for name in names:
                    known[name] = {sha256(source / name)}
                receiver.stop()
        finally:
            subprocess.run(["umount", "-l", disk.root], check=False)


def test_power_cut__ext4__files_are_old_or_new_and_what_was_delivered_is_there():
    power_cuts("ext4", 4)


def test_power_cut__xfs__files_are_old_or_new_and_what_was_delivered_is_there():
    power_cuts("xfs", 2)


# --- Names

def test_names_that_control_a_terminal__are_never_printed_as_they_are():
    """On a terminal, in the log and in what a run without one says: of files that arrive, that fail, and that are left out."""
    names = [b"esc\x1b[2J", b"line\nbreak", b"return\rover", b"csi \x9b31m", b"bell\x07", b"c1 \xc2\x9b31m", b"del\x7f", b"tab\t"]
    with Lab("names") as lab:
        source = lab.directory / "run42"
        (source / os.fsdecode(b"dir \x1b]0;title\x07")).mkdir(parents=True)
        for name in names:
            (source / os.fsdecode(name)).write_text("x")
            (source / os.fsdecode(b"dir \x1b]0;title\x07") / os.fsdecode(name)).write_text("x")
        os.mkfifo(source / os.fsdecode(b"fifo\x1b[31m"))
        receiver = receiver_on(lab)
        for name in names[::2]:
            (lab.directory / "root/d" / os.fsdecode(name) / "in the way").mkdir(parents=True)
        master, terminal = pty.openpty()
        for number, (where, options) in enumerate(((subprocess.PIPE, ("-vv", "--stats", "-P")), (terminal, ("-v", "--stats")), (terminal, ()))):
            log = lab.directory / f"log{number}"
            ended = subprocess.run([str(BINARY), "send", "--insecure", *options, "--log-file", str(log), f"{source}/",
                                    native(receiver.uris) + "/d/"], stdin=subprocess.DEVNULL, stdout=where, stderr=where, check=False)
            check(ended.returncode == 23, f"exit {ended.returncode}")
            said = log.read_bytes()
            said += (ended.stdout + ended.stderr) if where == subprocess.PIPE else os.read(master, 1 << 20).replace(b"\r\x1b[K", b"")
            said = said.replace(b"\r\n", b"\n")
            check(b"fifo" in said and b"failed" in said, f"nothing was said: {said[:500]}")
            wrong = [byte for byte in set(said) if byte < 0x20 and byte != 0x0A or byte == 0x7F]
            check(not wrong, f"raw {wrong} in {said[:3000]}")
            try:
                text = said.decode()
            except UnicodeDecodeError as error:
                check(False, f"not UTF-8: {error}")
            check(not any(0x80 <= ord(letter) < 0xA0 for letter in text), "a control character of C1")
            check(text.count("esc%1B[2J") >= 1, f"not as it is escaped: {text[:500]}")
        os.close(master)
        os.close(terminal)
        receiver.stop()
