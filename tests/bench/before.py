"""./do bench --before BUILD: this build beside an earlier one, in turn, each figure that is ours. Each turn is a run of run.py of its own."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import harness

AT_LEAST = 0.97   # of before: less is a loss, above the noise of medians on an idle machine


def figures(build, name, options):
    """Row by name of one suite, of the build in that directory."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, str(pathlib.Path(__file__).with_name("run.py")), "--only", name, "--rounds", "1", "--json", file.name,
                   "--size-gib", str(options.size_gib), "--seconds", str(options.seconds), "--count", str(options.count), "--seeds", str(options.seeds)]
        # A figure that is missed beside its peer is no matter here.
        subprocess.run(command, env={**os.environ, "CCIXFER_BUILD": str(build)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        text = pathlib.Path(file.name).read_text()
    if not text:
        raise SystemExit(f"{name}: the run with {build} failed")
    return {row["what"]: row for row in json.loads(text)}


def is_rate(row):
    return "/s" in row["unit"] or "a CPU second" in row["unit"] or "%" in row["unit"]


def compare(options):
    """Rows: this build's figure, and its ratio to the earlier build's; a ratio above 1 is better, whatever the unit."""
    builds = {"now": harness.BUILD, "before": options.before.resolve()}
    rows = []
    for name in options.only:
        got = {}
        for turn in range(options.rounds):
            for version in ("now", "before") if turn % 2 else ("before", "now"):
                for what, row in figures(builds[version], name, options).items():
                    got.setdefault(what, {}).setdefault(version, []).append(row)
        for what, by_version in got.items():
            if len(by_version) < 2:
                continue   # a figure that one of them does not have
            now, before = (statistics.median(row["value"] for row in by_version[version]) for version in ("now", "before"))
            first = by_version["now"][0]
            ratio = 1.0 if now == before else (now / before if is_rate(first) else before / now) if now and before else 0.0
            ours = not any(peer in what for peer in ("GridFTP", "rsync", "iperf3", "socat", "bare"))
            rows.append(harness.Row(what, now, first["unit"], "before", ratio, at_least=AT_LEAST if ours else None))
            print(f"  {what}: {now:.6g}, before {before:.6g}, ratio {ratio:.3f}", file=sys.stderr, flush=True)
    return rows
