"""A mapping that chooses objects by their labels, in namespaces that a name or a glob matches."""

from __future__ import annotations

import re
from typing import Any

from vgpuctl.files.reader import FileReader
from vgpuctl.model.errors import UsageError
from vgpuctl.model.selectors import Selector, parse_selector

#: The name of a namespace, or a glob: the same pattern as in the schema.
#: Kubernetes: a namespace is a DNS label of at most 63 characters.
NAMESPACE = re.compile(r"[a-z0-9*?]([-a-z0-9*?]{0,61}[a-z0-9*?])?")


def read_labelled(
    reader: FileReader, entry: dict[str, Any], key: str, pattern: re.Pattern[str], example: str
) -> tuple[str, Selector] | None:
    """Return the namespace and the selector; None after a fault. A selector without any label would choose everything.

    `pattern`: what a namespace may be. `example`: a selector that people would write here.
    """
    reader.check_keys(entry, ("namespace", "selector"), f"{key}.")
    selector, namespace = entry.get("selector"), entry.get("namespace", "*")
    if not isinstance(selector, str) or not selector.strip():
        reader.add_fault(key, f"a mapping here needs a selector, such as {example}")
        return None
    if not isinstance(namespace, str) or not pattern.fullmatch(namespace):
        reader.add_fault(f"{key}.namespace", "is not the name of a namespace, or a glob such as team-*")
        return None
    try:
        return namespace, parse_selector(selector)
    except UsageError as error:
        reader.add_fault(f"{key}.selector", error.message)
        return None
