"""`srun ... ccixfer send --stripe` on a real Slurm of three nodes, one of which is lost in mid-transfer."""
import json
import subprocess

import slurm
from lab import BINARY, PATIENCE_S, Lab, big_file, check, events_of, native, same_tree


def srun(cluster, tasks, *arguments, out=None):
    command = ["srun", "--kill-on-bad-exit=0", "-n", str(tasks), str(BINARY), *[str(a) for a in arguments], "--json"]
    return subprocess.Popen(command, env=cluster.env, stdin=subprocess.DEVNULL, stdout=out or subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def site(lab):
    root = lab.directory / "root"
    root.mkdir()
    receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
    source = lab.directory / "run42"
    (source / "d").mkdir(parents=True)
    for i in range(300):
        (source / "d" / f"f{i}").write_bytes(bytes([i % 256]) * (i * 31))
    big_file(source / "big", 300 << 20)
    return root, receiver, source, native(receiver.uris)


def test_slurm__tasks_of_a_step__send_one_tree_together():
    if not slurm.is_here():
        print("       slurm is not installed, or this is not root: not tested")
        return
    with Lab("slurm") as lab, slurm.Cluster(lab, 3) as cluster:
        root, _, source, uri = site(lab)
        step = srun(cluster, 6, "send", "-a", "--stripe", "--insecure", "--bwlimit", "40MB/s", source, f"{uri}/in/")
        out, err = step.communicate(timeout=PATIENCE_S)
        check(step.returncode == 0, f"{err[-1500:]}")
        done = [event for event in events_of(out) if event["event"] == "done"]
        check(len(done) == 6 and sum(event.get("helped", False) for event in done) == 5, f"{done}")
        total = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
        check(sum(event["bytes_sent"] for event in done) == total, f"{[event['bytes_sent'] for event in done]} of {total}")
        same_tree(source, root / "in/run42")


def test_slurm__a_node_is_lost_in_mid_transfer__the_others_do_its_part():
    if not slurm.is_here():
        print("       slurm is not installed, or this is not root: not tested")
        return
    with Lab("slurm-lost") as lab, slurm.Cluster(lab, 3) as cluster:
        root, receiver, source, uri = site(lab)
        with open(lab.directory / "srun.out", "w") as out:
            step = srun(cluster, 6, "send", "-a", "--stripe", "--insecure", "--bwlimit", "8MB/s", source, f"{uri}/in/", out=out)
        receiver.wait_event("session")

        def durable():
            events = [json.loads(line) for line in (lab.directory / "srun.out").read_text().splitlines(keepends=True) if line.endswith("\n")]
            return max([event["bytes"] for event in events if event["event"] == "progress"], default=0)

        cluster.until(lambda: durable() > 40 << 20, "nothing is durable")
        cluster.kill_node("n2")
        ended = receiver.wait_event("ended", lambda event: event["exit"] == 0)
        check(ended["files"] == 301, f"{ended}")
        same_tree(source, root / "in/run42")
        step.communicate(timeout=PATIENCE_S)
