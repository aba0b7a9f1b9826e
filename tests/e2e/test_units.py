"""What the units of systemd say, read as systemd reads them. Whether they start is in test_confined and the package's test."""
import pathlib
import re

from lab import REPO, check

ACCOUNT = "ACCOUNT"


def services():
    return {unit.name: unit.read_text() for unit in sorted((REPO / "conf/systemd").glob("*.service"))}


def values(text, key):
    return re.findall(rf"^{key}=(.+)$", text, re.M)


def directories():
    """(key, path, the account that it is given to, the unit)"""
    return [(key, pathlib.PurePath(path.replace("%i", ACCOUNT)), values(text, "User")[-1].replace("%i", ACCOUNT), name)
            for name, text in services().items() for key in ("StateDirectory", "LogsDirectory") for path in values(text, key)]


def test_units__what_an_account_calls_its_own__lies_not_below_that_of_another():
    # systemd gives a directory, and all that is in it, to the account of the unit, and shuts others out.
    found = directories()
    check(any(account == ACCOUNT for _, _, account, _ in found), f"no unit of an account has a directory: {found}")
    for key, path, account, name in found:
        others = [other for other in found if other[0] == key and other[2] != account and other[1] in (path, *path.parents)]
        check(not others, f"{name}: {key}={path} is, or lies below, what is another account's: {others}")
