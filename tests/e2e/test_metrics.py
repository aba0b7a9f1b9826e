"""[metrics] listen: what a receiver and a router say over HTTP, and to whom."""
import contextlib
import json
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

from lab import BINARY, REPO, Lab, TwoSites, big_file, check, native

OPEN = "application/openmetrics-text; version=1.0.0"


def ask(place, path="/metrics", accept="text/plain"):
    request = urllib.request.Request(f"http://{place}{path}", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


def values(text):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}


HELP = {}


def families(text):
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            HELP[name] = words
    return set(HELP)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Site:
    def __init__(self, lab, place=None):
        self.place = place or f"127.0.0.1:{free_port()}"
        self.root = lab.directory / "root"
        self.root.mkdir()
        config = lab.file("receiver.toml", f'[metrics]\nlisten = "{self.place}"\n')
        self.receiver = lab.start_ready(None, "recv", "recv", "-c", config, "--root", self.root, "--listen", "127.0.0.1:0", "--insecure")
        self.uri = native(self.receiver.uris)

    def values(self):
        return values(ask(self.place)[0])


def test_metrics__a_receiver__counts_what_came_and_how_it_ended():
    with Lab("metrics") as lab:
        site = Site(lab)
        source = lab.directory / "run42"
        source.mkdir()
        big_file(source / "f", 5 << 20)
        (source / "g").write_text("x")
        before = site.values()
        check(before['ccixfer_build_info{role="receiver",version="0.1.0"}'] == 1, f"{before}")
        for _ in range(2):
            sender = lab.start(None, "send", "send", "--insecure", "-a", f"{source}/", site.uri + "/d/")
            check(sender.wait() == 0, sender.tail())
        refused = lab.start(None, "send", "send", "--insecure", source / "g", site.uri + "/../x")
        check(refused.wait() != 0, refused.tail())
        after = site.values()
        check(after['ccixfer_sessions_ended_total{status="ok"}'] == 2, f"{after}")
        check(after["ccixfer_sessions"] == 0 and after["ccixfer_sessions_opened_total"] == 2, f"{after}")
        check(after['ccixfer_files_total{outcome="delivered"}'] == 2 and after['ccixfer_files_total{outcome="unchanged"}'] == 2, f"{after}")
        check(after["ccixfer_delivered_bytes_total"] == (5 << 20) + 1, f"{after}")
        check(after["ccixfer_session_duration_seconds_count"] == 2, f"{after}")
        check(after['ccixfer_session_duration_seconds_bucket{le="+Inf"}'] == 2 and after["ccixfer_session_duration_seconds_sum"] > 0, f"{after}")
        check(after['ccixfer_sessions_refused_total{status="not_authorised"}'] == 1, f"{after}")
        check(after["ccixfer_network_received_bytes_total"] > 5 << 20, f"{after}")
        check(after["process_start_time_seconds"] == before["process_start_time_seconds"], "another process")
        for accept, kind in ((OPEN, "application/openmetrics-text; version=1.0.0"), ("text/plain", "text/plain; version=0.0.4")):
            text, said = ask(site.place, accept=accept)
            check(said.startswith(kind) and text.endswith("# EOF\n") == (accept == OPEN), f"{said}: {text[-80:]}")
        promtool = shutil.which("promtool")
        if promtool:
            judged = subprocess.run([promtool, "check", "metrics"], input=ask(site.place)[0], capture_output=True, text=True, check=False)
            check(judged.returncode == 0 and not judged.stdout + judged.stderr, f"{judged}")
        else:
            print("    SKIPPED: promtool is not installed")
        check(site.receiver.stop() == 0, site.receiver.tail())
        with contextlib.suppress(OSError):
            ask(site.place)
            check(False, "it answers still")


def test_metrics__a_router__answers_too():
    with TwoSites("metrics-route") as sites:
        path = sites.lab.directory / "metrics.sock"
        sites.west_config.write_text(sites.west_config.read_text() + f'[metrics]\nlisten = "unix:{path}"\n')
        sites.start_routers()
        receiver = sites.receive()
        source = big_file(sites.lab.directory / "f", 5 << 20)
        check(sites.send(source, native_or_routed(receiver) + "/f").wait() == 0, "the transfer")
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(path))
            one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            said = b"".join(iter(lambda: one.recv(65536), b"")).decode()
        got = values(said.split("\r\n\r\n", 1)[1])
        check(got['ccixfer_build_info{role="router",version="0.1.0"}'] == 1, said)
        came, went = (lambda device: got[f'ccixfer_router_received_bytes_total{{device="{device}"}}'],
                      lambda device: got[f'ccixfer_router_sent_bytes_total{{device="{device}"}}'])
        check(came("lan") >= 5 << 20 and went("wan") >= 5 << 20, said)
        check(came("lan") + came("wan") == went("lan") + went("wan") == got["ccixfer_routed_bytes_total"], said)
        check(got['ccixfer_router_fragment_bytes_total{crossed="0"}'] >= 5 << 20, said)
        check(got["ccixfer_routed_bytes_total"] >= 5 << 20 and "ccixfer_sessions" not in got, said)


def native_or_routed(receiver):
    return next(uri for uri in receiver.uris if uri.startswith("cci://"))


def test_metrics__clients_that_mean_no_good__slow_nobody_down():
    with Lab("metrics-hostile") as lab:
        site = Site(lab)
        host, port = site.place.split(":")
        source = big_file(lab.directory / "f", 24 << 20)
        sender = lab.start(None, "send", "send", "--insecure", "--bwlimit", "16MB/s", source, site.uri + "/f")
        sender.wait_event("session")
        with contextlib.ExitStack() as stack:
            idle = []
            for number in range(300):
                one = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
                idle.append(one)
                with contextlib.suppress(OSError):
                    one.sendall((b"GET /metr", b"\x16\x03\x01\x00\xff", b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", b"")[number % 4])
            check(sender.wait() == 0, sender.tail())
        for path in ("/../../etc/passwd", "/etc/passwd", "/metrics/x"):
            with contextlib.closing(socket.create_connection((host, int(port)), timeout=20)) as one:
                one.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                check(one.recv(4096).startswith(b"HTTP/1.1 404 "), path)
        check(site.values()['ccixfer_sessions_ended_total{status="ok"}'] == 1, f"{site.values()}")


def test_metrics__a_place_that_cannot_be__one_line():
    with Lab("metrics-place") as lab:
        (lab.directory / "root").mkdir()
        for place, code, words in (("0.0.0.0:9464", 1, "metrics.listen"), ("127.0.0.1", 1, "metrics.listen"), ("", 1, "2: metrics.listen")):
            config = lab.file("bad.toml", f'[metrics]\nlisten = "{place}"\n')
            ended = subprocess.run([BINARY, "recv", "-c", config, "--root", lab.directory / "root", "--listen", "127.0.0.1:0", "--insecure"],
                                   capture_output=True, text=True, check=False, timeout=60)
            lines = [line for line in ended.stderr.splitlines() if "WARNING" not in line]
            check(ended.returncode == code and len(lines) == 1 and words in lines[0], f"{place}: {ended}")


def names_asked_for(text):
    """Of metrics, in expressions."""
    return set(re.findall(r"\b(?:ccixfer|process)_[a-z_]+", text))


def test_metrics__example_rules_and_dashboard__ask_for_what_there_is():
    told = set()
    with Lab("metrics-names") as lab:
        site = Site(lab)
        told |= families(ask(site.place)[0])
    with TwoSites("metrics-names-route") as sites:
        path = sites.lab.directory / "metrics.sock"
        sites.west_config.write_text(sites.west_config.read_text() + f'[metrics]\nlisten = "unix:{path}"\n')
        sites.start_routers()
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(path))
            one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            told |= families(b"".join(iter(lambda: one.recv(65536), b"")).decode())
    dashboard = json.loads((REPO / "conf/metrics/grafana.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    expressions += [variable["query"] for variable in dashboard["templating"]["list"]]
    rules = re.findall(r"expr: (.*)", (REPO / "conf/metrics/alerts.yml").read_text())
    check(len(expressions) > 15 and len(rules) > 4, f"{expressions} {rules}")
    for expression in expressions + rules:
        missing = {re.sub("_bucket$", "", name) for name in names_asked_for(expression)} - told
        check(not missing, f"nobody tells {missing}: {expression}")
    # Whoever reads only the manual finds each family that is not a counter of --stats.
    manual = (REPO / "man/ccixfer-metrics.7").read_text()
    for name in told:
        counter = name.removeprefix("ccixfer_").removesuffix("_total")
        check(name in manual or f"The counter {counter} " in HELP[name], f"{name} is not in the manual")


def test_metrics__example_rules__are_what_promtool_takes():
    promtool = shutil.which("promtool")
    if not promtool:
        print("    SKIPPED: promtool is not installed")
        return
    judged = subprocess.run([promtool, "test", "rules", REPO / "conf/metrics/alerts_test.yml"], capture_output=True, text=True, check=False)
    check(judged.returncode == 0, f"{judged}")
