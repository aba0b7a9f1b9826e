"""`ccixfer sim`: worlds from TOML: the examples go well, a seed is its trace, bad scenarios get one line with file, line and key."""
import pathlib
import subprocess
import tempfile

from lab import BINARY, REPO, check, events_of

EXAMPLES = sorted((REPO / "conf/sim").glob("*.toml"))
WORLD = """
[link.lan]
rate = "100Mb/s"
[node.a]
links = ["lan"]
[node.b]
links = ["lan"]
[[transfer]]
from = "a"
to = "b"
entries = 20
large = "5MB"
timeout = "10s"
"""


def sim(scenario, *options, text=None):
    """Runs a scenario file, or a text as one. Gives the ended process."""
    with tempfile.TemporaryDirectory() as directory:
        if text is not None:
            scenario = pathlib.Path(directory) / "world.toml"
            scenario.write_text(text)
        return subprocess.run([BINARY, "sim", scenario, *options], capture_output=True, text=True, check=False, timeout=300)


def events(ended):
    return events_of(ended.stdout)


def named(listed, name):
    return [event for event in listed if event["event"] == name]


def test_sim_examples__every_transfer_ends_well_and_is_verified():
    check(len(EXAMPLES) >= 2, f"examples: {EXAMPLES}")
    for path in EXAMPLES:
        ended = sim(path, "--json")
        check(ended.returncode == 0, f"{path.name}: exit {ended.returncode}: {ended.stderr}{ended.stdout[-1000:]}")
        listed = events(ended)
        transfers = named(listed, "transfer")
        check(transfers and all(t["exit"] == 0 and t["verified"] and t["files"] > 0 for t in transfers), f"{path.name}: {transfers}")
        written = path.read_text().count("[[fault]]")
        check(sum(not f["over"] for f in named(listed, "fault")) == written, f"{path.name}: a fault came after the end")
        check(named(listed, "done")[-1]["exit"] == 0, f"{path.name}: {listed[-1]}")


def test_sim_seeds__the_same_seed_is_the_same_trace_and_another_is_not():
    for path in EXAMPLES:
        first, again, other = sim(path, "--trace"), sim(path, "--trace"), sim(path, "--trace", "--seed", "4711")
        check(first.returncode == again.returncode == other.returncode == 0, f"{path.name}: {first.stderr}{other.stderr}")
        check(first.stdout.count("trace ") > 100, f"{path.name}: a short trace: {first.stdout[:500]}")
        check(first.stdout == again.stdout, f"{path.name}: two traces of one seed differ")
        check(first.stdout != other.stdout, f"{path.name}: two seeds have one trace")
    worlds = named(events(sim(EXAMPLES[0], "--json", "--seeds", "3")), "world")
    check([w["seed"] for w in worlds] == [1, 2, 3] and len({w["trace_hash"] for w in worlds}) == 3, f"{worlds}")


def test_sim_no_way_to_the_end__the_exit_code_of_the_transfer():
    for fault, code in (('at = "100ms"\nkind = "crash"\nnode = "b"', 30), ('at = "0s"\nkind = "crash"\nnode = "b"', 35),
                        ('at = "100ms"\nkind = "crash"\nnode = "a"', 20), ('at = "100ms"\nkind = "partition"\nlink = "lan"', 30)):
        ended = sim(None, "--json", text=WORLD + "[[fault]]\n" + fault)
        listed = events(ended)
        check(ended.returncode == code, f"{fault}: exit {ended.returncode}: {ended.stderr}")
        check([t["exit"] for t in named(listed, "transfer")] == [code] and listed[-1]["exit"] == code, f"{fault}: {listed[-3:]}")
        check(sum(line.startswith("ccixfer: ") for line in ended.stderr.splitlines()) == 1, f"{fault}: one line expected: {ended.stderr}")
    full = sim(None, "--json", text=WORLD.replace('[node.b]\n', '[node.b]\ndisk = "1MiB"\n'))
    check(full.returncode in (23, 44), f"a full disk: exit {full.returncode}: {full.stderr}")


def test_sim_crash_of_the_sender__its_command_runs_again():
    ended = sim(None, "--json", text=WORLD + '[[fault]]\nat = "200ms"\nkind = "crash"\nnode = "a"\nfor = "100ms"\n')
    transfer = named(events(ended), "transfer")[0]
    check(transfer["runs"] == 2, f"{transfer}")
    check(transfer["exit"] in (0, 23), f"{transfer}")  # 23: its files are held as long as the receiver takes the old one for alive


def test_sim_bad_scenarios__one_line_with_file_line_and_key_and_exit_1():
    def line_of(text, part):
        return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)

    cases = [  # what is replaced by what; the key that must be named; part of the line's text that must be named
        ('rate = "100Mb/s"', 'rate = "100"', "link.lan.rate"), ('rate = "100Mb/s"', 'speed = 1', "link.lan.speed"),
        ('rate = "100Mb/s"', 'delay = ["2ms", "1ms"]', "link.lan.delay"), ('rate = "100Mb/s"', 'corruption = 1.5', "link.lan.corruption"),
        ('rate = "100Mb/s"', 'as = 1', "link.lan"), ('rate = "100Mb/s"', 'rate = ', "rate"),
        ('entries = 20', 'entries = -1', "transfer.entries"), ('entries = 20', 'from = "b"', "from"),
        ('to = "b"', 'to = "c"', "transfer.to"), ('to = "b"', 'to = "a"', "transfer.to"), ('large = "5MB"', 'large = 5', "transfer.large"),
        ('large = "5MB"', 'large = "5TiB"', "transfer.large"), ('timeout = "10s"', 'timeout = "10"', "transfer.timeout"),
        ('timeout = "10s"', 'timeout = "10s"\n[[fault]]\nat = "1s"\nkind = "fire"\nnode = "a"', "fault.kind"),
        ('timeout = "10s"', 'timeout = "10s"\n[[fault]]\nat = "1s"\nkind = "crash"\nnode = "x"', "fault.node"),
        ('timeout = "10s"', 'timeout = "10s"\n[[fault]]\nkind = "crash"\nnode = "a"', "fault.at"),
        ('timeout = "10s"', 'timeout = "10s"\nrouted = true', "transfer.routed"),
        ('rate = "100Mb/s"', 'as = 1\nsubnet = 1\nwan = true', "link.lan.wan"), ('rate = "100Mb/s"', 'wan = true', "link.lan.wan"),
        ('rate = "100Mb/s"', 'between = [1]', "link.lan.between"),
        ('[node.b]', '[link.w]\nwan = true\nsubnet = 9\n[link.x]\nwan = true\nsubnet = 9\n[node.b]', "link.x.subnet"),
        ('[node.b]', '[link.w]\nwan = true\nsubnet = 9\n[link.x]\nwan = true\nsubnet = 8\n[router.r]\nlinks = ["w", "x"]\n[node.b]', "router.r.links"),
        ('[node.b]', '[link.w]\nas = 1\nsubnet = 9\n[link.x]\nas = 2\nsubnet = 8\n[router.r]\nlinks = ["w", "x"]\n[node.b]', "router.r.links"),
        ('[node.b]', '[link.w]\nwan = true\nsubnet = 9\nbetween = [1, 2]\n[link.x]\nas = 3\nsubnet = 8\n[router.r]\nlinks = ["w", "x"]\n[node.b]', "router.r.links"),
        ('timeout = "10s"', 'timeout = "10s"\n[[fault]]\nat = "1s"\nkind = "stop"\nnode = "a"', "fault.node"),
        ('[node.b]', '[router.b]', "router.b.links"), ('[node.b]', '[nodes.b]', "nodes"), ('[node.b]', '[node."../b"]', "node."),
        ('links = ["lan"]', 'links = ["wan"]', "node.a.links"), ('links = ["lan"]', 'address = "here"', "node.a.address"),
    ]
    for old, new, key in cases:
        text = WORLD.replace(old, new, 1)
        check(text != WORLD, f"the case changes nothing: {old}")
        for options in ([], ["--json"]):
            ended = sim(None, *options, text=text)
            lines = ended.stderr.splitlines()
            check(ended.returncode == 1 and len(lines) == 1, f"{new}: exit {ended.returncode}: {ended.stderr}")
            check("world.toml:" in lines[0] and key in lines[0], f"{new}: {lines[0]}")
            number = int(lines[0].split("world.toml:")[1].split(":")[0])
            check(1 <= number <= len(text.splitlines()) + 1, f"{new}: line {number}")
    broken = WORLD.replace('rate = "100Mb/s"', 'rate = "100"')
    check(f"world.toml:{line_of(broken, 'rate')}: " in sim(None, text=broken).stderr, "the line of a bad rate")
    for text in ("", "seed = 1\n", "\x00\x01", "[[transfer]]\nfrom = 1\n"):
        ended = sim(None, text=text)
        check(ended.returncode == 1 and len(ended.stderr.splitlines()) == 1, f"{text!r}: exit {ended.returncode}: {ended.stderr}")
    for path in ("/nowhere/world.toml", "/", "/dev/zero"):
        ended = sim(path)
        check(ended.returncode == 1 and len(ended.stderr.splitlines()) == 1 and path in ended.stderr, f"{path}: {ended.returncode}: {ended.stderr}")
    for options in (["--seed", "x"], ["--seeds", "0"], ["--nonsense"]):
        check(sim(EXAMPLES[0], *options).returncode == 1, f"{options}")
