"""WEB_PROCESSES is what one host starts; DEPLOYMENT_PROCESSES divides the limits of the whole deployment."""

from __future__ import annotations

import pytest
from django.conf import LazySettings

from gateway.coordination import backend
from gateway.coordination.fallback_store import FallbackStore
from gateway.coordination.rules import Rule
from gateway.settings import base


@pytest.mark.parametrize(
    ("environ", "processes"),
    [
        ({}, (1, 1)),
        ({"WEB_PROCESSES": "4"}, (4, 4)),
        ({"WEB_PROCESSES": "4", "DEPLOYMENT_PROCESSES": "40"}, (4, 40)),
        ({"DEPLOYMENT_PROCESSES": "10"}, (1, 10)),
    ],
)
def test_a_deployment_has_as_many_processes_as_one_host_unless_it_says_more(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], processes: tuple[int, int]
) -> None:
    for name in ("WEB_PROCESSES", "DEPLOYMENT_PROCESSES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert base._processes() == processes


def test_a_deployment_has_no_fewer_processes_than_one_host(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WEB_PROCESSES", "4")
    monkeypatch.setenv("DEPLOYMENT_PROCESSES", "2")
    with pytest.raises(SystemExit):
        base._processes()
    assert capsys.readouterr().err.startswith("Cannot start: DEPLOYMENT_PROCESSES ")


@pytest.mark.parametrize(("everywhere", "share"), [(2, 50), (40, 2)])
def test_limits_are_divided_by_the_processes_of_the_deployment(
    settings: LazySettings, everywhere: int, share: int
) -> None:
    """The address has no listener, so the first answer is the process's own."""
    settings.REDIS_URL, settings.WEB_PROCESSES, settings.DEPLOYMENT_PROCESSES = "redis://127.0.0.1:9/0", 2, everywhere
    store = backend.current.__wrapped__()
    assert isinstance(store, FallbackStore)
    assert store.hit(Rule("tools", limit=100, window_s=3600), "anna").rule.limit == share
    store.stop()
