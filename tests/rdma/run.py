#!/usr/bin/env python3
"""Tests over RDMA, in an emulated machine with a Soft-RoCE device: run.py [CASE...]. README.md says how it is made.

Exits 0 if the machine booted and every case ended with 0; 1 else. It ends by itself within LIMIT_S.
"""
import sys

import image
import machine

LIMIT_S = 300  # the whole thing, boot included
CASES = {"pingpong": 60, "net": 120, "device-loss": 60}  # name -> seconds that it may take


def main():
    wanted = sys.argv[1:] or list(CASES)
    unknown = [name for name in wanted if name not in CASES]
    if unknown:
        print(f"no such case: {' '.join(unknown)}; there are: {' '.join(CASES)}")
        return 1
    cases = [machine.Case(name, CASES[name]) for name in wanted]
    try:
        kernel, ram_disk = image.make({"unit_verbs": image.ROOT / "build/release/tests/unit_verbs"})
    except (image.Failure, OSError) as error:
        print(f"the emulated machine cannot be made: {error}")
        return 1
    console = image.CACHE / "console.log"
    guest = machine.Machine(machine.emulator(kernel, ram_disk, cases, console), cases, console, LIMIT_S)
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
