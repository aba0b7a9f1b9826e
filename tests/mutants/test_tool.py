#!/usr/bin/env python3
"""The mutation tool on a product whose mutants are known (fixture/): what is caught, survives, hangs, is reached by no test, does not build,
is listed as equivalent. And the tool for planted errors on patches of which the same is known; every patch of the product has to
apply. Seconds; part of ./do test."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FILE = "core/fixture/product.cc"
EXPECTED = {
    f"caught    {FILE}:13 bound value <= limit instead of <  (unit_fixture: below__at_the_limit__no)",
    f"caught    {FILE}:13 negate negated: value < limit  (unit_fixture: below__at_the_limit__no)",
    f"caught    {FILE}:16 drop dropped from &&: value < other.value  (unit_fixture: rank__lower__below)",
    f"caught    {FILE}:16 negate negated: value < other.value && value != other.value  (unit_fixture: rank__lower__below)",
    f"caught    {FILE}:21 negate negated: left < right  (unit_fixture: rank__lower__below)",
    f"caught    {FILE}:25 constant 0 + 1 instead of 0  (unit_fixture: count_down__from_three__three_turns)",
    f"caught    {FILE}:26 bound from >= 0 instead of >  (unit_fixture: count_down__from_three__three_turns)",
    f"caught    {FILE}:26 negate negated: from > 0  (unit_fixture: count_down__from_three__three_turns)",
    f"caught    {FILE}:27 assign skipped: --from  (unit_fixture: no end in 1 s)",
    f"caught    {FILE}:28 assign skipped: ++turns  (unit_fixture: count_down__from_three__three_turns)",
    f"does not build {FILE}:21 bound left <= right instead of <",
    f"equivalent {FILE}:16 bound value <= other.value instead of <  (the other condition says that they are not equal)",
    f"survived  {FILE}:16 drop dropped from &&: value != other.value",
    f"survived  {FILE}:5 constant 0 + 1 instead of 0  (no test reaches it)",
    f"survived  {FILE}:12 assign skipped: last_asked = value",
    f"survived  {FILE}:33 negate negated: !any  (no test reaches it)",
}
# Verdict by patch of fixture/tests/mutants/planted.
PLANTED = {
    "below-is-noticed": "caught",
    "count-down-hangs": "caught",
    "half-is-noticed": "survived",
    "rank-does-not-build": "no build",
    "rank-survives": "survived",
}
# Patches that cannot be tried, and what is said of each.
UNFIT = {
    "tests: unit_fixture \"below__*\"\n--- a/FILE\n+++ b/FILE\n@@ -1 +1 @@\n-  return nothing;\n+  return;\n": "has no place for it",
    "tests: unit_fixture \"below__*\"\n--- a/FILE\n+++ b/FILE\n@@ -1 +1 @@\n-}\n+};\n": "places for it",
    "tests: unit_fixture \"above__*\"\n--- a/FILE\n+++ b/FILE\n@@ -1 +1 @@\n-  int turns = 0;\n+  int turns = 1;\n": "is called above__*",
    "tests: unit_other \"below__*\"\n--- a/FILE\n+++ b/FILE\n@@ -1 +1 @@\n-  int turns = 0;\n+  int turns = 1;\n": "there is no program unit_other",
    "--- a/FILE\n+++ b/FILE\n@@ -1 +1 @@\n-  int turns = 0;\n+  int turns = 1;\n": "it needs",
}


def planted(root, *more):
    run = subprocess.run([sys.executable, str(HERE / "planted.py"), "--root", str(root), *more], capture_output=True, text=True)
    return run.returncode, run.stdout.splitlines(), run.stderr


def planted_faults(tree):
    """What the tool for planted errors tells wrongly, in words."""
    def verdicts(lines):
        found = re.findall(r"^(caught|survived|no build|unfit) +(\S+) +\d+ s ", "\n".join(lines), re.M)
        return {name: verdict for verdict, name in found}

    bad = []
    code, lines, errors = planted(tree, "--patience", "1")
    if verdicts(lines) != PLANTED or lines[-1] != "caught 2 of 5" or code != 2:
        bad.append(f"planted: exit code {code}: {lines} {errors}")
    for part, expected in (("below", 0), ("survives", 1), ("does-not-build", 2), ("no-such-name", 2)):
        if planted(tree, part)[0] != expected:
            bad.append(f"planted: the exit code of {part} is not {expected}")
    samples = [planted(tree, "--sample", "2", "--list", "--commit", commit)[1] for commit in ("1", "1", "2", "3", "4", "5")]
    if samples[0] != samples[1] or len(samples[0]) != 2 or all(s == samples[0] for s in samples):
        bad.append("planted: a commit does not give the same sample, or all commits do")
    folder = tree / "tests/mutants/planted"
    cases = tree / "tests/unit/fixture/cases.cc"
    content = cases.read_text()
    cases.write_text(content.replace("!fixture::below(2, 2)", "fixture::below(2, 2)"))
    if verdicts(planted(tree, "below")[1]) != {"below-is-noticed": "unfit"}:
        bad.append("planted: a test that fails without the error is not told")
    cases.write_text(content)
    for text, words in UNFIT.items():
        (folder / "unfit.patch").write_text("error: Something is wrong.\n" + text.replace("FILE", FILE))
        code, lines, _ = planted(tree, "--check")
        if code != 2 or not any("unfit" in line and words in line for line in lines):
            bad.append(f"planted: not told: {words}: {lines}")
    (folder / "unfit.patch").unlink()
    return bad


def main():
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        shutil.copytree(HERE / "fixture", tree)
        shutil.copy(HERE / "switch.h", tree / "tests/mutants")
        subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
        (tree / ".gitignore").write_text("/build/\n")

        def tool(*more):
            run = subprocess.run([sys.executable, str(HERE / "mutants.py"), "--root", str(tree), "--patience", "1", *more], capture_output=True, text=True)
            if run.returncode:
                sys.exit(f"mutants: the tool failed on its fixture:\n{run.stdout}{run.stderr}")
            return run.stdout.splitlines()

        bad = []
        lines = tool("--count", "0")
        lines = [re.sub(r"no end in \d+ s", "no end in 1 s", line) for line in lines]  # a busy machine is slow without a mutant, too
        told = {line for line in lines if f" {FILE}:" in line and not line.startswith("mutants:")}
        bad += [f"missing: {line}" for line in sorted(EXPECTED - told)] + [f"not expected: {line}" for line in sorted(told - EXPECTED)]
        if not any("there no more" in line and "a line that was there once" in line for line in lines):
            bad.append("an equivalent that is gone is not reported")
        if lines[-1] != "caught 10 of 14":
            bad.append(f"the last line is {lines[-1]!r}")
        few = tool("--count", "6", "--seed", "7", "--list")
        if len(few) != 7 or few != tool("--count", "6", "--seed", "7", "--list") or few == tool("--count", "6", "--seed", "8", "--list"):
            bad.append("a seed does not give the same mutants, or all seeds do")
        bad += planted_faults(tree)
        code, lines, _ = planted(HERE.parents[1], "--check")
        bad += lines if code else []
        print("\n".join(bad) if bad else "mutants: the tools tell caught, survived and not built apart; every planted error applies")
        return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
