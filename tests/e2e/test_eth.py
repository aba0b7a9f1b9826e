"""Transfers in Ethernet frames: direct, and through a router to tcp; what is refused; an interface that goes in the middle."""
import os

from lab import Lab, big_file, check, native, routed, same_tree, small_tree


def tree(lab, size=30_000_000):
    source = lab.directory / "tree"
    small_tree(source, files=100)
    big_file(source / "large", size)
    return source


def cable(lab, a, b):
    """Joins two hosts without any IP address. Gives the interfaces and their MAC addresses."""
    lab.links += 1
    names = f"l{lab.links}a", f"l{lab.links}b"
    macs = f"02:00:00:00:{lab.links:02x}:01", f"02:00:00:00:{lab.links:02x}:02"
    a.run("ip", "link", "add", names[0], "address", macs[0], "type", "veth", "peer", "name", names[1], "address", macs[1], "netns", b.name)
    for host, name in zip((a, b), names):
        host.run("ip", "link", "set", name, "up")
    return names, macs


def eth_device(name, interface, subnet, routers, port=0):
    listed = ", ".join(f'"{r}"' for r in routers)
    return (f'[device.{name}]\ntransport = "eth"\ninterface = "{interface}"\nport = {port}\nas = 1\nsubnet = {subnet}\n'
            f'router = [{listed}]\nrate = "10Gb/s"\n')


def tcp_device(name, ip, subnet, routers, port=0):
    listed = ", ".join(f'"{r}"' for r in routers)
    return (f'[device.{name}]\nip = "{ip}"\nport = {port}\nas = 1\nsubnet = {subnet}\nrouter = [{listed}]\nrate = "10Gb/s"\n')


def test_eth_direct__push_and_pull_are_identical_and_a_second_run_sends_nothing():
    with Lab("eth") as lab:
        source = tree(lab)
        a, b = lab.host("a"), lab.host("b")
        names, macs = cable(lab, a, b)
        root = lab.directory / "incoming"
        root.mkdir()
        receiver = lab.start_ready(b, "recv", "recv", "--root", root, "--insecure", "--listen", f"eth://{macs[1]}:7")
        check(receiver.uris == [f"eth://{macs[1]}:7"], receiver.uris)
        for sent in (True, False):
            sender = lab.start(a, "send", "send", "-a", "--insecure", f"{source}/", f"eth://{macs[1]}:7/x/")
            check(sender.wait() == 0, sender.tail())
            check((sender.done()["bytes_sent"] > 30_000_000) == sent, sender.done())
        same_tree(source, root / "x")
        hops = next(event for event in sender.events if event["event"] == "session")["path"]
        check([hop["transport"] for hop in hops] == ["eth"], hops)
        config = lab.file("serve.toml", f'[device.lan]\ntransport = "eth"\ninterface = "{names[1]}"\n')   # any free id
        server = lab.start_ready(b, "serve", "send", "--serve", source, "--insecure", "-c", config)
        check(native(server.uris).startswith(f"eth://{macs[1]}:") and int(native(server.uris).rsplit(":", 1)[1]) >= 32768, server.uris)
        puller = lab.start(a, "pull", "recv", "-a", "--insecure", "--device", names[0], f"{native(server.uris)}/", lab.directory / "pulled")
        check(puller.wait() == 0, puller.tail())
        same_tree(source, lab.directory / "pulled")
        for process in (receiver, server):
            check(process.stop() == 0, process.tail())


def test_eth_jumbo_frames__identical():
    with Lab("ethjumbo") as lab:
        source = tree(lab)
        a, b = lab.host("a"), lab.host("b")
        names, macs = cable(lab, a, b)
        for host, name in zip((a, b), names):
            host.run("ip", "link", "set", name, "mtu", "9000")
        root = lab.directory / "incoming"
        root.mkdir()
        lab.start_ready(b, "recv", "recv", "--root", root, "--insecure", "--listen", f"eth://{macs[1]}:7")
        sender = lab.start(a, "send", "send", "-a", "--insecure", f"{source}/", f"eth://{macs[1]}:7/x/")
        check(sender.wait() == 0, sender.tail())
        same_tree(source, root / "x")


def test_eth_route__through_a_router_to_tcp_and_back__identical():
    with Lab("ethroute") as lab:
        source = tree(lab)
        a, r, b = lab.host("a"), lab.host("r"), lab.host("b")
        near, near_macs = cable(lab, a, r)
        lab.wire(r, "10.0.2.1/24", b, "10.0.2.2/24")
        router = lab.start_ready(r, "route", "route", "--insecure", "-c",
                                 lab.file("router.toml", eth_device("near", near[1], 1, [], 7) + tcp_device("far", "10.0.2.1", 2, [], 7000)))
        at_eth = lab.file("at_eth.toml", eth_device("lan", near[0], 1, [f"eth://{near_macs[1]}:7"]))
        at_tcp = lab.file("at_tcp.toml", tcp_device("lan", "10.0.2.2", 2, ["tcp://10.0.2.1:7000"]))
        for name, sending, receiving, transports in (("x", (a, at_eth), (b, at_tcp), ["eth", "tcp"]), ("y", (b, at_tcp), (a, at_eth), ["tcp", "eth"])):
            root = lab.directory / f"incoming-{name}"
            root.mkdir()
            receiver = lab.start_ready(receiving[0], "recv", "recv", "-c", receiving[1], "--root", root, "--insecure")
            uri = routed(receiver.uris)
            sender = lab.start(sending[0], "send", "send", "-c", sending[1], "--insecure", "-a", f"{source}/", f"{uri}/{name}/")
            check(sender.wait() == 0, sender.tail())
            same_tree(source, root / name)
            hops = next(event for event in sender.events if event["event"] == "session")["path"]
            check([hop["transport"] for hop in hops] == transports, hops)
            check(receiver.stop() == 0, receiver.tail())
        check(router.stop() == 0, router.tail())


def test_eth_interface_deleted_in_the_middle__both_ends_say_so_and_the_sender_gives_up():
    with Lab("ethdeleted") as lab:
        source = tree(lab, 100_000_000)
        a, b = lab.host("a"), lab.host("b")
        names, macs = cable(lab, a, b)
        root = lab.directory / "incoming"
        root.mkdir()
        receiver = lab.start_ready(b, "recv", "recv", "--root", root, "--insecure", "--listen", f"eth://{macs[1]}:7")
        sender = lab.start(a, "send", "send", "-a", "--insecure", "--bwlimit", "20MB/s", "--timeout", "3", f"{source}/", f"eth://{macs[1]}:7/x/")
        sender.wait_event("progress", lambda event: event["bytes"] > 20_000_000)
        a.run("ip", "link", "del", names[0])   # and so is its other end
        check(sender.wait() == 30, sender.tail())
        check(f"the interface {names[0]} is down or gone" in sender.stderr(), sender.stderr())
        check(receiver.stop() in (0, 20), receiver.tail())
        check(f"the interface {names[1]} is down or gone" in receiver.stderr(), receiver.stderr())
        check(not (root / "x" / "large").exists(), "a file that is not whole has its final name")


def test_eth_refused__no_right_no_interface_an_id_twice_nobody_there_an_identity():
    with Lab("ethrefused") as lab:
        source = lab.directory / "tree"
        small_tree(source, files=3)
        a, b = lab.host("a"), lab.host("b")
        names, macs = cable(lab, a, b)

        def fails(host, code, words, *command, **options):
            process = lab.start(host, "refused", *command, **options)
            check(process.wait() == code and words in process.stderr(), f"{process.wait()}: {process.stderr()}")

        listen = ("recv", "--insecure", "--root", lab.directory, "--listen")
        without = ("setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-all")
        fails(b, 1, f"no right to raw Ethernet on {names[1]}: eth needs the capability CAP_NET_RAW", *listen, f"eth://{macs[1]}:7", prefix=without)
        fails(b, 1, f"no interface of this host has the MAC address {macs[0]}", *listen, f"eth://{macs[0]}:7")
        fails(b, 1, "not an address: h:1: write MAC:ID", *listen, "eth://h:1")
        receiver = lab.start_ready(b, "recv", *listen, f"eth://{macs[1]}:7")
        fails(b, 10, f"another process has the id 7 on {names[1]}", *listen, f"eth://{macs[1]}:7")
        send = ("send", "--insecure", "--timeout", "2", f"{source}/")
        fails(a, 35, "no answer", *send, "eth://02:00:00:00:00:99:7/x/")
        fails(a, 35, "no answer", *send, f"eth://{macs[1]}:8/x/")
        fails(b, 35, "Ethernet brings no frame back", *send, f"eth://{macs[1]}:7/x/")
        b.run("ip", "link", "set", names[1], "mtu", "1400")
        fails(b, 1, f"the MTU of {names[1]} is 1400 bytes, and eth needs 1480", *send, f"eth://{macs[0]}:7/x/")
        env = {"HOME": str(lab.directory)}
        keygen = lab.start(None, "keygen", "keygen", env=env)
        check(keygen.wait() == 0, keygen.tail())
        fails(a, 41, "the peer runs with --insecure and this end does not", "send", f"{source}/", f"eth://{macs[1]}:7/x/", env={**os.environ, **env})
        check(receiver.stop() == 0, receiver.tail())
