"""Random trees: made of a seed, written to disk as often as one likes, changed a little, and read back for comparison.

A tree is a dict from a path (bytes, "" is the tree itself) to a Node. All randomness comes from the Random that is handed in.
"""
import dataclasses
import os
import random
import stat
import struct
import time
import zlib

EPOCH_NS = 1_600_000_000 * 10**9
NAMES = [b"a", b"b", b"c", b"d", b"a.txt", b"a-b", b"ab", b"A", b"e~", b".hidden", b"x y", b"d.bak", b"core", b"b.o",
         "\u00fc".encode(), b"new\nline", b"-n", b"#f#", b"50%", b"[x]", b"st*r", b"q?", b"back\\slash", b"\xff\xfe"]
FILE_MODES = [0o644, 0o644, 0o600, 0o755, 0o444, 0o000, 0o4755, 0o2755, 0o640]
DIRECTORY_MODES = [0o755, 0o755, 0o700, 0o555, 0o2775, 0o1777, 0o750]
TARGETS = [b"a", b"b", b"../a", b"d/a", b"/nonexistent", b"nowhere", b"\xff", b"a.txt"]
LARGE_BYTES = (4 << 20) + 4097
PIECE_BYTES = 4 << 20
AM_ROOT = os.geteuid() == 0
SPECIALS = {"p": stat.S_IFIFO, "s": stat.S_IFSOCK, "c": stat.S_IFCHR, "b": stat.S_IFBLK}


@dataclasses.dataclass
class Node:
    kind: str               # "f" file, "d" directory, "L" symbolic link
    mode: int = 0o644
    mtime_ns: int = EPOCH_NS
    uid: int = 0
    gid: int = 0
    content: bytes = b""    # of a file
    target: bytes = b""     # of a link
    same_as: bytes = b""    # of a file: the path of another one that it is a further name of
    xattrs: dict = dataclasses.field(default_factory=dict)   # extended attributes, ACLs among them
    device: int = 0         # of a special ("p" FIFO, "s" socket, "c" character device, "b" block device)


def child(path, name):
    return path + b"/" + name if path else name


def parent_of(path):
    return path.rpartition(b"/")[0]


def below(tree, path):
    """The paths of all that is in that directory, at any depth."""
    return [p for p in tree if p.startswith(path + b"/")] if path else [p for p in tree if p]


class Maker:
    """Makes trees and changes them. `flat_links`: no links to directories, for runs that follow links."""

    def __init__(self, rng: random.Random, flat_links=False, specials=False):
        self.rng = rng
        self.flat_links = flat_links
        self.specials = specials
        self.large_left = 1 if rng.random() < 0.06 else 0

    def time(self):
        rng = self.rng
        if rng.random() < 0.03:
            return rng.choice([0, -5 * 10**9, (2**31 + 5) * 10**9])
        return EPOCH_NS + rng.randrange(-4, 5) * 10 * 10**9 + rng.choice([0, 0, 1, 123456789, 999999999])

    def owner(self):
        if not AM_ROOT:
            return os.geteuid(), os.getegid()
        rng = self.rng
        return (0, 0) if rng.random() < 0.8 else (rng.choice([0, 1000, 65534]), rng.choice([0, 1000, 65534]))

    def content(self):
        rng = self.rng
        if self.large_left and rng.random() < 0.3:
            self.large_left -= 1
            return rng.randbytes(4096) * (rng.choice([1, 1, 2, 3]) * LARGE_BYTES // 4096) + b"end" * rng.randrange(5)
        size = rng.choice([0, 1, 2, 7, 7, 7, 20, 20, rng.randrange(5000)])
        return rng.randbytes(size)

    def in_part(self, content):
        """As a large file changes: some bytes, its end, or what is appended."""
        rng = self.rng
        at = rng.randrange(len(content))
        return rng.choice([content[:at] + rng.randbytes(9) + content[at + 9:], content[:at], content + rng.randbytes(at % 9000)])

    def node(self, kind=None):
        rng = self.rng
        uid, gid = self.owner()
        kind = kind or rng.choices("fdL", [6, 3, 1])[0]
        if kind == "d":
            return Node("d", rng.choice(DIRECTORY_MODES), self.time(), uid, gid)
        if kind == "L":
            targets = [b"/nonexistent", b"nowhere"] if self.flat_links else TARGETS
            return Node("L", 0o777, self.time(), uid, gid, target=rng.choice(targets))
        mode = rng.choice(FILE_MODES)
        return Node("f", mode if AM_ROOT or mode & 0o400 else 0o600, self.time(), uid, gid, content=self.content())

    def fill(self, tree, path, depth, count):
        for _ in range(count):
            at = child(path, self.rng.choice(NAMES))
            if at in tree:
                continue
            node = self.node()
            if node.kind == "d" and depth == 0:
                node = self.node("f")
            tree[at] = node
            if node.kind == "d":
                self.fill(tree, at, depth - 1, self.rng.randrange(0, 4))

    def tree(self):
        uid, gid = self.owner()
        tree = {b"": Node("d", self.rng.choice(DIRECTORY_MODES), self.time(), uid, gid)}
        self.fill(tree, b"", 2, self.rng.randrange(0, 7))
        return tree

    def drop(self, tree, path):
        for p in below(tree, path):
            del tree[p]
        del tree[path]

    def change_one(self, tree, path):
        """One of the differences that a run must find, or must not be misled by."""
        rng = self.rng
        node = dataclasses.replace(tree[path], same_as=b"")
        what = rng.choice(["content", "same_size", "same_size_and_time", "time", "nanoseconds", "mode", "owner", "type", "gone", "target"])
        if what == "gone":
            return self.drop(tree, path)
        if what == "type":
            kind = rng.choice("fdL")
            if tree[path].kind == "d":
                full = bool(below(tree, path))
                if full and rng.random() < 0.7:
                    return None
                self.drop(tree, path)
            tree[path] = self.node(kind)
            if kind == "d" and rng.random() < 0.5:
                self.fill(tree, path, 0, 2)
            return None
        if what == "time":
            node.mtime_ns = self.time()
        elif what == "nanoseconds":
            node.mtime_ns += 1 if node.mtime_ns % 10**9 < 10**9 - 1 else -1
        elif what == "mode" and node.kind != "L":
            node.mode = self.node(node.kind).mode
        elif what == "owner":
            node.uid, node.gid = self.owner()
        elif what == "target" and node.kind == "L":
            node.target = self.node("L").target
        elif node.kind == "f" and what in ("content", "same_size", "same_size_and_time"):
            if what == "content" and len(node.content) > PIECE_BYTES and rng.random() < 0.8:
                node.content = self.in_part(node.content)
            elif what == "content":
                node.content = self.content()
            elif node.content:
                node.content = bytes([node.content[0] ^ 1]) + node.content[1:]
            if what != "same_size_and_time":
                node.mtime_ns = self.time()
        tree[path] = node
        return None

    def changed(self, tree, rate):
        """A copy of the tree in which that part of the entries differs, and which has some of its own."""
        rng = self.rng
        tree = dict(tree)
        for path in [p for p in tree if p]:
            if path.endswith((b".rules", b".rsync-filter")):   # other bytes would be no rules
                continue
            if path in tree and rng.random() < rate:
                self.change_one(tree, path)
        if rng.random() < 0.3:
            root = dataclasses.replace(tree[b""])
            root.mode, root.mtime_ns = rng.choice(DIRECTORY_MODES), self.time()
            tree[b""] = root
        for path in [p for p in tree if tree[p].kind == "d"]:
            if path in tree and rng.random() < rate:
                self.fill(tree, path, 1 if path.count(b"/") < 2 else 0, 2)
        return tree


def write(tree, top):
    """The tree on disk at `top`, which must not be there."""
    top = os.fsencode(top)
    order = sorted(tree)
    later = [p for p in order if tree[p].same_as in tree and tree[tree[p].same_as].kind == "f" and not tree[tree[p].same_as].same_as]
    for path in order:
        node, at = tree[path], child(top, path) if path else top
        if path in later:
            continue
        if node.kind == "d":
            os.mkdir(at, 0o700)
        elif node.kind in SPECIALS:
            os.mknod(at, SPECIALS[node.kind] | 0o600, node.device)
        elif node.kind == "L":
            os.symlink(node.target, at)
        else:
            fd = os.open(at, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            if node.content:
                os.write(fd, node.content)
            os.close(fd)
    for path in later:
        os.link(child(top, tree[path].same_as), child(top, path))
    for path in reversed([p for p in order if p not in later]):
        node, at = tree[path], child(top, path) if path else top
        if AM_ROOT and (node.uid or node.gid):
            os.chown(at, node.uid, node.gid, follow_symlinks=False)
        if node.kind != "L":
            os.chmod(at, node.mode)
        for name, value in node.xattrs.items():
            os.setxattr(at, name, value)
        os.utime(at, ns=(node.mtime_ns, node.mtime_ns), follow_symlinks=False)


def snapshot(top, since_ns):
    """What stands at `top`: a dict from path to (kind, mode, uid, gid, mtime, content), and the groups of hard links.

    A time between `since_ns` and now is "now".
    """
    top = os.fsencode(top)
    now_ns = time.time_ns() + 10**9
    found, inodes = {}, {}

    def look(at, path):
        info = os.lstat(at)
        mode = stat.S_IMODE(info.st_mode)
        kind, content = "?", None
        if stat.S_ISREG(info.st_mode):
            kind = "f"
            with open(at, "rb") as file:
                data = file.read()
            content = data if len(data) < 200 else (len(data), zlib.crc32(data))
            if info.st_nlink > 1:
                inodes.setdefault((info.st_dev, info.st_ino), []).append(path)
        elif stat.S_ISLNK(info.st_mode):
            kind, content, mode = "L", os.readlink(at), 0
            if info.st_nlink > 1:
                inodes.setdefault((info.st_dev, info.st_ino), []).append(path)
        elif stat.S_ISDIR(info.st_mode):
            kind = "d"
        else:
            kind, content = "D", (stat.S_IFMT(info.st_mode), info.st_rdev)
            if info.st_nlink > 1:
                inodes.setdefault((info.st_dev, info.st_ino), []).append(path)
        mtime = "now" if since_ns <= info.st_mtime_ns <= now_ns else info.st_mtime_ns
        names = sorted(os.listxattr(at, follow_symlinks=False))
        extended = {name: os.getxattr(at, name, follow_symlinks=False) for name in names}
        found[path] = (kind, mode, info.st_uid, info.st_gid, mtime, content, extended)
        if kind == "d":
            for name in os.listdir(at):
                if name != b".ccixfer":
                    look(child(at, name), child(path, name))

    if os.path.lexists(top):
        look(top, b"")
    return found, sorted(sorted(group) for group in inodes.values() if len(group) > 1)


def without_group(xattrs):
    """These, with no rights of the owning group in the access control list."""
    name = "system.posix_acl_access"
    acl = xattrs.get(name, b"")
    entries = [struct.unpack_from("<HHI", acl, at) for at in range(4, len(acl), 8)]
    changed = acl[:4] + b"".join(struct.pack("<HHI", tag, 0 if tag == 4 else rights, who) for tag, rights, who in entries)
    return {**xattrs, name: changed} if acl else xattrs


def difference(ours, theirs, times=True, modes=True, owners=True):
    """Lines that say where the two snapshots differ; the second is rsync's."""
    lines = []
    (our_tree, our_links), (their_tree, their_links) = ours, theirs
    for path in sorted(set(our_tree) | set(their_tree)):
        a, b = our_tree.get(path), their_tree.get(path)
        if a is None or b is None:
            lines.append(f"{path!r}: only {'ccixfer' if b is None else 'rsync'} has it: {a or b}")
            continue
        names = ["kind", "mode", "uid", "gid", "mtime", "content", "attributes"]
        asked = [True, modes, owners, owners, times, True, True]
        wrong = [f"{n} {x!r} (rsync {y!r})" for n, x, y, ask in zip(names, a, b, asked) if ask and x != y]
        if wrong:
            lines.append(f"{path!r}: {', '.join(wrong)}")
    if our_links != their_links:
        lines.append(f"hard links {our_links} (rsync {their_links})")
    return lines
