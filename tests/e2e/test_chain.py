"""Through five routers with memory for four fragments each: the file arrives, and no router's memory grows with it.

CCIXFER_CHAIN_BYTES sets the size: the five GiB of the reference are run by hand.
"""
import os

from lab import Lab, big_file, check, device, routed, sha256

ROUTERS = 5
MIB = 1 << 20
SIZE = int(os.environ.get("CCIXFER_CHAIN_BYTES", 256 * MIB))
POOL = 4 * MIB  # memory for four fragments of 1 MiB: shorter ones are lent, one for each of eight classes


def test_chain_of_five_routers_with_memory_for_four_fragments__arrives_and_their_memory_stays_flat():
    with Lab("chain") as lab:
        hosts = [lab.host("sender"), *[lab.host(f"r{i}") for i in range(1, ROUTERS + 1)], lab.host("receiver")]
        for index in range(ROUTERS + 1):  # network i is between hosts i and i + 1, .1 on its left and .2 on its right
            lab.wire(hosts[index], f"10.{index}.0.1/24", hosts[index + 1], f"10.{index}.0.2/24")
        routers = []
        for index in range(1, ROUTERS + 1):
            left = device("left", f"10.{index - 1}.0.2", index - 1, [f"tcp://10.{index - 1}.0.1:7000"] if index > 1 else [], 7000)
            right = device("right", f"10.{index}.0.1", index, [f"tcp://10.{index}.0.2:7000"] if index < ROUTERS else [], 7000)
            config = lab.file(f"r{index}.toml", left + right + f'[router]\nfragment = "1MiB"\nmemory = "{POOL // MIB}MiB"\n')
            routers.append(lab.start_ready(hosts[index], f"r{index}", "route", "-c", config, "--insecure"))
        sender_config = lab.file("sender.toml", device("lan", "10.0.0.1", 0, ["tcp://10.0.0.2:7000"]))
        receiver_config = lab.file("receiver.toml", device("lan", f"10.{ROUTERS}.0.2", ROUTERS, [f"tcp://10.{ROUTERS}.0.1:7000"], 7100))
        root = lab.directory / "incoming"
        root.mkdir()
        receiver = lab.start_ready(hosts[-1], "recv", "recv", "--root", root, "-c", receiver_config, "--insecure")
        source = big_file(lab.directory / "big", SIZE)
        sender = lab.start(hosts[0], "send", "send", "-c", sender_config, "--insecure", source, routed(receiver.uris) + "/big")
        path = sender.wait_event("session")["path"]
        check(len(path) == ROUTERS + 1, f"{path}")
        check(sender.wait(patience_s=600) == 0, sender.tail())
        peak_kib = [router.peak_kib() for router in routers]
        check(sha256(source) == sha256(root / "big"), "big differs")
        check(all(0 < kib <= (POOL + 48 * MIB) // 1024 for kib in peak_kib), f"routers held {peak_kib} KiB")
        for router in routers:
            check(router.stop() == 0, router.tail())
            check(router.done()["counters"]["routed_bytes"] >= SIZE, f"{router.done()}")
