"""What a service tells the service manager that started it (sd_notify), and sockets that it is passed: real, confined processes."""
import os
import pathlib
import signal
import socket
import time

from lab import PATIENCE_S, Lab, big_file, check, device, native, sha256


class Manager:
    """The socket of a service manager. `name`: a path, or an abstract name with @ in front."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name.replace("@", "\0", 1))
        self.socket.settimeout(PATIENCE_S)

    def env(self, watchdog_us=None):
        watchdog = {} if watchdog_us is None else {"WATCHDOG_USEC": str(watchdog_us)}
        return {"NOTIFY_SOCKET": self.name, **watchdog}

    def next(self):
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def expect(self, name):
        """The next thing that is told besides status lines and signs of life."""
        while not (told := self.next()).keys() - {"STATUS", "WATCHDOG"}:
            pass
        check(name in told, f"{name} was to be told, not {told}")
        return told

    def expect_status(self, text):
        while (told := self.next()).get("STATUS") != text:
            check(not told.keys() - {"STATUS", "WATCHDOG"}, f"the status {text!r} was to be told, not {told}")


def try_service(lab, name, socket_name, *arguments):
    manager = Manager(socket_name)
    process = lab.start(None, name, *arguments, env=manager.env(watchdog_us=200_000))
    check(process.wait_event("ready")["uris"], "no address")
    check(manager.expect("READY")["STATUS"], "ready without a status")
    for _ in range(3):
        while "WATCHDOG" not in manager.next():
            pass
    process.kill(signal.SIGHUP)
    reloading = manager.expect("RELOADING")
    check(int(reloading["MONOTONIC_USEC"]) > 0, reloading)
    manager.expect("READY")
    process.kill(signal.SIGTERM)
    check(manager.expect("STOPPING")["STATUS"], "stopping without a status")
    check(process.wait() == 0, process.tail())


def test_services__from_ready_to_stopped__tell_their_manager():
    with Lab("notify") as lab:
        root = lab.directory / "root"
        root.mkdir()
        config = lab.file("border.toml", device("a", "127.0.0.1", 1, []) + device("b", "127.0.0.2", 2, []))
        abstract = f"@ccixfer-e2e-{os.getpid()}"
        listen = ("--listen", "127.0.0.1:0", "--insecure")
        try_service(lab, "recv", f"{lab.directory}/recv.notify", "recv", "--root", root, *listen)
        try_service(lab, "serve", abstract, "send", "--serve", root, *listen)
        try_service(lab, "route", f"{lab.directory}/route.notify", "route", "-c", config, "--insecure")


def test_receiver__sessions_that_come_and_go__the_status_says_so():
    with Lab("status") as lab:
        manager = Manager(f"{lab.directory}/notify")
        root, config = lab.directory / "root", lab.file("receiver.toml", "")
        root.mkdir()
        source = lab.file("f", "x" * (4 << 20))
        receiver = lab.start(None, "recv", "recv", "--root", root, "-c", config, "--listen", "127.0.0.1:0", "--insecure", env=manager.env())
        uri = native(receiver.wait_event("ready")["uris"])
        check(manager.expect("READY")["STATUS"] == "listening; sessions: 0", "another status")
        sender = lab.start(None, "send", "send", "--insecure", "--bwlimit", "1MB/s", source, uri + "/f")
        manager.expect_status("listening; sessions: 1")
        check(sender.wait() == 0, sender.tail())
        manager.expect_status("listening; sessions: 0")
        check(receiver.stop() == 0, receiver.tail())
        manager.expect("STOPPING")


def test_router__a_reload_that_fails__is_ready_again_and_its_status_says_why():
    with Lab("reload") as lab:
        manager = Manager(f"{lab.directory}/notify")
        config = lab.file("border.toml", device("a", "127.0.0.1", 1, []) + device("b", "127.0.0.2", 2, []))
        router = lab.start(None, "route", "route", "-c", config, "--insecure", env=manager.env())
        check(manager.expect("READY")["STATUS"] == "devices: 2; connections: 0", "another status")
        config.write_text("nonsense")
        router.kill(signal.SIGHUP)
        manager.expect("RELOADING")
        status = manager.expect("READY")["STATUS"]
        check(status.startswith("not reloaded: ") and "border.toml" in status, status)
        check(router.stop() == 0, router.tail())


def test_manager_that_is_not_there__is_a_warning_and_the_service_works():
    with Lab("nobody") as lab:
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure",
                                   env={"NOTIFY_SOCKET": f"{lab.directory}/nowhere"})
        check(f"NOTIFY_SOCKET={lab.directory}/nowhere" in receiver.stderr(), receiver.tail())
        check(receiver.stop() == 0, receiver.tail())


ACTIVATED = ("bash", "-c", 'exec 3<&"$1"; shift; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=of-a-unit exec "$@"', "bash")


def listening_socket():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    return listener, f"tcp://127.0.0.1:{listener.getsockname()[1]}"


def activated(lab, listener, *arguments):
    return lab.start(None, arguments[0], *arguments, "--insecure", prefix=(*ACTIVATED, str(listener.fileno())), pass_fds=(listener.fileno(),))


def test_receiver_of_a_socket_unit__started_again__refuses_nobody_meanwhile():
    with Lab("activated") as lab:
        listener, uri = listening_socket()
        root = lab.directory / "root"
        root.mkdir()
        first = activated(lab, listener, "recv", "--root", root)
        check(first.wait_event("ready")["uris"] == [uri], first.tail())
        source = big_file(lab.directory / "f", 9 << 20)
        sender = lab.start(None, "send", "send", "--insecure", source, uri + "/first")
        check(sender.wait() == 0, sender.tail())
        check(first.stop() == 0, first.tail())
        # The manager's socket still listens: who dials now waits for the next process.
        waits = lab.start(None, "send", "send", "--insecure", "--retries", "0", "-v", source, uri + "/second")
        while not connections_to(listener):
            check(waits.process.poll() is None, waits.tail())
            time.sleep(0.01)
        second = activated(lab, listener, "recv", "--root", root)
        check(waits.wait() == 0, waits.tail())
        for name in ("first", "second"):
            check(sha256(root / name) == sha256(source), f"{name} came damaged")
        check(second.stop() == 0, second.tail())


def connections_to(listener):
    """Those that nobody has accepted."""
    port = f"{listener.getsockname()[1]:04X}"
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row for row in rows if row[1].endswith(":" + port) and row[3] == "01" and row[9] == "0"]


def test_server_of_a_socket__by_systemds_own_tool__starts_with_the_first_pull():
    with Lab("activate") as lab:
        served = lab.directory / "served"
        served.mkdir()
        big_file(served / "f", 5 << 20)
        server = lab.start(None, "serve", "send", "--serve", served, "--insecure", prefix=("systemd-socket-activate", "-l", "127.0.0.1:7199"))
        pull = lab.start(None, "pull", "recv", "--insecure", "tcp://127.0.0.1:7199/f", lab.directory / "pulled")
        check(pull.wait() == 0, pull.tail())
        check(sha256(lab.directory / "pulled/f") == sha256(served / "f"), "it came damaged")
        check(server.wait_event("ready")["uris"] == ["tcp://127.0.0.1:7199"], server.tail())
        check(server.stop() == 0, server.tail())


def test_sockets_that_are_not_taken__are_errors_that_say_why():
    with Lab("untaken") as lab:
        listener, _ = listening_socket()
        root = lab.directory / "root"
        root.mkdir()
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(("127.0.0.1", 0))
        of_udp = lab.file("udp.toml", '[device.a]\ntransport = "udp"\nip = "127.0.0.1"\n')
        for passed, words, *arguments in (
                (listener, "only recv --root", "ping", "tcp://127.0.0.1:1"),
                (listener, "only recv --root", "recv", "tcp://127.0.0.1:1/f", root),
                (listener, "leave one of them out", "recv", "--root", root, "--listen", "127.0.0.1:0"),
                (listener, "device a is of udp", "recv", "--root", root, "-c", of_udp, "--device", "a"),
                (datagrams, "does not listen at TCP", "recv", "--root", root)):
            process = activated(lab, passed, *arguments)
            check(process.wait() == 1 and words in process.stderr(), process.tail())
