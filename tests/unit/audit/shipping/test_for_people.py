from __future__ import annotations

from dataclasses import replace

import pytest

from audit.shipping.platforms.for_people import level_of, line_of
from tests.unit.audit.shipping.samples import CALL, CHANGE, a_call


@pytest.mark.parametrize(
    ("status", "level"),
    [("success", "info"), ("denied", "warn"), ("unknown", "warn"), ("error", "error"), ("of another version", "info")],
)
def test_the_level_of_a_call_follows_its_status(status: str, level: str) -> None:
    assert level_of(replace(CALL, fields={**CALL.fields, "status": status})) == level


def test_a_change_is_information() -> None:
    assert level_of(CHANGE) == "info"


def test_lines() -> None:
    assert line_of(CALL) == "Ana Ek called list_devices of acme: error vendor_timeout"
    assert line_of(CHANGE) == "member.role_changed by Ana Ek: Bo Li"
    read = a_call(tool="", kind="resource", item="test://static-text")
    assert line_of(read) == "Ana Ek asked for the resource test://static-text of acme: error vendor_timeout"


def test_lines_of_rows_with_blanks() -> None:
    call = {"userId": "svc:1", "vendor": "acme", "tool": "ping", "status": "success"}
    assert line_of(replace(CALL, fields=call)) == "svc:1 called ping of acme: success"
    assert line_of(replace(CHANGE, fields={"eventType": "billing.lapsed"})) == "billing.lapsed by the gateway"
