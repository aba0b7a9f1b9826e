"""Many at once: 64 senders to one receiver, under the memory of one. What they have together, and the slowest beside the mean."""
import json
import os
import shutil
import statistics
import subprocess

from harness import BINARY, Row

SENDERS = 64
FILE_MIB = 32
MEMORY_MIB = 256     # of the receiver
RESIDENT_MIB = 64    # it may have beside


def crowd(bench, options):
    root = bench.directory / "crowd"
    root.mkdir()
    source = bench.directory / "crowd.dat"
    source.write_bytes(os.urandom(FILE_MIB << 20))
    process, uris = bench.daemon("crowd", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure", "--memory", f"{MEMORY_MIB}MiB")
    uri = next(u for u in uris if u.startswith("tcp"))
    together, fairness = [], []
    for _ in range(options.rounds):
        senders = [subprocess.Popen([str(BINARY), "send", "--insecure", "--memory", "32MiB", "--json", str(source), f"{uri}/f{number}"],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for number in range(SENDERS)]
        seconds = []
        for sender in senders:
            done = json.loads(sender.communicate()[0].splitlines()[-1])
            if done["status"] != "ok":
                raise SystemExit(f"crowd: a sender ended with {done['status']}")
            seconds.append(done["seconds"])
        together.append(SENDERS * FILE_MIB * 1.048576 / max(seconds))
        rates = [1 / each for each in seconds]
        fairness.append(min(rates) / statistics.mean(rates))
        for path in root.glob("f*"):
            path.unlink()
    peak_mib = bench.watches["crowd"].peak_kib / 1024
    bench.end(process)
    shutil.rmtree(root)
    source.unlink()
    return [Row(f"{SENDERS} senders of {FILE_MIB} MiB to one receiver", statistics.median(together), "MB/s together"),
            Row(f"the slowest of {SENDERS} senders", statistics.median(fairness), "of their mean", at_least=0.7),
            Row(f"the receiver of {SENDERS} senders, --memory {MEMORY_MIB}MiB", peak_mib, "MiB resident", at_most=MEMORY_MIB + RESIDENT_MIB)]
