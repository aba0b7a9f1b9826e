"""`ccixfer bench`: both sides as real processes, direct and routed; its JSON, its bad input, peers that vanish. No figure is judged."""
import os
import shutil
import signal
import subprocess

from lab import BINARY, Lab, Skipped, TwoSites, check, native, routed

PERCENTILES = ["min", "p50", "p90", "p99", "p99_9"]


def serve(lab, host=None, *options):
    listen = [] if "-c" in options else ["--listen", "127.0.0.1:0"]
    return lab.start_ready(host, "serve", "bench", "--serve", "--insecure", *listen, *options)


def rows_of(process):
    return [e for e in process.events if e["event"] == "bench"]


def check_row(row):
    check(row["count"] > 0 and row["seconds"] > 0, f"nothing measured: {row}")
    measured = [name for name in ("half_round_trip_s", "connect_s", "turn_s") if name in row]
    if measured:
        values = [row[measured[0]][name] for name in PERCENTILES]
        check(values == sorted(values) and values[0] > 0, f"no percentiles: {row}")
        check(row["seconds"] >= values[1], f"shorter than its median: {row}")
    else:
        check(row["per_s"] > 0 and row["bytes_per_s"] >= row["per_s"] * row["size_bytes"] * 0.999, f"no rate: {row}")


def one_line(process, *words):
    lines = [l for l in process.stderr().splitlines() if l.startswith("ccixfer: ") and "WARNING" not in l]
    check(len(lines) == 1, f"one line expected on standard error: {process.stderr()!r}")
    for word in words:
        check(word in lines[0], f"{word!r} not in {lines[0]!r}")


def test_bench__every_test__rows_well_formed_and_positive():
    for wait in ("poll", "spin"):
        with Lab("bench") as lab:
            server = serve(lab, None, "--wait", wait)
            uri = native(server.uris)
            asker = lab.start(None, "ask", "bench", "--insecure", "--wait", wait, "--count", "40" if wait == "poll" else "10", "--sizes", "1,4KiB,4MiB", "--connections", "50",
                              "--tests", "connect,message-latency,message-rate,rma-write,rma-read,rvma-put,completion,empty-turn", uri)
            check(asker.wait() == 0, f"exit 0 expected: {asker.tail()}")
            path = asker.wait_event("path")
            check(path["uri"] == uri and path["wait"] == wait and path["peer_wait"] == wait and len(path["path"]) == 1, f"path: {path}")
            rows = rows_of(asker)
            wanted = (["connect", "message-latency", "message-rate"] + [t for t in ("rma-write", "rma-read", "rvma-put") for _ in range(3)] +
                      ["completion-put", "completion-message", "completion-exchange", "empty-turn", "empty-turn"])
            check([r["test"] for r in rows] == wanted, f"rows: {[r['test'] for r in rows]}")
            for row in rows:
                check_row(row)
                if row["test"] != "empty-turn":
                    check(row["count"] == (40 if wait == "poll" else 10), f"so many operations were not asked for: {row}")
            check([r["size_bytes"] for r in rows if r["test"] == "rvma-put"] == [1, 4096, 4 << 20], f"sizes: {rows}")
            check([r["connections"] for r in rows if r["test"] == "empty-turn"] == [1, 50], f"connections: {rows}")
            check(all("reduction" in r for r in rows if r["test"] in ("completion-message", "completion-exchange")), f"{rows}")
            check(server.process.poll() is None, "the server ended")
            check(server.stop() == 0, f"idle, told to stop: {server.tail()}")


def test_bench__table__for_people():
    with Lab("benchtable") as lab:
        server = serve(lab)
        ended = subprocess.run([BINARY, "bench", "--insecure", "--count", "5", "--sizes", "64KiB", native(server.uris)], capture_output=True,
                               text=True, check=False, timeout=120)
        check(ended.returncode == 0, f"{ended.returncode}: {ended.stderr}")
        for word in ("message-latency", "rma-write", "rvma-put", "99.9%", "65.8 %", "45.8 %", "waits by poll"):
            check(word in ended.stdout, f"{word!r} not in:\n{ended.stdout}")


def test_bench__through_two_routers__rows_too():
    with TwoSites("benchroute") as sites:
        sites.start_routers()
        server = sites.lab.start_ready(sites.receiver, "serve", "bench", "--serve", "--insecure", "-c", sites.receiver_config)
        asker = sites.lab.start(sites.sender, "ask", "bench", "--insecure", "-c", sites.sender_config, "--count", "20", "--sizes", "4KiB,4MiB",
                                routed(server.uris))
        check(asker.wait() == 0, f"exit 0 expected: {asker.tail()}")
        check(len(asker.wait_event("path")["path"]) == 3, f"three hops expected: {asker.events[:1]}")
        for row in rows_of(asker):
            check_row(row)
        check(len(rows_of(asker)) == 3 + 6 + 3, f"rows: {rows_of(asker)}")


def test_bench__sides_that_sleep__miss_no_event():
    """An event that is missed waits for the next keepalive, after 5 s: longer than the timeout given here."""
    with Lab("benchwake") as lab:
        server = serve(lab)
        asker = lab.start(None, "ask", "bench", "--insecure", "--timeout", "4.5", "--count", "1500", "--tests", "completion,message-latency",
                          native(server.uris))
        check(asker.wait() == 0, asker.tail())


def test_bench__once__server_ends_with_its_first_peer():
    with Lab("benchonce") as lab:
        server = serve(lab, None, "--once")
        asker = lab.start(None, "ask", "bench", "--insecure", "--count", "3", "--tests", "message-latency", native(server.uris))
        check(asker.wait() == 0, asker.tail())
        check(server.wait() == 0, server.tail())


def test_bench__bad_arguments__exit_1_and_one_line():
    uri = "tcp://127.0.0.1:9"
    for arguments in ([], ["--serve", uri], ["--tests", "speed", uri], ["--sizes", "1TB", uri], ["--depth", "0", uri],
                      ["--count", "x", uri], ["--seconds", "-1", uri], ["--wait", "sleep", uri], ["--connections", "0", uri], ["--serve", "--depth", "3"],
                      ["--serve", "--plot", "f.png"], ["--plot", "f.png", "--tests", "connect", uri],
                      ["--once", uri], ["--listen", "127.0.0.1:0", uri], ["gopher://x:1"], ["tcp://nohost"], [uri + "/path"], ["cci://1:2:127.0.0.1:3"],
                      [uri, uri]):
        ended = subprocess.run([BINARY, "bench", "--insecure", *arguments], capture_output=True, text=True, check=False, timeout=60)
        lines = [l for l in ended.stderr.splitlines() if "WARNING" not in l]
        check(ended.returncode == 1 and len(lines) == 1, f"{arguments}: exit {ended.returncode}: {ended.stderr!r}")
        check(ended.stdout == "", f"{arguments}: {ended.stdout}")


def test_bench__plot__a_png_of_every_size_and_nothing_else():
    if shutil.which("gnuplot") is None:   # ./do test installs it
        raise Skipped("no gnuplot here")
    with Lab("benchplot") as lab:
        place = lab.directory / "drawings"
        place.mkdir()
        server = serve(lab)
        name = "it's $(touch oops).png"
        asker = lab.start(None, "ask", "bench", "--insecure", "--count", "3", "--plot", place / name, native(server.uris))
        check(asker.wait() == 0, asker.tail())
        picture = (place / name).read_bytes()
        check(picture.startswith(b"\x89PNG\r\n\x1a\n") and picture.endswith(b"IEND\xaeB`\x82"), f"no PNG: {picture[:20]} {len(picture)}")
        check([path.name for path in place.iterdir()] == [name], f"left behind: {list(place.iterdir())}")
        rows = rows_of(asker)
        check([r["size_bytes"] for r in rows if r["test"] == "message-latency"] == [2 ** n for n in range(14)], f"sizes: {rows}")
        for test in ("rma-write", "rma-read", "rvma-put"):
            check([r["size_bytes"] for r in rows if r["test"] == test] == [4096 * 2 ** n for n in range(11)], f"sizes: {rows}")
        ended = subprocess.run([BINARY, "bench", "--insecure", "--count", "3", "--sizes", "1,2", "--tests", "rma-read", "--plot", "relative.png", native(server.uris)],
                               capture_output=True, text=True, check=False, timeout=120, cwd=place)
        check(ended.returncode == 0 and ended.stdout.splitlines()[-1] == "drawn: relative.png", f"{ended}")
        check((place / "relative.png").read_bytes().startswith(b"\x89PNG"), "no PNG where the command was started")
        check(server.stop() == 0, server.tail())


def test_bench__plot_that_cannot_be__1_before_anything_is_measured():
    with Lab("benchnoplot") as lab:
        uri = native(serve(lab).uris)
        empty = lab.directory / "empty"
        empty.mkdir()
        for path, file, words in ((os.environ["PATH"], lab.directory / "none" / "f.png", "its directory does not exist"),
                                  (os.environ["PATH"], empty, "it names no file"), (str(empty), empty / "f.png", "install gnuplot-nox")):
            ended = subprocess.run([BINARY, "bench", "--insecure", "--plot", file, uri], capture_output=True, text=True, check=False, timeout=60,
                                   env={**os.environ, "PATH": path})
            lines = [l for l in ended.stderr.splitlines() if "WARNING" not in l]
            check(ended.returncode == 1 and len(lines) == 1 and words in lines[0], f"{file}: exit {ended.returncode}: {ended.stderr!r}")
            check(ended.stdout == "" and not list(empty.iterdir()), f"{file}: {ended.stdout}")


def test_bench__without_insecure__41():
    for arguments in (["--serve"], ["tcp://127.0.0.1:9"]):
        ended = subprocess.run([BINARY, "bench", *arguments], capture_output=True, text=True, check=False, timeout=60)
        check(ended.returncode == 41, f"{arguments}: {ended.returncode}: {ended.stderr}")


def test_bench__message_longer_than_the_path_takes__1():
    with Lab("benchlong") as lab:
        asker = lab.start(None, "ask", "bench", "--insecure", "--message-size", "1MiB", native(serve(lab).uris))
        check(asker.wait() == 1, asker.tail())
        one_line(asker, "--message-size", "8192")


def test_bench__nobody_there__35():
    with Lab("benchnobody") as lab:
        asker = lab.start(None, "ask", "bench", "--insecure", "--timeout", "5", "tcp://127.0.0.1:9")
        check(asker.wait() == 35, asker.tail())
        one_line(asker, "tcp://127.0.0.1:9")


def test_bench__a_receiver_instead_of_a_server__35_both_ways():
    with Lab("benchother") as lab:
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        asker = lab.start(None, "ask", "bench", "--insecure", "--timeout", "5", native(receiver.uris))
        check(asker.wait() == 35, asker.tail())
        one_line(asker)
        server = serve(lab)
        sender = lab.start(None, "send", "send", "--insecure", "--timeout", "5", "/etc/passwd", native(server.uris) + "/x")
        check(sender.wait() != 0, sender.tail())
        check(server.process.poll() is None, f"the server ended: {server.tail()}")


def test_bench__server_killed_in_the_middle__10():
    with Lab("benchkill") as lab:
        server = serve(lab)
        asker = lab.start(None, "ask", "bench", "--insecure", "--seconds", "600", "--tests", "connect,rma-write", native(server.uris))
        asker.wait_event("path")
        server.kill()
        check(asker.wait() == 10, asker.tail())
        one_line(asker, native(server.uris))
        check(not rows_of(asker), f"a row half done: {rows_of(asker)}")


def test_bench__server_hangs__30():
    with Lab("benchhang") as lab:
        server = serve(lab)
        asker = lab.start(None, "ask", "bench", "--insecure", "--seconds", "600", "--timeout", "2", "--tests", "message-latency", native(server.uris))
        asker.wait_event("path")
        server.kill(signal.SIGSTOP)
        check(asker.wait() == 30, asker.tail())
        one_line(asker, "timeout")
        server.kill(signal.SIGCONT)
        again = lab.start(None, "again", "bench", "--insecure", "--count", "3", "--tests", "message-latency", native(server.uris))
        check(again.wait() == 0, again.tail())


def test_bench__asker_killed__server_gives_the_memory_back_and_goes_on():
    with Lab("benchasker") as lab:
        server = serve(lab)
        for _ in range(10):   # more than it takes at once
            asker = lab.start(None, "ask", "bench", "--insecure", "--seconds", "600", "--sizes", "4MiB", "--tests", "rma-write", native(server.uris))
            asker.wait_event("path")
            asker.kill()
            asker.wait()
        last = lab.start(None, "last", "bench", "--insecure", "--count", "3", "--tests", "rma-write,completion", native(server.uris))
        check(last.wait() == 0, last.tail())
        check(server.stop() == 0, server.tail())
        lost = [l for l in server.stderr().splitlines() if "Sanitizer" in l]
        check(not lost, f"{lost}")


def test_bench__interrupted__20():
    with Lab("benchint") as lab:
        server = serve(lab)
        for wait in ("poll", "spin"):
            asker = lab.start(None, "ask", "bench", "--insecure", "--wait", wait, "--seconds", "600", "--tests", "message-latency", native(server.uris))
            asker.wait_event("path")
            asker.kill(signal.SIGINT)
            check(asker.wait() == 20, asker.tail())


def test_bench__garbage_on_the_port__server_goes_on():
    import socket
    with Lab("benchgarbage") as lab:
        server = serve(lab)
        port = int(native(server.uris).rsplit(":", 1)[1])
        for size in (1, 100, 70000):
            with socket.create_connection(("127.0.0.1", port)) as peer:
                try:
                    peer.sendall(os.urandom(size))
                except OSError:
                    pass   # it hung up before it had all
        asker = lab.start(None, "ask", "bench", "--insecure", "--count", "3", "--tests", "message-latency", native(server.uris))
        check(asker.wait() == 0, asker.tail())
