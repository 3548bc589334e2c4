"""The monitor's remarks stay the same texts, and become translatable."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.utils import translation

from gateway.lib.translated import translated
from proxy.control_plane.health.states import UNKNOWN as BEFORE
from proxy.control_plane.health.states import ProbeResult, VendorHealth, after_probe
from proxy.control_plane.health.words import in_words, joined

AT = datetime(2026, 3, 10, tzinfo=UTC)


def failed(fault: str, times: int) -> str:
    health: VendorHealth = BEFORE
    for _ in range(times):
        health = after_probe(health, ProbeResult(AT, 5, None, fault=fault), latency_threshold_ms=100)
    return health.error_detail or ""


def slow() -> str:
    found = after_probe(BEFORE, ProbeResult(AT, 2_500, 200), latency_threshold_ms=100)
    return found.error_detail or ""


@pytest.mark.parametrize(
    ("text", "german"),
    [
        (failed("could not be reached", 1), "nicht erreichbar, 1 Fehlschlag"),
        (failed("host name not found", 3), "Hostname nicht gefunden, 3 Fehlschläge in Folge"),
        (failed("timed out after 10 s", 2), "keine Antwort innerhalb von 10\u00a0s, 2 Fehlschläge in Folge"),
        (slow(), "langsam: Antwort nach 2500\u00a0ms"),
        ("answered HTTP 503, 1 failure", "antwortete mit HTTP 503, 1 Fehlschlag"),
        (
            "answered initialize with something that is not MCP; tool calls may fail",
            "antwortete auf initialize mit etwas, das kein MCP ist; Tool-Aufrufe können fehlschlagen",
        ),
        ("a text of another release", "a text of another release"),
        ("", ""),
    ],
)
def test_each_remark_has_words(text: str, german: str) -> None:
    words = in_words(text)
    assert words == text
    with translation.override("de"):
        assert translated(words) == german


def test_both_remarks_are_one_text() -> None:
    assert joined("slow: answered after 7 ms", "odd") == "slow: answered after 7 ms; odd"
    assert joined(None, "odd") == "odd"
    assert joined(None, "") == ""
