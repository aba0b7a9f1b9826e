"""The options that a seed may choose, each in ccixfer's words and in rsync's. A new option is a row here.

A row has a name (what `ccixfer send --help` must show for it to be used), a chance, and a function that gets the Case and
returns the words of both. It may add to the case what the option needs: trees beside the destination, files that the command
reads. A row that needs more of the trees or of the comparison sets a field of the Case.
"""
import dataclasses
from typing import Callable


@dataclasses.dataclass
class Row:
    name: str
    chance: float
    words: Callable            # Case -> (words of ccixfer, words of rsync)
    without: tuple = ()        # rows that do not go with it
    archive_only: bool = False


def same(*words):
    return lambda case: (list(words), list(words))


def backup(case):
    words = ["-b"] + (["--suffix", case.rng.choice([".old", "~~", ".d.bak"])] if case.rng.random() < 0.3 else [])
    return words, words


def backup_directory(case):
    """What rsync makes in the destination changes its time, and inherits its set-gid bit of that moment."""
    place = case.rng.choice(["../bak", "../bak/deep", "bak"])
    if place == "bak":
        case.any_time.add(b"dst")
        case.any_mode.add(b"dst/bak")
        case.same_items.append(lambda line: line.replace(b"t", b".", 1) if line.startswith(b".d") and line.endswith(b" ./") else line)
    words = ["--backup-dir", place] + (["--suffix", ".old"] if case.rng.random() < 0.3 else [])
    if case.rng.random() < 0.4:
        tree = case.maker.changed(case.source_tree, 0.6)
        if place == "../bak":
            case.there["bak"] = {p: n for p, n in tree.items() if n.kind != "d" or not p}
            case.there["bak"] = {p: n for p, n in case.there["bak"].items() if b"/" not in p}
    return words, words


def link_dest(case):
    """Older trees. What only differs in its attributes is copied by rsync and sent by ccixfer: the letters of it are made equal."""
    words = []
    for number in range(case.rng.choice([1, 1, 2])):
        older = case.there[f"prev{number}"] = case.maker.changed(case.source_tree, case.rng.choice([0.05, 0.3, 0.7]))
        for path, node in older.items():   # rsync would copy what it takes for the same content
            now = case.source_tree.get(path)
            if now and now.kind == node.kind == "f" and (len(now.content), now.mtime_ns) == (len(node.content), node.mtime_ns):
                node.content = now.content
        words += ["--link-dest", f"../prev{number}"]
    if case.rng.random() < 0.1:
        words += ["--link-dest", "../absent"]
    if case.rng.random() < 0.7:
        case.there.pop("dst", None)
    case.same_items.append(lambda line: b">" + line[1:] if line.startswith(b"cf") else line)
    return words, words


ROWS = [
    Row("--checksum", 0.12, same("--checksum")),
    Row("--update", 0.12, same("-u")),
    Row("--size-only", 0.12, same("--size-only")),
    Row("--whole-file", 0.08, same("-W")),
    Row("--ignore-existing", 0.10, same("--ignore-existing")),
    Row("--link-dest", 0.20, link_dest, without=("--size-only",)),  # of which rsync copies another content than the source has
    Row("--backup", 0.12, backup, without=("--link-dest",)),
    Row("--backup-dir", 0.10, backup_directory, without=("--link-dest", "--backup")),
    Row("--inplace", 0.20, same("--inplace"), without=("--link-dest", "--backup", "--backup-dir")),
]
