"""A receiver that stops while a router holds data for it: what the others have of it."""
import signal

from lab import TwoSites, big_file, check, device, routed, sha256

SENDERS = 6
SIZE = 96 << 20


def test_receiver_stops_in_mid_transfer__others_go_on_and_its_senders_come_again():
    with TwoSites("still") as sites:
        lab = sites.lab
        for name in ("west", "east"):
            config = getattr(sites, name + "_config")
            config.write_text(config.read_text() + '[router]\nfragment = "1MiB"\nmemory = "16MiB"\n')
        source, small = big_file(lab.directory / "big", SIZE), big_file(lab.directory / "small", 8 << 20, seed=8)
        sites.verbose = ["-v"]
        sites.start_routers()
        stopped = sites.receive("--memory", "1GiB")
        other_root = lab.directory / "other"
        other_root.mkdir()
        config = lab.file("other.toml", device("lan", "10.0.0.2", 2, ["tcp://10.0.0.1:7000"], 7101))
        other = lab.start_ready(sites.receiver, "other", "recv", "--root", other_root, "-c", config, "--insecure")
        senders = [sites.send("--bwlimit", "40MB/s", source, routed(stopped.uris) + f"/big{i}") for i in range(SENDERS)]
        for sender in senders:
            sender.wait_event("progress", lambda e: e.get("bytes", 0) >= 8 << 20)
        stopped.kill(signal.SIGSTOP)
        check(sites.send(small, routed(other.uris) + "/first").wait() == 0, "the first one")
        # It did not wait until those connections were lost for their silence: they were cut off for standing still, if at all.
        lost = [e for s in senders for e in s.events if e["event"] == "retry"]
        cut_off = sites.east_router.stderr().count("stands still")
        check(len(lost) <= cut_off, f"it waited until {len(lost)} connections were lost, {cut_off} of them cut off")
        check(sites.send(small, routed(other.uris) + "/second").wait() == 0, "the second one")
        stopped.kill(signal.SIGCONT)
        for i, sender in enumerate(senders):
            check(sender.wait() == 0, sender.tail())
            check(sha256(source) == sha256(sites.root / f"big{i}"), f"big{i} differs")
        for name in ("first", "second"):
            check(sha256(small) == sha256(other_root / name), f"{name} differs")
