"""What the units of systemd say, read as systemd reads them. Whether they start is in test_confined and the package's test."""
import os
import pathlib
import re
import shutil
import subprocess

from lab import BINARY, REPO, Lab, Skipped, check, run
from test_manual import blocks

ACCOUNT = "ACCOUNT"
BELOW = {"StateDirectory": "/var/lib", "LogsDirectory": "/var/log", "RuntimeDirectory": "/run"}


def services():
    return {unit.name: unit.read_text() for unit in sorted((REPO / "conf/systemd").glob("*.service"))}


def in_force(text, key):
    """Of a key that may stand several times, the values that an empty one has not taken back."""
    found = re.findall(rf"^{key}=(.*)$", text, re.M)
    return found[len(found) - found[::-1].index(""):] if "" in found else found


def directories(units):
    """(key, path, the account that it is given to, the unit)"""
    return [(key, pathlib.PurePath(path.replace("%i", ACCOUNT)), in_force(text, "User")[-1].replace("%i", ACCOUNT), name)
            for name, text in units.items() for key in BELOW for path in in_force(text, key)]


def check_apart(found):
    """systemd gives a directory, and all that is in it, to the account of the unit, and shuts others out."""
    for key, path, account, name in found:
        others = [other for other in found if other[0] == key and other[2] != account and other[1] in (path, *path.parents)]
        check(not others, f"{name}: {key}={path} is, or lies below, what is another account's: {others}")


def test_units__what_an_account_calls_its_own__lies_not_below_that_of_another():
    found = directories(services())
    check(any(account == ACCOUNT for _, _, account, _ in found), f"no unit of an account has a directory: {found}")
    check_apart(found)


def test_units__a_job_of_another_account__takes_nothing_of_the_units_account():
    edited = next(block for block in blocks("ccixfer-job.1") if "User=" in block)
    units = services()
    job = units["ccixfer-job@.service"] + edited
    units["ccixfer-job@alice.service"] = job
    found = directories(units)
    check(sum(account == "alice" for _, _, account, _ in found) >= 2, f"it has no directories: {found}")
    check_apart(found)
    check(in_force(job, "Environment") == [], "its key would be that of the account ccixfer")
    with Lab("edited") as lab:
        (lab.directory / "job@.service.d").mkdir()
        (lab.directory / "job@.service.d/override.conf").write_text(edited)
        unit = lab.directory / "job@.service"
        unit.write_text(services()["ccixfer-job@.service"].replace("/usr/bin/ccixfer", str(BINARY)))
        judged = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
        about = [line for line in judged.stderr.splitlines() if "job@" in line]
        check(not about, f"{judged.stderr}")


def test_units__a_service_that_never_begins__has_failed_in_the_end():
    """Its starts follow one another after RestartSec=; systemd counts them in the interval, of ten seconds if nobody says."""
    restarted = {name: text for name, text in services().items() if in_force(text, "Restart")}
    check(len(restarted) >= 4, f"{list(restarted)}")
    for name, text in restarted.items():
        pause, interval, burst = (int(in_force(text, key)[-1]) for key in ("RestartSec", "StartLimitIntervalSec", "StartLimitBurst"))
        unit = text.split("[Service]")[0]
        check("StartLimitBurst=" in unit and "StartLimitIntervalSec=" in unit, f"{name}: these belong to [Unit]")
        check(2 * 60 < burst * pause < interval / 2, f"{name}: {burst} starts {pause} s apart within {interval} s")


def test_units__directories_with_names_of_files__are_not_for_everybody():
    for key, path, _, name in directories(services()):
        mode = in_force(services()[name], f"{key}Mode")
        check(mode and int(mode[-1], 8) & 0o007 == 0, f"{name}: {key}={path} with mode {mode}")


def writable(text):
    """The directories that a unit may write into."""
    found = [f"{BELOW[key]}/{path}" for key in BELOW for path in in_force(text, key)]
    return [pathlib.PurePath(path) for path in found + in_force(text, "ReadWritePaths")]


def check_writable(unit, paths):
    check("ProtectSystem=strict" in services()[unit], f"{unit} may write anywhere: this says nothing")
    for path in map(pathlib.PurePath, paths):
        check(any(place in path.parents for place in writable(services()[unit])), f"{path} is read-only for {unit}: {writable(services()[unit])}")


def test_units__what_the_examples_of_a_job_write__the_unit_may_write():
    written = re.compile(r'^(?:lock|log-file|failed-list|receipt|uri-file|backup-dir) = "(/[^"]*)"', re.M)
    example = next(block for block in blocks("ccixfer-job.1") if "lock = " in block)
    hint = re.findall(r'job_\.lock = word\(key, value, "\\"(/[^"\\]*)\\""\)', (REPO / "app/job/job_file.cc").read_text())
    paths = [path for text in (example, *(job.read_text() for job in (REPO / "conf/jobs").glob("*.toml"))) for path in written.findall(text)]
    check(len(paths) >= 3 and len(hint) == 1, f"{paths} {hint}")
    check_writable("ccixfer-job@.service", paths + hint)


def test_units__sockets_and_audit_logs_of_the_examples__a_unit_may_make():
    metrics = [*re.findall(r'unix:(/[^"\\]*)', (REPO / "app/config/metrics.cc").read_text()),
               *re.findall(r"9464:(/\S*\.sock)", (REPO / "man/ccixfer-metrics.7").read_text())]
    audits = [path for text in (REPO / "conf/security").glob("**/*.toml") for path in re.findall(r"--audit-log (/\S+)", text.read_text())]
    check(metrics and audits, f"{metrics} {audits}")
    for unit in ("ccixfer-route.service", "ccixfer-recv.service"):
        check_writable(unit, metrics + audits)


def test_logrotate__an_audit_log__is_renamed_and_never_emptied_or_deleted():
    """What is written on between the copy and the emptying of a log is lost, and the oldest of a trail is wanted last of all."""
    if shutil.which("logrotate", path="/usr/sbin:/usr/bin:/sbin") is None:
        raise Skipped("logrotate is not installed")
    with Lab("logrotate") as lab:
        logs = lab.directory / "log"
        logs.mkdir()
        for name in ("audit.log", "nightly"):
            (logs / name).write_text("0 ")
        account = [word for key in ("-un", "-gn") for word in run("id", key).stdout.split()]
        rules = (REPO / "conf/debian/ccixfer.logrotate").read_text().replace("/var/log/ccixfer", str(logs))
        calls = lab.directory / "calls"
        tools = lab.directory / "tools"
        tools.mkdir()
        (tools / "systemctl").write_text(f'#!/bin/sh\necho "$*" >>{calls}\n')
        (tools / "systemctl").chmod(0o755)
        rules = lab.file("rules", rules.replace("ccixfer ccixfer", " ".join(account)))
        pathlib.Path(rules).chmod(0o644)
        for number in range(1, 25):   # more often than a log of transfers is kept; a trail that is empty waits for the next week
            with open(logs / "audit.log", "a") as trail, open(logs / "nightly", "a") as log:
                ended = subprocess.run(["logrotate", "--force", "--state", lab.directory / "state", rules], capture_output=True, text=True, check=False,
                                       env={**os.environ, "PATH": f"{tools}:/usr/sbin:/usr/bin:/sbin:/bin"})
                check(ended.returncode == 0 and not ended.stderr, f"{ended}")
                trail.write(f"{number} ")   # before it hears of it
                log.write(f"{number} ")
        trails = sorted(logs.rglob("audit.log*"), key=lambda path: -int(path.name.rpartition(".")[2]) if path.parent != logs else 1)
        found = "".join(path.read_text() for path in trails)
        check(found == "".join(f"{number} " for number in range(25)), f"the trail: {found}")
        check(len(list(logs.rglob("nightly*"))) == 9, f"{list(logs.rglob('nightly*'))}")
        check(calls.read_text().count("--signal=HUP") == 12, calls.read_text())
