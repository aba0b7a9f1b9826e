"""The manual pages say what the program has: each option of --help, each exit code; and their examples are what systemd takes."""
import os
import pathlib
import re
import subprocess

from lab import BINARY, REPO, Lab, check, native, run, same_tree, small_tree

PAGES = {"send": "ccixfer-send.1", "recv": "ccixfer-recv.1", "route": "ccixfer-route.8", "routes": "ccixfer-routes.1", "ping": "ccixfer-ping.1",
         "devices": "ccixfer-devices.1", "sim": "ccixfer-sim.1", "bench": "ccixfer-bench.1", "keygen": "ccixfer-keygen.1", "id": "ccixfer-id.1",
         "verify": "ccixfer-verify.1", "status": "ccixfer-status.1"}
BY_ITSELF = {"--help", "-h"}   # of every program


def page(name):
    return (REPO / "man" / name).read_text().replace("\\-", "-")


def options_of(command):
    text = run(BINARY, command, "--help").stdout
    return {name for line in text.splitlines() if line.startswith("  -") for name in line.split()[0].split(",")} - BY_ITSELF


def has(text, option):
    return re.search(rf"(?<![-\w]){re.escape(option)}(?![-\w])", text) is not None


def test_manual__each_option_of_help__has_its_place():
    common = page("ccixfer.1")
    commands = re.findall(r"^  (\w+) ", run(BINARY, "--help").stdout.split("Subcommands:")[-1], re.M)
    check(set(PAGES) <= set(commands), f"commands: {commands}")
    missing = [f"{command} {option}" for command in commands for option in sorted(options_of(command))
               if not has(page(PAGES.get(command, f"ccixfer-{command}.1")), option) and not has(common, option)
               # A pull has the options of a push, and its page says so by name or leaves it to that one.
               and not (command == "recv" and has(page("ccixfer-send.1"), option))]
    check(not missing, f"no page says what these are: {missing}")


def test_manual__each_exit_code__is_in_the_list():
    rows = re.findall(r'ErrorRow\{[A-Za-z_:]+, (\d+),', (REPO / "core/base/error_table.cc").read_text())
    listed = re.findall(r"^(\d+)\t", page("ccixfer.1").split(".SH EXIT STATUS")[1], re.M)
    check(sorted(map(int, rows)) == sorted(map(int, listed)), f"the program has {rows}, the page {listed}")


def test_manual__pages_are_well_formed():
    for path in sorted((REPO / "man").iterdir()):
        ended = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path], capture_output=True, text=True, check=False)
        wrong = [line for line in ended.stderr.splitlines() if "can't break line" not in line and "cannot adjust line" not in line
                 and "cannot break line" not in line]
        check(ended.returncode == 0 and not wrong, f"{path.name}: {wrong[:5]}")


def blocks(name):
    """What stands between .nf and .fi, as a reader sees it."""
    text = page(name)
    return [block.replace("\\e\n", "\\\n") for block in re.findall(r"^\.nf\n(.*?)^\.fi$", text, re.M | re.S)]


def test_manual__the_nightly_job__is_what_systemd_takes():
    with Lab("nightly") as lab:
        units = pathlib.Path(lab.directory)
        service, timer, cron, snapshot, backup, notice = blocks("ccixfer-jobs.7")
        paths = [units / "nightly-run.service", units / "nightly-run.timer"]
        for path, text in zip(paths, (service, timer)):
            path.write_text(text.replace("/usr/bin/ccixfer", str(BINARY)).replace("User=archive\n", ""))
        (units / "mail-to-operators@.service").write_text("[Service]\nType=oneshot\nExecStart=/bin/true\n")
        judged = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False,
                                env={"SYSTEMD_LOG_LEVEL": "warning", "SYSTEMD_UNIT_PATH": f"{units}:", "PATH": "/usr/bin:/bin"})
        about = [line for line in judged.stderr.splitlines() if "nightly-run" in line]
        check(judged.returncode == 0 and not about, f"{judged.stderr}")
        # Each option that it names is one of the program's.
        for command, texts in (("send", (service, cron, snapshot, backup)), ("recv", (notice,))):
            for option in re.findall(r"(?<=\s)--[a-z-]+", "".join(texts)):
                check(option in options_of(command), f"{option} is no option of {command}")


def test_manual__the_nightly_snapshot__links_what_is_unchanged_and_leaves_older_trees_alone():
    with Lab("snapshot") as lab:
        lab.root = lab.directory / "root"
        lab.root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", lab.root, "--listen", "127.0.0.1:0", "--insecure")
        source = lab.directory / "runs"
        small_tree(source, files=30)
        programs, state = lab.directory / "bin", lab.directory / "state"
        programs.mkdir()
        state.mkdir()
        script = blocks("ccixfer-jobs.7")[3]
        script = script.replace("ccixfer send", f"{BINARY} send --insecure").replace("/data/runs/", f"{source}/")
        script = script.replace("tcp://archive.example:7100", native(receiver.uris))
        (programs / "night").write_text(script)

        def night(day, code=0):
            (programs / "date").write_text(f"#!/bin/sh\necho {day}\n")
            (programs / "date").chmod(0o755)
            done = subprocess.run(["sh", programs / "night"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                                  env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "STATE_DIRECTORY": str(state)})
            check(done.returncode == code, f"{day}: exit {done.returncode}: {done.stderr}")
            return lab.root / "snapshots" / day

        (source / "kept").write_text("the same every night")
        (source / "changed").write_text("monday")
        monday = night("2026-11-23")
        (source / "changed").write_text("tuesday, which is longer")
        (source / "new").write_text("of tuesday")
        tuesday = night("2026-11-24")
        same_tree(source, tuesday)
        check((monday / "changed").read_text() == "monday" and not (monday / "new").exists(), "monday's tree is changed")
        for path in tuesday.rglob("*"):
            if path.is_symlink() or not path.is_file():
                continue
            older = monday / path.relative_to(tuesday)
            linked = older.exists() and older.stat().st_ino == path.stat().st_ino
            check(linked == (path.name not in ("changed", "new")), f"{path}: {'linked' if linked else 'not linked'}")
        # Once more on the same day: nothing to do, and nothing to link to.
        night("2026-11-24")
        same_tree(source, tuesday)
        receiver.stop()
