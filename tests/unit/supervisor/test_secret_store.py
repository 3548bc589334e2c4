"""The secrets of the first start: made once, private, never replaced behind the owner's back."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gateway.lib.crypto import Keyring
from gateway.supervisor.options import StartRefused
from gateway.supervisor.secret_store import FILE_NAME, load_secrets, parse_secrets


def test_the_first_start_makes_strong_private_secrets(tmp_path: Path) -> None:
    made = load_secrets(tmp_path, {}, has_database=False)
    assert set(made) == {"SECRET_KEY", "CREDENTIAL_KEYS", "OIDC_RP_CLIENT_SECRET"}
    assert len(made["SECRET_KEY"]) >= 50
    assert Keyring.parse(made["CREDENTIAL_KEYS"]).current_id == "first"
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_later_starts_read_the_same(tmp_path: Path) -> None:
    made = load_secrets(tmp_path, {}, has_database=False)
    assert load_secrets(tmp_path, {}, has_database=True) == made


def test_two_folders_share_nothing(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    one, other = (load_secrets(folder, {}, has_database=False) for folder in folders)
    assert not set(one.values()) & set(other.values())


def test_what_the_environment_sets_wins_and_is_not_stored(tmp_path: Path) -> None:
    environ = {"SECRET_KEY": "mine", "CREDENTIAL_KEYS_FILE": "/run/secrets/keys"}
    assert set(load_secrets(tmp_path, environ, has_database=True)) == {"OIDC_RP_CLIENT_SECRET"}
    assert "mine" not in (tmp_path / FILE_NAME).read_text()


def test_a_missing_entry_is_added_and_the_others_stay(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("# mine\nCREDENTIAL_KEYS=k:abc\nOTHER=1\n")
    secrets = load_secrets(tmp_path, {}, has_database=True)
    assert secrets["CREDENTIAL_KEYS"] == "k:abc"
    assert parse_secrets((tmp_path / FILE_NAME).read_text()) == secrets
    assert secrets["OTHER"] == "1"


def test_a_readable_file_is_made_private(tmp_path: Path) -> None:
    load_secrets(tmp_path, {}, has_database=False)
    (tmp_path / FILE_NAME).chmod(0o644)
    load_secrets(tmp_path, {}, has_database=True)
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_lost_keys_of_stored_credentials_are_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="CREDENTIAL_KEYS"):
        load_secrets(tmp_path, {}, has_database=True)
    assert not (tmp_path / FILE_NAME).exists()


def test_a_broken_file_is_reported_without_its_content(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("SECRET_KEY=a\nhunter2\n")
    with pytest.raises(StartRefused, match="line 2 is not NAME=value") as refused:
        load_secrets(tmp_path, {}, has_database=True)
    assert "hunter2" not in str(refused.value)
