"""What people see: commands without --json, on a terminal."""
import fcntl
import json
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

from lab import BINARY, Lab, PATIENCE_S, big_file, check, device, native, run, sha256

COLUMNS = 36   # not enough for all that a progress line can say
PROGRESS = r"\r\x1b\[K(?:[\d.]+ \w+ of [\d.]+ \w+  )?\d+%"


class OnTerminal:
    """A ccixfer process whose output goes to a terminal of its own; `text` is all that it wrote there."""

    def __init__(self, *arguments, columns=COLUMNS):
        self.master, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
        self.process = subprocess.Popen([str(BINARY), *[str(a) for a in arguments]], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
        os.close(terminal)
        self.text = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)

    def read(self, deadline):
        """False: nothing more comes."""
        check(select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0], f"nothing more came: {self.text!r}")
        try:
            piece = os.read(self.master, 1 << 16)
        except OSError:   # EIO: nobody has the terminal open any more
            piece = b""
        self.text += piece.decode(errors="replace")
        return piece != b""

    def wait_for(self, pattern, after=0):
        """The place in `text` where the match ends."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.compile(pattern).search(self.text, after)):
            check(self.read(deadline), f"ended before {pattern!r} came: {self.text!r}")
        return found.end()

    def wait(self):
        deadline = time.monotonic() + PATIENCE_S
        while self.read(deadline):
            pass
        return self.process.wait(timeout=30)

    def screen(self):
        """The lines that stay: what a line held before it was cleared is gone."""
        return [line.rsplit("\r\x1b[K", 1)[-1] for line in self.text.split("\r\n")]


def test_send_on_a_terminal__progress_counters_at_a_signal_statistics_and_log():
    with Lab("terminal") as lab:
        source = big_file(lab.directory / "big", 100 << 20)
        root = lab.directory / "root"
        root.mkdir()
        log = lab.file("log", "what was there\n")
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        with OnTerminal("send", "--insecure", "--stats", "--log-file", log, "--bwlimit", "25MB/s", source, native(receiver.uris) + "/big") as sender:
            sender.wait_for(PROGRESS)
            sender.process.send_signal(signal.SIGUSR1)
            told = sender.wait_for(r"\d+ bytes_out\r\n")
            sender.wait_for(PROGRESS, told)   # it went on
            check(sender.wait() == 0, f"exit {sender.process.returncode}: {sender.text!r}")
            check(sha256(source) == sha256(root / "big"), "big differs")
            shown = [line for line in re.findall(r"\r\x1b\[K([^\r\n]*)", sender.text) if "/s" in line and " in " not in line]
            check(max(map(len, shown)) < COLUMNS, f"wider than the terminal: {shown}")
            # as narrow as it is: how far, how fast, until when, how many, and what it waits for
            check(any(re.fullmatch(r"\d+% [\d.]+ MB/s 0:0\d 0 files cap", line) for line in shown), f"not all of it: {shown}")
            screen = sender.screen()
            counters = [(number, line.split()) for number, line in enumerate(screen) if re.fullmatch(r" *\d+ [a-z_]+", line)]
            names = [words[1] for _, words in counters]
            check(len(names) > 5 and len(set(names)) == len(names), f"the counters, once, at the signal: {screen}")
            out = [int(words[0]) for _, words in counters if words[1] == "bytes_out"]
            check(0 < out[0] < 100 << 20, f"bytes_out at the signal: {out}")
            rest = [line for number, line in enumerate(screen) if number not in [place for place, _ in counters]]
            wanted = ["ccixfer: WARNING.*", r"1 file, 105 MB in [\d.]+ s \(.*/s\)", "1 file delivered, 0 unchanged at the receiver, 0 failed",
                      r"105 MB delivered in 0:0\d, .* MB/s", r"105 MB went over the network", ""]
            check(len(rest) == len(wanted) and all(map(re.fullmatch, wanted, rest)), f"the rest of the screen: {rest}")
            check(counters[-1][0] < screen.index(rest[1]), f"in another order: {screen}")
        lines = log.read_text().splitlines()
        check(lines[0] == "what was there", f"not appended: {lines}")
        check(all(re.match(rf"\d{{4}}-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d {sender.process.pid} \w+ \S", line) for line in lines[1:]), f"the log: {lines}")
        for words in (" with tcp://", "ok " + str(source), "ok: 1 file"):
            check(sum(words in line for line in lines) == 1, f"{words!r} is not there once: {lines}")


def test_devices_in_text__configured_and_of_the_host__what_the_events_say():
    with Lab("devices") as lab:
        config = lab.file("two.toml", device("lan", "10.0.0.1", 3, [], 7000) + "priority = 60\n"
                          + device("gone", "192.0.2.1", 9, ["tcp://192.0.2.2:7000"], 7001, rate="100Gb/s"))
        host, peer = lab.host("host"), lab.host("peer")
        interface, _ = lab.wire(host, "10.0.0.1/24", peer, "10.0.0.2/24")

        def listed(*arguments):
            """A row's cells by column, of each device."""
            ended = subprocess.run([*host.prefix, str(BINARY), "devices", *[str(a) for a in arguments]], capture_output=True, text=True, check=True)
            check(ended.stderr == "", ended.stderr)
            header, *rows = ended.stdout.split("\n\n")[0].splitlines()   # what is missing stands below
            columns = [(column.group(1).lower(), column.span()) for column in re.finditer(r"([A-Z]+) *", header)]
            ends = [span[1] for _, span in columns[:-1]] + [None]
            table = [{name: row[span[0]:end].strip() for (name, span), end in zip(columns, ends)} for row in rows]
            events = lab.start(host, "devices", "devices", *arguments)
            check(events.wait() == 0, events.tail())
            told = [event for event in events.events if event["event"] == "device"]
            for row, event in zip(table, told, strict=True):
                words = {**event, "device": event["name"] + "*" * event["default"], "subnet": event["subnet"] or "-"}
                check(all(row[name] == str(words[name]) for name in row if name != "rate"), f"{row} is told as {event}")
            return {row["device"]: row for row in table}

        check(listed("-c", config) == {
            "lan*": {"device": "lan*", "transport": "tcp", "interface": interface, "address": "10.0.0.1:7000", "rate": "10Gb/s", "subnet": "1:3",
                     "priority": "60", "state": "up"},
            "gone": {"device": "gone", "transport": "tcp", "interface": "", "address": "192.0.2.1:7001", "rate": "100Gb/s", "subnet": "1:9",
                     "priority": "50", "state": "absent"}}, f"{listed('-c', config)}")
        found = listed("-c", lab.file("none.toml", ""))
        check({name: (row["transport"], row["address"]) for name, row in found.items()}
              == {f"{interface}*": ("tcp", "10.0.0.1"), "lo": ("tcp", "127.0.0.1")}, f"{found}")


def test_devices_in_text__what_is_missing__a_line_and_an_event_for_each():
    with Lab("missing") as lab:
        bare, whole, peer = lab.host("bare"), lab.host("whole"), lab.host("peer")
        bare.run("ip", "link", "set", "lo", "down")
        lab.wire(whole, "10.0.0.1/24", peer, "10.0.0.2/24")
        config = lab.file("none.toml", "")
        without = ("setpriv", "--bounding-set", "-net_raw,-net_admin", "--inh-caps", "-all")

        def missing(host, prefix=()):
            """What is said to be missing, by transport. The lines for people say the same as the events."""
            command = [*host.prefix, *prefix, str(BINARY), "devices", "-c", str(config)]
            ended = subprocess.run(command, capture_output=True, text=True, check=True)
            lines = ended.stdout.split("\n\n", 1)[1].splitlines() if "\n\n" in ended.stdout else []
            events = lab.start(host, f"devices-{len(prefix)}", "devices", "-c", config, prefix=prefix)
            check(events.wait() == 0, events.tail())
            told = [event for event in events.events if event["event"] == "transport"]
            form = {True: "is limited", False: "cannot be used"}
            check(lines == [f"{e['transport']} {form[e['usable']]}: {e['missing']}: {e['remedy']}" for e in told], f"{lines} are told as {told}")
            found = {}
            for event in told:
                found.setdefault(event["transport"], []).append(event["missing"])
            return found

        address, ethernet, right = "no interface that is up has an address", "no Ethernet interface that is up", "no right to raw Ethernet (CAP_NET_RAW)"
        found = missing(bare)
        check(found["tcp"] == [address] and found["udp"][0] == address and found["eth"] == [ethernet], f"{found}")
        check(missing(bare, without)["eth"] == [right, ethernet], f"{missing(bare, without)}")
        found = missing(whole)
        check("tcp" not in found and address not in found.get("udp", []) and "eth" not in found and "shm" not in found, f"{found}")
        check(missing(whole, without)["eth"] == [right], f"{missing(whole, without)}")
        bound = pathlib.Path("/proc/sys/net/core/rmem_max")
        if bound.exists() and int(bound.read_text()) < 8 << 20:   # without CAP_NET_ADMIN the socket has no more
            check(any("receive buffer" in words for words in missing(whole, without)["udp"]), f"{missing(whole, without)}")


def test_standard_output_full__11_and_one_line_and_what_was_sent_is_there():
    with Lab("fullout") as lab:
        for json in ([], ["--json"]):
            with open("/dev/full", "w") as full:
                ended = subprocess.run([str(BINARY), "devices", *json], stdout=full, stderr=subprocess.PIPE, text=True)
            check(ended.returncode == 11, f"devices {json}: {ended.returncode} instead of 11")
            check(len(ended.stderr.splitlines()) == 1 and "standard output" in ended.stderr, ended.stderr)
        source = lab.directory / "source"
        source.write_bytes(b"content")
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        with open("/dev/full", "w") as full:
            ended = subprocess.run([str(BINARY), "send", "--json", "--insecure", str(source), native(receiver.uris) + "/there"], stdout=full,
                                   stderr=subprocess.PIPE, text=True)
        check(ended.returncode == 11 and "standard output" in ended.stderr, f"{ended.returncode}: {ended.stderr}")
        check((root / "there").read_bytes() == b"content", "the file did not arrive")


def test_reader_of_standard_output_gone__no_failure():
    for arguments in (["devices", "--json"], ["--help"], ["--version"]):
        readable, writable = os.pipe()
        os.close(readable)
        ended = subprocess.run([str(BINARY), *arguments], stdout=writable, stderr=subprocess.PIPE, text=True)
        os.close(writable)
        check(ended.returncode == 0 and ended.stderr == "", f"{arguments}: {ended.returncode}: {ended.stderr}")


def test_devices_of_one_name__that_one_alone():
    def devices(*options):
        ended = subprocess.run([str(BINARY), "devices", "--json", *options], capture_output=True, text=True)
        events = map(json.loads, ended.stdout.splitlines())
        return ended, [event["name"] for event in events if event["event"] == "device"]
    _, names = devices()
    check(devices("--device", names[0])[1] == names[:1], f"{names}")
    ended, none = devices("--device", "nobodys")
    check(ended.returncode == 1 and "no such device: nobodys" in ended.stderr and not none, f"{ended.returncode}: {ended.stderr}")


def test_wrong_port__the_reason_is_told_at_once_and_trying_goes_on():
    with Lab("wrongport") as lab:
        source = lab.file("f", "x")
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))   # and nobody listens
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}/f"
        with OnTerminal("send", "--insecure", source, address) as sender:
            sender.wait_for(r"trying again: \S+: connection refused")
            check(sender.process.poll() is None, f"it gave up: {sender.text!r}")
        events = lab.start(None, "events", "send", "--insecure", source, address)
        check("connection refused" in events.wait_event("retry")["reason"], events.tail())


def test_unknown_host__an_error_at_once_and_later_none_of_the_transfers_business():
    with Lab("wronghost") as lab:
        nsswitch, hosts = lab.file("nsswitch", "hosts: files\n"), lab.file("hosts", "127.0.0.1 receiver.example\n")
        run("mount", "--bind", nsswitch, "/etc/nsswitch.conf")
        run("mount", "--bind", hosts, "/etc/hosts")
        try:
            wrong = lab.start(None, "wrong", "send", "--insecure", "--timeout", "100000", lab.file("f", "x"), "tcp://reciever.example:7100/f")
            check(wrong.wait() == 35 and "no host has this name" in wrong.stderr(), wrong.tail())
            root = lab.directory / "root"
            root.mkdir()
            receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
            port = native(receiver.uris).rsplit(":", 1)[1]
            big = big_file(lab.directory / "big", 64 << 20)
            sender = lab.start(None, "send", "send", "--insecure", "--bwlimit", "20MB/s", big, f"tcp://receiver.example:{port}/big")
            sender.wait_event("progress", lambda event: event["bytes"] > 0)
            hosts.write_text("\n")   # the name is gone for a while, and so is the receiver
            receiver.kill()
            receiver.wait()
            sender.wait_event("retry", lambda event: "no host has this name" in event["reason"])
            lab.start_ready(None, "recv", "recv", "--root", root, "--listen", f"127.0.0.1:{port}", "--insecure")
            hosts.write_text("127.0.0.1 receiver.example\n")
            check(sender.wait() == 0 and sha256(big) == sha256(root / "big"), sender.tail())
        finally:
            run("umount", "/etc/hosts")
            run("umount", "/etc/nsswitch.conf")


def test_receiver_hangs__no_progress_and_ctrl_c_are_told_at_once():
    with Lab("hung") as lab:
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        source = big_file(lab.directory / "big", 100 << 20)
        with OnTerminal("send", "--insecure", "--bwlimit", "25MB/s", source, native(receiver.uris) + "/big", columns=100) as sender:
            sender.wait_for(PROGRESS)
            receiver.kill(signal.SIGSTOP)
            told = sender.wait_for(r"no progress for \d+ s, gives up at 60 s")
            sender.process.send_signal(signal.SIGINT)
            sender.wait_for(r"interrupted: the peer is told", told)
            check(sender.wait() == 20, f"exit {sender.process.returncode}: {sender.text!r}")


def test_what_answers_is_no_ccixfer__says_so_at_once():
    with Lab("nottheone") as lab, socket.create_server(("127.0.0.1", 0)) as server:
        def answer():
            while True:
                try:
                    with server.accept()[0] as peer:
                        peer.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n")
                        while peer.recv(4096):
                            pass
                except OSError:
                    return
        threading.Thread(target=answer, daemon=True).start()
        wrong = lab.start(None, "wrong", "send", "--insecure", lab.file("f", "x"), f"tcp://127.0.0.1:{server.getsockname()[1]}/f")
        check(wrong.wait() == 2 and "what answers there is not a ccixfer" in wrong.stderr(), wrong.tail())


def test_quiet_and_verbose__what_each_says():
    """-q nothing, -v what changes, -vv what stays too."""
    with Lab("verbose") as lab:
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        tree = lab.directory / "tree"
        tree.mkdir()
        for name in ("stays", "changes"):
            (tree / name).write_text(name)

        def sent(*options):
            ended = subprocess.run([str(BINARY), "send", "-a", "--insecure", *options, str(tree) + "/", native(receiver.uris) + "/t/"],
                                   capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            check(ended.returncode == 0 and ended.stdout == "", f"{ended}")
            return ended.stderr

        check(sent("-q") == "", "something is said under -q")
        (tree / "changes").write_text("something longer")
        said = sent("-v")
        check("ok changes" in said and "stays" not in said and "WARNING" in said, said)
        said = sent("-vv")
        check("unchanged stays" in said and "unchanged changes" in said, said)


def test_receiver_in_text__who_where_to_how_much_and_how_it_ended():
    with Lab("receiver-text") as lab:
        root, tree, log = lab.directory / "root", lab.directory / "tree", lab.directory / "log"
        (root / "taken").mkdir(parents=True)
        (root / "taken" / "by").write_text("something")
        tree.mkdir()
        for name in ("taken", "good"):
            (tree / name).write_text(name)
        address = "127.0.0.1:0"
        for options in ([], ["-q"]):
            receiver = subprocess.Popen([str(BINARY), "recv", "--root", str(root), "--listen", address, "--insecure", "--log-file", log, *options],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                if not options:
                    uri = next(line.split()[-1] for line in receiver.stderr if line.startswith("ready at "))
                    address = uri.removeprefix("tcp://")
                for way, code in (("/new/", 0), ("/", 23)):  # a sender tries until the receiver listens
                    ended = subprocess.run([str(BINARY), "send", "-q", "-a", "--insecure", f"{tree}/", uri + way], check=False,
                                           capture_output=True, timeout=PATIENCE_S)
                    check(ended.returncode == code, f"{ended}")
            finally:
                receiver.terminate()
                said = receiver.communicate(timeout=PATIENCE_S)[1]
            check(receiver.returncode == 0, said)
            lines = [line for line in said.splitlines() if line.startswith("transfer from tcp://127.0.0.1:")]
            if options:
                check(lines == [], f"under -q: {lines}")
                continue
            check(len(lines) == 2, said)
            check(re.search(r" into new ended well: 2 files delivered, 0 unchanged, 0 failed, 9 B$", lines[0]), lines[0])
            check(re.search(r" into the root ended: partial: .*: 1 file delivered, 0 unchanged, 1 failed, \d+ B$", lines[1]), lines[1])
        logged = [line for line in log.read_text().splitlines() if "transfer from tcp://127.0.0.1:" in line]
        check(len(logged) == 4 and "ended well" in logged[0] and "ended: partial" in logged[1], f"{logged}")


def test_stats__failed_and_left_out_with_their_reasons():
    with Lab("stats") as lab:
        root = lab.directory / "root"
        (root / "t/taken/by").mkdir(parents=True)
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        tree = lab.directory / "tree"
        tree.mkdir()
        for name in ("taken", "good"):
            (tree / name).write_text(name)
        for name in ("fifo", "pipe"):
            os.mkfifo(tree / name)
        ended = subprocess.run([str(BINARY), "send", "--insecure", "--stats", str(tree) + "/", native(receiver.uris) + "/t/"],
                               capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        check(ended.returncode == 23, f"{ended}")
        lines = ended.stderr.splitlines()
        for line in ("1 file delivered, 0 unchanged at the receiver, 1 failed", "  1: a directory that is not empty stands in its place at the receiver",
                     "2 left out", "  2: skipping non-regular file"):
            check(line in lines, f"not said: {line!r}: {lines}")


def test_failed__how_long_it_took_and_no_rate_of_nothing():
    with Lab("failed") as lab:
        with OnTerminal("send", "--insecure", "--retries", "0", lab.file("f", "x"), "tcp://127.0.0.1:1/f", columns=100) as sender:
            check(sender.wait() == 35, f"exit {sender.process.returncode}")
            check(re.fullmatch(r"failed after [\d.]+ s", sender.screen()[-2]), f"{sender.screen()}")


def test_pull_of_what_cannot_be_listed__the_pulling_side_names_it():
    with Lab("unlisted") as lab:
        tree = lab.directory / "tree"
        (tree / "a").mkdir(parents=True)
        (tree / "good").write_text("good")
        (tree / "loop").symlink_to("loop")   # without -a links are not followed in what is served
        server = lab.start_ready(None, "serve", "send", "--serve", tree, "--listen", "127.0.0.1:0", "--insecure")
        ended = subprocess.run([str(BINARY), "recv", "--insecure", native(server.uris) + "/", str(lab.directory / "to")], capture_output=True,
                               text=True, timeout=PATIENCE_S, check=False)
        check(ended.returncode == 23 and (lab.directory / "to/good").read_text() == "good", f"{ended}")
        check(any(line.startswith("ccixfer: loop: ") for line in ended.stderr.splitlines()), ended.stderr)
