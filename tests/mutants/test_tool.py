#!/usr/bin/env python3
"""The mutation tool on a product whose mutants are known (fixture/): what is caught, survives, hangs, is reached by no test, does not build,
is listed as equivalent. Seconds; part of ./do test."""
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
        print("\n".join(bad) if bad else "mutants: the tool tells caught, survived and not built apart")
        return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
