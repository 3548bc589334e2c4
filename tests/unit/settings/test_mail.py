"""EMAIL_URL and EMAIL_FROM: what each makes of the settings, and the one line that refuses them."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from gateway.settings import env, mail


def settings_under(monkeypatch: pytest.MonkeyPatch, *, embedded: bool = False, **variables: str) -> dict[str, Any]:
    """The module's settings when only these of its variables are given."""
    for name in ("EMAIL_URL", "EMAIL_FROM", "INVITATION_MAILS_PER_DAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(env, "EMBEDDED", embedded)
    assert mail.__file__
    return runpy.run_path(mail.__file__)


def test_a_server_with_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings_under(monkeypatch, EMAIL_URL="smtp+tls://me:p%40ss@mail.example.com:587")
    assert found["MAIL_DELIVERY"] == "server"
    assert found["EMAIL_BACKEND"] == "gateway.mail.smtp.BoundedEmailBackend"
    assert (found["EMAIL_HOST"], found["EMAIL_PORT"]) == ("mail.example.com", 587)
    assert (found["EMAIL_HOST_USER"], found["EMAIL_HOST_PASSWORD"]) == ("me", "p@ss")
    assert found["EMAIL_USE_TLS"]
    assert (found["EMAIL_TIMEOUT"], found["EMAIL_MESSAGE_TIMEOUT"]) == (10, 30)


def test_without_one_the_mode_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = settings_under(monkeypatch, embedded=True)
    assert embedded["MAIL_DELIVERY"] == "files"
    assert embedded["EMAIL_BACKEND"].endswith("filebased.EmailBackend")
    assert embedded["EMAIL_FILE_PATH"].endswith("/mail")
    production = settings_under(monkeypatch)
    assert production["MAIL_DELIVERY"] == "off"
    assert production["EMAIL_BACKEND"].endswith("dummy.EmailBackend")


def test_the_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_under(monkeypatch)["DEFAULT_FROM_EMAIL"] == "Gateway <gateway@testserver>"
    found = settings_under(monkeypatch, EMAIL_FROM="Acme <noreply@acme.example>")
    assert (found["DEFAULT_FROM_EMAIL"], found["MAIL_HOST"]) == ("Acme <noreply@acme.example>", "acme.example")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("EMAIL_URL", "imap://user:hidden-word@mail.example.com"),
        ("EMAIL_URL", "smtp://user:hidden-word@mail.example.com:port"),
        ("EMAIL_FROM", "nobody hidden-word"),
        ("EMAIL_FROM", "a@example.com\nBcc: hidden-word@example.com"),
    ],
)
def test_a_wrong_one_is_refused_without_its_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, value: str
) -> None:
    with pytest.raises(SystemExit) as refusal:
        settings_under(monkeypatch, **{variable: value})
    assert refusal.value.code == 78
    said = capsys.readouterr().err
    assert said.startswith(f"Cannot start: {variable} must be")
    assert "hidden-word" not in said
