"""Pages that a client is asked to open: who can, and when it is asked once. Spec: MCP 2026-07-28, client/elicitation"""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import _v2026_07_28 as schema

from proxy.protocol.modern import elicitation, results


@pytest.mark.parametrize(
    ("capabilities", "can"),
    [
        ({"elicitation": {"url": {}}}, True),
        ({"elicitation": {"form": {}, "url": {}}}, True),
        ({"elicitation": {}}, False),
        ({"elicitation": {"form": {}}}, False),
        ({"elicitation": {"url": True}}, False),
        ({"elicitation": True}, False),
        ({}, False),
    ],
)
def test_only_a_client_that_declares_it_can(capabilities: dict[str, Any], can: bool) -> None:
    assert elicitation.can_open_pages(capabilities) is can


@pytest.mark.parametrize(
    ("params", "was"),
    [
        ({"inputResponses": {"connect": {"action": "decline"}}}, True),
        ({"inputResponses": {"connect": None}}, True),
        ({"inputResponses": {"other": {}}}, False),
        ({"inputResponses": ["connect"]}, False),
        ({}, False),
    ],
)
def test_a_repeated_call_is_known(params: dict[str, Any], was: bool) -> None:
    assert elicitation.was_asked(params) is was


def test_the_answer_has_the_shape_of_the_revision() -> None:
    members = elicitation.page_to_open("Connect it.", "https://gateway.example/profile/connections")
    answer = results.input_required(members, {"name": "gateway", "version": "1"})
    read = schema.InputRequiredResult.model_validate(answer)
    assert read.result_type == "input_required"
    assert read.input_requests is not None
    assert read.input_requests["connect"].method == "elicitation/create"
    assert answer["inputRequests"]["connect"]["params"] == {
        "mode": "url",
        "message": "Connect it.",
        "url": "https://gateway.example/profile/connections",
    }
