"""Transfers through shared memory: direct, secured, through routers to tcp; kills in the middle; what is refused; nothing is left behind."""
import os
import pathlib
import signal
import subprocess
import time

from lab import PATIENCE_S, Lab, big_file, check, may_give_away, native, routed, same_tree, small_tree

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def tree(lab, large=40_000_000):
    source = lab.directory / "tree"
    small_tree(source, files=400)
    big_file(source / "large", large)
    return source


def name_of(lab, what):
    """One that no other run has."""
    return f"e2e-{os.getpid()}-{what}"


def left_behind(name):
    """Abstract sockets and files with that name."""
    sockets = [line for line in pathlib.Path("/proc/net/unix").read_text().splitlines() if name in line]
    return sockets + [path for place in ("/dev/shm", "/tmp", "/var/tmp") for path in pathlib.Path(place).glob("*") if name in path.name]


def device(title, transport, subnet, routers, **place):
    listed = ", ".join(f'"{r}"' for r in routers)
    lines = "".join(f'{key} = "{value}"\n' for key, value in place.items())
    return f'[device.{title}]\ntransport = "{transport}"\n{lines}as = 1\nsubnet = {subnet}\nrouter = [{listed}]\nrate = "10Gb/s"\n'


def test_shm_direct__push_and_pull_are_identical_and_a_second_run_sends_nothing():
    with Lab("shm") as lab:
        source, name = tree(lab), name_of(lab, "direct")
        root = lab.directory / "incoming"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--insecure", "--listen", f"shm://{name}")
        check(receiver.uris == [f"shm://{name}"], receiver.uris)
        for sent in (True, False):
            sender = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", f"shm://{name}/x/")
            check(sender.wait() == 0, sender.tail())
            check((sender.done()["bytes_sent"] > 40_000_000) == sent, sender.done())
        same_tree(source, root / "x")
        hops = next(event for event in sender.events if event["event"] == "session")["path"]
        check([hop["transport"] for hop in hops] == ["shm"], hops)
        server = lab.start_ready(None, "serve", "send", "--serve", source, "--insecure", "--listen", "shm://")
        puller = lab.start(None, "pull", "recv", "-a", "--insecure", f"{native(server.uris)}/", lab.directory / "pulled")
        check(puller.wait() == 0, puller.tail())
        same_tree(source, lab.directory / "pulled")
        for process in (receiver, server):
            check(process.stop() == 0, process.tail())
        check(not left_behind(name), left_behind(name))


def test_shm_secured__a_ticket_is_enough_and_everything_is_proved():
    with Lab("shmsecured") as lab:
        source, name = lab.directory / "tree", name_of(lab, "secured")
        source.mkdir()
        big_file(source / "large", 60_000_000)
        root = lab.directory / "incoming"
        root.mkdir()
        env = {"HOME": str(lab.directory)}
        keygen = lab.start(None, "keygen", "keygen", env=env)
        check(keygen.wait() == 0, keygen.tail())
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", f"shm://{name}", "--ticket", env=env)
        lines = []
        until = time.monotonic() + PATIENCE_S
        while not lines and time.monotonic() < until:   # it stands on standard error, around the time of the event
            lines = [line for line in receiver.stderr().splitlines() if line.startswith("cxt1")]
        ticket = lab.file("the ticket", lines[0] + "/x/\n")
        other = {"HOME": str(lab.directory / "other")}
        sender = lab.start(None, "send", "send", "-a", f"{source}/", f"@{ticket}", env=other)
        check(sender.wait() == 0, sender.tail())
        same_tree(source, root / "x")
        hops = next(event for event in sender.events if event["event"] == "session")["path"]
        check([hop["transport"] for hop in hops] == ["shm"], hops)


def test_shm_mixed_route__shm_tcp_and_tcp_shm__identical():
    """A router between a subnet of shared memory and one of tcp; the same way back."""
    with Lab("shmroute") as lab:
        source, name = tree(lab), name_of(lab, "router")
        config = device("near", "shm", 1, [], name=name) + device("far", "tcp", 2, [], ip="127.0.0.1")
        router = lab.start_ready(None, "route", "route", "--insecure", "-c", lab.file("router.toml", config))
        port = next(uri.rsplit(":", 1)[1] for uri in router.uris if uri.startswith("cci://1:2:"))
        near = lab.file("near.toml", device("x", "shm", 1, [f"shm://{name}"]))
        far = lab.file("far.toml", device("x", "tcp", 2, [f"tcp://127.0.0.1:{port}"], ip="127.0.0.1"))
        for sender_config, receiver_config, hops_wanted in ((near, far, ["shm", "tcp"]), (far, near, ["tcp", "shm"])):
            root = lab.directory / f"incoming-{hops_wanted[0]}"
            root.mkdir()
            receiver = lab.start_ready(None, "recv", "recv", "-c", receiver_config, "--root", root, "--insecure")
            sender = lab.start(None, "send", "send", "-c", sender_config, "-a", "--insecure", f"{source}/", f"{routed(receiver.uris)}/x/")
            check(sender.wait() == 0, sender.tail())
            same_tree(source, root / "x")
            hops = next(event for event in sender.events if event["event"] == "session")["path"]
            check([hop["transport"] for hop in hops] == hops_wanted, hops)
            check(receiver.stop() == 0, receiver.tail())
        check(router.stop() == 0, router.tail())


def test_shm_direct__the_receiver_killed__its_name_is_free_at_once_and_the_same_command_resumes():
    with Lab("shmresume") as lab:
        source, name = tree(lab, large=240_000_000), name_of(lab, "resume")
        root = lab.directory / "incoming"
        root.mkdir()
        listen = ["recv", "--root", root, "--insecure", "--listen", f"shm://{name}"]
        receiver = lab.start_ready(None, "recv", *listen)
        command = ["send", "-a", "--insecure", "--timeout", "3", f"{source}/", f"shm://{name}/x/"]
        sender = lab.start(None, "send", *command, "--bwlimit", "80MB/s")
        sender.wait_event("progress", lambda event: event["bytes"] > 150_000_000)
        receiver.kill(signal.SIGKILL)
        check(sender.wait() in (10, 30, 35), sender.tail())
        receiver.wait()
        check(not left_behind(name), left_behind(name))
        receiver = lab.start_ready(None, "recv2", *listen)
        again = lab.start(None, "again", *command)
        check(again.wait() == 0, again.tail())
        check(again.done()["bytes_sent"] < 180_000_000, again.done())  # of 280 MB
        same_tree(source, root / "x")


def test_shm_direct__the_sender_killed__others_do_not_notice_and_the_same_command_resumes():
    with Lab("shmsender") as lab:
        source, name = tree(lab, large=160_000_000), name_of(lab, "sender")
        root = lab.directory / "incoming"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--insecure", "--listen", f"shm://{name}")
        command = ["send", "-a", "--insecure", "--bwlimit", "80MB/s", f"{source}/"]
        other = lab.start(None, "other", *command, f"shm://{name}/y/")
        sender = lab.start(None, "send", *command, f"shm://{name}/x/")
        sender.wait_event("progress", lambda event: event["bytes"] > 60_000_000)
        sender.kill(signal.SIGKILL)
        sender.wait()
        again = lab.start(None, "again", *command, f"shm://{name}/x/")
        for process in (other, again):
            check(process.wait() == 0, process.tail())
        for part in ("x", "y"):
            same_tree(source, root / part)
        check(receiver.stop() == 0, receiver.tail())
        check(not left_behind(name), left_behind(name))


def test_shm_refused__a_name_in_use_nobody_there_no_name_another_user():
    with Lab("shmrefused") as lab:
        source, name = lab.directory / "tree", name_of(lab, "refused")
        small_tree(source, files=3)
        lab.directory.chmod(0o755)

        def fails(codes, words, *command, **options):
            process = lab.start(None, "refused", *command, **options)
            check(process.wait() in codes and words in process.stderr(), f"{process.wait()}: {process.stderr()}")
            check(process.stderr().count("\n") <= 2, process.stderr())   # beside the warning that --insecure gives

        root = lab.directory / "incoming"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--insecure", "--listen", f"shm://{name}")
        fails((10,), f"cannot listen on shm://{name}: the name is in use", "recv", "--root", root, "--insecure", "--listen", f"shm://{name}")
        fails((1,), "write shm://NAME", "send", "--insecure", f"{source}/", "shm://a:1/x/")
        fails((35,), "nobody listens", "send", "--insecure", "--timeout", "1", f"{source}/", f"shm://{name}-nobody/x/")
        if os.geteuid() == 0 and may_give_away() and subprocess.run([*NOBODY, "true"], check=False).returncode == 0:
            fails((30, 35, 41), "connections without proof stay within one user", "send", "--insecure", "--timeout", "1", f"{source}/",
                  f"shm://{name}/x/", prefix=NOBODY)
        check(receiver.stop() == 0, receiver.tail())
