"""`ccixfer keygen` and `ccixfer id` as a person and as a script use them."""
import os
import stat
import subprocess

from lab import BINARY, Lab, check, events_of


def ccixfer(lab, *arguments, **environment):
    """With a home of its own, and no configuration of this host."""
    settings = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
    settings.update(HOME=str(lab.directory / "home"), CCI_CONFIG=str(lab.directory / "none.toml"), **environment)
    (lab.directory / "none.toml").touch()
    return subprocess.run([BINARY, *[str(a) for a in arguments]], env=settings, capture_output=True, text=True, check=False)


def test_keygen_and_id__a_new_account_has_one_identity_that_stays():
    with Lab("keygen") as lab:
        none = ccixfer(lab, "id")
        check(none.returncode == 41 and "ccixfer keygen" in none.stderr and not none.stdout, f"{none}")
        made = ccixfer(lab, "keygen")
        check(made.returncode == 0 and made.stdout.startswith("cx1-") and made.stdout.count("\n") == 1, f"{made}")
        key = lab.directory / "home/.config/ccixfer/identity.key"
        check(stat.S_IMODE(key.stat().st_mode) == 0o600 and stat.S_IMODE(key.parent.stat().st_mode) == 0o700, "others may look")
        check(ccixfer(lab, "id").stdout == made.stdout, "another id")
        told = ccixfer(lab, "id", "--json")
        event = events_of(told.stdout)[0]
        check(event["event"] == "identity" and event["id"] == made.stdout.strip() and event["file"] == str(key), f"{told}")
        again = ccixfer(lab, "keygen")
        check(again.returncode == 1 and "--force" in again.stderr, f"{again}")
        check(ccixfer(lab, "id").stdout == made.stdout, "the key was replaced without --force")
        forced = ccixfer(lab, "keygen", "--force")
        check(forced.returncode == 0 and forced.stdout != made.stdout, f"{forced}")
        for said in (made, told, again, forced):
            check("PRIVATE" not in said.stdout + said.stderr, "key material was printed")


def test_keygen_out__makes_the_key_where_it_is_told_and_the_configuration_names_it():
    with Lab("keygen-out") as lab:
        made = ccixfer(lab, "keygen", "--out", lab.directory / "host.key")
        check(made.returncode == 0, f"{made}")
        (lab.directory / "c.toml").write_text('[identity]\nkey = "host.key"\n')
        check(ccixfer(lab, "id", "-c", lab.directory / "c.toml").stdout == made.stdout, "another key")
        (lab.directory / "host.key").chmod(0o644)
        wide = ccixfer(lab, "id", "-c", lab.directory / "c.toml")
        words = f"ccixfer: {lab.directory / 'host.key'}: others may read it: chmod 600 {lab.directory / 'host.key'}"
        check(wide.returncode == 1 and wide.stderr.strip() == words, f"{wide}")


def test_ticket_options__refused_where_they_make_no_sense():
    with Lab("ticket-options") as lab:
        for arguments in (["recv", "--root", ".", "--ticket", "--insecure"], ["recv", "--root", ".", "--expires", "1h"],
                          ["send", "--ticket", "a", "tcp://127.0.0.1:9/x"], ["recv", "--root", ".", "--ticket", "--expires", "24"]):
            ended = ccixfer(lab, *arguments)
            check(ended.returncode == 1 and ended.stderr.count("\n") == 1, f"{arguments}: {ended}")
