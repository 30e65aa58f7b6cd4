"""The JSON Schemas, which editors obey, and the reader, which decides, judge alike wherever a schema can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.documents import CHOICES, DOCUMENTS, PROFILES
from tests.support.files import read_catalogue, read_timetable
from tests.support.paths import ROOT
from vgpuctl.files.schema import schema_text
from vgpuctl.files.timing import KEYS as TIMING_KEYS
from vgpuctl.model.errors import UsageError
from vgpuctl.model.profiles import Catalogue, Profile

SCHEMAS = {of: Draft202012Validator(json.loads(schema_text(of))) for of in ("profiles", "timetable")}
KNOWN = Catalogue({"small": Profile("small", ("grid_v100-4q",))})

NEVER: Any = object()
"""Stands for a key that is not there."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schemas") / "any.yaml"


def read(of: str, document: Any, path: Path) -> str:
    """What the reader says against it."""
    path.write_text(yaml.safe_dump(document, allow_unicode=True))
    try:
        if of == "profiles":
            read_catalogue(path)
        else:
            read_timetable(path, KNOWN)
    except UsageError as error:
        return error.message
    return ""


def against(of: str, document: Any) -> str:
    """What the schema says against it."""
    return "\n".join(f"{error.json_path}: {error.message}" for error in SCHEMAS[of].iter_errors(document))


@pytest.mark.parametrize("of", SCHEMAS)
def test_the_schema_is_one(of: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[of].schema)


def keys(schema: Any, name: str = "") -> list[tuple[str, Any]]:
    """Every key that a schema names, with what it says of it."""
    if isinstance(schema, list):
        return [found for each in schema for found in keys(each)]
    if not isinstance(schema, dict):
        return []
    own = list(schema.get("properties", {}).items())
    conditions = ("if", "then", "else")
    return own + [found for word, value in schema.items() if word not in conditions for found in keys(value)]


@pytest.mark.parametrize("of", SCHEMAS)
def test_every_key_is_described_in_the_schema_and_in_the_reference(of: str) -> None:
    schema = SCHEMAS[of].schema
    page = (ROOT / "docs" / "reference" / "files.md").read_text()
    for name, value in keys(schema):
        resolved = schema["$defs"][value["$ref"].rpartition("/")[2]] if "$ref" in value else {}
        assert "description" in value | resolved, name
        assert name in page


@pytest.mark.parametrize("text", [PROFILES, CHOICES, (ROOT / "profiles.yaml").read_text(), "version: 1"])
def test_good_profiles_are_good_for_both(text: str, path: Path) -> None:
    document = yaml.safe_load(text)
    assert (read("profiles", document, path), against("profiles", document)) == ("", "")


def some(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def mapping(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """With all of these keys but those that are drawn as not there."""
    named = {key.replace("_", "-"): value for key, value in values.items()}
    return st.fixed_dictionaries(named).map(lambda d: {key: value for key, value in d.items() if value is not NEVER})


def mostly(good: st.SearchStrategy[Any], *bad: Any) -> st.SearchStrategy[Any]:
    return st.integers(0, 9).flatmap(lambda n: some(*bad) if n == 0 else good)


NAME = st.text("abcz*?-. 9[]/\n", max_size=6) | some("gpu-*", "w[1-2]", "ä", "a" * 80, "a" * 81, "[0-3]x")
REFERENCE = mostly(some("small", "whole", "none", "grid_v100-4q"), None, 3, True, [], "")


def vgpu(good: str) -> st.SearchStrategy[Any]:
    plain = mostly(some(good, [good]), None, 3, "", [], [""], [3], {}, {"vgpu": good}, NEVER)
    told = {
        "frame": mostly(some(NEVER, 16, "16", "16GB", "8 GB"), 0, -1, "", "GB", "16GiB", None, [], True, 1.5, 10000),
        "class": mostly(some(NEVER, "C", "Q", "A", "B"), "c", "", None, 3, ["C"]),
    }
    return plain.filter(lambda value: value is not NEVER) | mapping(vgpu=plain, other=mostly(some(NEVER), 1), **told)


def entry(number: int) -> st.SearchStrategy[Any]:
    names = f"e{number}-[1-2]"
    return mapping(
        profile=mostly(REFERENCE, NEVER),
        names=some(NEVER, names, [names], [names, f"g{number}-*"]) | mostly(some(NEVER, "*"), None, [], "", [3], "/"),
        folder=mostly(some(NEVER, "/dc-1/vm/gpu", "a", "/*/"), None, "", "/", "//", 3),
        cluster=mostly(some(NEVER, "gpu-*", "?*"), None, "", "/", []),
        nodes=mostly(some(NEVER, {"pool": "gpu"}, {"a.b/c": ""}), None, {}, {"p q": "x"}, {"pool": 1}, [], {"/": "x"}),
        nmes=mostly(some(NEVER), "x"),
    )


ENTRIES = st.integers(0, 3).flatmap(lambda many: st.tuples(*map(entry, range(many))).map(list))
LABELS = some("vgpu.type", "a/b", "", "/b", "a/", "a b", "A/b", "a/b/c", "-a", "x" * 63, "x" * 64, None, 3, NEVER)
CATALOGUES = mapping(
    version=mostly(some(1), 2, "1", None, True, NEVER),
    label=some("vgpu.type", NEVER) | LABELS,
    profiles=mapping(small=vgpu("grid_v100-4q"), whole=vgpu("grid_v100-16q")),
    workers=mostly(ENTRIES, None, NEVER, 3, "x") | st.dictionaries(NAME, REFERENCE, max_size=3),
    other=mostly(some(NEVER), 1),
)
TIMES = some(NEVER, None, 0, 90, 1.5, "10m", "1h", "90", "1.5s") | some(
    *(-1, 10**9, "9" * 10, True, "soon", "", "1d", [], "٣s", "1.")
)
CRON = some("0 8 * * *", ["0 8 * * *", "0 9 * * 1"]) | mostly(some("*/5 * * * *"), "", [], "0 8", 3, None, ["x"], NEVER)
SHIFTS = some("day", "night", "x y", "n" * 253, "n" * 254)
SCALED = some("a/deployment/b", "a-*/sts/b.c", {"selector": "a=b"}, {"selector": "a", "namespace": "team-*"}) | some(
    *("", "a", "a/b/c", "A/deploy/b", "a/deploy/", "a/deploy/b\n", 3, {}, {"selector": " "}, {"namespace": "a"}),
    *({"selector": "a", "namespace": ""}, {"selector": "a", "name": "b"}, {"selector": ["a"]}),
)
TIMING = st.fixed_dictionaries(
    {},
    optional={
        "early": TIMES.filter(lambda value: value is not NEVER) | some("auto", "Auto"),
        "begin_by": TIMES.filter(lambda value: value is not NEVER),
        "skip_after": TIMES.filter(lambda value: value is not NEVER),
        "min_run": TIMES.filter(lambda value: value is not NEVER),
    },
)
SHIFT = mapping(
    scale=mostly(some(NEVER), None) | SCALED | st.lists(SCALED, max_size=2),
    starts=CRON,
    profiles=mostly(some(NEVER, None, "small", ["small"], []), 3, "", [""], {}),
    workers=mostly(some(NEVER, None, "w-*", ["w-*", "?[1-2]"], []), 3, "", "/", {}),
    other=mostly(some(NEVER), 1),
)
TIMED_SHIFT = st.builds(lambda shift, timing: {**timing, **shift}, SHIFT, TIMING)
YES = mostly(some(NEVER, None, True, False), "yes", 1, 0)
OPTIONS = {
    "timeout": TIMES,
    "grace_period": TIMES,
    "force": YES,
    "delete_emptydir_data": YES,
    "pod_selector": mostly(some(NEVER, None, "app!=scratch", "a in (b,c)", ""), 3, [], {}),
    "skip_wait_for_delete_timeout": TIMES,
    "other": mostly(some(NEVER), 1),
}
NAMESPACES = st.dictionaries(
    mostly(some("team-*", "notebooks", "*", "a?"), "A", "", "-a", "a/b", "a" * 64),
    mostly(mapping(**OPTIONS) | some(None), 3, []),
    max_size=2,
)
DRAIN = mapping(**OPTIONS, namespaces=mostly(NAMESPACES | some(NEVER, None), 3, []))
WORKERS = mostly(some(None, {}, {"w-[1-2]": "small"}, {"w-*": "grid_v100-4q"}), {"": "small"}, {"w": 3}, {"w": ""})
SHIFT_OF_REPLACE = mapping(
    starts=CRON, workers=WORKERS | some(NEVER, ["w"]), profiles=mostly(some(NEVER, None, []), "x")
)
TIMETABLES = mapping(
    version=mostly(some(1), 2, "1", None, True, NEVER),
    timezone=mostly(some("UTC", "Europe/Berlin"), "", 3, None, [], NEVER),
    shifts=mostly(st.dictionaries(SHIFTS, SHIFT | TIMED_SHIFT, min_size=1, max_size=2), {}, None, [], NEVER),
    drain=mostly(DRAIN | some(NEVER, None), 3, []),
    other=mostly(some(NEVER), 1),
)
CONDUCT = st.fixed_dictionaries(
    {},
    optional={
        "on_stuck": mostly(some(None, "back", "wait", "force"), "forward", True, 3),
        "on_resume_failed": mostly(some(None, "back", "boot"), "wait", []),
        "asleep": mostly(some(None, "suspend", "off", False), "on", True),
        "max_unavailable": mostly(some(None, 1, 5, "2", "25%", "100%"), 0, "0", "101%", "", True, -1, 1.5, []),
        "suspends": mostly(
            some(None, {}, {"per_host": 2}, {"per_datastore": 3, "per_host": None}), {"per_host": 0}, {"other": 1}, 3
        ),
        "power_off_after": mostly(some(None, 0, "10m"), -1, "soon", True),
    },
)
HELD = some(
    "do_not_disrupt", "not_safe_to_evict", {"selector": "a=b"}, {"selector": "a", "namespace": "team-*"}
) | some(
    *("", "do-not-disrupt", True, 3, [], {}, {"selector": " "}, {"selector": ["a"]}, {"namespace": "a"}),
    *({"selector": "a", "namespace": wrong} for wrong in ("", "A", "a/b", None)),
    {"selector": "a", "name": "b"},
)
HOLDING = st.fixed_dictionaries(
    {},
    optional={
        "hold_while": some(None) | HELD | st.lists(HELD, max_size=2),
        "retry": mostly(
            some(None, {}, {"tries": 1}, {"tries": 100, "pause": "1m"}, {"pause": None}),
            *({"tries": wrong} for wrong in (0, 101, True, "3", None)),
            *(3, [], {"pause": "soon"}, {"times": 3}),
        ),
        "announce": TIMES.filter(lambda value: value is not NEVER),
    },
)
EXTRAS = st.builds(lambda *parts: {k: v for part in parts for k, v in part.items()}, CONDUCT, TIMING, HOLDING)
REPLACING = mapping(
    version=some(1), timezone=some("UTC"), shifts=st.dictionaries(some("day", "night"), SHIFT_OF_REPLACE, min_size=1)
).map(lambda document: {**document, "mode": "replace"})


@given(document=CATALOGUES)
@example(document={"version": 1, "profiles": {"none": "grid_v100-4q"}})
@example(document={"version": 1, "profiles": {"-a": "grid_v100-4q"}})
@example(document={"version": 1, "profiles": None})
@example(document={"version": 1, "profiles": []})
def test_both_judge_profiles_alike(document: Any, path: Path) -> None:
    told, said = read("profiles", document, path), against("profiles", document)
    assert bool(told) == bool(said), f"reader: {told or 'good'}\nschema: {said or 'good'}"


def each_of(*values: Any) -> tuple[Any, ...]:
    """Values of any types."""
    return values


ENTRY = {"profile": "small", "names": "a"}
GOOD: dict[str, Any] = {
    "profiles": {"version": 1, "profiles": {"small": "grid_v100-4q"}, "workers": [ENTRY]},
    "timetable": {"version": 1, "timezone": "UTC", "shifts": {"day": {"starts": "0 8 * * *"}}, "drain": {}},
}


@pytest.mark.parametrize(
    ("of", "key", "value"),
    [
        *(
            ("profiles", "workers", [{**ENTRY, "nodes": wrong}])
            for wrong in each_of({}, None, {"p q": "x"}, {"pool": 1}, [])
        ),
        *(
            ("profiles", "workers", [{**ENTRY, "names": wrong}])
            for wrong in ([], None, "", "a" * 81, "a/b", "/b", " b", [""], 3)
        ),
        *(
            ("profiles", "workers", [{"profile": "small", "nodes": {"pool": "gpu"}, **alone}])
            for alone in ({}, {"names": "*"}, {"names": ["a", "?"]}, {"folder": "/*"}, {"cluster": "*"})
        ),
        *(("profiles", "workers", [{**ENTRY, "folder": wrong}]) for wrong in ("", "/", "//", None, 3)),
        *(("profiles", "workers", [{**ENTRY, "cluster": wrong}]) for wrong in each_of("", "/", None, [])),
        *(("profiles", "workers", [wrong]) for wrong in ({}, {"profile": "small"}, {"names": "a"}, None, "a")),
        *(("profiles", "workers", wrong) for wrong in (3, "a", {"": "small"}, {"a": None}, {"a": 3})),
        *(("profiles", "profiles", {"small": "x-1q", "none": wrong}) for wrong in ("grid_v100-4q", None)),
        *(("profiles", "profiles", {"small": wrong}) for wrong in each_of(None, 3, "", [], [""], {}, {"vgpu": []})),
        *(("profiles", "label", wrong) for wrong in ("", "a b", "/b", "a/b/c", "A/b", "x" * 64, None)),
        ("profiles", "profiles", {"small": "x-1q"} | {f"p{n}": f"x-{n}c" for n in range(1000)}),
        ("timetable", "shifts", {f"s{n}": {"starts": "0 8 * * *"} for n in range(101)}),
        ("timetable", "shifts", {"day": {"starts": ["0 8 * * *"] * 101}}),
        ("timetable", "shifts", {"day": {"starts": "0 8 * * *", "scale": ["a/deploy/b"] * 1001}}),
        ("timetable", "drain", {"namespaces": {f"n{n}": {} for n in range(101)}}),
        *((of, "version", wrong) for of in SCHEMAS for wrong in (2, "1", True, None)),
        *((of, "other", 1) for of in SCHEMAS),
        *(("timetable", "drain", {"timeout": wrong}) for wrong in each_of("1d", "", -1, True, "1.", "٣s", [])),
        *(("timetable", "drain", {"force": wrong}) for wrong in ("yes", 1)),
        *(("timetable", "drain", {"pod-selector": wrong}) for wrong in each_of(3, [], {})),
        *(
            ("timetable", "drain", {"namespaces": wrong})
            for wrong in each_of([], 3, {"A": {}}, {"a": 3}, {"a": {"b": 1}})
        ),
        *(("timetable", "drain", {"namespaces": {"a": {"force": wrong}}}) for wrong in ("yes", 1)),
        *(("timetable", "shifts", {"day": {"starts": wrong}}) for wrong in each_of("0 8 * *", "", [], None, 3)),
        *(("timetable", "shifts", wrong) for wrong in each_of({}, None, [], {"day": {}}, {"day": None})),
        *(("timetable", "early", wrong) for wrong in each_of("soon", -1, True, "1d", [])),
        *(("timetable", key, "auto") for key in ("begin_by", "skip_after", "min_run", "announce")),
        *(("timetable", "shifts", {"day": {"starts": "0 8 * * *", key: "1d"}}) for key in ("early", "min_run")),
        *(("timetable", "hold_while", wrong) for wrong in each_of("", "a=b", {}, {"namespace": "a"}, [[]], True)),
        ("timetable", "hold_while", ["do_not_disrupt"] * 101),
        *(("timetable", "retry", {"tries": wrong}) for wrong in (0, 101, True, "3")),
        *(("timetable", "retry", wrong) for wrong in each_of(3, [], {"pause": "soon"}, {"times": 3})),
    ],
    ids=lambda part: str(part)[:99],
)
def test_one_wrong_thing_is_wrong_for_both(of: str, key: str, value: Any, path: Path) -> None:
    assert (read(of, GOOD[of], path), against(of, GOOD[of])) == ("", "")
    document = {**GOOD[of], key: value}
    assert read(of, document, path)
    assert against(of, document)


@pytest.mark.parametrize("name", ["a" * 80, "gpu-*", "w[1-2]", "[0-3]" * 80, "ä?"])
def test_one_good_name_is_good_for_both(name: str, path: Path) -> None:
    document = {**GOOD["profiles"], "workers": {name: "small"}}
    told = read("profiles", document, path)
    assert not told or name.count("[") > 9  # So many names are too many: that no schema can count.
    assert against("profiles", document) == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("early", value) for value in ("auto", "10m", 90, "1.5h", None)),
        *((key, "1h") for key in ("begin_by", "skip_after", "min_run", "announce")),
        *(("hold_while", value) for value in ("do_not_disrupt", ["not_safe_to_evict"], {"selector": "a"}, [], None)),
        ("hold_while", [{"selector": "a in (b,c)", "namespace": "team-*"}]),
        *(("retry", value) for value in ({}, None, {"tries": 100, "pause": "1m"})),
    ],
    ids=str,
)
def test_one_good_timing_is_good_for_both(key: str, value: Any, path: Path) -> None:
    document = {**GOOD["timetable"], key: value}
    assert (read("timetable", document, path), against("timetable", document)) == ("", "")
    if key in TIMING_KEYS:
        document = {**GOOD["timetable"], "shifts": {"day": {"starts": "0 8 * * *", key: value}}}
        assert (read("timetable", document, path), against("timetable", document)) == ("", "")


LENGTHS = ("must be longer than 0", "longer than 366 days", "is later than")
BESIDE_A_SCHEMA = ("no worker", "is not a cron line", "contradicts", *LENGTHS)
"""What the reader knows besides: who is a worker; what cron makes of the five words; which globs mean the same; how
long durations are."""


@given(document=TIMETABLES | REPLACING, extras=EXTRAS)
def test_both_judge_timetables_alike(document: Any, extras: Any, path: Path) -> None:
    document = {**document, **extras}
    told, said = read("timetable", document, path), against("timetable", document)
    if not any(words in told for words in BESIDE_A_SCHEMA):
        assert bool(told) == bool(said), f"reader: {told or 'good'}\nschema: {said or 'good'}"


@pytest.mark.parametrize("of", SCHEMAS)
@given(content=DOCUMENTS, key=some("", "profiles", "workers", "label", "timezone", "shifts", "drain"))
def test_what_the_reader_takes_no_schema_marks_as_wrong(of: str, content: Any, key: str, path: Path) -> None:
    document = (
        {"version": 1, "timezone": "UTC", "shifts": {"day": {"starts": "0 8 * * *"}}} if of == "timetable" else {}
    )
    document = {"version": 1, **document, key: content} if key else content
    if not read(of, document, path):
        assert against(of, document) == ""
