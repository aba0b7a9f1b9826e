"""What a source is like: times of any year, holes, directories of any size, names that it leaves out, what a dry run tells."""
import os
import pathlib
import shutil
import subprocess

from lab import Lab, check, native, same_tree, sha256

IN_MEMORY = pathlib.Path("/dev/shm")


def receive(lab, *options):
    root = lab.directory / "root"
    root.mkdir(exist_ok=True)
    return root, native(lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure", *options).uris)


def test_times_of_any_year__arrive_as_they_are_or_the_nearest_there_is_and_stay_unchanged():
    with Lab("years") as lab:
        root, address = receive(lab)
        memory = IN_MEMORY / f"ccixfer-{os.getpid()}"
        source = memory / "tree"
        try:
            (source / "directory").mkdir(parents=True)
            # 2300 and 1905 are kept by every file system here; the rest by the one in memory only
            seconds = [10_413_792_000, -2_051_222_400, -9_345_110_400, 20_000_000_000, 2**62, -(2**62), 2**63 - 1, -(2**63)]
            for number, second in enumerate(seconds):
                (source / f"file{number}").write_text(str(second))
                os.system(f"touch -d @{second} '{source}/file{number}'")
                check(int((source / f"file{number}").stat().st_mtime // 1) == second or abs(second) > 2**50, f"touch of {second}")
            os.symlink("file0", source / "link")
            os.utime(source / "link", (0, seconds[0]), follow_symlinks=False)
            os.utime(source / "directory", (0, seconds[0]))
            sender = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", address + "/tree/")
            check(sender.wait() == 0, sender.tail())
            for name in ("file0", "file1", "link", "directory"):
                wanted, got = (source / name).lstat().st_mtime_ns, (root / "tree" / name).lstat().st_mtime_ns
                check(wanted == got, f"{name} has {got} instead of {wanted}")
            again = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", address + "/tree/")
            check(again.wait() == 0, again.tail())
            check(again.done()["files_unchanged"] == len(seconds) and again.done()["bytes_sent"] == 0, str(again.done()))
        finally:
            shutil.rmtree(memory, ignore_errors=True)


def sparse_file(path):
    """1 GiB that takes little memory: data at both ends and in the middle, and a hole punched into data."""
    with open(path, "wb") as file:
        file.truncate(1 << 30)
        for at, length in ((0, 5 << 20), (400 << 20, 12 << 20), ((900 << 20) + 4096, 4096), ((1 << 30) - 100, 100)):
            file.seek(at)
            file.write(os.urandom(length))
    check(os.system(f"fallocate --punch-hole --offset {406 << 20} --length 65536 '{path}'") == 0, "no hole could be punched")


def test_sparse_file_in_memory__arrives_whole_and_its_holes_stay_holes_at_the_source():
    with Lab("sparse") as lab:
        root, address = receive(lab)
        source = IN_MEMORY / f"ccixfer-sparse-{os.getpid()}"
        try:
            sparse_file(source)
            before = source.stat().st_blocks
            check(before * 512 < 32 << 20, "the file is not sparse")
            sender = lab.start(None, "send", "send", "-a", "--insecure", source, address + "/file")
            check(sender.wait() == 0, sender.tail())
            after = source.stat().st_blocks
            check(after == before, f"{(after - before) * 512} bytes of holes were filled")
            check(sha256(source) == sha256(root / "file"), "the file differs")
            check(source.stat().st_blocks == before, "reading fills holes")
        finally:
            source.unlink()


def snapshot(top):
    """What can be seen of each name below, the top included ('.'), but when it was last changed or read."""
    seen = {}
    for path in [pathlib.Path(top), *pathlib.Path(top).rglob("*")]:
        stat = path.lstat()
        content = os.readlink(path) if path.is_symlink() else sha256(path) if path.is_file() else None
        seen[str(path.relative_to(top))] = (stat.st_mode, stat.st_uid, stat.st_gid, stat.st_mtime_ns, content)
    return seen


def set_time(path, seconds):
    os.utime(path, (seconds, seconds), follow_symlinks=False)


def two_trees(source, target):
    """The same tree twice, then every kind of difference that a run mends."""
    for name in ("a", "kept", "moved mode", "moved time", "was link", "was file", "empty"):
        (source / name).mkdir(parents=True)
    for name in ("same", "content", "mode", "time", "a/below", "kept/file", "was link/file", "was file/file", "becomes file", "over link"):
        (source / name).write_text(f"{name}, first")
    for name in ("link", "link target", "link time", "becomes link"):
        os.symlink("same", source / name)
    for number, path in enumerate(sorted(source.rglob("*"), reverse=True)):
        set_time(path, 1_000_000_000 + number)
    shutil.copytree(source, target, symlinks=True)
    for path in [*sorted(source.rglob("*"), reverse=True), source]:
        set_time(target / path.relative_to(source), path.lstat().st_mtime)
    (target / "content").write_text("other")
    (target / "mode").chmod(0o600)
    set_time(target / "time", 5)
    (target / "moved mode").chmod(0o700)
    set_time(target / "moved time", 5)
    (target / "link target").unlink()
    os.symlink("elsewhere", target / "link target")
    set_time(target / "link time", 5)
    (target / "over link").unlink()
    os.symlink("same", target / "over link")
    for name in ("was link", "was file"):
        shutil.rmtree(target / name)
    os.symlink("a", target / "was link")
    (target / "was file").write_text("a file")
    for name in ("becomes file", "becomes link"):
        (target / name).unlink()
        (target / name).mkdir()
    (source / "new directory" / "in it").mkdir(parents=True)
    (source / "new directory" / "file").write_text("new")
    (source / "new file").write_text("new")
    os.symlink("nowhere", source / "new link")
    for path in [*source.rglob("new*"), source]:
        set_time(path, 1_100_000_000)


def compare_dry_run(dry, real, before, target, top):
    check(dry.wait() == 0, dry.tail())
    check(snapshot(target) == before, "a dry run changed something")
    said = {}
    for event in dry.events:
        if event["event"] == "file" and event["status"] != "unchanged":
            name = event["path"].removeprefix("tree").strip("/")
            said["." if event["path"] == top else name] = event["status"]
    run = real()
    check(run.wait() == 0, run.tail())
    after = snapshot(target)
    changed = {}
    for name, now in after.items():
        then = before.get(name)
        if then == now:
            continue
        is_content = then is None or then[4] != now[4] or (then[0] >> 12) != (now[0] >> 12)
        is_file = now[0] >> 12 == 0o10
        changed[name] = ("would-send" if is_file else "would-make") if is_content else "would-change"
    changed["time"] = "would-send"   # judged by its time: the same content goes again
    check(said == changed, f"said but not done: {sorted(said.items() - changed.items())}, not said: {sorted(changed.items() - said.items())}")
    again = real()
    check(again.wait() == 0 and again.done()["files"] == 0, again.tail())
    check(len(changed) > 18, f"only {changed} changed")


def test_dry_run__push__says_what_the_run_then_changes():
    with Lab("drypush") as lab:
        root, address = receive(lab)
        source = lab.directory / "source"
        two_trees(source, root / "tree")
        before = snapshot(root / "tree")
        arguments = ["send", "-a", "--insecure", f"{source}/", address + "/tree/"]
        compare_dry_run(lab.start(None, "dry", *arguments, "-n"), lambda: lab.start(None, "real", *arguments), before, root / "tree",
                        f"{source}/")
        same_tree(source, root / "tree")


def test_dry_run__pull__says_what_the_run_then_changes():
    with Lab("drypull") as lab:
        source, target = lab.directory / "source", lab.directory / "target"
        two_trees(source, target)
        server = lab.start_ready(None, "serve", "send", "--serve", source, "--listen", "127.0.0.1:0", "--insecure")
        before = snapshot(target)
        arguments = ["recv", "-a", "--insecure", native(server.uris) + "/", target]
        compare_dry_run(lab.start(None, "dry", *arguments, "-n"), lambda: lab.start(None, "real", *arguments), before, target, "")
        same_tree(source, target)


def test_staging_of_others_and_odd_slashes__left_out_with_a_line_and_taken_as_they_are_meant():
    with Lab("oddnames") as lab:
        root, address = receive(lab)
        source = lab.directory / "source"
        for name in (".ccixfer/ledger.db", "below/.ccixfer/file", "below/file"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(name)
        sender = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", address + "//to/./there//")
        check(sender.wait() == 0, sender.tail())
        lines = [line for line in sender.stderr().splitlines() if ".ccixfer" in line]
        check(len(lines) == 2 and all("left out" in line for line in lines), sender.stderr())
        arrived = sorted(str(p.relative_to(root / "to/there")) for p in (root / "to/there").rglob("*") if p.is_file())
        check(arrived == ["below/file"], str(arrived))
        (source / "one").write_text("one")
        for path, arrives in (("/.", "one"), ("/to/.", "to/one"), ("/./new", "new")):
            check(lab.start(None, "one", "send", "--insecure", source / "one", address + path).wait() == 0, path)
            check((root / arrives).read_text() == "one", f"{path} is not at {arrives}")
        server = lab.start_ready(None, "serve", "send", "--serve", lab.directory, "--listen", "127.0.0.1:0", "--insecure")
        target = lab.directory / "target"
        for path in ("/source//below/", "/./source/./below/."):
            puller = lab.start(None, "pull", "recv", "-a", "--insecure", native(server.uris) + path, target)
            check(puller.wait() == 0, puller.tail())
            check((target / "file").read_text() == "below/file", f"{path} did not arrive")
            shutil.rmtree(target)


def chain(directory, depth, name="d"):
    """So many directories in one another, and the descriptor of the last one."""
    at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = below
    return at


def last_of(directory, name="d"):
    """How deep the chain is, and the descriptor of its last one."""
    at, depth = os.open(directory, os.O_RDONLY | os.O_DIRECTORY), 0
    while name in os.listdir(at):
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at, depth = below, depth + 1
    return at, depth


def write_at(at, name, content):
    with open(os.open(name, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=at), "wb") as file:
        file.write(content)
    os.close(at)


def test_deep_tree_and_longest_path__arrive__and_what_lies_deeper_is_named_with_23():
    """A path below SRC has 4,096 bytes at most, as rsync has it."""
    with Lab("deep") as lab:
        root, address = receive(lab)
        source = lab.directory / "tree"
        deep, long, over = source / "deep", source / "long", source / "over"
        for directory in (deep, long, over):
            directory.mkdir(parents=True)
        write_at(chain(deep, 2000), "bottom", b"of the deep")
        at = chain(long, 20, "n" * 200)
        write_at(at, "f" * (4096 - len("long") - 20 * 201 - 1), b"of the longest path")
        write_at(chain(over, 3000), "bottom", b"too deep")
        sender = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", address + "/tree/")
        check(sender.wait() == 23, sender.tail())
        check(sender.done()["files"] == 2 and sender.done()["files_failed"] == 1, str(sender.done()))
        check("the path is too long" in sender.stderr(), sender.tail())
        at, depth = last_of(root / "tree/deep")
        check(depth == 2000 and os.listdir(at) == ["bottom"], f"{depth} levels, and {os.listdir(at)}")
        os.close(at)
        at, depth = last_of(root / "tree/long", "n" * 200)
        check(depth == 20 and len(os.listdir(at)[0]) == 71, f"{depth} levels, and {os.listdir(at)}")
        os.close(at)
        at, depth = last_of(root / "tree/over")
        check(depth == (4096 - len("over")) // 2 and os.listdir(at) == [], f"{depth} levels, and {os.listdir(at)}")
        os.close(at)
        receiver = lab.processes[0]
        check(receiver.peak_kib() < 512 << 10, f"the receiver has {receiver.peak_kib()} KiB, of which 256 MiB are its pool")
        subprocess.run(["rm", "-rf", source, root / "tree"], check=True)   # Python's own calls itself for each level
