"""app/report/events.schema.json itself. That every event of every test fits it is seen where the events are read (lab.Process)."""
import copy
import json
import re

import jsonschema
import schema
from lab import REPO, check

SAMPLE = {"event": "progress", "t": 0.25, "files": 1, "bytes": 2, "bytes_total": 3, "bytes_per_s": 4.0, "eta_s": None}


def test_schema__is_a_schema_whose_choices_are_all_events():
    jsonschema.Draft202012Validator.check_schema(schema.schema())
    for name in schema.names():
        definition = schema.schema()["$defs"][name]
        check(definition["properties"]["event"] == {"const": name.removeprefix("sim_")}, f"{name} is not the event {name}")
        check(set(definition["required"]) <= set(definition["properties"]), f"{name} requires what it does not have")
    whole = jsonschema.Draft202012Validator(schema.schema())
    check(whole.is_valid(SAMPLE), "the schema as a whole refuses an event")
    check(not whole.is_valid({**SAMPLE, "event": "session"}), "the schema as a whole takes anything")


def test_schema__what_does_not_fit__is_named():
    check(schema.fault(SAMPLE) is None, str(schema.fault(SAMPLE)))
    wrong = [("event", "progres"), ("t", "0"), ("files", -1), ("files", 1.5), ("bytes", None), ("eta_s", "soon"), ("colour", "red")]
    for member, value in wrong:
        event = {**copy.deepcopy(SAMPLE), member: value}
        check(schema.fault(event) is not None, f"nobody minds {member} = {value!r}")
    for member in SAMPLE:
        event = {key: value for key, value in SAMPLE.items() if key != member}
        check(schema.fault(event) is not None, f"nobody misses {member}")
    check(schema.fault([]) is not None, "a list is an event")


def test_schema__names_and_codes_of_errors__are_those_of_the_program():
    rows = re.findall(r'ErrorRow\{[A-Za-z_:]+, (\d+), "(\w+)"', (REPO / "core/base/error_table.cc").read_text())
    definitions = schema.schema()["$defs"]
    check(sorted(int(code) for code, _ in rows) == sorted(definitions["exit"]["enum"]), f"exit codes: {definitions['exit']}")
    check(sorted(name for _, name in rows) == sorted(definitions["status"]["enum"]), f"statuses: {definitions['status']}")


def test_schema__the_manual_page__describes_each_event_and_member():
    """By name: a member that is added to the schema alone is found here."""
    page = (REPO / "man/ccixfer.1").read_text().replace("\\-", "-")
    pages = "".join(path.read_text().replace("\\-", "-") for path in (REPO / "man").iterdir())
    for name in schema.names():
        check(re.search(rf"\b{name.removeprefix('sim_')}\b", pages), f"no page has the event {name}")
    for name in ("progress", "file", "item", "transfer", "ended", "done", "session", "waiting", "retry", "ready"):
        for member in schema.schema()["$defs"][name]["properties"]:
            check(re.search(rf"\b{member}\b", page), f"ccixfer(1) says nothing of {member} of {name}")


def test_schema__json_is_plain():
    """No two members of one name, which parsers would drop."""
    def once(pairs):
        names = [name for name, _ in pairs]
        check(len(names) == len(set(names)), f"twice: {names}")
        return dict(pairs)
    json.loads(schema.SCHEMA.read_text(), object_pairs_hook=once)
