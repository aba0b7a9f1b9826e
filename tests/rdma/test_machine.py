#!/usr/bin/env python3
"""Tests machine.py with small programs in the emulator's place, which say on their output what the machine would report."""
import os
import pathlib
import sys
import tempfile
import time

import machine

PRINT = "import sys, time\ndef say(*lines):\n    for line in lines: print(line, end='\\r\\n', flush=True)\n"


def follow(program, limit_s=30, ready_limit_s=30, names=("one", "two"), case_limit_s=60):
    """What the machine that behaves as `program` is told to be: (why it is broken or None, its cases)."""
    with tempfile.TemporaryDirectory() as folder:
        console = pathlib.Path(folder) / "console.log"
        console.write_text("Kernel panic - not syncing: it is a test\n")
        pid_file = pathlib.Path(folder) / "pid"
        program = PRINT + f"import os\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\n" + program
        cases = [machine.Case(name, case_limit_s) for name in names]
        guest = machine.Machine([sys.executable, "-c", program], cases, console, limit_s, ready_limit_s)
        broken = guest.run()
        assert not pid_file.exists() or not os.path.exists(f"/proc/{pid_file.read_text()}"), "the emulator still runs"
        return broken, cases


def test_all_is_well():
    broken, cases = follow("say('@ready', '@begin one', 'words', '@end one 0', '@begin two', '@end two 3', '@done'); time.sleep(3600)")
    assert broken is None, broken
    assert [case.code for case in cases] == [0, 3]
    assert machine.verdict(cases[0]).startswith("ok     one ("), machine.verdict(cases[0])
    assert machine.verdict(cases[1]).startswith("FAILED two: exit code 3"), machine.verdict(cases[1])
    assert cases[0].lines == ["words"]


def test_a_case_that_is_left_out_has_not_passed():
    broken, cases = follow("say('@ready', '@begin two', '@end two 0', '@done')")
    assert broken is None, broken
    assert cases[0].code is None and machine.verdict(cases[0]) == "FAILED one: it did not end"


def test_it_does_not_boot():
    start = time.monotonic()
    broken, cases = follow("say('something'); time.sleep(3600)", ready_limit_s=1)
    assert time.monotonic() - start < 60
    assert "did not boot within 1 s" in broken and "something" in broken and "Kernel panic" in broken, broken
    assert cases[0].code is None


def test_it_ends_while_it_boots():
    broken, _ = follow("say('@rea')")
    assert "ended while it booted" in broken and "Kernel panic" in broken, broken


def test_it_gives_up():
    broken, _ = follow("say('@failed no Soft-RoCE device')")
    assert "gave up: no Soft-RoCE device" in broken, broken


def test_it_ends_in_a_case():
    broken, cases = follow("say('@ready', '@begin one', 'last words')")
    assert "ended in the case one" in broken, broken
    assert cases[0].code is None and cases[0].lines == ["last words"]


def test_a_case_holds_up_the_machine():
    start = time.monotonic()
    broken, cases = follow("say('@ready', '@begin one')\nwhile True: say('again'); time.sleep(0.01)", limit_s=3)
    assert time.monotonic() - start < 60
    assert "not done within 3 s, in the case one" in broken, broken
    assert cases[0].code is None


def test_a_case_of_which_the_machine_says_that_it_took_too_long():
    case = machine.Case("one", 5)
    case.code, case.seconds = 143, 5.2
    assert machine.verdict(case) == "FAILED one: not within 5 s"
    case.seconds = 1.0
    assert machine.verdict(case) == "FAILED one: exit code 143"


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"ok     {name}")


if __name__ == "__main__":
    main()
