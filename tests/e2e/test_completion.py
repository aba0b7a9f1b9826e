"""Completions as the shells use them: the scripts are made by the program, sourced and asked."""
import shutil
import subprocess

from lab import BINARY, Lab, check, leave_out, run


def bash(lab, *words):
    """What bash offers for the last of these words."""
    ask = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _ccixfer; '
           'printf "%s\\n" "${COMPREPLY[@]}"')
    ended = subprocess.run(["bash", "-c", ask, "bash", lab.script, *words], capture_output=True, text=True, check=True, cwd=lab.directory)
    check(ended.stderr == "", f"bash said: {ended.stderr}")
    return sorted(line for line in ended.stdout.splitlines() if line)


def options_of(command):
    """The long options that --help shows."""
    text = run(BINARY, command, "--help").stdout
    names = [name for line in text.splitlines() if line.startswith("  -") for name in line.split()[0].split(",")]
    return {name for name in names if name.startswith("--")}


def test_bash_completion__commands_options_and_files():
    with Lab("complete") as lab:
        lab.script = lab.file("ccixfer.bash", run(BINARY, "completion", "bash").stdout)
        (lab.directory / "some dir").mkdir()
        lab.file("some file", "")
        commands = bash(lab, "ccixfer", "")
        check({"send", "recv", "route", "routes", "ping", "devices", "keygen", "id", "bench", "sim"} <= set(commands), f"{commands}")
        check(bash(lab, "ccixfer", "rec") == ["recv"], f"{bash(lab, 'ccixfer', 'rec')}")
        for command in ("send", "recv", "route", "ping", "keygen", "sim"):
            offered, shown = set(bash(lab, "ccixfer", command, "--")), options_of(command)
            check(shown and offered == shown, f"{command}: --help shows {sorted(shown - offered)} more and {sorted(offered - shown)} less")
        check(bash(lab, "ccixfer", "send", "a", "--stop-") == ["--stop-at"], "not after another word")
        check(bash(lab, "ccixfer", "send", "some") == ["some dir", "some file"], f"{bash(lab, 'ccixfer', 'send', 'some')}")
        check(bash(lab, "ccixfer", "send", "--serve", "some") == ["some dir"], "not directories alone")
        check(bash(lab, "ccixfer", "send", "--lock", "=", "some") == ["some dir", "some file"], "not behind =")
        check(bash(lab, "ccixfer", "send", "--bwlimit", "") == [], "files as rates")


def test_completions__shells_that_are_here__take_them():
    with Lab("complete-syntax") as lab:
        for shell in ("bash", "zsh", "fish"):
            script = lab.file(shell, run(BINARY, "completion", shell).stdout)
            if shutil.which(shell) is None:
                leave_out(f"{shell} is not installed")
                continue
            ended = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)
            check(ended.returncode == 0 and ended.stderr == "", f"{shell}: {ended.stderr}")
