"""The VAR folder: private, held once, its logs rotated."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gateway.supervisor.folder import last_lines, locked_folder, make_private_folder, rotated_log, write_private
from gateway.supervisor.options import StartRefused


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_its_owners_alone(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "var")
    assert mode_of(tmp_path / "a" / "var") == 0o700


def test_a_folder_that_others_can_write_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    folder.mkdir()
    folder.chmod(0o777)
    make_private_folder(folder)
    assert mode_of(folder) == 0o700


def test_a_shared_folder_is_left_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    make_private_folder(folder)
    assert mode_of(folder) == 0o1777


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("")
    with pytest.raises(StartRefused, match="VAR="):
        make_private_folder(tmp_path / "var")


def test_a_folder_is_held_once(tmp_path: Path) -> None:
    other = locked_folder(tmp_path)
    with locked_folder(tmp_path), pytest.raises(StartRefused, match=rf"Already running .* \(process {os.getpid()}\)"):
        other.__enter__()
    with locked_folder(tmp_path):
        assert mode_of(tmp_path / "run.lock") == 0o600


def test_a_private_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), mode_of(path)) == ("new", 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["ready.json"]


def test_a_new_start_keeps_the_last_log(tmp_path: Path) -> None:
    rotated_log(tmp_path, "web").write_text("first")
    second = rotated_log(tmp_path, "web")
    assert (second.read_text(), mode_of(second)) == ("", 0o600)
    assert (tmp_path / "logs" / "web.log.1").read_text() == "first"


def test_last_lines_skip_blank_ones_and_survive_bad_bytes(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_bytes(b"x" * 40_000 + b"\none\n\n\xfftwo\n")
    assert last_lines(log, 2) == ["one", "�two"]
