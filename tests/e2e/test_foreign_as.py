"""Two organisations' routers and a third that says it is another one: whose records and sources count is decided by who proved what."""
import time

from lab import Lab, check, device, routed
from test_security import Account, ends


def wan(port, autonomous_system, peers=()):
    return device("wan", "127.0.0.1", 9, peers, port, autonomous_system) + "wan = true\n"


class Organisations:
    """AS 3 with a router and a receiver; routers of others dial it. Its grants say which AS each of them may be."""

    def __init__(self, lab, **routers):
        """`routers`: by name the AS that its grant names and the AS that it says it is, on its WAN device and inside."""
        self.lab = lab
        names = ("three", "bob", "alice", *routers)
        self.accounts = {name: Account(lab, name).keygen() for name in names}
        tables = "".join(f'[peer.{name}]\nid = "{self.accounts[name].id}"\nrouter = true\nas = {granted}\n' for name, (granted, _, _) in routers.items())
        self.configure("three", wan(0, 3) + device("lan", "127.0.0.1", 1, [], autonomous_system=3) + tables + self.peer("bob") +
                       self.peer("alice", "route = true\nadmin = true"))
        self.three = self.start("three", "route")
        uris = self.three.wait_event("ready")["uris"]
        self.wan_uri, self.lan_uri = (f"tcp://127.0.0.1:{next(uri for uri in uris if uri.startswith(f'cci://3:{subnet}:')).rsplit(':', 1)[1]}"
                                      for subnet in (9, 1))
        self.others = {}
        for name, (_, outside, inside) in routers.items():
            self.configure(name, wan(0, outside, [self.wan_uri]) + device("lan", "127.0.0.1", 1, [], autonomous_system=inside) +
                           self.peer("three", "router = true\nas = 3") + self.peer("alice", "route = true"))
            self.others[name] = self.start(name, "route", "-v")
            uris = self.others[name].wait_event("ready")["uris"]
            self.others[name].lan_uri = f"tcp://127.0.0.1:{next(uri for uri in uris if uri.startswith(f'cci://{inside}:1:')).rsplit(':', 1)[1]}"
        self.configure("bob", device("x", "127.0.0.1", 1, [self.lan_uri], autonomous_system=3) + self.peer("three", "router = true") +
                       self.peer("alice", 'write = ["."]'))
        self.root = lab.directory / "incoming"
        self.root.mkdir()
        self.receiver = self.start("bob", "recv", "--root", self.root)
        self.uri = routed(self.receiver.wait_event("ready")["uris"])
        self.file = lab.file("f", "x")

    def peer(self, name, grants=""):
        return f'[peer.{name}]\nid = "{self.accounts[name].id}"\n{grants}\n'

    def configure(self, name, text):
        self.accounts[name].configure(text)

    def start(self, name, *arguments):
        return self.lab.start(None, name, *arguments, env=self.accounts[name].env)

    def send(self, router_uri, name, says_as, via, subnet=1):
        """alice's, who is behind that router and says that she is in AS `says_as`."""
        self.configure("alice", device("x", "127.0.0.1", subnet, [router_uri], autonomous_system=says_as) + self.peer(via) + self.peer("bob"))
        return self.start("alice", "send", "--timeout", "20", "--retries", "0", self.file, f"{self.uri}/{name}")

    def records(self):
        """The subnets that the router of AS 3 knows, as it says to who may ask."""
        self.configure("alice", device("x", "127.0.0.1", 1, [self.lan_uri], autonomous_system=3) + self.peer("three"))
        asked = self.start("alice", "routes", self.lan_uri)
        check(asked.wait() == 0, asked.tail())
        return sorted(entry.split()[1].rstrip(",") for event in asked.events if event["event"] == "router" for entry in event["devices"])

    def arrived(self):
        return sorted(path.name for path in self.root.iterdir() if path.name != ".ccixfer")


def lines_with(process, *words):
    return [line for line in process.stderr().splitlines() if all(word in line for word in words)]


def test_router_that_says_it_is_of_another_as__refused_logged_once_and_others_are_served():
    with Lab("foreign") as lab:
        # `nine` is granted AS 4 and configures itself as AS 9; `four` is what it is granted.
        here = Organisations(lab, four=(4, 4, 4), nine=(4, 9, 9))
        # It dials again and again, and is refused each time.
        while len(lines_with(here.others["nine"], "link to", "ended: the peer disconnected")) < 3:
            check(here.others["nine"].process.poll() is None, here.others["nine"].tail())
            time.sleep(0.05)
        ends(here.send(here.others["four"].lan_uri, "from four", 4, "four"), 0)
        # Of what the two said, only the records of AS 4 are there, and what is behind `nine` gets nowhere.
        check(here.records() == ["3:1", "3:9", "4:9"], f"{here.records()}")
        ends(here.send(here.others["nine"].lan_uri, "from nine", 9, "nine"), 43)
        check(here.arrived() == ["from four"], f"{here.arrived()}")
        lines = lines_with(here.three, here.accounts["nine"].id, "may bring AS 4 only, and this is of AS 9")
        check(len(lines) == 1, f"not logged once: {lines}")
        check(here.three.stop() == 0, here.three.tail())
        check(here.three.done()["counters"]["records_rejected"] >= 3, here.three.tail())


def test_source_that_is_elsewhere__refused_by_the_first_router_and_logged():
    with Lab("source") as lab:
        here = Organisations(lab, four=(4, 4, 4))
        # A client says that it is of another AS, or of another subnet, than where it is.
        for says, subnet in ((9, 1), (4, 7)):
            ends(here.send(here.others["four"].lan_uri, "forged", says, "four", subnet), 35, f"it says that it begins in {says}:{subnet}", "4:1")
        ends(here.send(here.others["four"].lan_uri, "true", 4, "four"), 0)
        check(here.arrived() == ["true"], f"{here.arrived()}")
        check(len(lines_with(here.others["four"], "a connect request from", here.accounts["alice"].id, "is refused")) == 1,
              here.others["four"].stderr())


def test_client_on_the_wan__that_says_it_is_of_another_as__refused():
    with Lab("door") as lab:
        here = Organisations(lab)
        here.configure("alice", device("x", "127.0.0.1", 9, [here.wan_uri], autonomous_system=4) + here.peer("three") + here.peer("bob"))
        ends(here.start("alice", "send", "--timeout", "20", "--retries", "0", here.file, f"{here.uri}/f"), 35, "it says that it begins in 4:9", "3:9")
        check(here.arrived() == [], f"{here.arrived()}")
