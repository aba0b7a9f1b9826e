"""What a running process may still do: its status, what an intruder could make of it, and that its work goes on all the same."""
import errno
import json
import os
import pathlib
import pty
import select
import signal
import socket
import subprocess
import time

import intruder
from lab import BINARY, PATIENCE_S, REPO, Lab, TwoSites, big_file, check, may_give_away, native, routed, same_tree, sha256
from test_security import Account, Pair, ends

READ_ALL = 1 << 2                                     # CAP_DAC_READ_SEARCH
# CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_MKNOD, CAP_SETFCAP
WRITE_ALL_WITH_OWNERS = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 27 | 1 << 31
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def status_of(process):
    lines = pathlib.Path(f"/proc/{process.process.pid}/status").read_text().splitlines()
    return {name: value.strip() for name, value in (line.split(":", 1) for line in lines)}


def check_confined(process, capabilities=0):
    """`capabilities`: what root keeps; others have none to keep."""
    status = status_of(process)
    kept = capabilities if os.geteuid() == 0 and status["Uid"].split()[0] == "0" else 0
    wanted = {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": f"{kept:016x}", "CapPrm": f"{kept:016x}", "CapInh": f"{0:016x}", "CapAmb": f"{0:016x}"}
    check({name: status[name] for name in wanted} == wanted, f"{process.name}: {status}")
    limits = pathlib.Path(f"/proc/{process.process.pid}/limits").read_text()
    check(any(line.split()[:6] == ["Max", "core", "file", "size", "0", "0"] for line in limits.splitlines()), limits)


def receiver(lab, root, *more, **options):
    root.mkdir(exist_ok=True)
    return lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure", *more, **options)


def test_confined__every_command_that_hears_of_peers__has_a_filter_and_few_or_no_capabilities():
    with TwoSites("confined") as sites:
        lab, served = sites.lab, sites.lab.directory / "served"
        served.mkdir()
        source = big_file(served / "big", 40 << 20)
        sites.start_routers()
        receiving = sites.receive()
        serving = lab.start_ready(None, "serve", "send", "--serve", served, "--listen", "127.0.0.1:0", "--insecure")
        measured = lab.start_ready(None, "bench", "bench", "--serve", "--listen", "127.0.0.1:0", "--insecure")
        sender = sites.send("--bwlimit", "20MB/s", source, routed(receiving.uris) + "/big")
        puller = lab.start(None, "pull", "recv", "-a", "--bwlimit", "20MB/s", "--insecure", native(serving.uris) + "/big", lab.directory / "pulled")
        asker = lab.start(None, "ask", "bench", "--insecure", "--seconds", "1", "--tests", "message-latency", native(measured.uris))
        for process in (sender, puller):
            process.wait_event("progress", lambda event: event["bytes"] > 0)
        asker.wait_event("path")
        for process in (sites.west_router, sites.east_router, measured, asker):
            check_confined(process)
        for process in (sender, serving):
            check_confined(process, READ_ALL)
        for process in (receiving, puller):
            check_confined(process, WRITE_ALL_WITH_OWNERS)
        for process in (sender, puller, asker):
            check(process.wait() == 0, process.tail())
        check(sha256(sites.root / "big") == sha256(lab.directory / "pulled" / "big") == sha256(source), "big differs")


def test_intruder_in_a_receiver__reaches_the_root_and_nothing_else():
    if not intruder.possible():
        return
    with Lab("intruder") as lab:
        root, beside = lab.directory / "root", lab.directory / "beside"
        beside.mkdir()
        (beside / "secret").write_text("secret")
        outside = [str(beside / "secret"), "/etc/shadow", "/etc/ssh", "/root", str(REPO / "README.md"), "/proc/1/environ"]
        process = receiver(lab, root)
        pid = process.process.pid
        create = os.O_WRONLY | os.O_CREAT

        def attempt(name, *arguments):
            return intruder.call(pid, name, *arguments)

        check(attempt("open", root / "mine", create, 0o600) > 0, "the root is out of reach: the test proves nothing")
        for path in outside:
            check(attempt("open", path, os.O_RDONLY) in (-errno.EACCES, -errno.ENOENT), f"{path} was read")
        check(attempt("open", beside / "secret", os.O_RDONLY) == -errno.EACCES, "not refused by Landlock")
        check(attempt("open", beside / "new", create, 0o600) == -errno.EACCES, "a file was made beside the root")
        check(attempt("unlink", beside / "secret") == -errno.EACCES, "a file was removed beside the root")
        check(attempt("mkdir", beside / "new", 0o700) == -errno.EACCES, "a directory was made beside the root")
        check(attempt("setuid", 65534) == -errno.ENOSYS, "another account")
        check(attempt("prctl", 4, 1) == -errno.ENOSYS, "dumpable again")   # PR_SET_DUMPABLE
        check(attempt("kill", os.getpid(), 0) == -errno.ENOSYS, "a signal to another process")
        for family, kind, protocol in ((socket.AF_PACKET, socket.SOCK_RAW, 0), (socket.AF_INET, socket.SOCK_RAW, 1),
                                       (socket.AF_INET, socket.SOCK_DGRAM, 0), (socket.AF_INET, socket.SOCK_STREAM, 262)):
            check(attempt("socket", family, kind, protocol) == -errno.ENOSYS, f"socket {family} {kind} {protocol}")
        source = big_file(lab.directory / "big", 5 << 20)
        sender = lab.start(None, "send", "send", "--insecure", source, native(process.uris) + "/big")
        check(sender.wait() == 0 and sha256(root / "big") == sha256(source), "the receiver does not work any more")
        check(process.stop() == 0, process.tail())


def test_intruder_who_starts_a_program_or_looks_at_another_process__ends_the_process():
    if not intruder.possible():
        return
    with Lab("deadly") as lab:
        for name, arguments in (("execve", ["/bin/sh"]), ("ptrace", [0]), ("unshare", [0x10000000]), ("bpf", [0]), ("mount", ["none", "/", "tmpfs"])):
            process = receiver(lab, lab.directory / name)
            check(intruder.call(process.process.pid, name, *arguments) == "SIGSYS", f"{name} was let through")
            process.wait()
            check(not process.done(), f"{name}: {process.tail()}")


def test_intruder_in_a_router__opens_no_file_of_the_host():
    if not intruder.possible():
        return
    with TwoSites("rintruder") as sites:
        sites.start_routers()
        pid = sites.west_router.process.pid
        check(intruder.call(pid, "open", sites.west_config, os.O_RDONLY) > 0, "a reload could not read the configuration")
        for path in ("/etc/shadow", str(REPO / "README.md"), "/root/.profile"):
            check(intruder.call(pid, "open", path, os.O_RDONLY) in (-errno.EACCES, -errno.ENOENT), f"{path} was read")
        check(intruder.call(pid, "open", sites.lab.directory / "new", os.O_WRONLY | os.O_CREAT, 0o600) == -errno.EACCES, "a file was made")


def test_another_process_of_the_account__does_not_open_the_memory_of_a_receiver():
    if os.geteuid() != 0 or not may_give_away():
        return   # who is root of a user namespace cannot be another account
    with Lab("memory") as lab:
        lab.directory.chmod(0o755)
        root = lab.directory / "root"
        root.mkdir()
        os.chown(root, 65534, 65534)
        process = receiver(lab, root, prefix=NOBODY)
        check_confined(process)
        for name in ("mem", "environ", "maps"):
            look = subprocess.run([*NOBODY, "head", "-c", "1", f"/proc/{process.process.pid}/{name}"], capture_output=True, text=True, check=False)
            check(look.returncode != 0 and "Permission denied" in look.stderr, f"{name}: {look}")
        source = big_file(lab.directory / "big", 5 << 20)
        sender = lab.start(None, "send", "send", "-a", "--insecure", source, native(process.uris) + "/big")
        check(sender.wait() == 0 and sha256(root / "big") == sha256(source), sender.tail())


def test_user_namespace__both_sides_are_confined_and_a_tree_arrives():
    """As in a container without root outside: root of a namespace that knows one account only."""
    namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode != 0:
        return
    with Lab("userns") as lab:
        root, source = lab.directory / "root", lab.directory / "source"
        (source / "dir").mkdir(parents=True)
        (source / "dir" / "file").write_text("content")
        (source / "dir" / "link").symlink_to("file")
        big_file(source / "big", 9 << 20)
        process = receiver(lab, root, prefix=namespace)
        check_confined(process, WRITE_ALL_WITH_OWNERS)
        sender = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", native(process.uris) + "/", prefix=namespace)
        check(sender.wait() == 0, sender.tail())
        same_tree(source, root)
        if intruder.possible():
            check(intruder.call(process.process.pid, "open", lab.directory / "new", os.O_WRONLY | os.O_CREAT, 0o600) == -errno.EACCES, "a file beside the root")
        check(process.stop() == 0, process.tail())


def test_send_with_archive__reads_its_sources_only_and_without_it_follows_links_anywhere():
    with Lab("links") as lab:
        root, source, elsewhere = lab.directory / "root", lab.directory / "source", lab.directory / "elsewhere"
        source.mkdir()
        elsewhere.mkdir()
        big_file(elsewhere / "file", 20 << 20)
        (source / "link").symlink_to(elsewhere / "file")
        big_file(source / "big", 20 << 20)
        process = receiver(lab, root)
        followed = lab.start(None, "send", "send", "--insecure", f"{source}/", native(process.uris) + "/followed/")
        check(followed.wait() == 0, followed.tail())
        check(sha256(root / "followed" / "link") == sha256(elsewhere / "file"), "the link was not followed")
        sender = lab.start(None, "send", "send", "-a", "--bwlimit", "10MB/s", "--insecure", f"{source}/", native(process.uris) + "/kept/")
        sender.wait_event("progress", lambda event: event["bytes"] > 0)
        if intruder.possible():
            pid = sender.process.pid
            check(intruder.call(pid, "open", source / "big", os.O_RDONLY) > 0, "the source is out of reach")
            check(intruder.call(pid, "open", elsewhere / "file", os.O_RDONLY) == -errno.EACCES, "what is beside the source was read")
        check(sender.wait() == 0, sender.tail())
        same_tree(source, root / "kept")


def test_pull_to_standard_output__leaves_nothing_in_the_temporary_directory():
    with Lab("stdout") as lab:
        served, temporary = lab.directory / "served", lab.directory / "tmp"
        served.mkdir()
        temporary.mkdir()
        source = big_file(served / "big", 9 << 20)
        server = lab.start_ready(None, "serve", "send", "--serve", served, "--listen", "127.0.0.1:0", "--insecure")
        for name, code in (("big", 0), ("absent", 3)):
            pulled = subprocess.run([BINARY, "recv", "--insecure", f"{native(server.uris)}/{name}", "-"], capture_output=True, check=False,
                                    env={**os.environ, "TMPDIR": str(temporary)})
            check(pulled.returncode == code, f"{name}: {pulled.returncode} {pulled.stderr}")
            check(pulled.stdout == (source.read_bytes() if code == 0 else b""), f"{name}: {len(pulled.stdout)} bytes")
            check(not list(temporary.iterdir()), f"{name} left {list(temporary.iterdir())}")


def answered_at_a_terminal(environment, arguments, question, answer, after_s=0):
    """Runs ccixfer with a terminal that it is controlled by, and gives its exit code and all that it said."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(str(BINARY), [str(BINARY), *map(str, arguments)], {**os.environ, **environment})
    text = b""
    while select.select([terminal], [], [], PATIENCE_S)[0]:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:   # EIO: the process has gone
            break
        text += piece
        if question in text and answer:
            time.sleep(after_s)   # a person takes their time
            os.write(terminal, answer)
            answer = b""
    if answer:   # it waits for something else, and would do so for ever
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    return code, text.decode(errors="replace")


def test_new_peer__a_person_says_yes_to_a_confined_sender__it_is_remembered():
    with Lab("newpeer") as lab:
        pair = Pair(lab)
        source = big_file(lab.directory / "f", 100000)
        known = pair.alice.own / "known_peers"
        known.unlink()
        line = f"{pair.uri} {pair.bob.id}"
        code, text = answered_at_a_terminal(pair.alice.env, ["send", source, pair.uri + "/x/no"], b"(yes/no)", b"no\n")
        check(code == 41 and line not in known.read_text(), f"{code}: {text}")
        code, text = answered_at_a_terminal(pair.alice.env, ["send", source, pair.uri + "/x/no"], b"(yes/no)", b"\x03")   # Ctrl-C is no yes either
        check(code == 41 and line not in known.read_text(), f"{code}: {text}")
        code, text = answered_at_a_terminal(pair.alice.env, ["send", "--timeout", 3, source, pair.uri + "/x/f"], b"(yes/no)", b"yes\n",
                                            after_s=5)   # which is no silence of the peer
        check(code == 0 and sha256(pair.root / "x" / "f") == sha256(source), f"{code}: {text}")
        check(line in known.read_text().splitlines(), f"{known.read_text()!r}: {text}")
        check(known.stat().st_mode & 0o777 == 0o600, oct(known.stat().st_mode))
        ends(pair.send(source, pair.uri + "/x/again"), 0)


def test_confined_receiver__reads_its_configuration_and_opens_its_audit_log_again():
    with Lab("again") as lab:
        logs = lab.directory / "logs"
        logs.mkdir()
        pair = Pair(lab, ("--audit-log", logs / "audit"))
        source = big_file(lab.directory / "f", 100000)
        ends(pair.send(source, pair.uri + "/y/f"), 42)
        deadline = time.monotonic() + PATIENCE_S
        while not (logs / "audit").read_text():   # the sender knows before the receiver has done with it
            check(time.monotonic() < deadline, "a refusal has no line")
        check(json.loads((logs / "audit").read_text())["name"] == "alice", "a refused peer has no name")
        (logs / "audit").rename(logs / "audit.1")
        written = pair.bob.own / "ccixfer.toml.new"   # as an editor does it
        written.write_text(f'[peer.alice]\nid = "{pair.alice.id}"\nwrite = ["y/"]\n')
        written.rename(pair.bob.own / "ccixfer.toml")
        pair.receiver.kill(signal.SIGHUP)
        ends(pair.send("--retries", "0", source, pair.uri + "/y/f", name="granted"), 0)
        ends(pair.send("--retries", "0", source, pair.uri + "/x/f", name="gone"), 42)
        check(pair.receiver.stop() == 0, pair.receiver.tail())
        check(len((logs / "audit").read_text().splitlines()) == 2, (logs / "audit").read_text())
        check(len((logs / "audit.1").read_text().splitlines()) == 1, (logs / "audit.1").read_text())


def test_intruder_in_a_receiver_with_an_identity__changes_neither_its_key_nor_its_grants():
    if not intruder.possible():
        return
    with Lab("ownkey") as lab:
        pair = Pair(lab, ("--ticket",))
        pid = pair.receiver.process.pid
        for name in ("identity.key", "ccixfer.toml"):
            check(intruder.call(pid, "open", pair.bob.own / name, os.O_WRONLY) == -errno.EACCES, f"{name} can be written")
            check(intruder.call(pid, "unlink", pair.bob.own / name) == -errno.EACCES, f"{name} can be removed")
        check(intruder.call(pid, "open", pair.bob.own / "new", os.O_WRONLY | os.O_CREAT, 0o600) == -errno.EACCES, "a file was made beside the key")
        check(intruder.call(pid, "open", pair.alice.own / "identity.key", os.O_RDONLY) == -errno.EACCES, "another account's key was read")


def test_log__says_what_confines_the_process():
    with Lab("said") as lab:
        log = lab.directory / "log"
        process = receiver(lab, lab.directory / "root", "--log-file", log)
        check(process.stop() == 0, process.tail())
        line = next((line for line in log.read_text().splitlines() if "confined:" in line), "")
        for words in ("no new privileges", "capabilities: ", "system calls: "):
            check(words in line, f"{words}: {log.read_text()}")


def test_units__are_exposed_to_2_of_10_at_most():
    units = sorted((REPO / "conf/systemd").glob("*.service"))
    check({"ccixfer-route.service", "ccixfer-recv.service", "ccixfer-recv@.service", "ccixfer-serve@.service"} <= {unit.name for unit in units}, units)
    for unit in units:
        judged = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit], capture_output=True, text=True, check=False)
        check(judged.returncode == 0 and "Overall exposure level" in judged.stdout, f"{unit.name}: {judged.stdout[-300:]}{judged.stderr}")


def test_units_of_a_host__with_a_key_in_etc__start_encrypted_as_an_account_without_a_home():
    for unit, file, address in (("recv", "receiver", "10.0.0.2/24"), ("route", "border-east", "10.0.0.1/24")):
        with Lab("units") as lab:
            host = lab.host("host")
            lab.wire(host, address, lab.host("neighbour"), "10.0.0.9/24")
            if unit == "route":
                lab.wire(host, "192.0.2.2/30", lab.host("far"), "192.0.2.1/30")
            etc, incoming = lab.directory / "etc", lab.directory / "incoming"
            for directory in (etc, etc / "ccixfer", incoming):
                directory.mkdir()
                os.chown(directory, 65534, 65534)
            lab.directory.chmod(0o755)
            key = etc / "ccixfer/identity.key"
            check(subprocess.run([*NOBODY, BINARY, "keygen", "--out", key], capture_output=True, check=False).returncode == 0, "no key")
            place = etc / "ccixfer" / ("receiver.toml" if unit == "recv" else "border.toml")
            place.write_text((REPO / f"conf/{file}.toml").read_text())
            lines = (REPO / f"conf/systemd/ccixfer-{unit}.service").read_text().replace("/etc", str(etc)).replace("/srv/incoming", str(incoming))
            settings = [line.split("=", 1) for line in lines.splitlines() if line.startswith(("Environment=", "ExecStart="))]
            environment = [value for name, value in settings if name == "Environment"]
            command = dict(settings)["ExecStart"].replace("/usr/bin/ccixfer", str(BINARY)).split()
            check("--insecure" not in command, command)
            process = subprocess.Popen([*host.prefix, *NOBODY, "env", "-i", *environment, f"STATE_DIRECTORY={incoming}", *command],
                                       stderr=subprocess.PIPE, text=True)
            said = ""
            while "ready at" not in said:
                line = process.stderr.readline()
                check(line != "", f"{unit}: it ended: {said}")
                said += line
            process.terminate()
            process.communicate(timeout=PATIENCE_S)
