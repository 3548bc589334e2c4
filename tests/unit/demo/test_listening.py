"""Where the demonstration servers may listen, and what they write once."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo import identity_provider, vendor_server
from demo.listening import StartError, http_origin, require_loopback, write_once


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1"])
def test_loopback_is_allowed(host: str) -> None:
    require_loopback(host, allow_remote=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "2001:db8::1"])
def test_any_other_address_needs_a_word(host: str) -> None:
    with pytest.raises(StartError, match="--allow-remote"):
        require_loopback(host, allow_remote=False)
    require_loopback(host, allow_remote=True)


def test_origin_brackets_an_ipv6_address() -> None:
    assert http_origin("127.0.0.1", 9100) == "http://127.0.0.1:9100"
    assert http_origin("::1", 9100) == "http://[::1]:9100"


def test_first_content_stays(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    assert write_once(path, b"first") == b"first"
    assert write_once(path, b"second") == b"first"
    assert path.stat().st_mode & 0o077 == 0
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_provider_refuses_to_face_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEMO_IDP_CLIENT_SECRET", "a-secret-for-the-tests")
    arguments = ["--keys", str(tmp_path), "--redirect-origin", "http://127.0.0.1:8000"]
    assert identity_provider.main([*arguments, "--host", "0.0.0.0"]) == 2
    assert "--allow-remote" in capsys.readouterr().err


@pytest.mark.parametrize("secret", [None, "short"])
def test_provider_refuses_a_weak_secret_without_repeating_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], secret: str | None
) -> None:
    monkeypatch.delenv("ANOTHER_SECRET", raising=False)
    if secret is not None:
        monkeypatch.setenv("ANOTHER_SECRET", secret)
    arguments = ["--keys", str(tmp_path), "--redirect-origin", "http://127.0.0.1:8000"]
    assert identity_provider.main([*arguments, "--client-secret-env", "ANOTHER_SECRET"]) == 2
    written = capsys.readouterr()
    assert written.err.count("\n") == 1
    assert "client secret" in written.err
    assert not secret or secret not in written.out + written.err


def test_vendor_refuses_to_face_a_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert vendor_server.main(["--data", str(tmp_path), "--host", "0.0.0.0"]) == 2
    assert "--allow-remote" in capsys.readouterr().err
