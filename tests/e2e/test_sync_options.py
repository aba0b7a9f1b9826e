"""Which files a run replaces, what becomes of those that it replaces, and how it says so. tests/differential has their meaning."""
import json
import os
import shutil
import subprocess

from lab import BINARY, Lab, big_file, check, native, same_tree
from test_jobs import receiver_on
from test_status import until

PIECE = 4 << 20


def two_states(lab):
    """A source, and an earlier state of it at both kinds of destination."""
    source, pulled = lab.directory / "run42", lab.directory / "pulled"
    for place, content in ((source, "new content"), (pulled, "old"), (lab.root / "d", "old")):
        (place / "sub").mkdir(parents=True)
        (place / "sub/f").write_text(content)
        (place / "same").write_text("same")
        os.utime(place / "same", ns=(0, 10**18 + 7))
        os.utime(place / "sub/f", ns=(0, 10**18 + len(content)))
    return source, pulled


def both_ways(lab, *options):
    """The same options of a push and of a pull: (what to run, where it arrives)."""
    source, pulled = two_states(lab)
    receiver = lab.receiver = receiver_on(lab)
    lab.server = lab.start_ready(None, "serve", "send", "--serve", source, "--listen", "127.0.0.1:0", "--insecure")
    return source, ((["send", "--insecure", "-a", *options, f"{source}/", native(receiver.uris) + "/d/"], lab.root / "d"),
                    (["recv", "--insecure", "-a", *options, native(lab.server.uris), pulled], pulled))


def rooted(name):
    lab = Lab(name)
    lab.root = lab.directory / "root"
    return lab


def run(words):
    return subprocess.run([BINARY, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_itemize__push_and_pull__rsyncs_letters_and_the_dry_run_says_the_same():
    with rooted("itemize") as lab:
        source, ways = both_ways(lab, "-i")
        for job, arrived in ways:
            dry = run([*job, "-q", "-n"])
            check((arrived / "sub/f").read_text() == "old", "the dry run has written")
            real = run([*job, "-q"])
            check(dry.returncode == real.returncode == 0, dry.stderr + real.stderr)
            check(dry.stdout == real.stdout, f"{dry.stdout!r} is not {real.stdout!r}")
            arrow = "<" if job[0] == "send" else ">"
            check(f"{arrow}f.st...... sub/f" in real.stdout.splitlines() and "same" not in real.stdout, real.stdout)
            same_tree(source, arrived)
            check(run([*job, "-q"]).stdout == "", "a second run has something to do")
            (source / "sub/f").write_text("once more")
            events = lab.start(None, "json", *job)
            check(events.wait() == 0, events.tail())
            items = [event for event in events.events if event["event"] == "item"]
            check([(e["path"], e["letters"][:2]) for e in items] == [("sub/f", arrow + "f")], f"{items}")


def test_backup_dir__push_and_pull__what_was_replaced_is_kept_there():
    with rooted("backup") as lab:
        source, ways = both_ways(lab, "--backup-dir", "../kept")
        for job, arrived in ways:
            ended = run(job)
            check(ended.returncode == 0, ended.stderr)
            same_tree(source, arrived)
            kept = arrived.parent / "kept"
            check([str(p.relative_to(kept)) for p in sorted(kept.rglob("*"))] == ["sub", "sub/f"], f"{list(kept.rglob('*'))}")
            check((kept / "sub/f").read_text() == "old", "it is not the old one")


def test_backup__beside_the_file_with_a_suffix():
    with rooted("suffix") as lab:
        _, ways = both_ways(lab, "-b", "--suffix", ".before")
        for job, arrived in ways:
            ended = run(job)
            check(ended.returncode == 0, ended.stderr)
            names = sorted(p.name for p in (arrived / "sub").iterdir())
            check(names == ["f", "f.before"] and (arrived / "sub/f.before").read_text() == "old", f"{names}")


def test_what_stays__each_option_leaves_the_file_that_it_names():
    for option, later in (("--ignore-existing", 0), ("--size-only", 0), ("--update", 10**9)):
        with rooted("stays" + option) as lab:
            _, ways = both_ways(lab, option)
            for job, arrived in ways:
                (arrived / "sub/f").write_text("also eleven")   # as long as the new content
                os.utime(arrived / "sub/f", ns=(0, 10**18 + 11 + (later or 5)))
                ended = run(job)
                check(ended.returncode == 0, ended.stderr)
                check((arrived / "sub/f").read_text() == "also eleven", f"{option}: {job[0]} has replaced it")


def changed_file(lab):
    """A file of several pieces, and an earlier state of it at both kinds of destination; the pieces that differ have so many bytes."""
    source, ways = both_ways(lab)
    new = source / "large"
    big_file(new, 5 * PIECE + 1000)
    for _, arrived in ways:
        shutil.copy(new, arrived / "large")
        with open(arrived / "large", "r+b") as file:
            file.seek(2 * PIECE + 77)
            file.write(b"another")
            file.truncate(5 * PIECE - 9)   # what was appended since
    return new, ways, 2 * PIECE + 1000


def test_changed_file__push_and_pull__only_what_differs_is_sent():
    with rooted("changed") as lab:
        new, ways, differing = changed_file(lab)
        for job, arrived in ways:
            for options, most in ((["-W"], new.stat().st_size), ([], differing)):
                old = (arrived / "large").read_bytes()
                ended = run([*job[:1], *options, "--json", *job[1:]])
                check(ended.returncode == 0, ended.stderr)
                done = json.loads(ended.stdout.splitlines()[-1])
                check(most <= done["bytes_sent"] <= most + 1000, f"{job[0]} {options}: {done}")
                check((arrived / "large").read_bytes() == new.read_bytes(), "it is not the new one")
                (arrived / "large").write_bytes(old)


def test_inplace__push_and_pull__the_file_itself_is_written_and_only_what_differs():
    with rooted("inplace") as lab:
        new, ways, differing = changed_file(lab)
        for job, arrived in ways:
            os.link(arrived / "large", arrived / "its-other-name")
            os.link(arrived / "sub/f", arrived / "small-other-name")
            before = os.stat(arrived / "large").st_ino
            ended = run([*job[:1], "--inplace", "--json", *job[1:]])
            check(ended.returncode == 0, ended.stderr)
            done = json.loads(ended.stdout.splitlines()[-1])
            check(differing <= done["bytes_sent"] <= differing + 1000, f"{job[0]}: {done}")
            check(os.stat(arrived / "large").st_ino == before, "it is another file")
            check((arrived / "its-other-name").read_bytes() == new.read_bytes(), "its other name has the old content")
            check((arrived / "small-other-name").read_text() == "new content", "the small file is another one")
            check(os.stat(arrived / "large").st_mtime_ns == os.stat(new).st_mtime_ns, "it has another time")
        for words in (["--backup"], ["--link-dest", "../old"]):
            ended = run([*ways[0][0][:1], "--inplace", *words, *ways[0][0][1:]])
            check(ended.returncode == 1 and len(ended.stderr.splitlines()) == 1, f"{words}: {ended.returncode}: {ended.stderr}")


def test_inplace__killed_in_the_middle__the_next_run_repairs_it():
    with rooted("inplace-killed") as lab:
        _, ways = both_ways(lab)
        job, arrived = ways[0]
        new = big_file(lab.directory / "run42/large", 10 * PIECE)
        big_file(arrived / "large", 10 * PIECE, seed=8)
        first = lab.start(None, "killed", *job[:1], "--inplace", "--bwlimit", "8MB/s", *job[1:])
        until(lambda: (arrived / "large").read_bytes()[:PIECE] == new.read_bytes()[:PIECE], "nothing came")
        first.kill()
        first.process.wait()
        check((arrived / "large").read_bytes() != new.read_bytes(), "it had ended")
        ended = run([*job[:1], "--inplace", "--json", *job[1:]])
        check(ended.returncode == 0, ended.stderr)
        check(json.loads(ended.stdout.splitlines()[-1])["bytes_sent"] <= 9 * PIECE, "all of it came again")
        check((arrived / "large").read_bytes() == new.read_bytes(), "it is not the new one")


def test_compress__push_and_pull__what_can_be_is_smaller_and_all_arrives():
    with rooted("compress") as lab:
        source, ways = both_ways(lab)
        (source / "text").write_bytes(b"".join(b"line %d of a log\n" % n for n in range(600_000)))
        big_file(source / "noise", 2 * PIECE + 5)
        for number in range(50):
            (source / f"small{number}").write_text("the same words again and again\n" * 100)
        plain = sum(p.stat().st_size for p in source.rglob("*") if p.is_file())
        noise = (source / "noise").stat().st_size
        for job, arrived in ways:
            for words in (["-z"], ["--compress-level", "9"]):
                ended = run([*job[:1], *words, "--json", *job[1:]])
                check(ended.returncode == 0, ended.stderr)
                done = json.loads(ended.stdout.splitlines()[-1])
                check(noise <= done["bytes_sent"] < noise + (plain - noise) // 3, f"{job[0]} {words}: {done}")
                same_tree(source, arrived)
                for name in ("text", "noise", *(f"small{n}" for n in range(50))):
                    (arrived / name).unlink()
        ended = run([*ways[0][0][:1], "--compress-level", "20", *ways[0][0][1:]])
        check(ended.returncode == 1 and len(ended.stderr.splitlines()) == 1, f"{ended.returncode}: {ended.stderr}")


def test_compress__standard_input__arrives():
    with rooted("compress-stdin") as lab:
        receiver = receiver_on(lab)
        content = b"".join(b"line %d of a dump\n" % n for n in range(500_000))
        ended = subprocess.run([BINARY, "send", "--insecure", "-z", "--json", "-", native(receiver.uris) + "/dump"], input=content,
                               capture_output=True, check=False)
        check(ended.returncode == 0, ended.stderr)
        check((lab.root / "dump").read_bytes() == content, "it is not what went in")
        check(json.loads(ended.stdout.splitlines()[-1])["bytes_sent"] < len(content) // 2, "nothing was saved")


def test_link_dest__out_of_the_receivers_root__refused_with_42_and_nothing_comes():
    with rooted("link-out") as lab:
        source, ways = both_ways(lab, "--link-dest", "../../../old")
        before = sorted(p for p in lab.root.rglob("*") if ".ccixfer" not in p.parts)
        ended = run(ways[0][0])
        check(ended.returncode == 42, f"{ended.returncode}: {ended.stderr}")
        check(sorted(p for p in lab.root.rglob("*") if ".ccixfer" not in p.parts) == before, "something came")
        check((source / "sub/f").exists(), "the source is gone")


def test_sync_options__of_the_side_that_listens__exit_1():
    for words in (["recv", "--root", "/tmp", "-i"], ["send", "--serve", "/tmp", "--backup"], ["recv", "--root", "/tmp", "--link-dest", "x"],
                  ["send", "--suffix", ".old", "a", "tcp://h:1/"]):
        ended = run([*words, "--insecure"])
        check(ended.returncode == 1 and len(ended.stderr.splitlines()) == 1, f"{words}: {ended.returncode}: {ended.stderr}")
