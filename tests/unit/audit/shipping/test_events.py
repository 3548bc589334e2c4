"""Events have the members of the logs over the API."""

from __future__ import annotations

from audit.api.entries import AdminEntryOut, RequestEntryOut
from tests.unit.audit.shipping.samples import a_call, a_change

OF_EACH_EVENT = {"id", "timestamp"}


def test_an_event_has_the_members_of_an_entry() -> None:
    flat = {"credentialScope", "credentialName"}
    assert {*a_call(item="test://x").fields} == {*RequestEntryOut().fields} - OF_EACH_EVENT - {"credential"} | flat
    assert {*a_change().fields} == {*AdminEntryOut().fields} - OF_EACH_EVENT


def test_nothing_is_left_out_but_blanks() -> None:
    call = a_call(error_code="", cached=False, duration_ms=0).fields
    assert "errorCode" not in call
    assert (call["cached"], call["durationMs"]) == (False, 0)
    assert "metadata" not in a_change(metadata={}).fields
