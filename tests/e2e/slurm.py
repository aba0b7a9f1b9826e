"""A Slurm cluster of several nodes on this host, for tests: real slurmctld, slurmd and srun, in the test's own namespaces."""
import os
import pathlib
import shutil
import signal
import subprocess
import time

from lab import PATIENCE_S, check, run

PROGRAMS = ("slurmctld", "slurmd", "srun", "munged")


def is_here():
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return os.geteuid() == 0 and all(shutil.which(program, path=path) for program in PROGRAMS)


class Cluster:
    """Nodes n1, n2, ... of two processors each, all of them this host. Ends with its context."""

    def __init__(self, lab, nodes):
        self.directory = lab.directory / "slurm"
        (self.directory / "state").mkdir(parents=True)
        self.nodes = {}
        self.env = {**os.environ, "SLURM_CONF": str(self.directory / "slurm.conf"), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.controller = self.munge = None

    def __enter__(self):
        # Slurm asks for addresses of configured interfaces, and the loopback one does not count as such.
        run("ip", "link", "add", "slurm0", "type", "veth", "peer", "name", "slurm1")
        run("ip", "address", "add", "192.0.2.1/24", "dev", "slurm0")
        run("ip", "link", "set", "slurm0", "up")
        run("ip", "link", "set", "slurm1", "up")
        self.start_munge()
        host = os.uname().nodename.split(".")[0]
        d = self.directory
        lines = ["ClusterName=lab", f"SlurmctldHost={host}(127.0.0.1)", "AuthType=auth/munge", f"AuthInfo=socket={d}/munge.socket",
                 "CryptoType=crypto/munge", "SlurmUser=root", "SlurmdUser=root", f"StateSaveLocation={d}/state",
                 f"SlurmdSpoolDir={d}/%n", f"SlurmctldPidFile={d}/ctld.pid", f"SlurmdPidFile={d}/%n.pid",
                 f"SlurmctldLogFile={d}/ctld.log", f"SlurmdLogFile={d}/%n.log", "ProctrackType=proctrack/pgid",
                 "TaskPlugin=task/none", "MpiDefault=none", "ReturnToService=2", "SelectType=select/cons_tres",
                 "SelectTypeParameters=CR_CPU", "SlurmctldPort=7817", "SlurmdTimeout=10"]
        for i, name in enumerate(self.names):
            (d / name).mkdir()
            lines.append(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={17001 + i} CPUs=2")
        lines.append(f"PartitionName=p Nodes=n[1-{len(self.names)}] Default=YES State=UP")
        (d / "slurm.conf").write_text("\n".join(lines) + "\n")
        self.controller = self.daemon("slurmctld", "-D")
        for name in self.names:
            self.nodes[name] = self.daemon("slurmd", "-D", "-N", name)
        self.until(lambda: self.ask("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == str(len(self.names)), "the nodes are not idle")
        return self

    def start_munge(self):
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.munge = self.daemon("munged", "--foreground", "--force", f"--socket={self.directory}/munge.socket", f"--key-file={key}",
                                 f"--pid-file={self.directory}/munge.pid", f"--log-file={self.directory}/munge.log",
                                 f"--seed-file={self.directory}/munge.seed")
        self.until(lambda: (self.directory / "munge.socket").exists(), "munged does not answer")

    def daemon(self, *command):
        log = open(self.directory / f"{command[0]}-{command[-1].strip('-').replace('/', '_')[-12:]}.out", "w")
        return subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def ask(self, *command):
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=False, timeout=PATIENCE_S).stdout

    def until(self, condition, words):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            log = self.directory / "ctld.log"
            check(time.monotonic() < deadline, f"{words}: {log.read_text()[-1500:] if log.exists() else 'no log'}")
            time.sleep(0.1)

    def kill_node(self, name):
        """The node is gone at once: its daemon, and all that it had started there."""
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"SLURMD_NODENAME={name}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                    if pathlib.Path(f"/proc/{parent}/comm").read_text().startswith("slurmstepd"):
                        os.kill(parent, signal.SIGKILL)
                    os.kill(int(entry.name), signal.SIGKILL)
            except (OSError, ValueError):
                continue
        self.nodes[name].kill()

    def __exit__(self, *_):
        for daemon in (*self.nodes.values(), self.controller, self.munge):
            if daemon is not None and daemon.poll() is None:
                daemon.kill()
                daemon.wait()
        run("ip", "link", "delete", "slurm0")
