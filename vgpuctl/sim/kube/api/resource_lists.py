"""Maps of quantities, such as a container's requests: checked, and written as the API server writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgpuctl.sim.kube.quantities import canonical, quantity

#: The word by which a schema names such a map.
QUANTITIES = "resource.Quantity"
_NOT_NEGATIVE = "must be greater than or equal to 0"


def canonical_lists(value: Any, schema: Any) -> Any:
    """Return the value with every quantity in its canonical form. Parts that do not change are shared."""
    if schema == QUANTITIES and isinstance(value, dict):
        written = {name: canonical(amount) for name, amount in value.items()}
        return value if written == value else written
    if isinstance(schema, dict) and isinstance(value, dict):
        fields = {name.lstrip("!"): inner for name, inner in schema.items()}
        parts = {name: canonical_lists(value[name], inner) for name, inner in fields.items() if name in value}
        changed = {name: part for name, part in parts.items() if part is not value[name]}
        return value | changed if changed else value
    if isinstance(schema, list) and isinstance(value, list):
        items = [canonical_lists(item, schema[0]) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def negative_amounts(value: Any, schema: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Return field, reason and message of each amount below zero."""
    if schema == QUANTITIES and isinstance(value, dict):
        for name, amount in value.items():
            # Measured: kube-apiserver 1.36 decodes a negative amount, and refuses it with 422.
            if quantity(amount) < 0:
                yield f"{path}[{name}]", "FieldValueInvalid", f'Invalid value: "{amount}": {_NOT_NEGATIVE}'
    elif isinstance(schema, dict) and isinstance(value, dict):
        for name, inner in schema.items():
            field = name.lstrip("!")
            yield from negative_amounts(value.get(field), inner, f"{path}.{field}" if path else field)
    elif isinstance(schema, list) and isinstance(value, list):
        for number, item in enumerate(value):
            yield from negative_amounts(item, schema[0], f"{path}[{number}]")


def are_quantities(value: Any) -> bool:
    """Return True for a map of quantities that the server could decode."""
    if not isinstance(value, dict):
        return False
    try:
        return all(quantity(amount) is not None for amount in value.values())
    except (TypeError, ValueError):
        return False
