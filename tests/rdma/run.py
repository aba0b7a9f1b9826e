#!/usr/bin/env python3
"""Tests over RDMA, in an emulated machine with a Soft-RoCE device: run.py [CASE...]. README.md says how it is made.

run.py --programs [CASE...] only says which of our programs these cases need, which are then to be built as a release.
Without names: all but those that are run only when they are asked for. Exits 0 if the machine booted and every case ended with 0;
1 else. It ends by itself within LIMIT_S, or, where cases are named, within the sum of their limits.
"""
import os
import subprocess
import sys

import image
import machine

BUILD = image.ROOT / "build/release"
PROGRAMS = {"ccixfer": "ccixfer", "unit_verbs": "tests/unit_verbs", "contract": "tests/contract"}  # target -> file
LIMIT_S = 300  # the whole thing, boot included; more where long cases are asked for
# name -> seconds that it may take, and our programs
CASES = {
    "pingpong": (60, []),
    "net": (120, ["unit_verbs"]),
    "transfer": (90, ["ccixfer"]),
    "routed": (90, ["ccixfer"]),
    "kill": (90, ["ccixfer"]),
    "contract": (120, ["contract"]),
    "contract-sample": (90, ["contract"]),
    "contract-secured": (400, ["contract"]),
    "contract-routed": (700, ["contract"]),
    "contract-mixed": (500, ["contract"]),
    "speed": (400, ["ccixfer"]),
    "device-loss": (60, ["unit_verbs"]),  # the last one: nobody connects over Soft-RoCE after it
}
# The cases of `contract-sample` follow from the commit: what did not change was tried when it did.
ONLY_WHEN_ASKED = ["contract-secured", "contract-routed", "contract-mixed", "speed"]


def sample_of_commit():
    """A number that differs from commit to commit; CCIXFER_RDMA_SAMPLE gives another one. 0 where there is no commit."""
    given = os.environ.get("CCIXFER_RDMA_SAMPLE")
    if given is not None:
        return int(given)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=image.ROOT, capture_output=True, text=True)
    return int(head.stdout[:6], 16) if head.returncode == 0 else 0


def main():
    words = [word for word in sys.argv[1:] if word != "--programs"]
    wanted = words or [name for name in CASES if name not in ONLY_WHEN_ASKED]
    unknown = [name for name in wanted if name not in CASES]
    if unknown:
        print(f"no such case: {' '.join(unknown)}; there are: {' '.join(CASES)}", file=sys.stderr)
        return 1
    programs = sorted({program for name in wanted for program in CASES[name][1]})
    if len(words) < len(sys.argv) - 1:
        print(" ".join(programs))
        return 0
    cases = [machine.Case(name, CASES[name][0]) for name in wanted]
    limit_s = max(LIMIT_S, 60 + sum(case.limit_s for case in cases)) if words else LIMIT_S
    try:
        kernel, ram_disk = image.make({program: BUILD / PROGRAMS[program] for program in programs})
    except (image.Failure, OSError) as error:
        print(f"the emulated machine cannot be made: {error}")
        return 1
    console = image.CACHE / "console.log"
    guest = machine.Machine(machine.emulator(kernel, ram_disk, cases, console, sample_of_commit()), cases, console, limit_s)
    broken = guest.run(lambda line: print(line, flush=True))
    failed = [case.name for case in cases if case.code != 0]
    if broken:
        if guest.current is not None:
            print("\n".join("    " + line for line in guest.current.lines[-30:]))
        print(broken)
    print(f"rdma: {len(cases) - len(failed)} passed, {len(failed)} failed")
    return 1 if broken or failed else 0


if __name__ == "__main__":
    sys.exit(main())
