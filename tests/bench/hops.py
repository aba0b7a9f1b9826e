"""What it costs that ends and hops prove who they are: whole handshakes, a message's latency, and a router's CPU."""
import files
from accounts import Accounts
from harness import BINARY, BUILD, Row, cpu_seconds
from secured import secured_of

SESSIONS, AT_ONCE = 1000, 16   # of one turn; at once: as many as keep a receiver busy
TURNS, FILE_TURNS = 5, 2       # a round: of what is short, and of a file


def handshakes(bench, _):
    """Connections, sessions in them and their Open, at one receiver (tests/bench/handshakes.cc)."""
    peers = secured_of(bench)

    def ours():
        before = cpu_seconds(peers.receiver.pid)
        seconds = float(bench.output(BUILD / "tests/handshakes", peers.accounts.key("sender"), peers.direct, SESSIONS, AT_ONCE))
        # The warm-up, a tenth more of them, is in the receiver's CPU.
        return {"rate": SESSIONS / seconds, "CPU": (cpu_seconds(peers.receiver.pid) - before) / (1.1 * SESSIONS) * 1e3}

    figures = bench.interleaved({"handshakes": ours})
    return [Row("whole session handshakes at one receiver", figures["rate"], "a second", at_least=200),
            Row("one of them", figures["CPU"], "CPU ms of the receiver")]


def latency(bench, options):
    """`ccixfer bench` between two identities, beside the same with --insecure."""
    accounts = Accounts(bench, "asker", "server")
    accounts.configure("asker", accounts.peer("server"))
    accounts.configure("server", accounts.peer("asker"))
    rows = []
    for wait in ("spin", "poll"):
        def half_round_trip(insecure, wait=wait):
            server, uris = bench.daemon("bench server", "bench", "--serve", *insecure, "--listen", "127.0.0.1:0", "--wait", wait,
                                        env=accounts.env("server"))
            events = bench.events("bench", *insecure, "--wait", wait, "--tests", "message-latency", "--count", options.count,
                                  next(uri for uri in uris if uri.startswith("tcp")), env=accounts.env("asker"))
            bench.end(server)
            row, = [event for event in events if event["event"] == "bench"]
            return row["half_round_trip_s"]["p50"] * 1e6

        clear, sealed = f"insecure, {wait}", f"proved, {wait}"
        figures = bench.interleaved({clear: lambda measure=half_round_trip: measure(["--insecure"]),
                                     sealed: lambda measure=half_round_trip: measure([])}, TURNS)
        unit = "us, half round trip of 64 bytes"
        rows += [Row(f"message, both {wait}, --insecure", figures[clear], unit),
                 Row(f"message between proved ends, both {wait}", figures[sealed], unit, "--insecure", figures[sealed] / figures[clear],
                     at_most=1.1)]
    return rows


def router_cpu(bench, options):
    """One file through one router, which two proved hops and an encrypted session pass, beside one with --insecure."""
    peers, plain = secured_of(bench), files.peers_of(bench)
    source, size = files.make_file(bench, options)

    def cpu(router, *command):
        measure = plain.rate(size / 1e6, size, *command)

        def of_router():
            before = cpu_seconds(router.pid)
            measure()
            return (cpu_seconds(router.pid) - before) / (size / 1e9)
        return of_router

    figures = bench.interleaved({
        "clear": cpu(plain.router, BINARY, "send", "--insecure", "-q", "-c", bench.directory / "sender.toml", source, plain.routed + "/f"),
        "sealed": cpu(peers.router, *peers.send("-c", peers.sender_config, source, peers.routed + "/f")),
    }, FILE_TURNS)
    source.unlink()
    plain.clean()
    unit = f"CPU seconds a GB, one {options.size_gib:g} GiB file"
    return [Row("one router, --insecure", figures["clear"], unit),
            Row("one router, proved hops and an encrypted session", figures["sealed"], unit, "--insecure", figures["sealed"] / figures["clear"],
                at_most=1.15)]
