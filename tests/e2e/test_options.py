"""Options of `send` and `recv` from the command line to where they work. Each of these tests fails when the option is left out or
is lost on the way. Which option has which test: README.md."""
import time

from lab import Lab, big_file, check, native, run, sha256

RATE = 8_000_000        # bytes/s, of --bwlimit
SIZE = 32 << 20
LEAST_S = (SIZE - 2 * (5 << 20)) / RATE  # less what may go at once: a segment, or a little more


def receiver_on(lab, *options):
    root = lab.directory / "root"
    root.mkdir(exist_ok=True)
    return lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure", *options)


def server_of(lab, directory, *options):
    return lab.start_ready(None, "serve", "send", "--serve", directory, "--listen", "127.0.0.1:0", "--insecure", *options)


def takes_its_time(processes):
    """All together: a lower bound only."""
    for process in processes:
        check(process.wait() == 0, process.tail())
    took = max(process.done()["seconds"] for process in processes)
    check(took >= LEAST_S, f"{took} s for {SIZE} bytes at {RATE} bytes/s: {processes[0].tail()}")


def test_send_bwlimit__takes_its_time():
    with Lab("bw-send") as lab:
        receiver = receiver_on(lab)
        source = big_file(lab.directory / "f", SIZE)
        takes_its_time([lab.start(None, "send", "send", "--insecure", "--bwlimit", "8MB/s", source, native(receiver.uris) + "/f")])
        receiver.stop()


def test_recv_root_bwlimit__two_senders_together_take_their_time():
    with Lab("bw-recv") as lab:
        receiver = receiver_on(lab, "--bwlimit", "8MB/s")
        source = big_file(lab.directory / "f", SIZE // 2)
        takes_its_time([lab.start(None, f"send{i}", "send", "--insecure", source, f"{native(receiver.uris)}/f{i}") for i in range(2)])
        receiver.stop()


def test_recv_pull_bwlimit__takes_its_time():
    with Lab("bw-pull") as lab:
        published = lab.directory / "published"
        published.mkdir()
        big_file(published / "f", SIZE)
        server = server_of(lab, published)
        takes_its_time([lab.start(None, "pull", "recv", "--insecure", "--bwlimit", "8MB/s", native(server.uris) + "/f", lab.directory / "d")])
        server.stop()


def test_send_serve_bwlimit__two_pulls_together_take_their_time():
    with Lab("bw-serve") as lab:
        published = lab.directory / "published"
        published.mkdir()
        big_file(published / "f", SIZE // 2)
        server = server_of(lab, published, "--bwlimit", "8MB/s")
        takes_its_time([lab.start(None, f"pull{i}", "recv", "--insecure", native(server.uris) + "/f", lab.directory / f"d{i}")
                        for i in range(2)])
        server.stop()


def test_bwlimit_that_takes_longer_than_the_timeout_for_a_segment__whoever_has_it__is_no_timeout():
    """4.2 s a segment with a timeout of 2: at the sender or the receiver, at the side that dials or the one that listens."""
    slow, timeout = ("--bwlimit", "1MB/s"), ("--timeout", "2")
    with Lab("bw-timeout") as lab:
        published = lab.directory / "published"
        published.mkdir()
        source = big_file(published / "f", 10_000_000)
        for name in ("root", "slow-root"):
            (lab.directory / name).mkdir()
        listen = ("--listen", "127.0.0.1:0", "--insecure")
        fast_receiver = lab.start_ready(None, "recv", "recv", "--root", lab.directory / "root", *listen)
        slow_receiver = lab.start_ready(None, "slow-recv", "recv", "--root", lab.directory / "slow-root", *slow, *listen)
        fast_server = lab.start_ready(None, "serve", "send", "--serve", published, *listen)
        slow_server = lab.start_ready(None, "slow-serve", "send", "--serve", published, *slow, *listen)
        transfers = [lab.start(None, "push", "send", "--insecure", *timeout, *slow, source, native(fast_receiver.uris) + "/f"),
                     lab.start(None, "push-slow", "send", "--insecure", *timeout, source, native(slow_receiver.uris) + "/f"),
                     lab.start(None, "pull", "recv", "--insecure", *timeout, *slow, native(fast_server.uris) + "/f", lab.directory / "d1"),
                     lab.start(None, "pull-slow", "recv", "--insecure", *timeout, native(slow_server.uris) + "/f", lab.directory / "d2")]
        for process in transfers:
            check(process.wait() == 0, process.tail())
        for process in (fast_receiver, slow_receiver, fast_server, slow_server):
            process.stop()


def connections_to(uri):
    port = uri.rsplit(":", 1)[1]
    return len(run("ss", "-Htn", "state", "established", f"( dport = :{port} )").stdout.splitlines())


def lanes_become(sender, uri, wanted):
    """While a slow transfer runs. More must never be there."""
    most = 0
    while sender.process.poll() is None:
        most = max(most, connections_to(uri))
        if most >= wanted:
            return
        time.sleep(0.05)
    check(False, f"{most} connections, {wanted} wanted: {sender.tail()}")


def test_lanes__as_many_as_the_dialler_says_and_the_listener_allows():
    with Lab("lanes") as lab:
        source = big_file(lab.directory / "f", SIZE)
        receiver = receiver_on(lab)
        uri = native(receiver.uris)
        sender = lab.start(None, "send", "send", "--insecure", "-j", "5", "--bwlimit", "8MB/s", source, uri + "/f")
        lanes_become(sender, uri, 5)
        check(sender.wait() == 0, sender.tail())
        receiver.stop()
        receiver = receiver_on(lab, "--lanes", "2")
        uri = native(receiver.uris)
        sender = lab.start(None, "send2", "send", "--insecure", "-j", "5", "--bwlimit", "16MB/s", source, uri + "/g")
        most = 0
        while sender.process.poll() is None:
            most = max(most, connections_to(uri))
            time.sleep(0.02)
        check(sender.wait() == 0, sender.tail())
        check(most == 2, f"{most} connections, 2 allowed")
        receiver.stop()


def test_memory__bounds_what_is_resident_and_too_little_is_said():
    with Lab("memory") as lab:
        source = big_file(lab.directory / "f", 400 << 20)
        peaks = {}
        for size in ("256MiB", "20MiB"):
            receiver = receiver_on(lab, "--memory", size)
            sender = lab.start(None, "send", "send", "--insecure", "-j", "8", source, native(receiver.uris) + "/f" + size)
            check(sender.wait() == 0, sender.tail())
            peaks[size] = receiver.peak_kib()
            receiver.stop()
        check(peaks["20MiB"] <= (20 + 64) << 10, f"{peaks} KiB")
        sender = lab.start(None, "little", "send", "--insecure", "--memory", "10MiB", source, "tcp://127.0.0.1:9/f")
        check(sender.wait() == 1 and "--memory" in sender.stderr(), sender.tail())


def test_device__the_named_one_listens_and_an_unknown_one_is_refused():
    with Lab("device") as lab:
        config = lab.file("two.toml", """
[device.one]
transport = "tcp"
ip = "127.0.0.1"
default = true
[device.two]
transport = "tcp"
ip = "127.0.0.2"
""")
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--insecure", "-c", config, "--device", "two")
        uri = native(receiver.uris)
        check(uri.startswith("tcp://127.0.0.2:"), f"{receiver.uris}")
        source = big_file(lab.directory / "f", 1 << 20)
        refused = lab.start(None, "none", "send", "--insecure", "-c", config, "--device", "three", source, uri + "/f")
        check(refused.wait() == 1 and "three" in refused.stderr(), refused.tail())
        sender = lab.start(None, "send", "send", "--insecure", "-c", config, "--device", "two", source, uri + "/g")
        check(sender.wait() == 0, sender.tail())
        check(sha256(source) == sha256(root / "g"), "g differs")
        receiver.stop()
