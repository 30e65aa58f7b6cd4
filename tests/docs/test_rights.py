"""The page of rights has the tables that `vgpuctl rights` prints from, row for row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from tests.support.paths import ROOT
from vgpuctl.kube.rights import RIGHTS, Right, Scope
from vgpuctl.vsphere.rights import PRIVILEGES, Privilege

PAGE = (ROOT / "docs" / "reference" / "rights.md").read_text()
HEAD = "| resource | verbs | needed for | without it | read-only |\n|---|---|---|---|---|\n"
EXTRA_HEAD = "| option | resource | verbs | needed for | without it | read-only |\n|---|---|---|---|---|---|\n"
VCENTER_HEAD = "| privilege | on | needed for | without it |\n|---|---|---|---|\n"


def rows(rights: Iterable[Right]) -> Iterator[str]:
    for right in rights:
        option = f"| `--{right.extra}` " if right.extra else ""
        group = f" ({right.group})" if right.group else ""
        names = f" `{' '.join(right.names)}`" if right.names else ""
        resource, verbs = f"{', '.join(right.resources)}{names}{group}", ", ".join(right.verbs)
        yield f"{option}| {resource} | {verbs} | {right.purpose} | {right.without} | {'yes' * right.looks} |\n"


def vcenter_rows(privileges: Iterable[Privilege]) -> Iterator[str]:
    for each in privileges:
        inferred = " (inferred)" if each.inferred else ""
        yield f"| {each.name}{inferred} | {each.place} | {each.purpose} | {each.without} |\n"


@pytest.mark.parametrize("scope", Scope)
def test_the_page_lists_the_rights_of_each_scope(scope: Scope) -> None:
    expected = HEAD + "".join(rows(right for right in RIGHTS if right.scope is scope and right.extra is None))
    assert expected in PAGE, f"the table should be:\n{expected}"


def test_the_page_lists_the_rights_that_options_add() -> None:
    expected = EXTRA_HEAD + "".join(rows(right for right in RIGHTS if right.extra))
    assert expected in PAGE, f"the table should be:\n{expected}"


def test_the_page_lists_the_privileges_in_vcenter() -> None:
    expected = VCENTER_HEAD + "".join(vcenter_rows(PRIVILEGES))
    assert expected in PAGE, f"the table should be:\n{expected}"


def test_the_page_has_no_other_table() -> None:
    assert PAGE.count("\n|---") == len(Scope) + 2
