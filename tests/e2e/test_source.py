"""What a source is like: times of any year, holes, directories of any size, names that it leaves out, what a dry run tells."""
import os
import pathlib
import shutil

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
