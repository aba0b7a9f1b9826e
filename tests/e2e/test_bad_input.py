"""What bad input gets: one line, the documented exit code, nothing lost (issue: 'What bad input gets')."""
import os
import signal
import socket
import subprocess

from lab import BINARY, Lab, Skipped, big_file, check, native, run, sha256, small_tree


def receiver_on(lab, root=None, *options, **more):
    root = root or lab.directory / "root"
    root.mkdir(exist_ok=True)
    return lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure", *options, **more)


def one_line(process):
    lines = [l for l in process.stderr().splitlines() if l.startswith("ccixfer: ") and "insecure" not in l]
    check(len(lines) == 1, f"one line expected on standard error: {process.stderr()!r}")
    return lines[0]


def ends(process, code, *words):
    check(process.wait() == code, f"exit {code} expected: {process.process.returncode}: {process.tail()}")
    line = one_line(process)
    for word in words:
        check(word in line, f"{word!r} not in {line!r}")
    check(process.done().get("exit") == code, f"done event: {process.done()}")


def test_usage__exit_1():
    for arguments in ([], ["send"], ["send", "--nonsense", "x", "y"], ["send", "--bwlimit", "100", "--insecure", "a", "tcp://127.0.0.1:9/x"],
                      ["recv", "--root"], ["frobnicate"], ["send", "--insecure", "/etc/passwd", "gopher://x:1/y"],
                      ["send", "--insecure", "/etc/passwd", "tcp://nohost"], ["send", "--insecure", "/etc/passwd", "cci://1:2/x"],
                      ["send", "--insecure", "--lanes", "0", "/etc/passwd", "tcp://127.0.0.1:9/x"]):
        ended = subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=False)
        check(ended.returncode == 1, f"{arguments}: exit {ended.returncode}: {ended.stderr}")
        check(ended.stderr.strip(), f"{arguments}: nothing said")


def test_without_insecure__refused_with_41():
    ended = subprocess.run([BINARY, "send", "/etc/passwd", "tcp://127.0.0.1:9/x"], capture_output=True, text=True, check=False)
    check(ended.returncode == 41 and "--insecure" in ended.stderr, f"{ended.returncode}: {ended.stderr}")


def test_missing_source__3():
    with Lab("missing") as lab:
        receiver = receiver_on(lab)
        ends(lab.start(None, "send", "send", "--insecure", lab.directory / "nothing", native(receiver.uris) + "/x"), 3, "nothing")


def test_unreadable_file__23_and_the_rest_arrives():
    with Lab("unread") as lab:
        source = small_tree(lab.directory / "tree", files=30)
        (source / "secret").write_bytes(b"x" * 100)
        receiver = receiver_on(lab)
        # strace makes one open fail, so that the test also holds for root
        sender = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", native(receiver.uris) + "/tree/",
                           prefix=["strace", "-f", "-qq", "-o", "/dev/null", "-P", str(source / "secret"), "-e",
                                   "inject=openat,openat2:error=EACCES"]) if os.geteuid() == 0 else None
        if sender is None:
            (source / "secret").chmod(0)
            sender = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", native(receiver.uris) + "/tree/")
        code = sender.wait()
        if code == 0:   # strace could not match the path of an openat2 beneath a descriptor: make it unreadable for a plain user
            (source / "secret").chmod(0)
            run("chmod", "-R", "a+rX", lab.directory)
            (source / "secret").chmod(0)
            (source / "secret").write_bytes(b"y" * 101)
            sender = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", native(receiver.uris) + "/tree2/",
                               prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
            code = sender.wait()
        check(code == 23, sender.tail())
        check("secret" in sender.stderr(), sender.stderr())
        check(sender.done()["files_failed"] >= 1, f"{sender.done()}")
        trees = [d for d in (lab.directory / "root").iterdir() if (d / "large").exists()]
        check(trees and sha256(trees[0] / "large") == sha256(source / "large"), "the rest did not arrive")


def test_no_thread_can_be_made__11_before_anybody_hears_of_it():
    """Of an account that may have one process, with one thread, as TasksMax= and ulimit -u allow; root may always have more."""
    if os.geteuid() != 0:
        raise Skipped("root alone can become an account of the test's own")
    with Lab("threads") as lab:
        file, root = lab.file("f", "x"), lab.directory / "incoming"
        root.mkdir()
        for path in (lab.directory, root):
            path.chmod(0o777)
        alone = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "prlimit", "--nproc=1"]
        for arguments in (("send", file, "tcp://127.0.0.1:9/f"), ("recv", "--root", root, "--listen", "127.0.0.1:0")):
            ended = subprocess.run([*alone, BINARY, *map(str, arguments), "--insecure"], capture_output=True, text=True, check=False, timeout=60,
                                   env={**os.environ, "HOME": str(lab.directory)})
            check(ended.returncode == 11 and "ulimit -u" in ended.stderr, f"{arguments}: {ended.returncode}: {ended.stderr}")


def test_no_descriptor_at_the_start__11_and_what_to_do():
    with Lab("descriptors") as lab:
        for limit in (4, 5):
            for arguments in (("status", lab.directory), ("send", lab.file("f", "x"), "tcp://127.0.0.1:9/f", "--insecure")):
                ended = subprocess.run(["prlimit", f"--nofile={limit}", BINARY, *map(str, arguments)], capture_output=True, text=True,
                                       check=False, timeout=60)
                check(ended.returncode == 11 and "give it descriptors" in ended.stderr, f"{limit}, {arguments}: {ended.returncode}: {ended.stderr}")


def test_full_destination__44_nothing_partial_then_resumes():
    with Lab("full") as lab:
        root = lab.directory / "small"
        root.mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", root)
        try:
            source = big_file(lab.directory / "big", 100 << 20)
            receiver = receiver_on(lab, root)
            # slow enough that some pieces are durable, and in the ledger, before the disk is full
            first = lab.start(None, "send", "send", "--insecure", "--bwlimit", "50MB/s", source, native(receiver.uris) + "/big")
            ends(first, 44, "space")
            durable = first.done()["bytes"]
            check(durable > 0, f"nothing was durable: {first.done()}")
            check(not (root / "big").exists(), "a final name shows partial bytes")
            run("mount", "-o", "remount,size=300m", root)
            again = lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + "/big")
            check(again.wait() == 0, again.tail())
            check(again.done()["bytes_sent"] <= (100 << 20) - durable, f"{durable} were durable: {again.done()}")
            check(sha256(source) == sha256(root / "big"), "big differs")
            receiver.stop()
        finally:
            subprocess.run(["umount", "-l", root], check=False)


def test_full_disk_of_a_pull__44_and_the_peer_is_not_named_as_the_place():
    with Lab("full-pull") as lab:
        small = lab.directory / "small"
        small.mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=10m", "tmpfs", small)
        try:
            big_file(lab.directory / "big", 40 << 20)
            server = lab.start_ready(None, "serve", "send", "--serve", lab.directory, "--insecure", "--listen", "127.0.0.1:0")
            uri = native(server.uris)
            pull = lab.start(None, "pull", "recv", "--insecure", f"{uri}/big", small)
            ends(pull, 44, "space")
            check(uri not in one_line(pull), one_line(pull))
            server.stop()
        finally:
            subprocess.run(["umount", "-l", small], check=False)


def test_read_only_destination__11():
    with Lab("ro") as lab:
        root = lab.directory / "ro"
        root.mkdir()
        run("mount", "-t", "tmpfs", "tmpfs", root)
        try:
            run("mount", "-o", "remount,ro", root)
            receiver = lab.start(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
            ends(receiver, 11, "ro")
            run("mount", "-o", "remount,rw", root)
            source = big_file(lab.directory / "f", 10 << 20)
            receiver = receiver_on(lab, root)
            sender = lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + "/f")
            check(sender.wait() == 0, sender.tail())
            receiver.stop()
        finally:
            subprocess.run(["umount", "-l", root], check=False)


def test_destination_turns_read_only_in_mid_transfer__11_nothing_partial_then_resumes():
    with Lab("turnsro") as lab:
        source = big_file(lab.directory / "big", 200 << 20)
        root = lab.directory / "root"
        receiver = receiver_on(lab, root)
        command = ("send", "--insecure", source, native(receiver.uris) + "/big")
        first = lab.start(None, "send", *command, "--bwlimit", "40MB/s")
        first.wait_event("progress", lambda event: event["bytes"] > 0)
        # Nobody may remount what a ledger is open on; a file system that turns read-only by itself, after an error, says EROFS.
        disk = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", "inject=pwrite64:error=EROFS",
                                 "-p", str(receiver.process.pid)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            ends(first, 11)
        finally:
            disk.terminate()   # strace lets go of the receiver: it can write again
            disk.wait()
        durable = first.done()["bytes"]
        check(0 < durable < 200 << 20, f"not in mid-transfer: {first.done()}")
        check(not (root / "big").exists(), "a final name shows partial bytes")
        again = lab.start(None, "send", *command)
        check(again.wait() == 0, again.tail())
        check(again.done()["bytes_sent"] <= (200 << 20) - durable, f"{durable} were durable: {again.done()}")
        check(sha256(source) == sha256(root / "big"), "big differs")
        check(receiver.stop() == 0, receiver.tail())


def test_directory_onto_a_file__11_and_the_file_stays():
    with Lab("ontofile") as lab:
        root, source = lab.directory / "root", lab.directory / "dir"
        root.mkdir()
        source.mkdir()
        (source / "f").write_text("new")
        (root / "backup").write_text("precious")
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        for options in (["-a"], [], ["-a", "-n"]):
            sender = lab.start(None, "send", "send", *options, "--insecure", f"{source}/", native(receiver.uris) + "/backup")
            check(sender.wait() == 11, sender.tail())
            check("backup is there at the receiver and is not a directory" in sender.stderr(), sender.tail())
        check((root / "backup").read_text() == "precious", "the file is gone")
        # Inside a tree the source decides, and a dry run says the same.
        (root / "tree").mkdir()
        (root / "tree" / "dir").write_text("old")
        for options in (["-a", "-n"], ["-a"]):
            sender = lab.start(None, "send", "send", *options, "--insecure", source, native(receiver.uris) + "/tree/")
            check(sender.wait() == 0, sender.tail())
        check((root / "tree" / "dir" / "f").read_text() == "new", "not replaced")


def test_refused_peer__35():
    with Lab("refused") as lab:
        source = big_file(lab.directory / "f", 10)
        ends(lab.start(None, "send", "send", "--insecure", "--timeout", "2", source, "tcp://127.0.0.1:9/f"), 35, "127.0.0.1:9")


def test_retries__peer_refuses__as_many_new_attempts_then_35():
    with Lab("retries") as lab, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))   # bound and not listening: refuses, and nobody else gets the port
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        source = big_file(lab.directory / "f", 10)
        for retries in (0, 2):
            sender = lab.start(None, "send", "send", "--insecure", "--retries", retries, "--timeout", "60", source, f"tcp://{address}/f")
            check(sender.wait() == 35, sender.tail())   # what is said in between is not the one line of ends()
            reasons = [event["reason"] for event in sender.events if event["event"] == "retry"]
            check(len(reasons) == retries and all("refused" in reason for reason in reasons), f"--retries {retries}: {reasons}")
            check(sender.done().get("exit") == 35, f"{sender.done()}")
            check(address in one_line(sender), one_line(sender))


def test_silent_peer__35_in_time():
    with Lab("silent") as lab, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        source = big_file(lab.directory / "f", 10)
        ends(lab.start(None, "send", "send", "--insecure", "--timeout", "2", source, f"tcp://127.0.0.1:{listener.getsockname()[1]}/f"), 35)


def test_receiver_hangs__its_connections_stay_and_the_send_ends_with_its_own_code():
    with Lab("hangs") as lab:
        source = big_file(lab.directory / "f", 300 << 20)
        root = lab.directory / "root"
        receiver = receiver_on(lab, root)
        for code, options, signal_number in ((30, ("--timeout", "2"), None), (20, ("--timeout", "60"), signal.SIGINT)):
            sender = lab.start(None, "send", "send", "--insecure", "--bwlimit", "50MB/s", *options, source,
                               native(receiver.uris) + f"/f{code}")
            sender.wait_event("progress", lambda event: event["bytes"] > 0)
            receiver.kill(signal.SIGSTOP)
            if signal_number:
                sender.kill(signal_number)
            check(sender.wait() == code, sender.tail())
            # It has not waited until the keepalive gave the receiver up.
            check(sender.done()["counters"]["connections_lost"] == 0, sender.tail())
            receiver.kill(signal.SIGCONT)
        sender = lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + "/f")
        check(sender.wait() == 0 and sha256(root / "f") == sha256(source), sender.tail())


def test_paths_that_leave_the_root__42_and_nothing_written():
    with Lab("leave") as lab:
        source = big_file(lab.directory / "f", 10)
        root = lab.directory / "root"
        receiver = receiver_on(lab, root)
        os.symlink("/", root / "out")
        for path in ("/../escaped", "/a/../../escaped", f"/out{lab.directory}/escaped"):
            sender = lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + path)
            code = sender.wait()
            check(code in (11, 42, 23), f"{path}: exit {code}: {sender.tail()}")
            check(not (lab.directory / "escaped").exists(), f"{path} left the root")
        check(receiver.process.poll() is None, "the receiver died")


def test_configuration_errors__1_with_file_line_and_key():
    with Lab("config") as lab:
        for text, words in (('[device.x]\ntransport = "tcp"\nport = "many"\n', ("bad.toml", "3", "port")),
                            ('[device.x]\ntransport = "carrier pigeon"\n', ("bad.toml", "2", "transport")),
                            ('[divice.x]\ntransport = "tcp"\n', ("bad.toml", "divice")),
                            ('[device.x\n', ("bad.toml", "1"))):
            path = lab.file("bad.toml", text)
            ended = subprocess.run([BINARY, "devices", "-c", path], capture_output=True, text=True, check=False)
            check(ended.returncode == 1, f"{text!r}: exit {ended.returncode}: {ended.stderr}")
            for word in words:
                check(word in ended.stderr, f"{word!r} not in {ended.stderr!r}")


def test_garbage_on_the_port__counted_dropped_and_the_daemon_lives():
    with Lab("garbage") as lab:
        receiver = receiver_on(lab)
        port = int(native(receiver.uris).rsplit(":", 1)[1])
        for payload in (b"GET / HTTP/1.0\r\n\r\n", b"\0" * 5000, os.urandom(100_000), b"CCIX", b""):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                try:
                    connection.sendall(payload)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):
                        pass
                except OSError:
                    pass
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
        source = big_file(lab.directory / "f", 5 << 20)
        sender = lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + "/f")
        check(sender.wait() == 0, sender.tail())
        for connection in idle:
            connection.close()
        check(receiver.stop() == 0, receiver.tail())
        counters = receiver.done().get("counters", {})
        check(counters.get("frames_rejected", 0) + counters.get("hello_rejected", 0) >= 3, f"garbage was not counted: {counters}")


def test_file_changing_while_read__24_or_clean_never_a_mixture():
    with Lab("change") as lab:
        source = big_file(lab.directory / "big", 200 << 20)
        receiver = receiver_on(lab)
        sender = lab.start(None, "send", "send", "--insecure", "--bwlimit", "200MB/s", source, native(receiver.uris) + "/big")
        sender.wait_event("progress", lambda e: e.get("bytes_sent", e.get("bytes", 0)) > 0)
        with open(source, "r+b") as file:
            file.seek(150 << 20)
            file.write(b"changed")
        code = sender.wait()
        arrived = lab.directory / "root" / "big"
        if code == 0:
            check(sha256(arrived) == sha256(source), "exit 0 with a mixture")
        else:
            check(code == 24, sender.tail())
            check(not arrived.exists(), "a changed file got its final name")


def test_file_cut_short_while_read__arrives_as_it_is_then_and_never_as_a_mixture():
    with Lab("cut") as lab:
        source = big_file(lab.directory / "big", 200 << 20)
        other = big_file(lab.directory / "other", 9 << 20)
        receiver = receiver_on(lab)
        sender = lab.start(None, "send", "send", "--insecure", "--bwlimit", "200MB/s", source, other, native(receiver.uris) + "/")
        sender.wait_event("progress", lambda e: e.get("bytes_sent", e.get("bytes", 0)) > 0)
        os.truncate(source, 10 << 20)
        check(sender.wait() == 0, sender.tail())
        check(any(e["event"] == "retry" and "changed while it was read" in e["reason"] for e in sender.events), sender.tail())
        check(sha256(lab.directory / "root" / "big") == sha256(source), "big is not as it is at the source")
        check(sha256(lab.directory / "root" / "other") == sha256(other), "the other file did not arrive")
        check(receiver.stop() == 0, receiver.tail())
