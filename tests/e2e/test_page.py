"""The status page of [metrics] listen: read and photographed in headless Chromium beside real routers and transfers."""
import contextlib
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import time

import browser as chromium
from lab import BINARY, PATIENCE_S, Lab, TwoSites, big_file, check, leave_out, native, routed
from test_metrics import TOKEN, GuardedSite, ask, free_port, values

WIDTHS = (400, 1600)


def have_browser():
    if chromium.PROGRAM:
        return True
    leave_out("chromium is not installed")
    return False


class Site:
    """A receiver with a status page."""

    def __init__(self, lab, names="true", env=None):
        self.place = f"127.0.0.1:{free_port()}"
        self.root = lab.directory / "root"
        self.root.mkdir()
        line = f"names = {names}\n" if names else ""
        config = lab.file("receiver.toml", f'[metrics]\nlisten = "{self.place}"\n{line}')
        self.receiver = lab.start_ready(None, "recv", "recv", "-c", config, "--root", self.root, "--listen", "127.0.0.1:0", "--insecure", env=env)
        self.uri = native(self.receiver.uris)

    def status(self):
        return json.loads(ask(self.place, "/status.json")[0])


def look_at(page, name, origin):
    """At each width: nothing sticks out, the tables are tables for a screen reader, and nothing came from elsewhere."""
    for width in WIDTHS:
        for dark, colours in ((False, True), (True, True), (False, False)):
            page.set_width(width, dark, colours)
            page.photograph(f"{name}-{width}{'-dark' if dark else ''}{'' if colours else '-without-colours'}")
        wide = page.ask("document.scrollingElement.scrollWidth")
        check(wide <= width, f"{name}: {wide} of {width} pixels")
        nodes = page.call("Accessibility.getFullAXTree")["nodes"]
        roles = {node.get("role", {}).get("value") for node in nodes if not node.get("ignored")}
        check({"heading", "table", "row", "rowheader", "columnheader", "cell", "button", "status"} <= roles, f"{width}: {roles}")
    check(not page.faults(), f"{page.faults()}")
    foreign = [url for url in page.asked() if not url.startswith((origin, "data:", "about:"))]
    check(not foreign, f"asked elsewhere: {foreign}")


def test_page__a_receiver__shows_transfers_what_is_blocked_and_what_has_ended():
    if not have_browser():
        return
    with Lab("page") as lab:
        site = Site(lab)
        source = lab.directory / "run42"
        source.mkdir()
        (source / "g").write_text("content")
        hostile = "d <img src=x onerror=alert(1)> é"
        first = lab.start(None, "first", "send", "--insecure", "-a", f"{source}/", f"{site.uri}/{hostile}/")
        check(first.wait() == 0, first.tail())
        big_file(source / "f", 64 << 20)
        sender = lab.start(None, "send", "send", "--insecure", "--bwlimit", "2MB/s", source / "f", site.uri + "/slow")
        sender.wait_event("session")
        with chromium.Browser(lab.directory) as page:
            origin = f"http://{site.place}/"
            page.open(origin)
            page.await_page("document.querySelector('#transfers tbody tr')?.textContent.includes(' of 67.1 MB')")
            page.await_page("/B\\/s/.test(document.querySelector('#transfers tbody tr').textContent)")
            check(page.ask("document.title") == "ccixfer receiver: 1 transfer", page.ask("document.title"))
            row = page.rows("transfers")[0]
            check(row["Into"] == "slow" and row["State"] == "running" and row["Waits for"] and "of 67.1 MB" in row["Progress"], f"{row}")
            ended = page.rows("ended")
            check(len(ended) == 1 and ended[0]["Result"] == "ok" and ended[0]["Into"].startswith(hostile) and "1 file" in ended[0]["Files"],
                  f"{ended}")
            check(page.ask("document.querySelectorAll('img').length") == 0, "a name became a part of the page")
            look_at(page, "receiver", origin)
            # By the keyboard alone: the button is the first thing that has the focus, and the space bar presses it.
            page.ask("document.activeElement.blur()")
            for key, code in (("Tab", 9), (" ", 32)):
                for kind in ("keyDown", "keyUp"):
                    page.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **({"text": key} if key == " " else {}))
            page.await_page("document.getElementById('state').textContent.startsWith('Paused')")
            page.ask("document.getElementById('pause').click()")
            page.await_page("document.getElementById('state').textContent.startsWith('Live')")
            sender.kill(signal.SIGSTOP)
            page.await_page("document.getElementById('blocked').textContent.includes('nothing has moved for')")
            check("slow" in page.ask("document.getElementById('blocked').textContent"), page.text())
            look_at(page, "receiver-blocked", origin)
            sender.kill(signal.SIGCONT)
            sender.stop()
            page.await_page("document.querySelectorAll('#ended tbody tr').length === 2")
            check(page.rows("ended")[0]["Result"] != "ok", f"{page.rows('ended')}")
            check(site.receiver.stop() == 0, site.receiver.tail())
            page.await_page("document.getElementById('state').textContent.startsWith('Not connected')")


def test_page__history__is_there_after_a_restart():
    with Lab("page-history") as lab:
        site = Site(lab)
        file = big_file(lab.directory / "f", 1 << 20)
        sender = lab.start(None, "send", "send", "--insecure", file, site.uri + "/kept")
        check(sender.wait() == 0, sender.tail())
        check(site.receiver.stop() == 0, site.receiver.tail())
        again = lab.start_ready(None, "again", "recv", "-c", lab.directory / "receiver.toml", "--root", site.root, "--listen",
                                "127.0.0.1:0", "--insecure")
        ended = site.status()["transfers"]["ended"]
        check(len(ended) == 1 and ended[0]["path"] == "kept" and ended[0]["status"] == "ok", f"{ended}")
        check(again.stop() == 0, again.tail())


def test_page__a_router__shows_the_network_and_what_is_blocked():
    if not have_browser():
        return
    with TwoSites("page-route") as sites:
        sites.west_config.write_text(sites.west_config.read_text() + '[metrics]\nlisten = "127.0.0.1:9464"\nnames = true\n')
        sites.start_routers()
        receiver = sites.receive()
        source = big_file(sites.lab.directory / "f", 64 << 20)
        sender = sites.send("--bwlimit", "2MB/s", source, routed(receiver.uris) + "/f")
        sender.wait_event("session")
        with chromium.Browser(sites.lab.directory, sites.west) as page:
            origin = "http://127.0.0.1:9464/"
            page.open(origin)
            page.await_page("/ [kM]B\\/s/.test(document.querySelector('#connections tbody tr')?.textContent)")
            page.await_page("document.querySelectorAll('#routes tbody tr').length >= 4")
            devices = {row["Device"]: row for row in page.rows("devices")}
            check(set(devices) == {"lan", "wan"} and devices["lan"]["Subnet"] == "1:1" and devices["wan"]["State"] == "works", f"{devices}")
            check([row["State"] for row in page.rows("links")] == ["open"], f"{page.rows('links')}")
            routers = page.rows("routers")
            check(len(routers) == 2 and sum("this one" in row["Router"] for row in routers) == 1, f"{routers}")
            check(any(row["Crosses"] == "1:1, 1:9, 1:2" for row in page.rows("routes")), f"{page.rows('routes')}")
            moving = page.rows("connections")[0]
            check("10.0.0.2" in moving["From"] and moving["Devices"] == "lan to wan" and moving["State"] == "open", f"{moving}")
            check(page.ask("document.getElementById('blocked').textContent") == "Nothing.", page.text())
            look_at(page, "router", origin)
            sites.east_router.kill()
            page.await_page("document.getElementById('blocked').textContent.includes('No link to a router')")
            check("not there" in page.rows("links")[0]["State"], f"{page.rows('links')}")
            look_at(page, "router-alone", origin)
        sender.kill()


def test_page__names__are_not_for_every_account_of_the_host():
    with Lab("page-names") as lab:
        site = Site(lab, names=None)
        file = big_file(lab.directory / "secret-name", 1 << 20)
        sender = lab.start(None, "send", "send", "--insecure", file, site.uri + "/secret-place")
        check(sender.wait() == 0, sender.tail())
        status = site.status()
        check(status["names"] is False and len(status["transfers"]["ended"]) == 1, f"{status}")
        for word in ("secret", "127.0.0.1", "tcp:"):
            check(word not in json.dumps(status), f"{word}: {status}")
        check(status["transfers"]["ended"][0]["bytes"] == 1 << 20, f"{status}")


class Account:
    """That runs jobs, and whose receiver has a page."""

    def __init__(self, lab):
        self.lab = lab
        self.state = lab.directory / "state"
        self.history = self.state / "ccixfer/jobs.sqlite"
        self.history.parent.mkdir(parents=True)
        self.env = {"HOME": str(lab.directory), "XDG_STATE_HOME": str(self.state), "XDG_CONFIG_HOME": str(lab.directory / "config")}

    def run(self, name, destination):
        jobs = self.lab.directory / "config/ccixfer/jobs"
        jobs.mkdir(parents=True, exist_ok=True)
        source = self.lab.directory / "run42"
        if not source.exists():
            source.mkdir()
            big_file(source / "f", 1 << 20)
        (jobs / f"{name}.toml").write_text(f'sources = ["{source}/"]\ndestination = "{destination}"\n[options]\narchive = true\ninsecure = true\n')
        unwanted = ("STATE_DIRECTORY", "CCI_CONFIG")
        env = {**{key: value for key, value in os.environ.items() if key not in unwanted}, **self.env}
        return subprocess.run([BINARY, "job", name], env=env, capture_output=True, text=True, check=False, timeout=120)


def runs_of(status):
    return [(run["job"], run["status"]) for run in status["jobs"]["runs"]]


def test_page__runs_of_jobs__are_shown_and_a_bad_history_disturbs_nobody():
    with Lab("page-jobs") as lab:
        account = Account(lab)
        site = Site(lab, env=account.env)
        check(site.status()["jobs"] == {"runs": [], "problem": None}, f"{site.status()}")
        hostile = "night<img src=x onerror=alert(1)>"
        ended = account.run("nightly", site.uri + "/kept/")
        check(ended.returncode == 0, f"{ended}")
        with contextlib.closing(sqlite3.connect(account.history)) as rows, rows:
            rows.execute("INSERT INTO run SELECT NULL, ?, destination, began + 1, ended + 1, 11, 'file_io', 'why <b>not</b>', 0, 0, 1, 0, 0 FROM run",
                         (hostile,))

        def until(wanted, what):
            """It is looked at every few seconds."""
            deadline = time.monotonic() + PATIENCE_S
            while not wanted(status := site.status()):
                check(time.monotonic() < deadline, f"{what}: {status['jobs']}")
                time.sleep(0.2)
            return status["jobs"]
        both = [("nightly", "ok"), (hostile, "file_io")]
        jobs = until(lambda status: runs_of(status) == both, "the runs")
        check(jobs["problem"] is None and jobs["runs"][0]["files"] == 1 and jobs["runs"][0]["bytes"] == 1 << 20, f"{jobs}")
        if have_browser():
            with chromium.Browser(lab.directory) as page:
                origin = f"http://{site.place}/"
                page.open(origin)
                page.await_page("document.querySelectorAll('#runs tbody tr').length === 2")
                rows = page.rows("runs")
                check(rows[0]["Job"] == hostile and rows[0]["Result"] == "file_io (11): why <b>not</b>", f"{rows}")
                check(rows[1]["Job"] == "nightly" and rows[1]["To"].endswith("/kept/") and rows[1]["Result"] == "ok" and rows[1]["Content"] == "1.0 MB",
                      f"{rows}")
                check(page.ask("document.querySelectorAll('img, b').length") == 0, "a name became a part of the page")
                look_at(page, "receiver-jobs", origin)
        # Locked by another process, damaged, a pipe, gone: what was known stays, it is said, and all else goes on.
        with contextlib.closing(sqlite3.connect(account.history, isolation_level=None)) as rows:
            rows.execute("BEGIN EXCLUSIVE")
            jobs = until(lambda status: status["jobs"]["problem"], "locked")
            check(runs_of({"jobs": jobs}) == both, f"{jobs}")
            rows.execute("ROLLBACK")
        until(lambda status: not status["jobs"]["problem"], "no longer locked")
        account.history.write_bytes(b"damaged" * 1000)
        jobs = until(lambda status: status["jobs"]["problem"], "damaged")
        check(runs_of({"jobs": jobs}) == both, f"{jobs}")
        account.history.unlink()
        os.mkfifo(account.history)
        sender = lab.start(None, "send", "send", "--insecure", big_file(lab.directory / "g", 1 << 20), site.uri + "/g")
        check(sender.wait() == 0, sender.tail())
        until(lambda status: status["jobs"]["problem"], "a pipe")
        account.history.unlink()
        until(lambda status: status["jobs"] == {"runs": [], "problem": None}, "gone")
        check(site.receiver.stop() == 0, site.receiver.tail())


def test_page__elsewhere__a_browser_asks_for_the_token_and_shows_the_page_with_it():
    if not have_browser():
        return
    with Lab("page-elsewhere") as lab:
        site = GuardedSite(lab)
        sender = lab.start(None, "send", "send", "--insecure", big_file(lab.directory / "f", 1 << 20), site.uri + "/kept")
        check(sender.wait() == 0, sender.tail())
        with chromium.Browser(lab.directory, options=["--ignore-certificate-errors"]) as page:
            origin = f"https://{site.place}/"
            page.sign_in("anybody", TOKEN)
            page.open(origin)
            page.await_page("document.getElementById('state').textContent.startsWith('Live')")
            page.await_page("document.querySelectorAll('#ended tbody tr').length === 1")
            check(page.rows("ended")[0]["Into"] == "kept", f"{page.rows('ended')}")   # who has the token sees names
            foreign = [url for url in page.asked() if not url.startswith((origin, "data:", "about:"))]
            check(not foreign, f"asked elsewhere: {foreign}")


def connect(place):
    host, port = place.split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def test_page__bad_input__is_refused_and_a_transfer_goes_on():
    with Lab("page-hostile") as lab:
        site = Site(lab)
        source = big_file(lab.directory / "f", 24 << 20)
        sender = lab.start(None, "send", "send", "--insecure", "--bwlimit", "16MB/s", source, site.uri + "/f")
        sender.wait_event("session")
        chance = random.Random(7)
        with contextlib.ExitStack() as stack:
            # A thousand idle ones, and the first bytes of a request that never comes, of each kind.
            for number in range(1000):
                one = stack.enter_context(connect(site.place))
                with contextlib.suppress(OSError):
                    one.sendall((b"", b"GET /even", chance.randbytes(200), b"GET /events HTTP/1.1\r\nHost: loc")[number % 4])
            check(sender.wait() == 0, sender.tail())
        # Its places are free again, and it answers.
        check(site.status()["transfers"]["ended"][0]["status"] == "ok", "the transfer")
        for path in ("/../status.json", "/..%2f..%2fetc/passwd", "//etc/passwd", "/status.json/../../etc/passwd", "/%00", "/events/x"):
            with contextlib.closing(connect(site.place)) as one:
                one.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                check(one.recv(4096).startswith(b"HTTP/1.1 404 "), path)
        # A request of 1 GiB is hung up on long before its end.
        for begin in (b"GET /" + b"x" * 4000, b"GET /status.json HTTP/1.1\r\nX: ", b"POST /status.json HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n"):
            sent = 0
            with contextlib.closing(connect(site.place)) as one, contextlib.suppress(ConnectionError):
                one.sendall(begin)
                while sent < 1 << 30:
                    sent += one.send(b"x" * 65536)
            check(sent < 64 << 20, f"{begin[:20]}: it took {sent} bytes")
        for request, code in ((b"GET /status.json HTTP/1.1\r\nHost: rebound.example\r\n\r\n", b"421"),
                              (b"GET / HTTP/1.1\r\nHost: rebound.example\r\n\r\n", b"421"),
                              (b"GET /events HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n", b"403"),
                              (b"PUT /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n", b"405")):
            with contextlib.closing(connect(site.place)) as one:
                one.sendall(request)
                check(one.recv(4096).startswith(b"HTTP/1.1 " + code), f"{request}")


def test_page__events__come_as_long_as_somebody_listens():
    with Lab("page-events") as lab:
        site = Site(lab)
        with contextlib.closing(connect(site.place)) as one:
            one.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            lines = one.makefile()
            heard = []
            while len(heard) < 3:
                line = lines.readline()
                check(line, "the events ended")
                if line.startswith("data: "):
                    heard.append(json.loads(line[6:])["uptime_s"])
            check(heard == sorted(set(heard)), f"{heard}")
        check(values(ask(site.place)[0])["ccixfer_sessions"] == 0, "the metrics")
