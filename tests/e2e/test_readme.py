"""Every command line of README.md, as it stands there, on hosts as README draws them."""
import os
import re
import shutil
import subprocess

from lab import BINARY, Lab, PATIENCE_S, REPO, check, run, same_tree, small_tree
from test_examples import with_ids

# Not run here: .ci/run does them, or they change the machine. (What they install: the tests below.)
ELSEWHERE = {
    "./do demo", "./do test", "./do package", "apt install ./build/package/ccixfer_*.deb",   # tests/package does these two
    "./do install /usr", "useradd --system --shell /usr/sbin/nologin ccixfer",
    "install -d -o ccixfer /etc/ccixfer", "install -m 644 conf/border-west.toml /etc/ccixfer/border.toml",
    "install -m 644 conf/receiver.toml /etc/ccixfer/receiver.toml", "runuser -u ccixfer -- ccixfer keygen --out /etc/ccixfer/identity.key",
    "install -d -o ccixfer -g ccixfer /srv/incoming", "systemctl enable --now ccixfer-route", "systemctl enable --now ccixfer-recv",
    "install -d -o alice -m 700 /etc/ccixfer/alice /srv/ccixfer/alice",
    "runuser -u alice -- ccixfer keygen --out /etc/ccixfer/alice/identity.key", "systemctl enable --now ccixfer-recv@alice",
}


def bare(toml):
    return "".join(line.split("#")[0] for line in toml.splitlines()).replace(" ", "")


def command_lines():
    """Those of the shell blocks and, in backquotes within the text, those of ccixfer that are whole."""
    text = (REPO / "README.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    inline = [line for line in re.findall(r"`(ccixfer [^`]+)`", prose) if "//" in line or " --" in line or "TICKET" in line or
              line in ("ccixfer keygen", "ccixfer id", "ccixfer job nightly")]
    return [line for line in lines + inline if line]


class Facilities:
    """The two facilities of README with its configuration files; commands are run by a shell, with files where README has them."""

    def __init__(self, name):
        self.lab = Lab(name)
        lab = self.lab
        self.hosts = {name: lab.host(name) for name in ("sender", "west", "east", "receiver")}
        lab.wire(self.hosts["sender"], "10.0.0.2/24", self.hosts["west"], "10.0.0.1/24")
        lab.wire(self.hosts["west"], "192.0.2.1/30", self.hosts["east"], "192.0.2.2/30")
        lab.wire(self.hosts["east"], "10.0.0.1/24", self.hosts["receiver"], "10.0.0.2/24")
        self.data = lab.directory / "data"
        (self.data / "incoming").mkdir(parents=True)
        for conf in (REPO / "conf").iterdir():
            os.symlink(conf, lab.directory / conf.name)
        os.symlink(REPO / "conf", lab.directory / "conf")
        (lab.directory / "run42").mkdir()
        tree = small_tree(lab.directory / "run42" / "tree", files=20)
        for entry in [tree, *tree.rglob("*")]:  # set-ID bits are granted to nobody who just has a ticket
            if not entry.is_symlink():
                entry.chmod(entry.stat().st_mode & 0o1777)
        (lab.directory / "bin").mkdir()
        os.symlink(BINARY, lab.directory / "bin/ccixfer")
        self.started = []
        self.done = set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.lab.__exit__()

    def account(self, host):
        """Of the user on that host, who has configured nothing yet."""
        return self.lab.directory / f"account-{host}"

    def begin(self, host, line, ticket="", **options):
        self.done.add(line)
        environment = {**os.environ, "PATH": f"{self.lab.directory / 'bin'}:{os.environ['PATH']}", "TICKET": ticket.strip(),
                       "XDG_CONFIG_HOME": str(self.account(host) / "config"), "XDG_STATE_HOME": str(self.account(host) / "state")}
        command = line.replace("/data", str(self.data)).replace("TICKET", '"$TICKET"')
        process = subprocess.Popen([*self.hosts[host].prefix, "sh", "-c", "exec " + command],
                                   env=environment, cwd=self.lab.directory, text=True, stdin=subprocess.DEVNULL, **options)
        self.started.append(process)
        return process

    def serve(self, host, line, **options):
        """A daemon: until it says that it is ready."""
        process = self.begin(host, line, stderr=subprocess.PIPE, **options)
        said = ""
        while "ready at" not in said:
            piece = process.stderr.readline()
            check(piece != "", f"{line}: ended: {said}")
            said += piece
        return process

    def stop(self, process):
        process.terminate()
        process.communicate(timeout=PATIENCE_S)

    def run(self, host, line, wanted="", **options):
        process = self.begin(host, line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        out, err = process.communicate(timeout=PATIENCE_S)
        check(process.returncode == 0, f"{line}: exit {process.returncode}: {err}")
        check(wanted in out, f"{line}: {wanted!r} is not in what it printed: {out}")
        return out


def test_readme__every_command_line_runs():
    with Facilities("readme") as site:
        lab = site.lab
        hosts = lab.file("hosts", "10.0.0.1 receiver.example host\n")
        run("mount", "--bind", hosts, "/etc/hosts")
        try:
            direct(site)
            routed(site)
        finally:
            run("umount", "/etc/hosts")
        lines = set(command_lines())
        text = (REPO / "README.md").read_text()
        for block in re.findall(r"```toml\n(.*?)```", text, re.S):  # the files that it shows are those that ship
            if "[peer" in block:
                continue  # by_key() uses it
            check(any(bare(block) in bare(path.read_text()) for path in (REPO / "conf").glob("*.toml")), f"no file of conf/ has this:\n{block}")
        check(ELSEWHERE <= lines, f"no longer in README: {ELSEWHERE - lines}")
        check(site.done == lines - ELSEWHERE, f"in README and not run: {lines - ELSEWHERE - site.done}; run and not in README: {site.done - lines}")


def direct(site):
    """Two hosts of one network; `at` is the directory that stands for /data on the other one."""
    site.run("east", "mkdir incoming")
    receiver = site.serve("east", "ccixfer recv --root incoming --ticket", stdout=subprocess.PIPE)
    site.run("receiver", "ccixfer send -a run42/ TICKET", ticket=receiver.stdout.readline())
    site.stop(receiver)
    same_tree(site.lab.directory / "run42", site.lab.directory / "incoming")
    server = site.serve("east", "ccixfer send --serve run42 --ticket", stdout=subprocess.PIPE)
    site.run("receiver", "ccixfer recv -a TICKET /data/run42", ticket=server.stdout.readline())
    site.stop(server)
    same_tree(site.lab.directory / "run42", site.data / "run42")
    by_key(site)


def by_key(site):
    """The receiver knows the sender by its id, and the sender says yes to the receiver, as a person would in its file."""
    site.run("receiver", "ccixfer keygen")
    # The receiver made its identity when it made a ticket.
    here, there = (site.run(host, "ccixfer id").strip() for host in ("receiver", "east"))
    example = next(block for block in re.findall(r"```toml\n(.*?)```", (REPO / "README.md").read_text(), re.S) if "[peer" in block)
    (site.account("east") / "config/ccixfer/ccixfer.toml").write_text(example.replace("cx1-...", here))
    (site.account("receiver") / "config/ccixfer/known_peers").write_text(f"tcp://receiver.example:7100 {there}\n")
    receiver = site.serve("east", "ccixfer recv --root /data/incoming --listen 0.0.0.0:7100")
    site.stop(site.serve("receiver", "ccixfer recv --root /data/incoming --shares-root"))
    site.run("receiver", "ccixfer send -a run42/ tcp://receiver.example:7100/run42/")
    same_tree(site.lab.directory / "run42", site.data / "incoming/run42")
    shutil.rmtree(site.data / "incoming/run42")
    site.run("receiver", "ccixfer send -a --lock job.lock --stop-at 06:00 run42/ tcp://receiver.example:7100/run42/")
    # The example of a job, of this tree and for any time of the day.
    job = (REPO / "conf/jobs/nightly.toml").read_text()
    changes = (("/data/runs/", f"{site.lab.directory}/run42/"), ("archive.example:7100/runs/", "receiver.example:7100/run42/"),
               ("00:30", "06:00"), ("/var/lib/ccixfer", str(site.lab.directory)))
    for before, after in changes:
        check(before in job, f"conf/jobs/nightly.toml has no {before}")
        job = job.replace(before, after)
    jobs = site.account("receiver") / "config/ccixfer/jobs"
    jobs.mkdir(parents=True)
    (jobs / "nightly.toml").write_text(job)
    site.run("receiver", "ccixfer job --check nightly", "nightly: fine")
    check(site.begin("receiver", "ccixfer job nightly", stdout=subprocess.PIPE, stderr=subprocess.PIPE).wait() == 0, "ccixfer job nightly")
    site.run("receiver", "ccixfer status --history", "nightly to tcp://receiver.example:7100/run42/: ok")
    site.stop(receiver)
    same_tree(site.lab.directory / "run42", site.data / "incoming/run42")
    shutil.rmtree(site.data / "incoming/run42")


def name_neighbours(site):
    """What README says to append to the file of each host, with the ids of the hosts here."""
    for host in ("sender", "west"):   # the others have an identity already
        site.run(host, "ccixfer keygen")
    hosts = {"sender": "sender", "border-a": "west", "border-b": "east", "receiver": "receiver"}
    ids = {name: site.run(host, "ccixfer id").strip() for name, host in hosts.items()}
    files = {"sender": "client.toml", "border host of facility A": "border-west.toml", "border host of facility B": "border-east.toml",
             "receiver": "receiver.toml"}
    blocks = re.findall(r"```toml\n(.*?)```", (REPO / "README.md").read_text(), re.S)
    for where, name in files.items():
        tables = next(block for block in blocks if re.search(rf"\[peer\..*# on the {where}\n", block))
        file = site.lab.directory / name
        text = file.read_text()
        file.unlink()
        file.write_text(text + with_ids(tables, ids))


def routed(site):
    name_neighbours(site)
    site.run("west", "ccixfer routes border-west.toml border-east.toml", "1:9")
    # Each border host with its own file, as README says.
    line = "ccixfer route -c border-west.toml"
    site.serve("west", line)
    site.serve("east", line.replace("west", "east"))
    site.done.discard(line.replace("west", "east"))
    receiver = site.serve("receiver", "ccixfer recv  -c receiver.toml --root /data/incoming")
    site.run("sender", "ccixfer send  -c client.toml -a run42/ cci://1:2:10.0.0.2:7100/run42/")
    same_tree(site.lab.directory / "run42", site.data / "incoming/run42")
    site.run("sender", "ccixfer ping   -c client.toml cci://1:2:10.0.0.2:7100", "hop")
    site.run("sender", "ccixfer routes -c client.toml tcp://10.0.0.1:7000", "1:2")
    site.stop(receiver)
    site.serve("receiver", "ccixfer bench  -c receiver.toml --serve --listen 10.0.0.2:7200")
    site.run("sender", "ccixfer bench  -c client.toml cci://1:2:10.0.0.2:7200", "rma-write")
    site.run("sender", "ccixfer sim    conf/sim/two-sites.toml", "ok (exit 0)")


def test_install__program_manual_pages_units_and_examples_work_where_they_are():
    with Lab("install") as lab:
        prefix = lab.directory / "prefix"
        run("cmake", "--install", REPO / "build/release", "--prefix", prefix)
        check(run(prefix / "bin/ccixfer", "--version").stdout == run(BINARY, "--version").stdout, "another program")
        environment = {**os.environ, "MANPATH": str(prefix / "share/man"), "SYSTEMD_LOG_LEVEL": "warning"}
        for page in (REPO / "man").iterdir():
            found = subprocess.run(["man", "-w", page.suffix[1:], page.stem], capture_output=True, text=True, env=environment, check=False)
            check(found.stdout.strip().startswith(str(prefix)), f"man {page.stem}: {found.stdout}{found.stderr}")
        units = sorted((prefix / "lib/systemd/system").iterdir())
        check([unit.name for unit in units] == sorted(unit.name for unit in (REPO / "conf/systemd").iterdir()), f"units: {units}")
        for unit in units:
            starts = f"ExecStart={prefix}/bin/ccixfer " in unit.read_text()
            check(starts or unit.suffix != ".service", f"{unit.name} starts another program")
            judged = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, env=environment, check=False)
            check(judged.returncode == 0 and unit.name not in judged.stderr, f"{unit.name}: {judged.stderr}")
        examples = prefix / "share/doc/ccixfer/examples"
        run(prefix / "bin/ccixfer", "routes", examples / "border-west.toml", examples / "border-east.toml")


def test_receiver_unit__a_planned_stop_in_mid_transfer_is_no_failure():
    unit = (REPO / "conf/systemd/ccixfer-recv.service").read_text()
    check(re.search(r"^SuccessExitStatus=.*\b20\b", unit, re.M), "20 counts as failed")
