"""[metrics] listen: what a receiver and a router say over HTTP, and to whom."""
import base64
import contextlib
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

from authority import Authority
from lab import BINARY, PATIENCE_S, REPO, Lab, TwoSites, big_file, check, leave_out, native, run

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
        check(after["ccixfer_disk_written_bytes_total"] >= (5 << 20) + 1, f"{after}")
        check(all(after[f'ccixfer_disk_call_duration_seconds_count{{call="{call}"}}'] > 0 for call in ("write", "sync")), f"{after}")
        check(after["process_start_time_seconds"] == before["process_start_time_seconds"], "another process")
        for accept, kind in ((OPEN, "application/openmetrics-text; version=1.0.0"), ("text/plain", "text/plain; version=0.0.4")):
            text, said = ask(site.place, accept=accept)
            check(said.startswith(kind) and text.endswith("# EOF\n") == (accept == OPEN), f"{said}: {text[-80:]}")
        if promtool():
            judged = subprocess.run([promtool(), "check", "metrics"], input=ask(site.place)[0], capture_output=True, text=True, check=False)
            check(judged.returncode == 0 and not judged.stdout + judged.stderr, f"{judged}")
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
        nowhere = sites.send(source, "cci://1:77:10.9.9.9:7000/f", "--timeout", "1")
        check(nowhere.wait() != 0, nowhere.tail())
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
        check(got['ccixfer_router_refused_total{reason="no_way"}'] > 0 and got['ccixfer_router_refused_total{reason="full"}'] == 0, said)
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
        for place, code, words in (("0.0.0.0:9464", 1, "bad.toml:2: metrics.listen"), ("127.0.0.1", 1, "bad.toml:2: metrics.listen"),
                                   ("", 1, "bad.toml:2: metrics.listen")):
            config = lab.file("bad.toml", f'[metrics]\nlisten = "{place}"\n')
            ended = subprocess.run([BINARY, "recv", "-c", config, "--root", lab.directory / "root", "--listen", "127.0.0.1:0", "--insecure"],
                                   capture_output=True, text=True, check=False, timeout=60)
            lines = [line for line in ended.stderr.splitlines() if "WARNING" not in line]
            check(ended.returncode == code and len(lines) == 1 and words in lines[0], f"{place}: {ended}")


ELSEWHERE = "192.0.2.7"   # an address of this host that is not its loopback's
TOKEN = "c0ffee" * 5


class GuardedSite:
    """A receiver that answers on a network: who has the token, over TLS with a certificate of the facility."""

    def __init__(self, lab, names=""):
        run("ip", "addr", "replace", ELSEWHERE + "/32", "dev", "lo")
        self.lab, self.authority = lab, Authority(lab.directory / "authority")
        self.renew(TOKEN)
        with socket.socket() as one:
            one.bind((ELSEWHERE, 0))
            self.place = f"{ELSEWHERE}:{one.getsockname()[1]}"
        self.root = lab.directory / "root"
        self.root.mkdir()
        self.config = lab.file("receiver.toml", self.table(names))
        self.receiver = lab.start_ready(None, "recv", "recv", "-c", self.config, "--root", self.root, "--listen", "127.0.0.1:0", "--insecure")
        self.uri = native(self.receiver.uris)

    def table(self, more=""):
        return (f'[metrics]\nlisten = "{self.place}"\ncertificate = "authority/web.pem"\nkey = "authority/web.key"\n'
                f'token = "{self.lab.directory}/token"\n{more}')

    def renew(self, token):
        """A new certificate and a new token, as what renews them does: a file takes the place of another."""
        now = time.time()
        self.authority.issue("web", time.gmtime(now - 3600), time.gmtime(now + 86400), f"IP:{ELSEWHERE}")
        path = self.lab.file("token.new", token + "\n")
        path.chmod(0o600)
        path.rename(self.lab.directory / "token")

    def tls(self):
        return ssl.create_default_context(cafile=self.authority.directory / "ca.pem")

    def connect(self, context=None):
        host, port = self.place.rsplit(":", 1)
        return (context or self.tls()).wrap_socket(socket.create_connection((host, int(port)), timeout=60), server_hostname=host)

    def ask(self, path="/metrics", authorization=None):
        """The status, and what it said."""
        request = urllib.request.Request(f"https://{self.place}{path}", headers={"Authorization": authorization} if authorization else {})
        try:
            with urllib.request.urlopen(request, timeout=60, context=self.tls()) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            check("Basic" in refused.headers.get_all("WWW-Authenticate", [""])[-1] or refused.code != 401, f"{refused.headers}")
            return refused.code, refused.read().decode()


def bearer(token):
    return "Bearer " + token


def test_metrics__elsewhere__whoever_has_the_token_is_answered_over_tls():
    with Lab("metrics-elsewhere") as lab:
        site = GuardedSite(lab)
        host, port = site.place.rsplit(":", 1)
        slow = socket.create_connection((host, int(port)), timeout=60)
        slow.sendall(b"\x16\x03\x01\x02\x00\x01")   # the begin of a handshake, and no more of it
        basic = "Basic " + base64.b64encode(f"prometheus:{TOKEN}".encode()).decode()
        for path in ("/", "/metrics", "/status.json"):
            for said in (None, bearer("c0ffee"), bearer(TOKEN + "x"), "Basic " + base64.b64encode(b"prometheus:c0ffee").decode()):
                check(site.ask(path, said)[0] == 401, f"{path} {said}")
            for said in (bearer(TOKEN), basic):
                check(site.ask(path, said)[0] == 200, f"{path} {said}")
        # Nothing of it is to be had without TLS, or with an older one.
        with socket.create_connection((host, int(port)), timeout=60) as plain:
            plain.sendall(f"GET /metrics HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            check(b"ccixfer" not in plain.recv(65536), "an answer without TLS")
        older = site.tls()
        older.maximum_version = ssl.TLSVersion.TLSv1_2
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            site.connect(older)
            check(False, "TLS 1.2 is spoken")
        # The page has names for who knows the token, and its events come over TLS too.
        status = json.loads(site.ask("/status.json", bearer(TOKEN))[1])
        check(status["names"] is True and status["role"] == "receiver", f"{status}")
        with site.connect() as one:
            one.sendall(f"GET /events HTTP/1.1\r\nHost: {site.place}\r\nAuthorization: {bearer(TOKEN)}\r\n\r\n".encode())
            lines = one.makefile()
            check(any(json.loads(line[6:])["role"] == "receiver" for line in lines if line.startswith("data: ")), "no event")
        got = values(site.ask("/metrics", bearer(TOKEN))[1])
        counted = {reason: got[f'ccixfer_metrics_refused_total{{reason="{reason}"}}'] for reason in ("no_token", "wrong_token", "no_place")}
        check(counted == {"no_token": 3, "wrong_token": 9, "no_place": 0}, f"{counted}")
        check(slow.recv(1) == b"", "a handshake may last for ever")
        check(values(site.ask("/metrics", bearer(TOKEN))[1])['ccixfer_metrics_refused_total{reason="no_tls"}'] == 3, "it is not counted")
        for secret in (TOKEN, "PRIVATE KEY"):
            check(secret not in site.receiver.stderr(), "a secret in the log")
        slow.close()


def test_metrics__elsewhere__a_new_certificate_and_token_count_from_sighup_on():
    with Lab("metrics-renew") as lab:
        site = GuardedSite(lab)

        def shown():
            with site.connect() as one:
                return one.getpeercert()["serialNumber"]
        first = shown()
        site.renew("decaf" * 6)
        check(shown() == first and site.ask(authorization=bearer(TOKEN))[0] == 200, "before SIGHUP")
        site.receiver.kill(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE_S
        while site.ask(authorization=bearer("decaf" * 6))[0] != 200:
            check(time.monotonic() < deadline, site.receiver.tail())
            time.sleep(0.1)
        check(shown() != first and site.ask(authorization=bearer(TOKEN))[0] == 401, "the old ones count still")
        # What cannot be used changes nothing.
        (lab.directory / "token").chmod(0o644)
        site.receiver.kill(signal.SIGHUP)
        while "not reloaded" not in site.receiver.stderr():
            check(time.monotonic() < deadline, site.receiver.tail())
            time.sleep(0.05)
        check(site.ask(authorization=bearer("decaf" * 6))[0] == 200, "the token")


def test_metrics__elsewhere__without_what_guards_it_is_refused_by_file_line_and_key():
    with Lab("metrics-guard") as lab:
        site = GuardedSite(lab)
        check(site.receiver.stop() == 0, site.receiver.tail())
        whole = site.table()

        def said(text):
            ended = subprocess.run([BINARY, "recv", "-c", lab.file("receiver.toml", text), "--root", site.root, "--listen", "127.0.0.1:0", "--insecure"],
                                   capture_output=True, text=True, check=False, timeout=60)
            lines = [line for line in ended.stderr.splitlines() if "WARNING" not in line]
            check(ended.returncode == 1 and len(lines) == 1 and TOKEN not in lines[0], f"{ended}")
            return lines[0]
        for key, line in (("certificate", 3), ("key", 4), ("token", 5)):
            without = "".join(one + "\n" for one in whole.splitlines() if not one.startswith(key))
            check(f"receiver.toml:2: metrics.listen: '{site.place}' is not of this host alone, and {key} is missing" in said(without), key)
            gone = whole.replace("web.pem" if key == "certificate" else "web.key" if key == "key" else "/token", "/nowhere")
            words = said(gone)
            check(f"receiver.toml:{line}: metrics.{key}: " in words and "there is no such file" in words, words)
        for key, path in (("key", site.authority.directory / "web.key"), ("token", lab.directory / "token")):
            path.chmod(0o640)
            words = said(whole)
            check(f"metrics.{key}: " in words and "others may read it: chmod 600" in words, words)
            path.chmod(0o600)
        (lab.directory / "token").write_text("short\n")
        check("metrics.token: " in (words := said(whole)) and "20 to 1024 characters" in words, words)
        site.authority.key("other.key")
        check("metrics.certificate: " in (words := said(whole.replace("web.key", "other.key"))) and "not that of the key" in words, words)


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


def promtool():
    """The host's, or the one that ./do deps has unpacked."""
    program = shutil.which("promtool") or shutil.which(REPO / "build/prometheus/usr/bin/promtool")
    if program is None:
        leave_out("no promtool here: ./do deps unpacks it")
    return program


def test_metrics__each_example_rule__has_a_case_in_which_it_fires():
    """A rule that can never fire passes each case that expects no alert."""
    rules = re.findall(r"- alert: (.*)", (REPO / "conf/metrics/alerts.yml").read_text())
    cases = re.findall(r"alertname: (\w+)\n *exp_alerts:\n *- exp_labels", (REPO / "conf/metrics/alerts_test.yml").read_text())
    check(rules and set(rules) == set(cases), f"{set(rules) ^ set(cases)}")


def test_metrics__example_rules__are_what_promtool_takes():
    if not promtool():
        return
    judged = subprocess.run([promtool(), "test", "rules", REPO / "conf/metrics/alerts_test.yml"], capture_output=True, text=True, check=False)
    check(judged.returncode == 0, f"{judged}")
