"""What limits and several sources of one command do, in real processes: the simulated clock hides none of it."""
import time

from lab import Lab, TwoSites, big_file, check, native, routed, sha256

MIB = 1 << 20
SIZE = 12 * MIB


def seconds_of(process):
    """From its first byte on, by the process's own clock; never less than what the limit allows, however busy the machine."""
    start = time.monotonic()
    check(process.wait() == 0, process.tail())
    return time.monotonic() - start


def test_route_bwlimit__what_crosses_the_router_takes_as_long_as_its_rate_says():
    with TwoSites("rlimit") as sites:
        source = big_file(sites.lab.directory / "big", SIZE)
        for name, more in (("west", ["--bwlimit", "4MB/s"]), ("east", [])):
            sites.routers.append(sites.lab.start_ready(getattr(sites, name), name, "route", "-c", getattr(sites, name + "_config"), "--insecure", *more))
        receiver = sites.receive()
        seconds = seconds_of(sites.send(source, routed(receiver.uris) + "/big"))
        check(seconds > 1.5, f"{SIZE} bytes over a router of 4 MB/s in {seconds:.2f} s")
        check(sha256(source) == sha256(sites.root / "big"), "big differs")


def test_serve_bwlimit__a_pull_takes_as_long_as_the_servers_rate_says():
    with Lab("slimit") as lab:
        (lab.directory / "served").mkdir()
        source = big_file(lab.directory / "served" / "big", SIZE)
        server = lab.start_ready(None, "serve", "send", "--serve", source.parent, "--listen", "127.0.0.1:0", "--insecure", "--bwlimit", "4MB/s")
        seconds = seconds_of(lab.start(None, "pull", "recv", "--insecure", native(server.uris) + "/big", lab.directory / "target"))
        check(seconds > 1.5, f"{SIZE} bytes from a server of 4 MB/s in {seconds:.2f} s")
        check(sha256(source) == sha256(lab.directory / "target" / "big"), "big differs")


def test_several_sources__a_file_of_two__the_first_one_arrives_and_the_second_is_no_failure():
    with Lab("sources") as lab:
        for top, text in (("one", "1"), ("two/one", "22")):
            (lab.directory / top / "sub").mkdir(parents=True)
            (lab.directory / top / "sub/both").write_text(text)
        (lab.directory / "two/one/sub/second").write_text("22")
        (lab.directory / "root").mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", lab.directory / "root", "--listen", "127.0.0.1:0", "--insecure")
        sender = lab.start(None, "send", "send", "-a", "--insecure", lab.directory / "one", f"{lab.directory}/two/", f"{native(receiver.uris)}/in")
        check(sender.wait() == 0, sender.tail())
        arrived = {path.name: path.read_text() for path in (lab.directory / "root/in/one/sub").iterdir()}
        check(arrived == {"both": "1", "second": "22"} and "the first is sent" in sender.stderr(), f"{arrived} {sender.tail()}")


def test_several_pulls__the_worst_end_counts_wherever_it_stands():
    with Lab("pulls") as lab:
        served = lab.directory / "served"
        served.mkdir()
        for name in ("one", "two"):
            (served / name).write_text(name)
        server = lab.start_ready(None, "serve", "send", "--serve", served, "--listen", "127.0.0.1:0", "--insecure")
        uri = native(server.uris)
        codes = []
        for number, names in enumerate((("absent", "one", "two"), ("one", "absent", "two"), ("one", "two", "absent"))):
            target = lab.directory / f"target{number}"
            puller = lab.start(None, "pull", "recv", "--insecure", *[f"{uri}/{name}" for name in names], target)
            codes.append(puller.wait())
            check(sorted(p.name for p in target.iterdir()) == ["one", "two"], f"{names}: {puller.tail()}")
        check(codes[0] != 0 and codes == codes[:1] * 3, f"the order of the sources decides: {codes}")
