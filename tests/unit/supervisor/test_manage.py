"""Commands on an installation: its keys and variables, its words, and what they refuse. Contract: 6"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.supervisor.installation import command_environment, is_secret, record_start, restore_environment
from gateway.supervisor.manage import ROOT, command_words
from gateway.supervisor.options import StartRefused
from gateway.supervisor.secret_store import MAKERS

ASKED = ("SECRET_KEY", "BASE_URL", "DATABASE_URL", "REDIS_URL", "BILLING_MODE", "STRIPE_SECRET_KEY", "LEGACY_CODES")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An installation that was started once."""
    (tmp_path / "secrets.env").write_text("SECRET_KEY=made\nCREDENTIAL_KEYS=first:made\n")
    (tmp_path / "secrets.env").chmod(0o600)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("doctor --json", ["doctor", "--json"]),
        ("create_org 'Ann & Bo' ann@example.com", ["create_org", "Ann & Bo", "ann@example.com"]),
        ('create_org "it\'s $HOME; rm -rf *" a@b.example', ["create_org", "it's $HOME; rm -rf *", "a@b.example"]),
    ],
)
def test_words_are_read_as_a_shell_reads_quotes_and_nothing_else(text: str, words: list[str]) -> None:
    assert command_words([], {"ARGS": text}) == words


def test_words_on_the_command_line_are_taken_as_they_are() -> None:
    assert command_words(["create_org", "a b"], {"ARGS": "other"}) == ["create_org", "a b"]


@pytest.mark.parametrize("text", ["", "   ", "create_org 'open"])
def test_no_command_is_refused(text: str) -> None:
    with pytest.raises(StartRefused):
        command_words([], {"ARGS": text})


def test_a_command_has_the_keys_and_variables_of_the_installation(folder: Path) -> None:
    record_start(folder, {"SECRET_KEY": "made", "BASE_URL": "http://a.example", "BILLING_MODE": "manual"}, ASKED)
    found = command_environment(folder, {"PATH": "/bin", "ARGS": "x", "MAKEFLAGS": "s"})
    assert (found["SECRET_KEY"], found["CREDENTIAL_KEYS"]) == ("made", "first:made")
    assert (found["BASE_URL"], found["BILLING_MODE"], found["VAR"]) == ("http://a.example", "manual", str(folder))
    assert (found["GATEWAY_MODE"], found["PATH"]) == ("embedded", "/bin")
    assert not found.keys() & {"ARGS", "MAKEFLAGS"}


def test_what_is_given_wins(folder: Path) -> None:
    record_start(folder, {"BASE_URL": "http://a.example", "BILLING_MODE": "manual"}, ASKED)
    found = command_environment(folder, {"BASE_URL": "http://b.example", "SECRET_KEY_FILE": "/run/key"})
    assert (found["BASE_URL"], found["BILLING_MODE"]) == ("http://b.example", "manual")
    assert "SECRET_KEY" not in found


def test_a_given_secret_is_written_nowhere_and_asked_for_again(folder: Path) -> None:
    given = {"DATABASE_URL": "postgres://u:hidden@db/x", "STRIPE_SECRET_KEY": "hidden", "LEGACY_CODES": "hidden"}
    record_start(folder, {**given, "BASE_URL": "http://a.example"}, ASKED)
    path = folder / "environment.json"
    assert "hidden" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(StartRefused, match="DATABASE_URL and LEGACY_CODES and STRIPE_SECRET_KEY"):
        command_environment(folder, {})
    assert command_environment(folder, given)["DATABASE_URL"] == given["DATABASE_URL"]


def test_a_start_without_a_variable_forgets_the_earlier_one(folder: Path) -> None:
    record_start(folder, {"REDIS_URL": "redis://r"}, ASKED)
    record_start(folder, {}, ASKED)
    assert "REDIS_URL" not in command_environment(folder, {})


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("TOKEN_SIGNING_KEYS", "x", True),
        ("OIDC_RP_CLIENT_SECRET", "x", True),
        ("SECRET_KEY_FALLBACKS", "x", True),
        ("VAULT_TOKEN", "x", True),
        ("VAULT_ADDR", "https://vault.example.com:8200", False),
        ("SOME_URL", "https://user:pass@host", True),
        ("OIDC_OP_DISCOVERY_URL", "https://idp.example/.well-known/openid-configuration", False),
        ("BILLING_MODE", "manual", False),
    ],
)
def test_what_counts_as_secret(name: str, value: str, secret: bool) -> None:
    assert is_secret(name, value) is secret


def test_a_folder_without_an_installation_is_refused_and_stays_empty(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="holds no installation"):
        command_environment(tmp_path, {"DATABASE_URL": "postgres://x"})
    assert list(tmp_path.iterdir()) == []


def test_a_broken_file_is_refused(folder: Path) -> None:
    (folder / "environment.json").write_text("[")
    with pytest.raises(StartRefused, match=r"environment\.json cannot be read"):
        command_environment(folder, {})


@pytest.mark.parametrize("code", [0, 1, 7])
def test_the_exit_code_is_the_command_s(folder: Path, code: int) -> None:
    (folder / "secrets.env").write_text("".join(f"{name}={make()}\n" for name, make in MAKERS.items()))
    words = ["shell", "--no-imports", "-c", f"raise SystemExit({code})"]
    program = [sys.executable, "-m", "gateway.supervisor.manage", *words]
    environ = {"PATH": os.environ["PATH"], "VAR": str(folder)}
    assert subprocess.run(program, cwd=ROOT, env=environ, capture_output=True, timeout=60).returncode == code


def test_a_restore_needs_no_installation_and_gets_no_keys(tmp_path: Path) -> None:
    found = restore_environment(tmp_path / "new", {"PATH": "/bin", "ARGS": "x", "MAKEFLAGS": "s"})
    assert found["VAR"] == str(tmp_path / "new")
    assert (found["GATEWAY_MODE"], found["GATEWAY_ROLE"], found["PATH"]) == ("embedded", "helper", "/bin")
    assert not found.keys() & {"ARGS", "MAKEFLAGS", "SECRET_KEY", "CREDENTIAL_KEYS"}
