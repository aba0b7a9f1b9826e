#!/usr/bin/env python3
"""Random trees and random options: the destination of ccixfer equals that of rsync, and so do the lines of -i.

run.py [--seeds N] [--first SEED] [--jobs N] [--keep]: README.md has the rest. The last line is `differential: N seeds, M differ`.
Exit code 1: some differ, and each says its seed, its commands and the differences.
"""
import argparse
import concurrent.futures
import errno
import os
import pathlib
import random
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time

import options
import sides
import trees


class Case:
    """One seed: a source, the state of its destination, and the options of the run."""

    def __init__(self, seed, peers):
        self.seed, self.peers = seed, peers
        rng = self.rng = random.Random(seed)
        self.archive = rng.random() < 0.9
        self.maker = trees.Maker(rng, flat_links=not self.archive)
        self.pull = rng.random() < 0.5
        self.compare_times = self.compare_modes = self.archive
        self.source_tree = self.maker.tree()
        self.there = {}                       # trees that stand before the run: name -> tree
        if rng.random() < 0.9:
            self.there["dst"] = self.maker.changed(self.source_tree, rng.choice([0.1, 0.4, 0.8]))
        self.words, self.rsync_words = [], []
        self.dry_may_differ = False           # what a run brings changes what it deletes
        self.counts_deletions = False         # a row limits how many there are, and which ones go is anybody's choice
        self.same_items = []                  # what makes lines equal that rows know to differ
        self.any_time, self.any_mode = set(), set()  # paths whose times and modes rows know to differ
        if self.archive:
            self.words.append("-a")
            self.rsync_words.append("-a")
        else:
            self.rsync_words += ["-rLI"]   # as cp does, ccixfer takes no time for a proof without -a
        self.rsync_words += ["--modify-window=-1"]
        self.form = rng.choices(["content", "tree", "file"], [8, 2, 1])[0]
        self.rows = []
        for row in options.ROWS:
            if rng.random() < row.chance and sides.has_option(row.name) and (self.archive or not row.archive_only) and \
                    not any(name in row.without for name in self.rows):
                ours, theirs = row.words(self)
                self.words += ours
                self.rsync_words += theirs
                self.rows.append(row.name)
        files = [p for p, n in self.source_tree.items() if n.kind == "f" and b"/" not in p]
        if self.form == "file":
            if files:
                self.file = rng.choice(files)
            else:
                self.form = "content"
        self.set_id = {sides.printable(p) for tree in (self.source_tree, self.there.get("dst", {})) for p, n in tree.items()
                       if n.kind in "fpscb" and n.mode & 0o6000}
        self.same_items.append(self.given_away)
        self.itemizes = sides.has_option("--itemize-changes")
        self.again = rng.random() < 0.25
        self.stopped = False                  # the destinations differ, each in its own way

    def given_away(self, line):
        """Of a set-ID file with another owner rsync says what its own chown(2) did to the mode, and not that the owner was another."""
        letters, name = line[:11], line[12:]
        is_one = letters[:2] in (b".f", b".S", b".D") and any(name == p or name.endswith(b"/" + p) for p in self.set_id)
        return letters[:5] + b"..." + letters[8:] + b" " + name if is_one else line

    # Where things stand: rs/SEED/dst is rsync's, cx/SEED/dst ccixfer's.
    def place(self, side):
        return self.peers.work / side / str(self.seed)

    def source(self, top):
        return {"content": f"{top}/", "tree": str(top), "file": f"{top}/" + (self.file.decode("utf-8", "surrogateescape")
                                                                             if self.form == "file" else "")}[self.form]

    def set_up(self):
        self.began_ns = time.time_ns() - 10**9
        self.place("rs").mkdir()
        self.place("cx").mkdir()
        trees.write(self.source_tree, self.peers.served / str(self.seed))
        for name, tree in self.there.items():
            trees.write(tree, self.place("rs") / name)
            trees.write(tree, self.place("cx") / name)

    def tear_down(self):
        for path in (self.place("rs"), self.place("cx"), self.peers.served / str(self.seed)):
            shutil.rmtree(path, ignore_errors=True)

    def rsync(self, words):
        command = ["rsync", "-8", "-i", *self.rsync_words, *words, "--", self.source(self.peers.served / str(self.seed)),
                   f"{self.place('rs')}/dst/"]
        return command, sides.run(command)

    def ccixfer(self, words):
        ours = [*self.words, *words, *(["-i"] if self.itemizes else [])]
        if self.pull:
            command = [sides.BINARY, "recv", "--insecure", "-q", *ours, "--", self.peers.server + "/" + self.source(self.seed),
                       f"{self.place('cx')}/dst"]
        else:
            command = [sides.BINARY, "send", "--insecure", "-q", *ours, "--", self.source(self.peers.served / str(self.seed)),
                       f"{self.peers.receiver}/{self.seed}/dst/"]
        return command, sides.run(command)

    def snapshot(self, side):
        tree, links = trees.snapshot(self.place(side), self.began_ns)
        tree.pop(b"")
        for path, entry in tree.items():
            kind, mode, uid, gid, mtime, *rest = entry
            tree[path] = (kind, None if path in self.any_mode else mode, uid, gid, None if path in self.any_time else mtime, *rest)
        return tree, links

    def copies(self, kind):
        """What both destinations have for each entry of that kind: the node, the path there, its status."""
        at = b"" if self.form != "tree" else str(self.seed).encode()
        for path, node in self.source_tree.items():
            if node.kind != kind or (self.form == "file" and path != self.file):
                continue
            for side in ("rs", "cx"):
                copy = os.fsencode(self.place(side)) + b"/dst/" + (trees.child(at, path) if self.form != "file" else path)
                try:
                    yield node, copy, os.lstat(copy)
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                        raise

    def may_change(self, node, there):
        """What is there may get other attributes by a run."""
        if any(option in self.rows for option in ("--chmod", "--chown", "--acls", "--xattrs")):
            return True
        had = (stat.S_IMODE(there.st_mode), there.st_uid, there.st_gid, there.st_mtime_ns)
        return (node.mode, node.uid, node.gid, node.mtime_ns) != had

    def settle(self):
        """Takes away what README.md says rsync does otherwise, on purpose or not."""
        if "--update" in self.rows:
            for node, copy, there in self.copies("f"):
                if stat.S_ISREG(there.st_mode) and node.mtime_ns < there.st_mtime_ns and \
                        there.st_mtime_ns // 10**9 - node.mtime_ns // 10**9 < 2:
                    os.utime(copy, ns=(0, node.mtime_ns))
        if "--link-dest" in self.rows:
            for kind in "fLpscb":
                for node, copy, there in self.copies(kind):
                    if there.st_nlink > 1 and not stat.S_ISDIR(there.st_mode) and self.may_change(node, there):
                        self.separate(copy)
        if "--hard-links" in self.rows:
            wanted = {}  # by file of a destination: what its names are at the source, and those names
            for kind in "fLpscb":
                for node, copy, there in self.copies(kind):
                    if there.st_nlink > 1 and not stat.S_ISDIR(there.st_mode):
                        nodes, copies = wanted.setdefault((there.st_dev, there.st_ino), (set(), []))
                        nodes.add((node.kind, node.mode, node.uid, node.gid, node.mtime_ns, node.content, node.target, node.device))
                        copies.append(copy)
            for nodes, copies in wanted.values():
                for copy in copies if len(nodes) > 1 else []:
                    self.separate(copy)
        if "--ignore-existing" in self.rows:
            for _, copy, there in self.copies("d"):
                if not stat.S_ISDIR(there.st_mode):
                    os.unlink(copy)

    @staticmethod
    def separate(copy):
        alone = copy + b".alone"
        subprocess.run(["cp", "-a", "--", copy, alone], check=True)
        os.rename(alone, copy)

    def excuse(self, ours, theirs, rsync_errors):
        """Makes `theirs` equal where README.md says what differs."""
        at = b"dst" if self.form != "tree" else b"dst/" + str(self.seed).encode()
        for path, there in theirs[0].items():
            here = ours[0].get(path)
            if here is None:
                continue
            if "--backup" in self.rows and b"could not make way" in rsync_errors and here[0] == "d" and here[4] == "now":
                there = theirs[0][path] = (*there[:4], "now", *there[5:])
            below = path[len(at) + 1:] if path.startswith(at + b"/") else b"" if path == at else None
            source = self.source_tree.get(below)
            if source and source.xattrs == here[-1] and trees.without_group(here[-1]) == there[-1]:
                theirs[0][path] = (*there[:-1], here[-1])

    def items(self, lines):
        for change in self.same_items:
            lines = [change(line) for line in lines]
        return sorted(line for line in lines if not (line.startswith(b".") and line[2:11] == b"." * 9))

    def compare(self):
        """Lines that say what differs; none: all is well."""
        wrong = []
        self.settle()
        before = self.snapshot("cx")
        dry_command, (dry_code, dry_output, dry_errors) = self.ccixfer(["-n"])
        touched = trees.difference(self.snapshot("cx"), before)
        wrong += [f"-n has changed something (rsync: as it was): {line}" for line in touched]
        command, (code, output, errors) = self.ccixfer([])
        rsync_command, (rsync_code, rsync_output, rsync_errors) = self.rsync([])
        if rsync_code not in (0, 23, 24, 25):
            raise sides.RsyncBroke(f"rsync ended with {rsync_code}: {rsync_errors!r}")
        if code != rsync_code:
            wrong.append(f"exit code {code} (rsync {rsync_code})")
        if dry_code != code and not self.dry_may_differ:
            wrong.append(f"exit code {dry_code} of the dry run, {code} of the real one")
        if self.counts_deletions and rsync_code == 25:
            ours, theirs = (len([line for line in lines.split(b"\n") if line.startswith(b"*deleting")]) for lines in (output, rsync_output))
            self.stopped = True
            return wrong + ([f"{ours} things deleted (rsync {theirs})"] if ours != theirs and self.itemizes else [])
        if "--hard-links" in self.rows and b"could not make way" in rsync_errors:
            self.stopped = True
            return wrong
        ours, theirs = self.snapshot("cx"), self.snapshot("rs")
        self.excuse(ours, theirs, rsync_errors)
        wrong += trees.difference(ours, theirs, self.compare_times, self.compare_modes, self.archive)
        if self.itemizes:
            ours, theirs = self.items(sides.items_of_ccixfer(output)), self.items(sides.items_of_rsync(rsync_output))
            wrong += [f"-i: only ccixfer says {line!r}" for line in ours if line not in theirs]
            wrong += [f"-i: only rsync says {line!r}" for line in theirs if line not in ours]
            dry = self.items(sides.items_of_ccixfer(dry_output))
            if dry != ours and not self.dry_may_differ:
                wrong.append(f"-n -i says {dry!r}, the real run {ours!r}")
        if wrong:
            wrong += ["  " + shlex.join(command), "  " + shlex.join(rsync_command)]
            wrong += ["  stderr " + repr(errors)] if errors else []
            wrong += ["  stderr of rsync " + repr(rsync_errors)] if rsync_errors else []
            wrong += ["  stderr of -n " + repr(dry_errors)] if dry_errors and dry_code != code else []
        return wrong

    def run(self):
        self.set_up()
        wrong = self.compare()
        if self.again and not wrong and not self.stopped:
            share = self.rng.choice([0, 0.3])
            # Of a list whose names are gone, what is on the way to them has an entry with us only.
            self.source_tree = changed = self.maker.changed(self.source_tree, 0 if "--files-from" in self.rows else share)
            shutil.rmtree(self.peers.served / str(self.seed))
            trees.write(changed, self.peers.served / str(self.seed))
            if self.form != "file" or changed.get(self.file, changed[b""]).kind == "f":
                wrong = [f"second run: {line}" for line in self.compare()]
        return wrong


def one(seed, peers, keep):
    case = Case(seed, peers)
    try:
        wrong = case.run()
    except sides.RsyncBroke as problem:
        # With -H it loses count of the files that it cannot place, about once in ten thousand runs.
        wrong = None if "--hard-links" in case.rows else [f"{type(problem).__name__}: {problem}"]
    except (sides.Broken, OSError, TimeoutError) as problem:
        wrong = [f"{type(problem).__name__}: {problem}"]
    except subprocess.TimeoutExpired as problem:
        # rsync hangs about once in a thousand runs with -H: such a seed says nothing of ccixfer.
        wrong = None if problem.cmd[0] == "rsync" else [f"{type(problem).__name__}: {problem}"]
    except Exception as problem:  # such as a timeout of a process
        wrong = [f"{type(problem).__name__}: {problem}"]
    if not (wrong and keep):
        case.tear_down()
    return seed, wrong


def place_for_work():
    memory = pathlib.Path("/dev/shm")
    enough = memory.is_dir() and shutil.disk_usage(memory).free > 256 << 20
    return tempfile.mkdtemp(prefix="ccixfer-differential-", dir=memory if enough else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--keep", action="store_true", help="leave the trees of seeds that differ")
    parser.add_argument("--most", type=int, default=20, help="stop after so many seeds that differ")
    given = parser.parse_args()
    work = pathlib.Path(place_for_work())
    for name in ("src", "rs", "cx"):
        (work / name).mkdir()
    began = time.monotonic()
    seeds, differ, hung, stop = 0, 0, 0, threading.Event()
    with sides.Peers(work) as peers, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        numbers = iter(range(given.first, given.first + given.seeds))
        guarded = lambda seed: (seed, []) if stop.is_set() else one(seed, peers, given.keep)
        for seed, wrong in pool.map(guarded, numbers):
            if stop.is_set():
                break
            if wrong is None:
                hung += 1
                continue
            seeds += 1
            if not wrong:
                continue
            differ += 1
            print(f"seed {seed} differs:\n    " + "\n    ".join(wrong), flush=True)
            if differ >= given.most:
                print("too many: the rest is left out")
                stop.set()
    if given.keep and differ:
        print(f"the trees are in {work}")
    else:
        shutil.rmtree(work, ignore_errors=True)
    if hung:
        print(f"{hung} seeds are passed over: rsync hung or broke")
    print(f"differential: {seeds} seeds, {differ} differ ({time.monotonic() - began:.1f} s)")
    return 1 if differ or seeds == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
