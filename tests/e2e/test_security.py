"""Encrypted transfers as users and strangers meet them: identities, tickets, grants, and who is refused with which words."""
import json
import os
import pathlib
import signal
import subprocess

from lab import BINARY, Lab, TwoSites, big_file, check, native, routed, run, same_tree, small_tree


class Account:
    """A user's own configuration and state, as --json commands of the lab and plain ones use them."""

    def __init__(self, lab, name):
        self.directory = lab.directory / f"account-{name}"
        self.env = {"XDG_CONFIG_HOME": str(self.directory / "config"), "XDG_STATE_HOME": str(self.directory / "state")}
        self.own = self.directory / "config/ccixfer"

    def run(self, *arguments, **options):
        return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **self.env}, check=False,
                              stdin=subprocess.DEVNULL, timeout=120, **options)

    def keygen(self):
        made = self.run("keygen")
        check(made.returncode == 0, made.stderr)
        self.id = self.run("id").stdout.strip()
        check(self.id.startswith("cx1-"), self.id)
        return self

    def knows(self, address, other):
        with open(self.own / "known_peers", "a") as file:
            file.write(f"{address} {other.id}\n")

    def configure(self, text):
        (self.own / "ccixfer.toml").write_text(text)


def ends(process, code, *words):
    check(process.wait() == code, f"not {code}: {process.tail()}")
    for word in words:
        check(word in process.stderr(), f"{word!r} is not said: {process.tail()}")


class Pair:
    """A receiver that grants alice x/, and alice, who knows it."""

    def __init__(self, lab, options=(), grants='write = ["x/"]\nsetid = true', host=None, listen="127.0.0.1:0"):
        self.lab = lab
        self.alice, self.bob = Account(lab, "alice").keygen(), Account(lab, "bob").keygen()
        self.bob.configure(f'[peer.alice]\nid = "{self.alice.id}"\n{grants}\n')
        self.root = lab.directory / "incoming"
        self.root.mkdir()
        self.receiver = lab.start_ready(host, "recv", "recv", "--root", self.root, "--listen", listen, *options, env=self.bob.env)
        self.uri = native(self.receiver.uris)
        self.alice.knows(self.uri, self.bob)

    def send(self, *arguments, account=None, name="send"):
        return self.lab.start(None, name, "send", *arguments, env=(account or self.alice).env)


def test_secured__push_and_second_run__identical_and_audited():
    with Lab("secured") as lab:
        source = small_tree(lab.directory / "tree")
        pair = Pair(lab, ("--audit-log", lab.directory / "audit", "--log-file", lab.directory / "log"))
        for wanted in (0, 0):
            sender = pair.send("-a", f"{source}/", pair.uri + "/x/")
            ends(sender, wanted)
            check(sender.wait_event("session")["identity"] == pair.bob.id, f"{sender.events}")
        check(pair.receiver.wait_event("session")["identity"] == pair.alice.id, f"{pair.receiver.events}")
        same_tree(source, pair.root / "x")
        stranger = Account(lab, "eve").keygen()
        stranger.knows(pair.uri, pair.bob)
        ends(pair.send("-a", f"{source}/", pair.uri + "/x/", account=stranger), 42, stranger.id, "[peer.NAME]", "write")
        pair.receiver.stop()
        lines = [json.loads(line) for line in (lab.directory / "audit").read_text().splitlines()]
        check([(line["event"], line["peer"], line["name"], line["path"]) for line in lines] ==
              [("session", pair.alice.id, "alice", "x")] * 2 + [("refused", stranger.id, "", "x")], f"{lines}")
        check((lab.directory / "log").read_text().count("transfer from alice into x ended well: ") == 2, "the log does not name alice")
        check(pair.receiver.done()["counters"]["segments_bad"] == 0, "something came damaged")


class SecuredSites:
    """Two sites with a border host each, where every process has an identity and knows its neighbours, and no others."""

    def __init__(self, sites):
        self.sites, lab = sites, sites.lab
        names = ("alice", "west", "east", "bob")
        self.alice, self.west, self.east, self.bob = accounts = [Account(lab, name).keygen() for name in names]
        grants = {"alice": {"west": ""}, "west": {"alice": "route = true\nadmin = true", "east": "router = true"},
                  "east": {"west": "router = true", "bob": ""}, "bob": {"east": "router = true", "alice": 'write = ["."]\nsetid = true'}}
        configs = (sites.sender_config, sites.west_config, sites.east_config, sites.receiver_config)
        for account, config, name in zip(accounts, configs, names):
            account.config = config
            with open(config, "a") as file:
                for peer, lines in grants[name].items():
                    file.write(f'[peer.{peer}]\nid = "{accounts[names.index(peer)].id}"\n{lines}\n')

    def start(self, host, account, name, *arguments):
        return self.sites.lab.start(host, name, *arguments, "-c", account.config, env=account.env)

    def start_all(self, options=None):
        """`options`: more of them for a router, by its name."""
        sites = self.sites
        for host, account, name in ((sites.west, self.west, "west"), (sites.east, self.east, "east")):
            router = self.start(host, account, name, "route", *(options or {}).get(name, ()))
            router.wait_event("ready")
            sites.routers.append(router)
        sites.root = sites.lab.directory / "incoming"
        sites.root.mkdir()
        self.receiver = self.start(sites.receiver, self.bob, "recv", "recv", "--root", sites.root)
        self.uri = routed(self.receiver.wait_event("ready")["uris"])
        self.alice.knows(self.uri, self.bob)

    def send(self, *arguments, account=None, name="send"):
        return self.start(self.sites.sender, account or self.alice, name, "send", *arguments)


def test_secured__through_two_routers__identical_and_every_hop_is_proved():
    with TwoSites("sealed") as sites:
        secured = SecuredSites(sites)
        source = small_tree(sites.lab.directory / "tree")
        secured.start_all()
        ends(secured.send("-a", f"{source}/", secured.uri + "/tree/"), 0)
        same_tree(source, sites.root / "tree")
        ping = secured.start(sites.sender, secured.alice, "ping", "ping", secured.uri)
        ends(ping, 0)
        hops = ping.wait_event("ping")["path"]
        # Those beyond the first are shortened on their way.
        wanted = (secured.west.id, secured.east.id, secured.bob.id)
        check(len(hops) == 3 and all(hop["protection"] and len(hop["peer"]) >= 18 and peer.startswith(hop["peer"])
                                     for peer, hop in zip(wanted, hops)), f"{hops}")
        routes = secured.start(sites.sender, secured.alice, "routes", "routes", "tcp://10.0.0.1:7000")
        ends(routes, 0)


def test_secured_routers__strangers_and_those_without_a_grant__are_refused():
    with TwoSites("strangers") as sites:
        secured = SecuredSites(sites)
        file = sites.lab.file("f", "x")
        secured.start_all()
        ends(secured.send(file, secured.uri + "/f"), 0)
        # Another account of the same host, which knows the router, and the router does not know it.
        eve = Account(sites.lab, "eve").keygen()
        eve.config = secured.alice.config
        eve.knows(secured.uri, secured.bob)
        ends(secured.send(file, secured.uri + "/g", account=eve, name="eve"), 42, eve.id, "route = true")
        plain = sites.lab.start(sites.sender, "plain", "send", "--insecure", "-c", secured.alice.config, file, secured.uri + "/h")
        ends(plain, 41, "--insecure")
        check(sorted(path.name for path in sites.root.iterdir() if path.name != ".ccixfer") == ["f"], "something else arrived")


def test_secured__receiver_killed_and_started_again__the_same_send_finishes():
    with Lab("killed") as lab:
        source = lab.directory / "tree"
        source.mkdir()
        big_file(source / "large", 256 << 20)
        pair = Pair(lab)
        port = pair.uri.rsplit(":", 1)[1]
        sender = pair.send("-a", "--bwlimit", "100MB/s", f"{source}/", pair.uri + "/x/")
        sender.wait_event("progress", lambda event: event["bytes"] > 16 << 20)
        pair.receiver.kill()
        pair.receiver.wait()
        again = lab.start_ready(None, "again", "recv", "--root", pair.root, "--listen", f"127.0.0.1:{port}", env=pair.bob.env)
        ends(sender, 0)
        same_tree(source, pair.root / "x")
        check(again.stop() == 0, again.tail())


def test_secured__pull__identical_and_nothing_without_a_grant():
    with Lab("pull") as lab:
        source = small_tree(lab.directory / "served" / "run")
        alice, bob = Account(lab, "alice").keygen(), Account(lab, "bob").keygen()
        bob.configure(f'[peer.alice]\nid = "{alice.id}"\nread = ["run/"]\n')
        server = lab.start_ready(None, "serve", "send", "--serve", lab.directory / "served", "--listen", "127.0.0.1:0", env=bob.env)
        uri = native(server.uris)
        alice.knows(uri, bob)
        ends(lab.start(None, "recv", "recv", "-a", uri + "/run/", lab.directory / "pulled", env=alice.env), 0)
        same_tree(source, lab.directory / "pulled")
        ends(lab.start(None, "recv", "recv", "-a", uri + "/", lab.directory / "all", env=alice.env), 42, "read", alice.id)
        check(not (lab.directory / "all").exists(), "what was refused left a directory")


def test_ticket__one_transfer_and_an_interrupted_one_resumes__then_used_up():
    with Lab("ticket") as lab:
        source = lab.directory / "tree"
        source.mkdir()
        big_file(source / "large", 128 << 20)
        root = lab.directory / "incoming"
        root.mkdir()
        bob, alice = Account(lab, "bob"), Account(lab, "alice")
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--ticket", "--listen", "127.0.0.1:0", env=bob.env)
        lines = []
        while not lines:   # it is said right behind `ready`, on standard error, since standard output has events only
            lines = [line for line in receiver.stderr().splitlines() if line.startswith("cxt1")]
        ticket = lab.file("the ticket", lines[0] + "\n")
        check(not any("cxt1" in json.dumps(event) for event in receiver.events), "the ticket is in an event")
        ends(lab.start(None, "dry", "send", "-a", "-n", f"{source}/", f"@{ticket}", env=alice.env), 0)   # takes no use of it
        killed = lab.start(None, "killed", "send", "-a", "--bwlimit", "50MB/s", f"{source}/", f"@{ticket}", env=alice.env)
        killed.wait_event("progress", lambda event: event["bytes"] > 8 << 20)
        killed.kill()
        killed.wait()
        ends(lab.start(None, "send", "send", "-a", f"{source}/", lines[0], env=alice.env), 0)
        same_tree(source, root)
        ends(lab.start(None, "late", "send", "-a", f"{source}/", f"@{ticket}", env=alice.env), 41, "used up")
        mistyped = alice.run("send", source / "large", lines[0][:-1] + ("a" if lines[0][-1] != "a" else "b"))
        check(mistyped.returncode == 1 and lines[0][10:30] not in mistyped.stderr, f"{mistyped.returncode}: {mistyped.stderr}")
        insecure = alice.run("send", "--insecure", source / "large", lines[0])
        check(insecure.returncode == 41 and "--insecure" in insecure.stderr, f"{insecure.returncode}: {insecure.stderr}")
        check(not alice.directory.exists(), "a sender with a ticket kept something")


def test_ticket__that_cannot_be_printed__11_and_nobody_is_waited_for():
    with Lab("no-ticket") as lab:
        root = lab.directory / "incoming"
        root.mkdir()
        bob = Account(lab, "bob")
        with open("/dev/full", "w") as full:
            ended = subprocess.run([BINARY, "recv", "--root", root, "--ticket", "--listen", "127.0.0.1:0"], stdout=full, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, **bob.env}, check=False, stdin=subprocess.DEVNULL, timeout=120)
        check(ended.returncode == 11 and "cannot print the ticket: standard output: No space left on device" in ended.stderr,
              f"{ended.returncode}: {ended.stderr}")
        check("cxt1" not in ended.stderr, ended.stderr)


def test_ticket__expired_or_for_another_root__41():
    with Lab("expired") as lab:
        file = lab.file("f", "x")
        for name in ("one", "two"):
            (lab.directory / name).mkdir()
        bob, alice = Account(lab, "bob"), Account(lab, "alice")
        first = lab.start_ready(None, "recv", "recv", "--root", lab.directory / "one", "--ticket", "--expires", "1s", "--listen",
                                "127.0.0.1:0", env=bob.env)
        uri = native(first.uris)
        while not (lines := [line for line in first.stderr().splitlines() if line.startswith("cxt1")]):
            pass
        # With a clock a day ahead the sender says so before it dials.
        ahead = subprocess.run(["faketime", "+1 day", str(BINARY), "send", str(file), lines[0]], capture_output=True, text=True, check=False,
                               env={**os.environ, **alice.env}) if pathlib.Path("/usr/bin/faketime").exists() else None
        check(ahead is None or (ahead.returncode == 41 and "expired" in ahead.stderr), f"{ahead}")
        first.stop()
        second = lab.start_ready(None, "recv", "recv", "--root", lab.directory / "two", "--ticket", "--listen",
                                 "127.0.0.1:" + uri.rsplit(":", 1)[1], env=bob.env)
        ended = lab.start(None, "send", "send", file, lines[0], env=alice.env)
        check(ended.wait() == 41, ended.tail())
        check(not list((lab.directory / "two").glob("f")), "it arrived in another root")
        second.stop()


def test_wrong_pin_unknown_peer_and_mixed_modes__refused_with_the_remedy():
    with Lab("pins") as lab:
        file = lab.file("f", "x")
        pair = Pair(lab)
        other = Account(lab, "other").keygen()
        # The address had another identity: both ids are said, and the file to look into.
        (pair.alice.own / "known_peers").write_text(f"{pair.uri} {other.id}\n")
        ends(pair.send(file, pair.uri + "/x/f"), 41, other.id, pair.bob.id, "known_peers")
        (pair.alice.own / "known_peers").write_text("")
        ends(pair.send(file, pair.uri + "/x/f", name="unknown"), 41, pair.bob.id, "known_peers")
        ends(pair.send("--insecure", file, pair.uri + "/x/f", name="plain"), 41, "--insecure")
        root = lab.directory / "open"
        root.mkdir()
        plain = lab.start_ready(None, "recv", "recv", "--root", root, "--insecure", "--listen", "127.0.0.1:0")
        pair.alice.knows(native(plain.uris), pair.bob)
        ends(pair.send(file, native(plain.uris) + "/f", name="sealed"), 41, "--insecure")
        check(not (pair.root / "x").exists() and not (root / "f").exists(), "something arrived")


def test_grants__limits_of_paths_quota_entries_and_set_id__hold():
    with Lab("grants") as lab:
        source = lab.directory / "tree"
        source.mkdir()
        for index in range(5):
            (source / f"f{index}").write_bytes(b"x" * 1000)
        (source / "f0").chmod(0o4755)
        pair = Pair(lab, grants='write = ["x/"]\nquota = "10KB"\nentries = 8')
        ends(pair.send("-a", f"{source}/", pair.uri + "/x/"), 23, "setid = true")
        check((pair.root / "x/f0").stat().st_mode & 0o7777 == 0o755, "a set-user-ID bit came through")
        for path in ("/", "/xy/", "/y/"):
            ends(pair.send("-a", f"{source}/", pair.uri + path, name="elsewhere"), 42, pair.alice.id)
        check(sorted(entry.name for entry in pair.root.iterdir() if entry.name != ".ccixfer") == ["x"], "something arrived elsewhere")
        (source / "big").write_bytes(b"x" * 10_001)
        ends(pair.send("-a", f"{source}/", pair.uri + "/x/", name="quota"), 44, "quota")
        (source / "big").unlink()
        for index in range(5, 12):
            (source / f"f{index}").write_bytes(b"x")
        ends(pair.send("-a", f"{source}/", pair.uri + "/x/", name="entries"), 42, "entries")
        # More is granted from SIGHUP on, without a restart.
        pair.bob.configure(f'[peer.alice]\nid = "{pair.alice.id}"\nwrite = ["x/"]\nsetid = true\n')
        pair.receiver.kill(signal.SIGHUP)
        ended = pair.send("-a", f"{source}/", pair.uri + "/x/", name="more")
        while ended.wait() == 42:   # the signal and the connection race
            ended = pair.send("-a", f"{source}/", pair.uri + "/x/", name="more")
        check(ended.process.returncode == 0, ended.tail())
        check((pair.root / "x/f0").stat().st_mode & 0o7777 == 0o4755, "setid = true counts for nothing")


def test_files_of_trust_that_others_may_use__refused():
    with Lab("modes") as lab:
        alice = Account(lab, "alice").keygen()
        key = alice.own / "identity.key"
        check(key.stat().st_mode & 0o777 == 0o600, "keygen makes a key that others may read")
        check(alice.run("keygen").returncode == 1, "keygen overwrites a key")
        file = lab.file("f", "x")
        for damage, word in ((lambda: key.chmod(0o640), "chmod"), (lambda: (key.chmod(0o600), key.write_text("nonsense")), "identity.key")):
            damage()
            ended = alice.run("send", file, "tcp://127.0.0.1:9/f")
            check(ended.returncode == 1 and word in ended.stderr and len(ended.stderr.strip().splitlines()) == 1,
                  f"{ended.returncode}: {ended.stderr}")


def test_openssl_without_ed25519__said_in_one_line():
    """As in FIPS mode: an openssl.cnf whose default properties no provider of this host has."""
    with Lab("fips") as lab:
        alice, bob = Account(lab, "alice").keygen(), Account(lab, "bob")
        configuration = lab.file("openssl.cnf", "openssl_conf = all\n[all]\nalg_section = algorithms\n[algorithms]\ndefault_properties = fips=yes\n")
        for account in (alice, bob):
            account.env["OPENSSL_CONF"] = str(configuration)
        for account, arguments, words in ((bob, ("keygen",), "offers no Ed25519 (FIPS mode?)"),
                                          (alice, ("id",), "does not offer (FIPS mode?)")):
            ended = account.run(*arguments)
            check(ended.returncode == 1 and words in ended.stderr and len(ended.stderr.strip().splitlines()) == 1,
                  f"{arguments}: {ended.returncode}: {ended.stderr}")


def test_half_open_handshakes__hundreds__keep_nobody_out():
    import socket
    with Lab("halfopen") as lab:
        source = small_tree(lab.directory / "tree", files=20)
        pair = Pair(lab)
        host, port = pair.uri.removeprefix("tcp://").rsplit(":", 1)
        silent = [socket.create_connection((host, int(port))) for _ in range(400)]
        for index, one in enumerate(silent):
            one.sendall(bytes([index % 256]) * (index % 7))
        ends(pair.send("-a", f"{source}/", pair.uri + "/x/"), 0)
        same_tree(source, pair.root / "x")
        for one in silent:
            one.close()
