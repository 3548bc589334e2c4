"""Figures of documents come from the settings."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.coordination.rules import Rule
from gateway.site.help.figures import duration, filled, size

pytestmark = pytest.mark.one_back_end


def test_a_figure_is_that_of_the_setting(settings: Any) -> None:
    settings.TOOL_CALLS = Rule("tools", limit=12_345, window_s=3600)
    settings.DEVICE_CODE_TTL = 90
    settings.API_BODY_BYTES = 256 * 1024
    source = "{{ TOOL_CALLS }}, {{ DEVICE_CODE_TTL }}, {{ DEVICE_CODE_TTL|duration }}, {{ API_BODY_BYTES|size }}"
    assert filled(source) == "12,345 in 1 hour, 90, 90 seconds, 256 KiB"


@pytest.mark.parametrize("source", ["{{ secret_key }}", "{apiKey}", "{{SECRET_KEY}}"])
def test_other_braces_stay(source: str) -> None:
    assert filled(source) == source


@pytest.mark.parametrize(
    ("source", "fault"),
    [("{{ NO_SUCH_SETTING }}", AttributeError), ("{{ API_BODY_BYTES|weight }}", KeyError)],
)
def test_a_mistake_is_no_figure(source: str, fault: type[Exception]) -> None:
    with pytest.raises(fault):
        filled(source)


def test_units() -> None:
    assert [duration(value) for value in (1, 5.0, 60, 900, 7200, 86_400)] == [
        "1 second",
        "5 seconds",
        "1 minute",
        "15 minutes",
        "2 hours",
        "1 day",
    ]
    assert [size(value) for value in (10, 16 * 1024, 4 * 1024 * 1024)] == ["10 bytes", "16 KiB", "4 MiB"]
