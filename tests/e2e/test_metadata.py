"""What of a tree is kept besides content: hard links, extended attributes and access control lists, holes, devices, owners.

tests/differential compares the meaning with rsync's; here are whole trees that are made to be nasty, and disks that refuse.
"""
import os
import pathlib
import socket
import stat
import struct
import subprocess

from lab import BINARY, Lab, Skipped, check, leave_out, native
from test_bad_input import receiver_on

NASTY_NS = 1_234_567_890 * 10**9 + 987_654_321
AM_ROOT = os.geteuid() == 0


def rooted(name):
    lab = Lab(name)
    lab.root = lab.directory / "root"
    return lab


def run(words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def both_ways(lab, source, *options):
    """The same options of a push and of a pull: (what to run, where it arrives)."""
    receiver = lab.receiver = receiver_on(lab, lab.root)
    lab.server = lab.start_ready(None, "serve", "send", "--serve", source, "--listen", "127.0.0.1:0", "--insecure")
    pulled = lab.directory / "pulled"
    return (([BINARY, "send", "--insecure", *options, f"{source}/", native(receiver.uris) + "/d/"], lab.root / "d"),
            ([BINARY, "recv", "--insecure", *options, native(lab.server.uris), pulled], pulled))


def acl(*entries):
    """(tag, permissions, id), as linux/posix_acl_xattr.h has it."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NOBODY = 0xffffffff
ACCESS = acl((1, 6, NOBODY), (2, 5, 1234), (4, 4, NOBODY), (16, 5, NOBODY), (32, 0, NOBODY))
DEFAULT = acl((1, 7, NOBODY), (2, 7, 4321), (4, 5, NOBODY), (8, 1, 77), (16, 7, NOBODY), (32, 5, NOBODY))


def sparse_file(path, size, *data):
    with open(path, "wb") as file:
        file.truncate(size)
        for at, content in data:
            file.seek(at)
            file.write(content)


def nasty_tree(top):
    """All types, names of any bytes, odd modes and times, links, lists, attributes, holes."""
    top.mkdir()
    files = {}
    for number, name in enumerate([b"plain", b"new\nline", b"\xff\xfe", b"-n", b"sp ace", b"q?[x]*", b"back\\slash", b"~tilde",
                                   "\u00fc\u0308".encode(), b"x" * 255]):
        path = os.fsencode(top) + b"/" + name
        pathlib.Path(os.fsdecode(path)).write_bytes(b"content %d" % number * (number + 1))
        files[name] = path
    deep = top / "deep/er/est"
    deep.mkdir(parents=True)
    for mode in (0, 0o4755, 0o2755, 0o1644, 0o777, 0o200):
        (deep / f"mode{mode:o}").write_text("m")
        os.chmod(deep / f"mode{mode:o}", mode)
    for mode in (0o2775, 0o1777, 0o555, 0o700):
        (top / f"dir{mode:o}").mkdir()
        (top / f"dir{mode:o}/f").write_text("in it")
        os.chmod(top / f"dir{mode:o}", mode)
    os.symlink("plain", top / "link")
    os.symlink(b"/nowhere/\xff", os.fsencode(top) + b"/dangling")
    os.link(files[b"plain"], deep / "hard")
    os.link(files[b"plain"], top / "also plain")
    os.link(top / "link", top / "link too", follow_symlinks=False)
    os.mkfifo(top / "fifo", 0o640)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(top / "socket"))
    os.link(top / "fifo", top / "fifo too")
    if AM_ROOT:
        os.mknod(top / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod(top / "block", stat.S_IFBLK | 0o600, os.makedev(7, 200))
        os.chown(top / "sp ace", 12345, 54321)
        os.chown(top / "link", 1, 2, follow_symlinks=False)
    os.setxattr(files[b"plain"], "user.note", b"\x00any\xff")
    os.setxattr(files[b"\xff\xfe"], "user.empty", b"")
    os.setxattr(top / "deep", "user.of.a.directory", b"d" * 3000)
    os.setxattr(files[b"~tilde"], "system.posix_acl_access", ACCESS)
    os.setxattr(deep, "system.posix_acl_access", ACCESS.replace(struct.pack("<HH", 1, 6), struct.pack("<HH", 1, 7)))
    os.setxattr(deep, "system.posix_acl_default", DEFAULT)
    sparse_file(top / "sparse", 20 << 20, (5 << 20, b"island"), ((20 << 20) - 1, b"e"))
    sparse_file(top / "all hole", 9 << 20)
    sparse_file(top / "small sparse", 1 << 20, (4096, b"x" * 4096))
    (top / "zeros").write_bytes(b"a" + bytes(6 << 20) + b"z")
    for path in sorted(top.rglob("*"), reverse=True):
        os.utime(path, ns=(0, NASTY_NS + len(str(path))), follow_symlinks=False)
    os.utime(top, ns=(0, -5 * 10**9 + 3))


def blocks(path):
    return os.lstat(path).st_blocks * 512


def test_nasty_tree__push_and_pull__rsync_finds_nothing_to_do():
    with rooted("nasty") as lab:
        source = lab.directory / "run42"
        nasty_tree(source)
        ways = both_ways(lab, source, "-aHAXS", "-q")
        for job, arrived in ways:
            ended = run(job)
            check(ended.returncode == 0, ended.stderr)
            again = run(["rsync", "-aHAXSni", "--modify-window=-1", "--checksum", f"{source}/", f"{arrived}/"])
            check(again.returncode == 0 and again.stdout == "", f"{job[1]}: rsync finds {again.stdout}{again.stderr}")
            for name in ("sparse", "all hole", "small sparse", "zeros"):
                check(blocks(arrived / name) <= 64 << 10, f"{name} takes {blocks(arrived / name)} bytes")
            check(os.lstat(arrived / "plain").st_nlink == 3, "the names are not names of one file")
            second = run([*job, "-i"])
            check(second.returncode == 0 and second.stdout == "", f"a second run has something to do: {second.stdout}")


def test_hard_links__the_first_name_cannot_be_read__the_next_one_is_sent_instead():
    with rooted("leader") as lab:
        source = lab.directory / "run42"
        source.mkdir()
        (source / "a").write_text("one")
        os.link(source / "a", source / "b")
        os.link(source / "a", source / "c")
        (source / "big").write_bytes(os.urandom(9 << 20))
        os.link(source / "big", source / "big2")
        for job, arrived in both_ways(lab, source, "-aH", "-q"):
            (arrived / "a/full").mkdir(parents=True)   # a file cannot take the place of a directory with content
            (arrived / "big/full").mkdir(parents=True)
            ended = run(job)
            check(ended.returncode == 23, f"{ended.returncode}: {ended.stderr}")
            check(os.path.samefile(arrived / "b", arrived / "c"), "they are two files")
            check((arrived / "c").read_text() == "one" and (arrived / "big2").stat().st_size == 9 << 20, "their content")


def test_hard_links__what_is_linked_otherwise_at_the_destination__becomes_as_at_the_source():
    with rooted("regroup") as lab:
        source = lab.directory / "run42"
        source.mkdir()
        for name in "abcd":
            (source / name).write_text("one" if name < "c" else "two")
        (source / "b").unlink()
        (source / "d").unlink()
        os.link(source / "a", source / "b")
        os.link(source / "c", source / "d")
        for job, arrived in both_ways(lab, source, "-aH", "-q", "-i"):
            arrived.mkdir(parents=True)
            (arrived / "a").write_text("old")
            os.link(arrived / "a", arrived / "c")
            (arrived / "b").write_text("one")
            ended = run(job)
            check(ended.returncode == 0, ended.stderr)
            check("=> a" in ended.stdout and "=> c" in ended.stdout, ended.stdout)
            check(os.path.samefile(arrived / "a", arrived / "b") and os.path.samefile(arrived / "c", arrived / "d"), "links")
            check(not os.path.samefile(arrived / "a", arrived / "c"), "two files of the source are one")
            check((arrived / "b").read_text() == "one" and (arrived / "d").read_text() == "two", "content")
            check(run(job).stdout == "", "a second run has something to do")


def test_special_file_below_a_default_list__gets_no_list_that_the_source_does_not_have():
    with rooted("special-list") as lab:
        source = lab.directory / "source"
        (source / "d").mkdir(parents=True)
        os.mkfifo(source / "d/fifo")
        (source / "d/file").write_text("x")
        os.setxattr(source / "d", "system.posix_acl_default", DEFAULT)
        for job, arrived in both_ways(lab, source, "-aA"):
            (arrived / "d").mkdir(parents=True)
            os.setxattr(arrived / "d", "system.posix_acl_default", DEFAULT)   # before anything is made in it
            ended = run([*job, "-q"])
            check(ended.returncode == 0, ended.stderr)
            check(stat.S_ISFIFO((arrived / "d/fifo").lstat().st_mode), "no FIFO came")
            for name in ("fifo", "file"):
                check("system.posix_acl_access" not in os.listxattr(arrived / "d" / name), f"{arrived}: {name} has a list")


def test_sparse__eight_tebibytes_with_one_mebibyte_of_data__arrive_at_once():
    with rooted("huge") as lab:
        source = lab.directory / "run42"
        source.mkdir()
        try:
            sparse_file(source / "huge", 8 << 40, ((5 << 40) + 12345, os.urandom(1 << 20)))
        except OSError as problem:
            raise Skipped(f"no file of that size here: {problem}") from problem
        for job, arrived in both_ways(lab, source, "-aS", "--json"):
            ended = subprocess.run([str(w) for w in job], capture_output=True, text=True, check=False, timeout=60)
            check(ended.returncode == 0, ended.stderr)
            info = os.stat(arrived / "huge")
            check(info.st_size == 8 << 40 and blocks(arrived / "huge") < 16 << 20, f"{info}")
            with open(source / "huge", "rb") as ours, open(arrived / "huge", "rb") as theirs:
                for file in (ours, theirs):
                    file.seek((5 << 40) + 10000)
                check(ours.read(2 << 20) == theirs.read(2 << 20), "the data")
            os.unlink(arrived / "huge")


def test_attributes_of_what_only_may_be_read__arrive_where_the_receiver_is_not_root():
    if not AM_ROOT:
        return
    with rooted("read-only") as lab:
        source = lab.directory / "run42"
        (source / "sub").mkdir(parents=True)
        (source / "sub/f").write_text("data")
        for path, mode in ((source / "sub/f", 0o444), (source / "sub", 0o555)):
            os.setxattr(path, "user.note", b"kept")
            os.chmod(path, mode)
        lab.root.mkdir()
        for path in (source, source / "sub", source / "sub/f", lab.root):
            os.chown(path, 65534, 65534)
        os.chmod(lab.directory, 0o755)
        receiver = lab.start_ready(None, "recv", "recv", "--root", lab.root, "--listen", "127.0.0.1:0", "--insecure",
                                   prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        push = [BINARY, "send", "--insecure", "-aX", f"{source}/", native(receiver.uris) + "/d/"]
        ended = run(push)
        check(ended.returncode == 0, f"{ended.returncode}: {ended.stderr}")
        for name, mode in (("sub/f", 0o444), ("sub", 0o555)):
            path = lab.root / "d" / name
            check(os.getxattr(path, "user.note") == b"kept", name)
            check(stat.S_IMODE(path.stat().st_mode) == mode, f"{name}: {path.stat().st_mode:o}")
        # And where they stand already.
        for name in ("sub/f", "sub"):
            os.setxattr(source / name, "user.note", b"another")
        check(run(push).returncode == 0, "the second run")
        for name, mode in (("sub/f", 0o444), ("sub", 0o555)):
            path = lab.root / "d" / name
            check(os.getxattr(path, "user.note") == b"another", name)
            check(stat.S_IMODE(path.stat().st_mode) == mode, f"{name}: {path.stat().st_mode:o}")
        receiver.stop()


class Refusing:
    """A file system in user space that refuses attributes and lists, or is a FAT: no owners, links or special files either."""

    def __init__(self, lab, kind):
        self.root = lab.directory / "refusing"
        self.root.mkdir()
        if kind == "bindfs":
            behind = lab.directory / "behind"
            behind.mkdir()
            commands = [["bindfs", "--xattr-none", behind, self.root]]
        else:
            image = lab.directory / "disk"
            commands = [["truncate", "-s", "64M", image], ["mkfs.vfat", image], ["fusefat", "-o", "rw+", image, self.root]]
        for words in commands:
            subprocess.run([str(w) for w in words], check=True, capture_output=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.root], check=False)


def refusing(lab, kind):
    """None: there is none here."""
    try:
        return Refusing(lab, kind)
    except (OSError, subprocess.CalledProcessError) as error:
        leave_out(f"no {kind} here: {getattr(error, 'stderr', error)}")
        return None


def both_ways_onto(disk, lab, source, *options):
    """As both_ways, and what is pulled stands on that disk too."""
    lab.root = disk.root / "root"
    lab.root.mkdir()
    push, (pull, _) = both_ways(lab, source, *options)
    pulled = disk.root / "pulled"
    return push, ([*pull[:-1], pulled], pulled)


def test_file_systems_that_refuse_attributes__data_arrive_one_line_and_23():
    for kind in ("bindfs", "fat"):
        with rooted("refusing-" + kind) as lab:
            source = lab.directory / "run42"
            (source / "sub").mkdir(parents=True)
            for number in range(5):
                (source / f"sub/f{number}").write_text("data")
                os.setxattr(source / f"sub/f{number}", "user.note", b"1")
            os.setxattr(source / "sub/f1", "system.posix_acl_access", ACCESS)
            os.link(source / "sub/f0", source / "sub/g0")
            disk = refusing(lab, kind)
            if disk is None:
                continue
            with disk:
                for job, arrived in both_ways_onto(disk, lab, source, "-aHAX"):
                    ended = run(job)
                    check(ended.returncode == 23, f"{kind}: {ended.returncode}: {ended.stderr}")
                    check(sorted(os.listdir(arrived / "sub")) == [*(f"f{n}" for n in range(5)), "g0"], "the files")
                    check(all((arrived / f"sub/{n}").read_text() == "data" for n in os.listdir(arrived / "sub")), "the data")
                    told = [line for line in ended.stderr.splitlines() if "refuses" in line or "could not give" in line]
                    check(len(told) == 1, f"{kind}: {ended.stderr}")
                lab.receiver.stop()


def test_a_file_system_of_libfuse_2__times_are_kept__and_the_second_run_sends_nothing():
    with rooted("fuse-times") as lab:
        source = lab.directory / "run42"
        (source / "sub").mkdir(parents=True)
        (source / "sub/f").write_text("data")
        (source / "link").symlink_to("sub/f")
        for number, name in enumerate(("sub/f", "link", "sub")):
            os.utime(source / name, (0, 1_500_000_000 + number), follow_symlinks=False)
        disk = refusing(lab, "bindfs")
        if disk is None:
            return
        with disk:
            for job, arrived in both_ways_onto(disk, lab, source, "-a"):
                check(run(job).returncode == 0, f"{job}")
                for name in ("sub/f", "link", "sub"):
                    check(os.lstat(arrived / name).st_mtime == os.lstat(source / name).st_mtime, f"{arrived / name}")
                again = run([*job[:2], "-i", *job[2:]])
                check(again.returncode == 0 and again.stdout == "", f"{again.stdout}{again.stderr}")
            lab.receiver.stop()


def test_fat__two_names_that_are_one_there__one_fails_and_deleting_keeps_the_older_spelling():
    with rooted("fat-case") as lab:
        source = lab.directory / "run42"
        source.mkdir()
        for name, text in (("README", "first"), ("readme", "second"), ("other", "data")):
            (source / name).write_text(text)
        disk = refusing(lab, "fat")
        if disk is None:
            return
        with disk:
            lab.root = disk.root / "root"
            lab.root.mkdir()
            (push, pushed), _ = both_ways(lab, source, "-a")
            ended = run([*push[:2], "--delete", *push[2:]])
            check(ended.returncode == 23 and "readme: the receiver's file system ignores case" in ended.stderr, f"{ended.returncode}: {ended.stderr}")
            check((pushed / "README").read_text() == "first" and (pushed / "other").read_text() == "data", "what arrived")
            # The name that stands there keeps its spelling, and is no other file for --delete.
            os.unlink(source / "README")
            ended = run([*push[:2], "--delete", *push[2:]])
            check((pushed / "readme").read_text() == "second" and len(os.listdir(pushed)) == 2, f"{os.listdir(pushed)}: {ended.stderr}")
            lab.receiver.stop()
