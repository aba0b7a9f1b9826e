"""What a shell, a service manager or a mistyped line does to a command before it begins."""
import json
import os
import subprocess
import time

from lab import BINARY, Lab, PATIENCE_S, big_file, check, events_of, native


def by_shell(redirection, *arguments, **options):
    """The binary started by a shell with `redirection` (`>&-` closes standard output)."""
    line = f'exec "$0" "$@" {redirection}'
    return subprocess.run(["sh", "-c", line, str(BINARY), *[str(a) for a in arguments]], text=True, timeout=PATIENCE_S,
                          stderr=subprocess.PIPE, **options)


def receiver_of(lab):
    root = lab.directory / "root"
    root.mkdir()
    return root, lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")


def test_send_with_standard_output_closed__delivers_and_ends():
    with Lab("closed1") as lab:
        root, receiver = receiver_of(lab)
        source = lab.file("f", "content")
        ended = by_shell(">&-", "send", "--json", "--insecure", source, native(receiver.uris) + "/f")
        check(ended.returncode == 0, f"exit {ended.returncode}: {ended.stderr}")
        check((root / "f").read_text() == "content", "not delivered")


def test_send_with_every_descriptor_closed__delivers_and_writes_nowhere():
    with Lab("closed012") as lab:
        root, receiver = receiver_of(lab)
        source = lab.file("f", "content")
        # Standard error is closed too: whatever is said must not go into a socket or a file that got its number.
        ended = by_shell("<&- >&- 2>&-", "send", "-vv", "--json", "--insecure", source, native(receiver.uris) + "/f")
        check(ended.returncode == 0, f"exit {ended.returncode}")
        check((root / "f").read_text() == "content", "not delivered")


def test_pull_to_standard_output_that_fails_early__puts_no_event_into_the_data():
    with Lab("early") as lab:
        wrong = lab.file("wrong.toml", "[device\n")
        for extra in (("-c", lab.directory / "nowhere.toml"), ("-c", wrong), ("--nonsense",)):
            ended = subprocess.run([BINARY, "recv", "--json", "--insecure", *extra, "tcp://127.0.0.1:1/f", "-"], capture_output=True, text=True,
                                   check=False)
            check(ended.returncode == 1 and ended.stdout == "", f"{ended}")
            done = [line for line in ended.stderr.splitlines() if line.startswith('{"event":"done"')]
            check(len(done) == 1 and events_of(done[0])[0]["exit"] == 1, ended.stderr)


def test_send_of_a_closed_standard_input__says_so_and_ends_with_3():
    with Lab("closed0") as lab:
        root, receiver = receiver_of(lab)
        ended = by_shell("<&-", "send", "--json", "--insecure", "-", native(receiver.uris) + "/f", stdout=subprocess.PIPE)
        check(ended.returncode == 3, f"exit {ended.returncode}: {ended.stderr}")
        check("standard input" in ended.stderr, f"not named: {ended.stderr}")
        check(events_of(ended.stdout)[-1]["exit"] == 3, ended.stdout)
        check(not (root / "f").exists(), "an input that could not be read became a file")


def test_what_is_printed_to_a_closed_standard_output__is_an_error_and_not_thrown_away():
    with Lab("closedout") as lab:
        served = lab.directory / "served"
        served.mkdir()
        (served / "f").write_text("content")
        server = lab.start_ready(None, "serve", "send", "--serve", served, "--listen", "127.0.0.1:0", "--insecure")
        for command in (("recv", "--insecure", native(server.uris) + "/f", "-"), ("devices",), ("devices", "--json"), ("--version",)):
            ended = by_shell(">&-", *command)
            check(ended.returncode == 11, f"{command}: exit {ended.returncode}: {ended.stderr}")
            check("standard output" in ended.stderr, f"{command}: not named: {ended.stderr}")


def test_recv_with_standard_output_closed__the_first_sigterm_ends_it():
    with Lab("closedrecv") as lab:
        uri_file = lab.directory / "uris"
        command = f'exec "$0" recv --json --insecure --root "{lab.directory}" --listen 127.0.0.1:0 --uri-file "{uri_file}" >&-'
        process = subprocess.Popen(["sh", "-c", command, str(BINARY)], stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not uri_file.exists():   # it appears whole: renamed into place
                check(process.poll() is None and time.monotonic() < deadline, "it was never ready")
                time.sleep(0.01)
            process.terminate()
            check(process.wait(timeout=PATIENCE_S) == 0, f"exit {process.returncode}")
        finally:
            process.kill()


def test_log_file_in_a_directory_that_is_not_there__an_error_and_no_directory():
    with Lab("logdir") as lab:
        log = lab.directory / "mistyped" / "log"
        ended = by_shell("", "devices", "--log-file", log, stdout=subprocess.PIPE)
        check(ended.returncode == 1, f"exit {ended.returncode}: {ended.stderr}")
        check("No such file or directory" in ended.stderr and str(log) in ended.stderr, ended.stderr)
        check(not log.parent.exists(), "it made the directory")


def test_listen_on_the_star__reached_over_both_families():
    with Lab("star") as lab:
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start(None, "recv", "recv", "--root", root, "--listen", "*:7141", "--insecure")
        receiver.wait_event("ready")
        for name, address in ("v4", "127.0.0.1"), ("v6", "[::1]"):
            sender = lab.start(None, name, "send", "--insecure", "--retries", "0", lab.file(name, name), f"tcp://{address}:7141/{name}")
            check(sender.wait() == 0, sender.tail())
            check((root / name).read_text() == name, "not delivered")


def test_shell__standard_error_is_the_journal__each_line_has_its_priority():
    with Lab("journal") as lab:
        for is_journal in (True, False):
            with open(lab.directory / f"stderr{is_journal}", "w+") as file:
                status = os.fstat(file.fileno())
                stream = f"{status.st_dev}:{status.st_ino + (0 if is_journal else 1)}"
                ended = subprocess.run([BINARY, "recv", "--root", lab.directory / "none", "--listen", "127.0.0.1:0", "--insecure"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file, check=False, timeout=60,
                                       env={**os.environ, "JOURNAL_STREAM": stream})
                file.seek(0)
                lines = file.read().splitlines()
            check(ended.returncode != 0, f"{ended}")
            check(lines[-1].startswith("<3>ccixfer: " if is_journal else "ccixfer: "), f"{lines}")
            check(any("WARNING" in line and line.startswith("<4>") for line in lines) == is_journal, f"{lines}")


def many_files(lab):
    """Their lines are far more than a pipe takes."""
    source = lab.directory / "many"
    source.mkdir()
    for i in range(1500):
        (source / f"{i}{'x' * 150}").write_text("")
    return source


def test_lines_that_nobody_reads__stop_no_transfer_and_no_signal():
    with Lab("unread") as lab:
        _, receiver = receiver_of(lab)
        sender = subprocess.Popen([str(BINARY), "send", "--insecure", "-i", many_files(lab), native(receiver.uris) + "/many"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            receiver.wait_event("ended")
            check(sender.poll() is None, f"exit {sender.returncode}: it was to wait for its reader")
            sender.terminate()
            sender.wait(timeout=PATIENCE_S)
        finally:
            sender.kill()
            sender.communicate()


def test_lines_to_a_pipe_that_does_not_block__all_come():
    with Lab("nonblocking") as lab:
        _, receiver = receiver_of(lab)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        sender = subprocess.Popen([str(BINARY), "send", "--insecure", "-i", many_files(lab), native(receiver.uris) + "/many"], stdout=writer)
        os.close(writer)
        receiver.wait_event("ended")   # before anybody reads a line
        with open(reader) as lines:
            count = len(lines.read().splitlines())
        check(sender.wait(timeout=PATIENCE_S) == 0, f"exit {sender.returncode}")
        check(count == 1501, f"{count} lines")   # and one of the directory


def test_timeout__signals_twice_for_once__the_transfer_says_how_it_ended():
    with Lab("timeout") as lab:
        _, receiver = receiver_of(lab)
        source = big_file(lab.directory / "big", 50 << 20)
        begun = set()
        for i in range(10):
            told = lab.directory / f"told{i}"
            # timeout passes a signal on as it sends its own.
            sender = subprocess.Popen(["timeout", "600", BINARY, "send", "--insecure", "--bwlimit", "1MB/s", "--on-complete", f"cat > '{told}'", source,
                                       native(receiver.uris) + f"/big{i}"], stderr=subprocess.PIPE, text=True)
            begun.add(receiver.wait_event("session", lambda event: event["transfer"] not in begun)["transfer"])
            sender.terminate()
            said = sender.communicate(timeout=PATIENCE_S)[1]
            check(sender.returncode == 20 and "ccixfer: interrupted" in said, f"run {i}: exit {sender.returncode}: {said!r}")
            check(json.loads(told.read_text())["exit"] == 20, f"run {i}: {told.read_text()}")
