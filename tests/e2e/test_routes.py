"""`ccixfer routes` and `ping` on the real command line: files good and bad, a running router, hops that answer and one that does not;
and README's set-up of two border hosts, typed as it stands there."""
import re
import signal
import subprocess

from lab import BINARY, TwoSites, big_file, check, events_of, device, routed


def ccixfer(*arguments, host=None, cwd=None):
    prefix = host.prefix if host else []
    return subprocess.run([*prefix, str(BINARY), *[str(a) for a in arguments]], capture_output=True, text=True, check=False, timeout=120, cwd=cwd)


def files(sites, **texts):
    return [sites.lab.file(f"{name}.toml", text) for name, text in texts.items()]


def said(ended):
    """What is said besides the warning of --insecure."""
    return [line for line in ended.stderr.splitlines() if "--insecure" not in line]


def test_routes_of_files__the_papers_table_and_the_same_from_the_running_routers():
    with TwoSites("routes") as sites:
        of_files = ccixfer("routes", sites.west_config, sites.east_config)
        check(of_files.returncode == 0 and not of_files.stderr, f"{of_files}")
        table = ["       SN1    SN2    SN9", "  SN1  -      1,9,2  1,9", "  SN2  2,9,1  -      2,9", "  SN9  9,1    9,2    -"]
        lines = of_files.stdout.splitlines()
        check([line for line in lines if line.startswith("  SN") or line.startswith("       SN")] == table, of_files.stdout)
        check("* 1:1 -> 1:2: 1:1 > 1:9 > 1:2 (cost 600, 3): the only one" in lines, of_files.stdout)
        dot = ccixfer("routes", "--dot", sites.west_config, sites.east_config).stdout
        check(dot.startswith("graph ccixfer {") and dot.rstrip().endswith("}") and dot.count(" -- ") == 4, dot)
        events = events_of(ccixfer("routes", "--json", sites.west_config, sites.east_config).stdout)
        chosen = [e for e in events if e["event"] == "route" and e["from"] == "1:1" and e["to"] == "1:2"]
        check(len(chosen) == 1 and chosen[0]["subnets"] == ["1:1", "1:9", "1:2"] and chosen[0]["chosen"], f"{chosen}")
        sites.start_routers()
        receiver = sites.receive()
        wait_for_route(sites, receiver)
        for asked in ("tcp://10.0.0.1:7000",):
            running = ccixfer("routes", "-c", sites.sender_config, "--insecure", asked, host=sites.sender)
            check(running.returncode == 0 and not said(running), f"{running}")
            own = [line for line in running.stdout.splitlines() if line.startswith("  SN") or line.startswith("       SN")]
            check(own == table, running.stdout)
        nobody = ccixfer("routes", "-c", sites.sender_config, "--insecure", "tcp://10.0.0.1:7999", host=sites.sender)
        check(nobody.returncode == 35 and "tcp://10.0.0.1:7999" in nobody.stderr, f"{nobody}")


def wait_for_route(sites, receiver):
    """Until the routers know one another: a transfer's connects are retried, a ping's are not."""
    source = big_file(sites.lab.directory / "first", 1000)
    sender = sites.send(source, routed(receiver.uris) + "/first")
    check(sender.wait() == 0, sender.tail())


def test_routes_of_files_that_clash__one_line_with_file_key_and_remedy_and_exit_1():
    with TwoSites("clash") as sites:
        west, east = sites.west_config, sites.east_config
        text = east.read_text()
        cases = files(sites, rates=text.replace('subnet = 9\nrouter = ["tcp://192.0.2.1:7000"]\nrate = "10Gb/s"', 'subnet = 9\nrouter = []\nrate = "1Gb/s"'),
                      apart=text.replace("subnet = 9", "subnet = 8"), single=text[: text.index("[device.wan]")],
                      wire=re.sub(r"router = .*", "router = []", text).replace("tcp", "udp"), broken=text.replace("subnet = 9", "subnet = -9"))
        words = (("device.wan.rate", "subnet 1:9 is 1Gb/s here and 10Gb/s in", "give the same rate"),
                 ("AS 1", "cannot reach one another", "join them by a router"),
                 ("device", "subnet 1:2 only", "a router joins two subnets"),
                 ("device.wan.subnet", "1:9 is udp here and tcp in", "exactly one transport"),
                 ("broken.toml:", "device.wan.subnet", "whole number"))
        for case, parts in zip(cases, words):
            ended = ccixfer("routes", west, case)
            lines = ended.stderr.splitlines()
            check(ended.returncode == 1 and len(lines) == 1, f"{case.name}: exit {ended.returncode}: {ended.stderr}{ended.stdout}")
            check(all(part in lines[0] for part in parts), f"{case.name}: {lines[0]}")


def test_device_with_only_some_of_as_subnet_router__a_warning_and_no_routing_for_it():
    with TwoSites("part") as sites:
        whole = device("lan", "10.0.0.2", 1, ["tcp://10.0.0.1:7000"])
        for missing in ("as", "subnet", "router"):
            config = sites.lab.file(f"no-{missing}.toml", re.sub(f"(?m)^{missing} = .*\n", "", whole))
            listed = ccixfer("devices", "-c", config, host=sites.sender)
            check(listed.returncode == 0 and "given only in part: no routing for this device" in listed.stderr and "device.lan" in listed.stderr,
                  f"{missing}: {listed}")
            sent = ccixfer("send", "-c", config, "--insecure", "/etc/hostname", "cci://1:2:10.0.0.2:7100/f", host=sites.sender)
            check(sent.returncode == 1 and "routed address without routing" in sent.stderr, f"{missing}: {sent}")
        # The other devices route: a router of three goes on with two, and one of two does not start.
        third = device("third", "127.0.0.1", 7, [])
        partly = sites.lab.file("partly.toml", sites.west_config.read_text() + third.replace("subnet = 7\n", ""))
        router = sites.lab.start_ready(sites.west, "west", "route", "-c", partly, "--insecure")
        check(len(router.uris) == 2, f"{router.uris}")
        check(router.stop() == 0 and "device.third" in router.stderr(), router.tail())
        lone = sites.lab.file("lone.toml", sites.west_config.read_text().replace("subnet = 9\n", ""))
        ended = ccixfer("route", "-c", lone, "--insecure", host=sites.west)
        check(ended.returncode == 1 and "two subnets or more" in ended.stderr and "device.wan" in ended.stderr, f"{ended}")


def ping(sites, uri, *options):
    return ccixfer("ping", "-c", sites.sender_config, "--insecure", *options, uri, host=sites.sender)


def test_ping__each_hop_its_rate_and_the_slowest_and_the_one_that_does_not_answer():
    with TwoSites("ping", middle=1) as sites:
        sites.middle_config.write_text(sites.middle_config.read_text().replace('rate = "10Gb/s"', 'rate = "1Gb/s"', 1))
        sites.west_config.write_text(sites.west_config.read_text().replace('7000"]\nrate = "10Gb/s"', '7000"]\nrate = "1Gb/s"'))
        sites.start_routers()
        receiver = sites.receive()
        wait_for_route(sites, receiver)
        uri = routed(receiver.uris)
        ended = ping(sites, uri)
        check(ended.returncode == 0, f"{ended}")
        hops = [line for line in ended.stdout.splitlines() if line.startswith("hop ")]
        words = (("tcp://10.0.0.1:7000 subnet 1:1, 10Gb/s",), ("tcp://192.0.2.2:7000 subnet 1:9, 1Gb/s", "the slowest subnet"),
                 ("tcp://198.51.100.2:7000 subnet 1:8, 10Gb/s",), ("tcp://10.0.0.2:7100 subnet 1:2, 10Gb/s",))
        check(len(hops) == 4 and all(part in hop for hop, parts in zip(hops, words) for part in parts), ended.stdout)
        check(ended.stdout.count("slowest") == 1 and "fragments of 4198400 bytes" in ended.stdout, ended.stdout)
        event = events_of(ping(sites, uri, "--json").stdout)[0]
        check(event["event"] == "ping" and event["bottleneck"] == 2 and event["fragment_bytes"] == 4198400, f"{event}")
        check([hop["rate_bits_per_s"] for hop in event["path"]] == [10**10, 10**9, 10**10, 10**10], f"{event}")
        check(all(hop["round_trip_s"] > 0 for hop in event["path"]), f"{event}")
        for process, node in ((receiver, "tcp://10.0.0.2:7100"), (sites.east_router, "tcp://198.51.100.2:7000"),
                              (sites.middle_router, "tcp://192.0.2.2:7000"), (sites.west_router, "tcp://10.0.0.1:7000")):
            process.kill(signal.SIGSTOP)
            ended = ping(sites, uri, "--timeout", "4")
            process.kill(signal.SIGCONT)
            check(ended.returncode in (35, 43) and len(said(ended)) == 1 and node in said(ended)[0], f"{node} hangs: {ended}")
            check("no connection to it" in said(ended)[0] or node == "tcp://10.0.0.1:7000", f"{node} hangs: {ended}")
        receiver.kill()
        receiver.wait()
        ended = ping(sites, uri)
        check(ended.returncode == 35 and "tcp://10.0.0.2:7100" in said(ended)[0], f"nobody there: {ended}")
