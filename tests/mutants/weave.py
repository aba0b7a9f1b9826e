"""A private copy of the tree with every mutant of the chosen files in it, each behind its own switch (switch.h).

write() only touches what differs from what is there, so that ninja builds only what it must.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = '#include "tests/mutants/switch.h"\n'
INNER = {"bound": 1, "constant": 2}  # of those that cover the same bytes, what goes inside: it changes the operator itself


def listed(root):
    """The files of the checkout as they are now, also those that are not committed."""
    found = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, check=True)
    return sorted(n for n in found.stdout.decode().split("\0") if n and (root / n).is_file())


def room_of(name):
    return "/".join(name.split("/")[:2]) if name.count("/") >= 2 else ""


def sites_of(names, root, cache_folder, jobs):
    """{file: [Site]}: what was found once in a file of these bytes is found again in the cache."""
    import sites as finder  # here: it needs libclang, and whoever only copies the tree does not

    cache_folder.mkdir(parents=True, exist_ok=True)
    self_hash = hashlib.sha256((HERE / "sites.py").read_bytes()).hexdigest()
    found, missing = {}, []
    for name in names:
        kept = cache_folder / (hashlib.sha256(self_hash.encode() + name.encode() + (root / name).read_bytes()).hexdigest() + ".json")
        if kept.exists():
            found[name] = [finder.Site(**{**s, "cut": tuple(s["cut"])}) for s in json.loads(kept.read_text())]
        else:
            missing.append((name, kept))
    if missing:
        # Not multiprocessing.Pool: when clang falls over, that waits for the dead process for ever.
        with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
            for (name, kept), (sites, errors) in zip(missing, pool.map(_find, [(n, root) for n, _ in missing])):
                if errors:
                    print(f"mutants: clang does not read {name}: {errors[0]}", flush=True)
                found[name] = sites
                kept.write_text(json.dumps([vars(s) for s in sites]))
    return found


def _find(job):
    import sites as finder

    return finder.find(*job)


def woven(source, numbered):
    """The file's bytes with all of [(number, Site)] in it. Sites nest: what covers more is opened first and closed last."""
    opening, closing, cuts = {}, {}, {}
    for order, (number, site) in enumerate(numbered):
        opening.setdefault(site.start, []).append((-site.end, INNER.get(site.kind, 0), order, site.before.replace("NUMBER", str(number))))
        closing.setdefault(site.end, []).append((-site.start, -INNER.get(site.kind, 0), -order, site.after))
        if site.cut:
            cuts[site.cut[0]] = (site.cut[1], site.cut[2])
    out, at = [], 0
    points = sorted({*opening, *closing, *cuts})
    for point in points:
        out.append(source[at:max(at, point)])
        at = max(at, point)
        for *_, text in sorted(closing.get(point, [])):
            out.append(text.encode())
        for *_, text in sorted(opening.get(point, [])):
            out.append(text.encode("latin-1"))
        if point in cuts:
            end, instead = cuts[point]
            out.append(instead.encode())
            at = end
    out.append(source[at:])
    return b"".join(out)


def with_include(content):
    """Behind #pragma once, and on a line that is there already: the numbers of lines stay."""
    if content.startswith(b"#pragma once\n") or b"\n#pragma once\n" in content:
        head, rest = content.split(b"#pragma once\n", 1)
        return head + b"#pragma once\n" + INCLUDE.encode() + b"#line " + str(head.count(b"\n") + 2).encode() + b"\n" + rest
    return INCLUDE.encode() + b"#line 1\n" + content


def write(root, tree, numbered_by_file):
    """Makes `tree` what `root` is, with the mutants in it. True if anything changed."""
    names = listed(root)
    changed = False
    for name in names:
        content = (root / name).read_bytes()
        if numbered_by_file.get(name):
            content = with_include(woven(content, numbered_by_file[name]))
        target = tree / name
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(os.stat(root / name).st_mode & 0o777)
            changed = True
    wanted = set(names)
    for path in list(tree.rglob("*")):
        name = str(path.relative_to(tree))
        if path.is_file() and name not in wanted and not name.startswith(("build/", ".git/", ".cache/")):
            path.unlink()
            changed = True
    return changed
