#!/usr/bin/env python3
"""End-to-end tests: real processes in network namespaces. run.py [NAME-PART...] runs those whose name contains a part.

Each test_*.py beside this file gives functions named test_<situation>__<expectation>.
"""
import importlib
import os
import pathlib
import signal
import sys
import time
import traceback

import lab


# The longest test takes a minute. One that hangs fails with the place where it hangs, and holds up no other one.
LIMIT_S = 0 if os.environ.get("CCIXFER_E2E_KILLS") == "all" else 600


def too_long(*_):
    raise RuntimeError(f"did not end within {LIMIT_S} s")


def main():
    lab.enter()
    signal.signal(signal.SIGALRM, too_long)
    wanted = sys.argv[1:]
    passed, failed = 0, []
    for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
        module = importlib.import_module(path.stem)
        for name in [n for n in dir(module) if n.startswith("test_")]:
            if wanted and not any(part in name for part in wanted):
                continue
            start = time.monotonic()
            signal.alarm(LIMIT_S)
            try:
                getattr(module, name)()
                passed += 1
                print(f"ok     {name} ({time.monotonic() - start:.1f} s)", flush=True)
            except Exception as error:  # a test that breaks is a test that failed
                failed.append(name)
                words = str(error) if isinstance(error, lab.Failure) else traceback.format_exc()
                print(f"FAILED {name}\n    " + words.replace("\n", "\n    "), flush=True)
            finally:
                signal.alarm(0)
    print(f"e2e: {passed} passed, {len(failed)} failed")
    if passed + len(failed) == 0:
        print("no test ran")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
