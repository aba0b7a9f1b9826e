"""The options that a seed may choose, each in ccixfer's words and in rsync's. A new option is a row here.

A row has a name (what `ccixfer send --help` must show for it to be used), a chance, and a function that gets the Case and
returns the words of both. It may add to the case what the option needs: trees beside the destination, files that the command
reads. A row that needs more of the trees or of the comparison sets a field of the Case.
"""
import dataclasses
import os
import struct
from typing import Callable

import sides
import trees

NOBODY = 0xffffffff


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
    case.dry_may_differ |= "--delete" in case.rows   # which may delete backups that the run makes
    words = ["-b"] + (["--suffix", case.rng.choice([".old", "~~", ".d.bak"])] if case.rng.random() < 0.3 else [])
    return words, words


def backup_directory(case):
    """What rsync makes in the destination changes its time, and inherits its set-gid bit of that moment."""
    # One in the destination is deleted by rsync and kept by ccixfer.
    # So are the access control lists that rsync makes it with.
    place = case.rng.choice(["../bak", "../bak/deep", *(["bak"] if not {"--delete", "--acls"} & set(case.rows) else [])])
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


def some(case, tree, kinds):
    paths = sorted(p for p, n in tree.items() if n.kind in kinds)
    return [p for p in paths if case.rng.random() < 0.5]


def replace(tree, path, **fields):
    tree[path] = dataclasses.replace(tree[path], **fields)


def hard_links(case):
    """Names of one file, in the source and otherwise in the destination. rsync sends the last of them unless one is
    unchanged, and ccixfer the first that it lists: the lines of such names are not compared."""
    names = set()
    for tree in filter(None, (case.source_tree, case.there.get("dst"))):
        # A name that is at the destination alone keeps its link to another one or not, as that one is relinked or not.
        both = [p for p in tree if tree[p].kind == "f" and p in case.source_tree and case.source_tree[p].kind == "f"]
        for path in [p for p in some(case, tree, "f")[:4] if p in both]:
            for _ in range(case.rng.choice([1, 1, 2])):
                directory = case.rng.choice(sorted(p for p, n in tree.items() if n.kind == "d"))
                at = trees.child(directory, case.rng.choice(trees.NAMES))
                if tree is not case.source_tree and at not in both:
                    continue
                if at not in tree or (tree[at].kind == "f" and at != path and not any(n.same_as == at for n in tree.values())):
                    if not tree[path].same_as:
                        tree[at] = dataclasses.replace(tree[path], same_as=path)
                        names |= {at, path}
    for path, node in case.there.get("dst", {}).items():   # rsync would link the others to what it takes for unchanged
        now = case.source_tree.get(path)
        if now and now.kind == node.kind == "f" and (len(now.content), now.mtime_ns) == (len(node.content), node.mtime_ns):
            node.content = now.content
    shown = {sides.printable(p) for p in names}

    def is_one(name):
        return any(name == p or name.endswith(b"/" + p) for p in shown)

    def same(line):
        name = line[12:].split(b" => ")[0]
        return b".f........." + b" " + name if is_one(name) or line.startswith(b"h") else line
    case.same_items.append(same)
    return ["-H"], ["-H"]


def xattrs(case):
    for tree in filter(None, (case.source_tree, case.there.get("dst"))):
        for path in some(case, tree, "fd"):
            values = {"user." + case.rng.choice("abc"): case.rng.choice([b"", b"1", b"long" * 50, b"\0\xff"]) for _ in range(2)}
            replace(tree, path, xattrs={**tree[path].xattrs, **values})
    return ["-X"], ["-X"]


def acls(case):
    def one(kind):
        rights = lambda: case.rng.choice([0, 4, 5, 6, 7])
        named = [(2, rights(), case.rng.choice([1000, 2000]))] + ([(8, rights(), 65534)] if case.rng.random() < 0.5 else [])
        owner = 7 if kind == "d" else 6
        entries = [(1, owner, NOBODY), *named[:1], (4, rights(), NOBODY), *named[1:], (16, rights(), NOBODY), (32, rights(), NOBODY)]
        return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    for tree in filter(None, (case.source_tree, case.there.get("dst"))):
        for path in some(case, tree, "fd"):
            values = {"system.posix_acl_access": one(tree[path].kind)}
            if tree[path].kind == "d" and case.rng.random() < 0.5:
                values["system.posix_acl_default"] = one("d")
            replace(tree, path, xattrs={**tree[path].xattrs, **values})
    case.same_items.append(lambda line: line[:5] + b"." + line[6:9] + b"." + line[10:] if line[9:10] == b"a" or line[5:6] == b"p" else line)
    return ["-A"], ["-A"]


def specials(case):
    """No option of its own: -a has them."""
    for tree in filter(None, (case.source_tree, case.there.get("dst"))):
        for _ in range(case.rng.choice([1, 2, 4])):
            directory = case.rng.choice(sorted(p for p, n in tree.items() if n.kind == "d"))
            at = trees.child(directory, case.rng.choice(trees.NAMES))
            if at not in tree:
                kind = case.rng.choice("ppsscc" if trees.AM_ROOT else "ps")
                device = case.rng.choice([os.makedev(1, 3), os.makedev(7, 300)]) if kind in "cb" else 0
                uid, gid = case.maker.owner()
                tree[at] = trees.Node(kind, case.rng.choice([0o644, 0o600, 0o4711]), case.maker.time(), uid, gid, device=device)
    return [], []


def chmod(case):
    words = []
    for _ in range(case.rng.choice([1, 1, 2])):
        words.append("--chmod=" + case.rng.choice(["D755,F644", "go-w", "Dg+s", "u+w,Fa-x", "a+X", "F-x,D=rx", "g=u", "o=", "+w", "+t"]))
    return words, words


def chown(case):
    words = ["--chown=" + case.rng.choice(["1000:1000", "daemon:daemon", ":65534", "0", "nobody"])]
    return words, words


def sparse(case):
    for path in some(case, case.source_tree, "f")[:2]:
        holes = bytes(case.rng.choice([4096, 8192, 70000]))
        replace(case.source_tree, path, content=case.rng.choice([holes, b"a" + holes, holes + b"z", b"a" + holes + b"z" + holes]))
    return ["-S"], ["-S"]


PATTERNS = ["*", "a*", "*.txt", "b", "d/", "*/", "/a", "/d/", "d/a", "/*/a", "**/b", "d/**", "*/***", "d/***", "?", "[a-c]", "[!a-c]*", "[[:upper:]]",
            "\\[x]", "[x]", "st\\*r", "st*r", "back\\slash", "back\\\\*", "q\\?", ".hidden", "*~", "**.o", "/**/a", "A", "x y", "-n", "#f#", "a-b"]


def rule(case, files=()):
    """One of the rules of --filter, valid in a file too."""
    rng = case.rng
    pattern = rng.choice(PATTERNS)
    if case.form == "tree" and pattern.startswith("/") and rng.random() < 0.7:
        pattern = f"/{case.seed}{pattern}"
    if files and rng.random() < 0.4:
        return rng.choice([":", ":", ":n", ":e", "dir-merge,ne", ":-", ":w-" if rng.random() < 0.3 else ":", ":p"]) + " " + rng.choice(files)
    kind = rng.choices(["-", "+", "-!", "H", "S", "P", "R", "-p", "hide", "+r", "-s", "exclude,!"], [40, 25, 5, 4, 3, 4, 3, 3, 2, 2, 2, 1])[0]
    return f"{kind} {pattern}"


def rules(case):
    """Rules on the command line, in files that it names, and in files of the tree. White space in a pattern is not for `w`."""
    rng, words = case.rng, []
    names = rng.choice([[], [], [".rules"], [".rules", ".rsync-filter"]])
    if case.form not in ("tree", "content"):   # of one file, rsync does not ask the rules of its directory
        names = []
    case.dry_may_differ |= bool(names) and "--delete" in case.rows   # of what is deleted, until these files are there
    for name in names:
        lines = [rule(case) for _ in range(rng.randrange(1, 3))]
        for tree in [case.source_tree, *([case.there["dst"]] if "dst" in case.there and rng.random() < 0.5 else [])]:
            for path in [p for p, n in tree.items() if n.kind == "d"]:
                if rng.random() < 0.4:
                    content = "\n".join(["# a comment"] * (rng.random() < 0.2) + lines + ["!"] * (rng.random() < 0.1) + [rule(case)])
                    node = case.maker.node("f")
                    node.content, node.mode = content.encode(), 0o644
                    tree[(path + b"/" if path else b"") + name.encode()] = node
    for _ in range(rng.randrange(1, 5)):
        what = rng.random()
        if what < 0.25:
            words += ["--exclude", rng.choice(PATTERNS)]
        elif what < 0.45:
            words += ["--include", rng.choice(PATTERNS)]
        elif what < 0.55:
            place = case.place("rs").parent.parent / f"rules{case.seed}.{len(words)}"
            place.write_text("".join(f"{rng.choice(['', '- ', '+ '])}{rng.choice(PATTERNS)}\n" for _ in range(3)))
            words += [rng.choice(["--exclude-from", "--include-from"]), str(place)]
        elif what < 0.62 and ".rsync-filter" in names:
            words += [rng.choice(["-F", "-FF"])]
        else:
            words += ["-f", rule(case, names)]
    return words, words


def delete(case):
    """After the transfer, as ccixfer does it."""
    rng = case.rng
    words = ["--delete-excluded"] if rng.random() < 0.15 else []
    if rng.random() < 0.15:
        words += [f"--max-delete={rng.choice([0, 100])}"]
        case.counts_deletions = True
    return ["--delete", *words], ["--delete-after", *words]


def files_from(case):
    """Names of the tree, and some that it does not have."""
    rng = case.rng
    case.form = "content"
    if "--hard-links" in case.rows:   # which name is linked to which differs, and dst has no entry that sets its time after that
        case.any_time.add(b"dst")
    paths = [p for p in case.source_tree if p and b"\n" not in p]
    names = [rng.choice([b"", b"", b"./", b"/"]) + p + rng.choice([b"", b"", b"/"] if case.source_tree[p].kind == "d" else [b""])
             for p in rng.sample(paths, min(len(paths), rng.randrange(1, 6)))]
    if rng.random() < 0.1 and "--delete" not in case.rows:
        names.append(b"absent")
    if rng.random() < 0.05:
        names.append(b".")
    place = case.place("rs").parent.parent / f"names{case.seed}"
    zero = ["-0"] if rng.random() < 0.3 else []
    place.write_bytes(b"".join(b"./" * name.startswith((b"#", b";")) + name + (b"\0" if zero else b"\n") for name in names))
    return ["--files-from", str(place), *zero], ["--files-from", str(place), *zero]


ROWS = [
    Row("--hard-links", 0.15, hard_links),
    Row("--xattrs", 0.12, xattrs),
    Row("--acls", 0.12, acls, archive_only=True, without=("--hard-links",)),
    Row("--archive", 0.15, specials, archive_only=True),
    Row("--sparse", 0.10, sparse),
    Row("--chmod", 0.12, chmod, without=("--acls",)),
    Row("--chown", 0.08, chown, archive_only=True, without=("--acls",)),
    Row("--numeric-ids", 0.10, same("--numeric-ids"), archive_only=True),
    Row("--checksum", 0.12, same("--checksum")),
    Row("--update", 0.12, same("-u"), without=("--hard-links",)),
    Row("--size-only", 0.12, same("--size-only"), without=("--hard-links",)),
    Row("--whole-file", 0.08, same("-W")),
    Row("--compress", 0.15, same("-z")),
    Row("--delete", 0.35, delete),
    Row("--files-from", 0.12, files_from, archive_only=True),  # -r of rsync would make it recursive
    Row("--filter", 0.30, rules, archive_only=True, without=("--files-from", "--hard-links")),
    Row("--ignore-existing", 0.10, same("--ignore-existing"), without=("--hard-links",)),
    Row("--link-dest", 0.20, link_dest, without=("--size-only", "--hard-links")),  # of which rsync copies another content than the source has
    Row("--backup", 0.12, backup, without=("--link-dest", "--hard-links")),
    Row("--backup-dir", 0.10, backup_directory, without=("--link-dest", "--backup", "--hard-links")),
    Row("--inplace", 0.20, same("--inplace"), without=("--update", "--size-only", "--link-dest", "--backup", "--backup-dir", "--hard-links")),
]
