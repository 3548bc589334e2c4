"""What a container's roles become."""

from __future__ import annotations

import sys

import pytest

from gateway.supervisor.entrypoint import container_options, role_command
from gateway.supervisor.options import StartRefused


def test_a_container_listens_on_its_own_network_and_has_no_demo() -> None:
    options = container_options({"BASE_URL": "https://gateway.example.com"})
    assert (options.host, options.port, options.demo) == ("0.0.0.0", 8000, False)
    assert options.connect_host == "127.0.0.1"


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("web", ("uvicorn", "gateway.asgi:application")),
        ("worker", ("celery", "--app", "gateway.celery", "worker")),
        ("beat", ("celery", "--app", "gateway.celery", "beat")),
    ],
)
def test_roles(role: str, words: tuple[str, ...]) -> None:
    command = role_command(role, [], {})
    assert command[:2] == (sys.executable, "-m")
    assert command[2 : 2 + len(words)] == words


def test_only_beat_runs_the_schedule() -> None:
    assert "--beat" not in role_command("worker", [], {})


def test_web_processes_follow_the_variable() -> None:
    environ = {"WEB_PROCESSES": "4", "REDIS_URL": "redis://redis/0"}
    command = role_command("web", [], environ)
    assert command[command.index("--workers") + 1] == "4"


def test_manage_passes_its_arguments_on() -> None:
    assert role_command("manage", ["migrate", "--no-input"], {}) == (
        sys.executable,
        "manage.py",
        "migrate",
        "--no-input",
    )


@pytest.mark.parametrize(("role", "environ"), [("shell", {}), ("", {}), ("web", {"PORT": "x"})])
def test_anything_else_is_refused(role: str, environ: dict[str, str]) -> None:
    with pytest.raises(StartRefused):
        role_command(role, [], environ)
