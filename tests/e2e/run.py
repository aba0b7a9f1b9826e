#!/usr/bin/env python3
"""End-to-end tests: real processes in network namespaces. run.py [--jobs N] [NAME-PART...] runs those whose name contains a part.

Each test_*.py beside this file gives functions named test_<situation>__<expectation>. With --jobs, N runners, each in namespaces of
its own, take the tests in turns.
"""
import argparse
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import lab


# The longest test takes a minute. One that hangs fails with the place where it hangs, and holds up no other one.
LIMIT_S = 0 if os.environ.get("CCIXFER_E2E_KILLS") == "all" else 600
OUTCOMES = ("ok", "skipped", "FAILED")   # skipped: what it needs is not on this host


def too_long(*_):
    raise RuntimeError(f"did not end within {LIMIT_S} s")


class Turns:
    """Which tests are this runner's: all, or, of several runners, those whose name it is the first to write down here."""

    def __init__(self, directory):
        self.directory = directory and pathlib.Path(directory)

    def is_mine(self, name):
        if self.directory is None:
            return True
        try:
            (self.directory / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def note(self, counts):
        if self.directory is not None:
            (self.directory / f"{os.environ['CCIXFER_E2E_RUNNER']}.json").write_text(json.dumps(counts))


def outcome(test):
    """Which of OUTCOMES, and why."""
    lab.lacking.clear()
    try:
        test()
        if lab.lacking:
            raise lab.Skipped("; ".join(lab.lacking))
        return "ok", ""
    except lab.Skipped as missing:
        return "skipped", str(missing)
    except lab.Failure as failure:
        return "FAILED", str(failure)
    except Exception:  # a test that breaks is a test that failed
        return "FAILED", traceback.format_exc()


def exit_code(counts):
    return 1 if counts[-1] or not any(counts) else 0


def verdict(counts):
    print("e2e: {} passed, {} skipped, {} failed".format(*counts))
    if not any(counts):
        print("no test ran")
    return exit_code(counts)


def run_side_by_side(jobs, wanted):
    with tempfile.TemporaryDirectory(prefix="ccixfer-e2e-") as directory:
        runners = [subprocess.Popen([sys.executable, __file__, *wanted],
                                    env=dict(os.environ, CCIXFER_E2E_TURNS=directory, CCIXFER_E2E_RUNNER=str(number)))
                   for number in range(jobs)]
        for runner in runners:
            runner.wait()
        counts = [0] * len(OUTCOMES)
        for number in range(jobs):
            result = pathlib.Path(directory, f"{number}.json")
            of_runner = json.loads(result.read_text()) if result.exists() else [0, 0, 1]
            if not result.exists():
                print(f"FAILED a runner ended before its tests did, with {runners[number].returncode}")
            counts = [ours + its for ours, its in zip(counts, of_runner)]
        return verdict(counts)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("names", nargs="*", metavar="NAME-PART")
    given = arguments.parse_args()
    if given.jobs > 1:
        return run_side_by_side(given.jobs, given.names)
    lab.enter()
    signal.signal(signal.SIGALRM, too_long)
    wanted = given.names
    turns = Turns(os.environ.get("CCIXFER_E2E_TURNS"))
    counts = [0] * len(OUTCOMES)
    for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
        module = importlib.import_module(path.stem)
        for name in [n for n in dir(module) if n.startswith("test_")]:
            if wanted and not any(part in name for part in wanted) or not turns.is_mine(f"{path.stem}.{name}"):
                continue
            start = time.monotonic()
            signal.alarm(LIMIT_S)
            ended, words = outcome(getattr(module, name))
            signal.alarm(0)
            counts[OUTCOMES.index(ended)] += 1
            print(f"{ended:7} {name}" + (f" ({time.monotonic() - start:.1f} s)" if ended == "ok" else "\n    " + words.replace("\n", "\n    ")),
                  flush=True)
    turns.note(counts)
    if turns.directory is not None:
        return 1 if counts[-1] else 0
    return verdict(counts)


if __name__ == "__main__":
    sys.exit(main())
