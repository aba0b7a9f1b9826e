"""What each option of `route` changes. Each test fails when the option is left out of its command line."""
import subprocess

from lab import BINARY, TwoSites, big_file, check, routed

MIB = 1 << 20


def ping(sites, uri):
    asker = sites.lab.start(sites.sender, "ping", "ping", "-c", sites.sender_config, "--insecure", uri)
    check(asker.wait() == 0, asker.tail())
    return next(e for e in asker.events if e["event"] == "ping")


def start(sites, name, *options):
    router = sites.lab.start_ready(getattr(sites, name), name, "route", "-c", getattr(sites, name + "_config"), "--insecure", *options)
    sites.routers.append(router)
    return router


def test_route_memory__the_fragments_of_a_path_are_as_long_as_an_eighth_of_it():
    with TwoSites("rmem") as sites:
        start(sites, "west", "--memory", "2MiB")
        start(sites, "east")
        receiver = sites.receive()
        answer = ping(sites, routed(receiver.uris))
        check(answer["fragment_bytes"] == 2 * MIB // 8, f"{answer}")


def test_route_uri_file__its_addresses_until_it_ends():
    with TwoSites("ruri") as sites:
        path = sites.lab.directory / "uris"
        router = start(sites, "west", "--uri-file", path)
        lines = path.read_text().split()
        check(sorted(lines) == ["cci://1:1:10.0.0.1:7000", "cci://1:9:192.0.2.1:7000"], f"{lines}")
        check(router.stop() == 0, router.tail())
        check(not path.exists(), "the file is still there")


def test_route_log_file_verbose_quiet_and_stats__say_what_they_should_and_where():
    with TwoSites("rlog") as sites:
        log = sites.lab.directory / "log"
        silent = sites.lab.file("partly.toml", sites.west_config.read_text() + '\n[device.lone]\ntransport = "tcp"\nip = "127.0.0.1"\nport = 7009\n')
        loud = sites.lab.start_ready(sites.west, "loud", "route", "-c", silent, "--insecure", "-v", "--stats", "--log-file", log)
        check(loud.stop() == 0, loud.tail())
        check("not routed" in loud.stderr(), loud.stderr())           # a warning
        check("draining" in loud.stderr(), loud.stderr())             # -v
        check("records_received" in loud.stderr(), loud.stderr())     # --stats
        check(log.exists() and "not routed" in log.read_text(), "the log has no warning")
        quiet = sites.lab.start_ready(sites.west, "quiet", "route", "-c", silent, "--insecure", "-q")
        check(quiet.stop() == 0, quiet.tail())
        check("not routed" not in quiet.stderr(), quiet.stderr())


def test_route_without_insecure_or_with_a_device__is_refused_with_the_remedy():
    with TwoSites("rno") as sites:
        def refused(*options):
            command = [*sites.west.prefix, str(BINARY), "route", "-c", str(sites.west_config), *options]
            return subprocess.run(command, capture_output=True, text=True, timeout=60)
        for options, word, code in (((), "--insecure", 41), (("--insecure", "--device", "lan"), "--device", 1)):
            ended = refused(*options)
            check(ended.returncode == code and word in ended.stderr, f"{options}: {ended.returncode} {ended.stderr}")
