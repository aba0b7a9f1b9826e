"""The examples of conf/security, run as they are: the command lines in their comments, with keys of the tests' own in place of theirs."""
import json
import os
import re
import subprocess

from facility import Facility
from lab import BINARY, Lab, PATIENCE_S, REPO, check, run, same_tree, small_tree
from test_security import Account

EXAMPLES = REPO / "conf/security"


def with_ids(text, ids):
    """The id of each [peer.NAME] is that of the account with this name."""
    lines, name = [], None
    for line in text.splitlines():
        table = re.match(r"\[peer\.([\w-]+)\]", line)
        name = table.group(1) if table else name
        lines.append(re.sub(r'"cx1-[^"]*"', f'"{ids[name]}"', line) if line.startswith("id = ") else line)
    return "\n".join(lines) + "\n"


class Site:
    """Hosts, and a directory of its own for each, in which the files of one example stand with the ids of the accounts here."""

    def __init__(self, lab, example, accounts, places):
        self.lab, self.example, self.places, self.started = lab, EXAMPLES / example, places, []
        self.accounts = {name: Account(lab, name).keygen() for name in accounts}
        self.ids = {name: account.id for name, account in self.accounts.items()}
        self.directory = lab.directory / "files"
        self.directory.mkdir()
        for file in self.example.iterdir():
            (self.directory / file.name).write_text(self.placed(with_ids(file.read_text(), self.ids)))
        (self.directory / "run42").mkdir()
        small_tree(self.directory / "run42/tree", files=20)
        for entry in (self.directory / "run42").rglob("*"):   # set-ID bits are granted to nobody
            if not entry.is_symlink():
                entry.chmod(entry.stat().st_mode & 0o1777)
        self.tree = self.directory / "run42"

    def placed(self, text):
        for example, ours in self.places.items():
            text = text.replace(example, str(ours))
        return text

    def line_of(self, file, command):
        """The command line that a comment of the file gives."""
        found = re.search(rf"ccixfer {command} [^`\n]*", (self.example / file).read_text())
        check(found, f"{file} has no line for {command}")
        return self.placed(found.group(0))

    def begin(self, host, account, line):
        process = subprocess.Popen([*(host.prefix if host else []), "sh", "-c", "exec " + line.replace("ccixfer", str(BINARY), 1)], text=True,
                                   env={**os.environ, **self.accounts[account].env}, cwd=self.directory, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(process)
        return process

    def serve(self, host, account, line):
        process = self.begin(host, account, line)
        said = ""
        while "ready at" not in said:
            piece = process.stderr.readline()
            check(piece != "", f"{line}: ended: {said}")
            said += piece
        return process

    def run(self, host, account, line, code=0):
        process = self.begin(host, account, line)
        out, err = process.communicate(timeout=PATIENCE_S)
        check(process.returncode == code, f"{line}: exit {process.returncode}: {err}")
        return out + err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


class Named:
    """Names of hosts for as long as it lives."""

    def __init__(self, lab, lines):
        self.file = lab.file("hosts", "127.0.0.1 localhost\n" + lines)

    def __enter__(self):
        run("mount", "--bind", self.file, "/etc/hosts")

    def __exit__(self, *_):
        run("umount", "/etc/hosts")


def test_two_people__their_files__carry_a_tree_and_nothing_elsewhere():
    with Lab("people") as lab:
        root = lab.directory / "bob"
        (root / "incoming").mkdir(parents=True)
        with Named(lab, "127.0.0.1 bob.example\n"), Site(lab, "two-people", ("alice", "bob"), {"/home/bob": root}) as site:
            host = lab.host("both")
            site.serve(host, "bob", site.line_of("receiver.toml", "recv"))
            line = site.line_of("sender.toml", "send")
            site.run(host, "alice", line)
            same_tree(site.tree, root / "incoming/from-alice")
            check(site.ids["alice"] in site.run(host, "alice", line.replace("from-alice", "elsewhere"), 42), "who was refused is not said")


def test_facility__its_file__grants_by_certificate_and_by_id():
    with Lab("facility") as lab:
        root = lab.directory / "incoming"
        (root / "published").mkdir(parents=True)
        (root / "published/paper").write_text("x")
        facility = Facility(lab)
        places = {"/etc/ccixfer/host.pem": lab.directory / "host.pem", "/etc/ccixfer/host.key": lab.directory / "host.key",
                  "/etc/ccixfer/facility-ca.pem": facility.ca, "/etc/ccixfer/facility-crl.pem": facility.crl, "/srv/incoming": root}
        names = {"beamline": "daq1.beamline.facility.example", "analysis": "hpc-login.facility.example"}
        with Named(lab, "127.0.0.1 dtn.facility.example\n"), Site(lab, "facility", ("dtn", "guest", "stranger", *names), places) as site:
            host, dtn = lab.host("node"), site.accounts["dtn"]
            facility.certify(dtn, "dtn.facility.example").rename(lab.directory / "host.pem")
            (dtn.own / "identity.key").rename(lab.directory / "host.key")
            for name, certified in names.items():
                site.accounts[name].configure(facility.identity(site.accounts[name], certified))
            for name in ("guest", "stranger"):
                site.accounts[name].knows("tcp://dtn.facility.example:7100", dtn)
            receiver = site.serve(host, "dtn", site.line_of("dtn.toml", "recv"))

            def send(account, path, code=0):
                return site.run(host, account, f"ccixfer send -a run42/ tcp://dtn.facility.example:7100/{path}/", code)

            for account, path in (("beamline", "raw/beamline"), ("analysis", "results"), ("guest", "incoming/guest")):
                send(account, path)
                same_tree(site.tree, root / path)
                send(account, "elsewhere", 42)
            check(site.ids["stranger"] in send("stranger", "results", 42), "who was refused is not said")
            receiver.terminate()
            receiver.wait(PATIENCE_S)
            site.serve(host, "dtn", site.line_of("dtn.toml", "send") + " --listen 0.0.0.0:7100")
            site.run(host, "analysis", "ccixfer recv tcp://dtn.facility.example:7100/published/paper pulled")
            check((site.directory / "pulled/paper").read_text() == "x", "something else came")
            site.run(host, "beamline", "ccixfer recv tcp://dtn.facility.example:7100/published/paper no", 42)


def test_two_organisations__their_files__carry_a_tree_through_both_border_hosts():
    with Lab("organisations") as lab:
        hosts = {name: lab.host(name) for name in ("sender-west", "border-west", "border-east", "receiver-east")}
        lab.wire(hosts["sender-west"], "10.0.0.2/24", hosts["border-west"], "10.0.0.1/24")
        lab.wire(hosts["border-west"], "192.0.2.1/30", hosts["border-east"], "192.0.2.2/30")
        lab.wire(hosts["border-east"], "10.0.0.1/24", hosts["receiver-east"], "10.0.0.2/24")
        root = lab.directory / "incoming"
        root.mkdir()
        places = {"/srv/incoming": root, "/var/log/ccixfer": lab.directory / "log"}
        (lab.directory / "log").mkdir()
        with Site(lab, "two-organisations", (*hosts, "operator", "stranger"), places) as site:
            for name in ("border-west", "border-east"):
                line = site.line_of(f"{name}.toml", "route").replace("audit.log", f"{name}.log")
                check("--insecure" not in line, line)
                site.serve(hosts[name], name, line)
            site.serve(hosts["receiver-east"], "receiver-east", site.line_of("receiver-east.toml", "recv"))
            line = site.line_of("sender-west.toml", "send")
            site.run(hosts["sender-west"], "sender-west", line)
            same_tree(site.tree, root / "incoming/west")
            refused = site.run(hosts["sender-west"], "stranger", line, 42)
            check(site.ids["stranger"] in refused and "route = true" in refused, refused)
            shown = site.run(hosts["sender-west"], "operator", "ccixfer routes tcp://10.0.0.1:7000 -c sender-west.toml")
            check("2:" in shown, shown)
            for name, peer in (("border-west", "sender-west"), ("border-east", "border-west")):
                audited = [json.loads(line) for line in (lab.directory / f"log/{name}.log").read_text().splitlines()]
                check(any(line["name"] == peer and line["direction"] == "route" and line["event"] == "admitted" for line in audited), f"{name}: {audited}")
