#!/usr/bin/env python3
"""./do demo: two facilities that share no network and even use the same private addresses; two routers between them."""
import shutil
import sys
import time

import lab
from lab import TwoSites, big_file, check, routed, run, sha256, tree_bytes, same_tree


def say(words):
    print(words, flush=True)


def main():
    lab.enter()
    say("ccixfer demo: four hosts, each in a network namespace of its own\n")
    say("  sender 10.0.0.2 --- west router --- 192.0.2.0/30 --- east router --- receiver 10.0.0.2")
    say("        subnet 1:1                     subnet 1:9                    subnet 1:2\n")
    with TwoSites("demo") as sites:
        source = sites.lab.directory / "source"
        source.mkdir()
        tree = source / "tree"
        shutil.copytree("/usr/share/doc", tree, symlinks=True)
        big_file(source / "large.dat", 512 << 20)
        say(f"source: {sum(1 for p in source.rglob('*') if p.is_file())} files, {tree_bytes(source) / 1e6:.0f} MB, one of them 537 MB")
        sites.start_routers()
        receiver = sites.receive()
        destination = routed(receiver.uris) + "/run42/"
        say(f"receiver ready at {routed(receiver.uris)}")
        start = time.monotonic()
        sender = sites.send("-a", str(source) + "/", destination)
        say(f"the sender, in the network of its host, which ends with this demo:\n  {' '.join(sender.command)}\n")
        code = sender.wait()
        seconds = time.monotonic() - start
        check(code == 0, f"send ended with {code}: {sender.tail()}")
        session = next(e for e in sender.events if e["event"] == "session")
        done = sender.done()
        say("route taken:")
        for number, hop in enumerate(session["path"], 1):
            say(f"  hop {number}: {hop['transport']} to {hop['node']}")
        say(f"\nsent {done['files']} files, {done['bytes'] / 1e6:.0f} MB in {seconds:.1f} s, exit 0: durable at the receiver")
        arrived = sites.root / "run42"
        same_tree(source, arrived)
        check(sha256(source / "large.dat") == sha256(arrived / "large.dat"), "large.dat differs")
        say("verified: rsync -aHni --checksum lists no difference (contents, modes, owners, times, links)")
        say(f"verified: sha256 of large.dat is {sha256(arrived / 'large.dat')[:16]}... on both sides")
        for router in sites.routers:
            router.stop()
            carried = router.done().get("counters", {}).get("routed_bytes", 0)
            check(carried >= done["bytes"], f"{router.name} carried {carried} bytes")
            say(f"verified: the {router.name.rstrip('0123456789')} router carried {carried / 1e6:.0f} MB")
        receiver.stop()
        reached = run(*sites.sender.prefix, "ip", "route").stdout.strip()
        say(f"\n(the sender's only network: {reached})")
    say("\ndemo: all verified")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except lab.Failure as failure:
        print(f"demo FAILED: {failure}")
        sys.exit(1)
