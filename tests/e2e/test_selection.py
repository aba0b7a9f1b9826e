"""Which files a run moves: rules, lists of names, and what is deleted. tests/differential has their meaning."""
import os
import subprocess

from lab import check, events_of
from test_sync_options import both_ways, rooted, run


def names_below(top):
    return sorted(str(path.relative_to(top)) for path in top.rglob("*") if ".ccixfer" not in path.parts)


def test_filter__push_and_pull__rules_of_options_and_of_files_in_the_tree():
    with rooted("filter") as lab:
        source, ways = both_ways(lab, "--exclude", "*.o", "-f", ":e .rules", "--exclude", "/only-here")
        for name in ("a.o", "a.c", "only-here", "sub/a.o", "sub/deep/x", "sub/deep/only-here"):
            (source / name).parent.mkdir(exist_ok=True)
            (source / name).write_text("new")
        (source / "sub/.rules").write_text("- /deep/x\n")
        for job, arrived in ways:
            ended = run([*job, "-q"])
            check(ended.returncode == 0, ended.stderr)
            check(names_below(arrived) == ["a.c", "same", "sub", "sub/deep", "sub/deep/only-here", "sub/f"], f"{names_below(arrived)}")


def test_filter__a_rule_that_is_wrong__is_exit_code_1_with_file_and_line():
    with rooted("filter-wrong") as lab:
        rules = lab.directory / "rules"
        rules.write_text("- fine\n\nwhat is this\n")
        source, ways = both_ways(lab)
        (source / "sub/.rules").write_text("# fine\n% wrong\n")
        for job, _ in ways:
            ended = run([job[0], "-q", "-f", f". {rules}", *job[1:]])
            check(ended.returncode == 1 and "rules line 3: what is this" in ended.stderr, f"{ended.returncode} {ended.stderr}")
            ended = run([job[0], "-q", "-f", ": .rules", *job[1:]])
            check(ended.returncode == 1 and ".rules line 2: %" in ended.stderr and "wrong" in ended.stderr,
                  f"{ended.returncode} {ended.stderr}")


def test_filter__a_tree_of_another__the_file_of_the_directories_above_holds():
    with rooted("filter-above") as lab:
        (lab.directory / ".rsync-filter").write_text("- same\n- /run42/sub/f\n")
        source, ways = both_ways(lab, "-F")
        (source / "new").write_text("new")
        (job, arrived), _ = ways
        os.unlink(arrived / "same")
        ended = run([*job, "-q"])
        check(ended.returncode == 0, ended.stderr)
        check(not (arrived / "same").exists() and (arrived / "new").exists() and (arrived / "sub/f").read_text() == "old",
              f"{names_below(arrived)}")


def test_delete__push_and_pull__what_the_source_lacks_goes_and_the_rest_stays():
    with rooted("delete") as lab:
        source, ways = both_ways(lab, "--delete", "-i", "--exclude", "*.keep")
        for _, arrived in ways:
            (arrived / "old/deep").mkdir(parents=True)
            for name in ("old/deep/x", "old/y", "z", "sub/z", "sub/a.keep"):
                (arrived / name).write_text("old")
        for job, arrived in ways:
            dry = run([*job, "-q", "-n"])
            check((arrived / "old/deep/x").exists(), "the dry run has deleted")
            ended = run([*job, "-q"])
            check(ended.returncode == dry.returncode == 0, ended.stderr + dry.stderr)
            check(ended.stdout == dry.stdout, f"{ended.stdout!r} is not {dry.stdout!r}")
            deleted = sorted(line[12:] for line in ended.stdout.splitlines() if line.startswith("*deleting   "))
            check(deleted == ["old/", "old/deep/", "old/deep/x", "old/y", "sub/z", "z"], ended.stdout)
            check(names_below(arrived) == ["same", "sub", "sub/a.keep", "sub/f"], f"{names_below(arrived)}")
            check(os.stat(arrived / "sub").st_mtime_ns == os.stat(source / "sub").st_mtime_ns, "the directory has another time")
            check(run([*job, "-q"]).stdout == "", "a second run has something to do")


def test_delete__verbose_and_json__names_and_counts_what_went():
    with rooted("delete-told") as lab:
        _, ways = both_ways(lab, "--delete")
        for job, arrived in ways:
            for more in (("-v",), ("--json",)):
                (arrived / "old/deep").mkdir(parents=True)
                (arrived / "old/deep/x").write_text("old")
                ended = run([*job, *more])
                check(ended.returncode == 0, ended.stderr)
                if "-v" in more:
                    told = [line for line in ended.stderr.splitlines() if line.startswith("deleted ")]
                    check(sorted(told) == [f"deleted old/{name} (0 bytes)" for name in ("", "deep/", "deep/x")], ended.stderr)
                    check(", 3 deleted" in ended.stderr, ended.stderr)
                    continue
                events = events_of(ended.stdout)
                told = [event["path"] for event in events if event["event"] == "file" and event["status"] == "deleted"]
                check(sorted(told) == ["old/", "old/deep/", "old/deep/x"], f"{told}")
                check(events[-1]["deleted"] == 3 and "reason" not in events[-1], f"{events[-1]}")


def test_delete__a_source_that_cannot_be_listed__deletes_nothing():
    with rooted("delete-not") as lab:
        source, ways = both_ways(lab, "--delete")
        os.symlink("nowhere", source / "dangling")
        for job, arrived in ways:
            (arrived / "extra").write_text("old")
            ended = run([word for word in job if word != "-a"] + ["-q"])   # then links are followed
            check(ended.returncode == 23 and (arrived / "extra").exists(), f"{ended.returncode} {ended.stderr}")


def test_max_delete__push_and_pull__stops_there_with_25():
    with rooted("max-delete") as lab:
        _, ways = both_ways(lab, "--delete", "--max-delete", "2")
        for job, arrived in ways:
            for name in ("x1", "x2", "x3"):
                (arrived / name).write_text("old")
            ended = run([*job, "-q"])
            check(ended.returncode == 25 and "1 not" in ended.stderr, f"{ended.returncode} {ended.stderr}")
            check(len([name for name in names_below(arrived) if name.startswith("x")]) == 1, f"{names_below(arrived)}")


def test_delete__a_full_directory_where_the_source_has_a_file__makes_room():
    with rooted("delete-room") as lab:
        source, ways = both_ways(lab)
        (source / "thing").write_text("a file")
        for job, arrived in ways:
            (arrived / "thing/deep").mkdir(parents=True)
            (arrived / "thing/deep/x").write_text("old")
            ended = run([*job, "-q"])
            check(ended.returncode == 23 and (arrived / "thing/deep/x").exists(), f"{ended.returncode} {ended.stderr}")
            ended = run([job[0], "--delete", *job[1:], "-q"])
            check(ended.returncode == 0 and (arrived / "thing").read_text() == "a file", f"{ended.returncode} {ended.stderr}")


def test_files_from__push_and_pull__what_the_list_names_and_nothing_else():
    with rooted("files-from") as lab:
        names = lab.directory / "names"
        source, ways = both_ways(lab, "--files-from", names, "-i")
        for name in ("d/e/y", "d/x", "d/not", "g/not", "h/i/not", "h/m"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text("new")
        os.symlink("d", source / "ln")
        names.write_text("# names\nd/e/y\n./d//x\ng\n/h/\nln/x\nd/x\n")
        for job, arrived in ways:
            ended = run([*map(str, job), "-q"])
            if job[0] == "recv":   # links are not followed in a served directory
                check(ended.returncode == 23 and "1 file failed" in ended.stderr, ended.stderr)
                expected = []
            else:
                check(ended.returncode == 0, ended.stderr)
                expected = ["ln", "ln/x"]
            check(names_below(arrived) == sorted(["d", "d/e", "d/e/y", "d/x", "g", "h", "h/i", "h/m", "same", "sub", "sub/f", *expected]),
                  f"{names_below(arrived)}")
            check((arrived / "sub/f").read_text() == "old", "more than the list names")


def test_files_from__a_name_that_is_not_there__is_told_also_beside_its_whole_directory():
    with rooted("files-from-absent") as lab:
        names = lab.directory / "names"
        source, ways = both_ways(lab, "--files-from", names)
        names.write_text("sub/\nsub/absent\n.\nalso absent\nsame\n")
        for job, arrived in ways:
            ended = run([*map(str, job), "-q"])
            check(ended.returncode == 23 and "2 files failed" in ended.stderr, f"{ended.returncode} {ended.stderr}")
            check((arrived / "sub/f").read_text() == "new content", "what is there did not come")


def test_one_file_system__what_is_mounted_below__is_an_empty_directory():
    with rooted("one-file-system") as lab:
        source, ways = both_ways(lab, "-x")
        mounted = source / "mounted"
        mounted.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", mounted], check=True)
        try:
            (mounted / "inside").write_text("x")
            for job, arrived in ways:
                ended = run([*map(str, job), "-q"])
                check(ended.returncode == 0, ended.stderr)
                check(names_below(arrived / "mounted") == [], f"{names_below(arrived)}")
                check((arrived / "sub/f").exists(), "nothing came")
        finally:
            subprocess.run(["umount", mounted], check=True)


def test_files_from__the_list_of_what_failed__brings_the_rest():
    with rooted("files-from-failed") as lab:
        source, ways = both_ways(lab)
        failed = lab.directory / "failed"
        odd = source / "sub/#odd\n name"
        odd.write_text("odd")
        for job, arrived in ways:
            (arrived / "sub/f").unlink()
            (arrived / "sub/f/full").mkdir(parents=True)
            ended = run([job[0], "-0", "--failed-list", str(failed), "-q", *job[1:]])
            check(ended.returncode == 23, ended.stderr)
            (arrived / "sub/f/full").rmdir()
            ended = run([job[0], "-0", "--files-from", str(failed), "-q", *job[1:]])
            check(ended.returncode == 0 and (arrived / "sub/f").read_text() == "new content", f"{failed.read_bytes()} {ended.stderr}")


def test_relative__push_and_pull__the_directories_in_the_name_come_too():
    with rooted("relative") as lab:
        source, ways = both_ways(lab, "-R", "--delete")
        (source / "d/e").mkdir(parents=True)
        (source / "d/e/y").write_text("new")
        (source / "d/not").write_text("new")
        for job, arrived in ways:
            (arrived / "d/e").mkdir(parents=True)
            (arrived / "d/e/old").write_text("old")
            (arrived / "d/old").write_text("old")
            *words, from_place, to = job
            ended = run([*words, f"{str(from_place).rstrip('/')}/./d/e", to, "-q"])
            check(ended.returncode == 0, ended.stderr)
            check(names_below(arrived) == ["d", "d/e", "d/e/y", "d/old", "same", "sub", "sub/f"], f"{names_below(arrived)}")
