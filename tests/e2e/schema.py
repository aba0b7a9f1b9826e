"""Whether an event is one of app/report/events.schema.json, which is what scripts are promised. Debian's validator (python3-jsonschema)."""
import functools
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:  # another python3 than Debian's comes first: the package is in Python alone
    sys.path.append("/usr/lib/python3/dist-packages")
    import jsonschema

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "app/report/events.schema.json"


@functools.cache
def schema():
    return json.loads(SCHEMA.read_text())


@functools.cache
def names():
    return [item["$ref"].rsplit("/", 1)[1] for item in schema()["oneOf"]]


@functools.cache
def definitions(event):
    """The names of those that an event may be: an event of `ccixfer sim` may share its name with another command's."""
    return [name for name in names() if schema()["$defs"][name]["properties"]["event"]["const"] == event]


@functools.cache
def validator(name):
    """Of one kind of event: it says what is wrong in a few words, which "oneOf" does not."""
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema()["$defs"]})


def fault(event):
    """What is wrong with it, or None."""
    if not isinstance(event, dict):
        return f"no object: {event!r}"
    possible = definitions(event.get("event"))
    if not possible:
        return f"the schema has no event {event.get('event')!r}: {event}"
    errors = [jsonschema.exceptions.best_match(validator(name).iter_errors(event)) for name in possible]
    if None in errors:
        return None
    error = errors[0]
    return f"{'/'.join(map(str, error.absolute_path))} {error.message}: {event}"
