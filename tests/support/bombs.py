"""Small YAML files that stand for more than fits into memory, or take Python hours: each with what is said of it."""

from __future__ import annotations

LAUGHS = "\n".join(
    ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} {{{', '.join(f'k{i}: *a{n - 1}' for i in range(9))}}}" for n in range(1, 30)]
)
MERGES = "\n".join(["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 40)])
CHAIN = "\n".join(
    ["a0: &a0 {" + ", ".join(f"k{i}: 1" for i in range(1000)) + "}"]
    + [f"a{n}: &a{n} {{<<: *a{n - 1}, x{n}: 1}}" for n in range(1, 900)]
)
SCALARS = "a: &a " + "x" * 4000 + "\nb: [" + "*a, " * 20_000 + "]"
FEW_SCALARS = "a: &a " + "x" * 4000 + "\nb: [" + "*a, " * 900 + "]"
DEEP = {"flow": "[" * 20_000, "mappings": "{a: " * 20_000, "dashes": "- " * 20_000, "questions": "? " * 20_000}

LONG_KEYS = "".join(f"{' ' * n}{'k' * 1000}:\n" for n in range(30)) + "".join(
    f"{' ' * 30}{n}: 1\n" for n in range(9000)
)

#: The YAML, and what is said of it after its line.
BOMBS: dict[str, tuple[str, int, str]] = {
    "laughs": (LAUGHS, 6, "has more than 36000 values, with the copies that aliases make"),
    "merges": (MERGES, 13, "has more than 36000 values, with the copies that aliases make"),
    "a chain of merges": (CHAIN, 18, "has more than 36000 values, with the copies that aliases make"),
    "aliases": (SCALARS, 2, "has more than 2097152 characters, with the copies that aliases make"),
    "fewer aliases": (FEW_SCALARS, 2, "has more than 2097152 characters, with the copies that aliases make"),
    "short aliases": ("a: &a x\nb: [" + "*a, " * 1001 + "]", 2, "has more than 1000 aliases"),
    "itself": ("a: &a [*a]", 1, "has an alias inside its own anchor"),
    **{f"deep {name}": (text, 1, "is nested deeper than 32 levels") for name, text in DEEP.items()},
    "deep blocks": ("".join(" " * n + "a:\n" for n in range(300)), 32, "is nested deeper than 32 levels"),
    "values": ("a:\n" + "- 1\n" * 40_000, 35_999, "has more than 36000 values"),
    "a text": ("a: 1\nb: " + "x" * 5000, 2, "has a string of more than 4096 characters"),
    "a number": ("a: " + "9" * 5000, 1, "has a string of more than 4096 characters"),
    "digits": ("a: " + "9" * 4000, 1, "has a number of more than 64 digits"),
    "base 60": ("a: 1" + ":59" * 1000, 1, "has a number of more than 64 digits"),
    "base 60 with a point": ("a: 1" + ":59" * 1000 + ".5", 1, "has a number of more than 64 digits"),
    "no such day": ("a: 1\nb: 2026-02-31", 2, "is not YAML (column 4)"),
    "a word that is no number": ("a: !!int x", 1, "is not YAML (column 4)"),
    "long keys": (LONG_KEYS, 574, "has keys whose names are too long in all"),
    "size": ("# x\n" * 200_000, 196_609, "is larger than 786432 bytes"),
    "a control character": ("a: 1\nb: \x07", 2, "contains a control character"),
}
