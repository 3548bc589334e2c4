"""The commands of a container's roles, and its `manage` command."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gateway.container import entrypoint
from gateway.container.entrypoint import container_options, is_alive, ping_command, role_command, with_files
from gateway.supervisor.manage import ROOT
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
        ("metrics", ("gateway.metrics_server",)),
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


def test_a_helper_without_keys_serves_nobody() -> None:
    for role in ("web", "worker"):
        with pytest.raises(StartRefused, match="needs its keys"):
            role_command(role, [], {"GATEWAY_ROLE": "helper"})
    assert "beat" in role_command("beat", [], {"GATEWAY_ROLE": "helper"})


def test_variables_may_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://gateway.example.com\n")
    (tmp_path / "count").write_text("4\n")
    (tmp_path / "redis").write_text("redis://redis/0")
    files = {f"{name}_FILE": str(tmp_path / file) for name, file in [("BASE_URL", "url"), ("WEB_PROCESSES", "count")]}
    found = with_files({**files, "REDIS_URL_FILE": str(tmp_path / "redis"), "SECRET_KEY_FILE": "/nowhere"})
    assert container_options(found).base_url == "https://gateway.example.com"
    command = role_command("web", [], found)
    assert command[command.index("--workers") + 1] == "4"
    assert with_files({**files, "BASE_URL": "https://other.example.com"})["BASE_URL"] == "https://other.example.com"


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(StartRefused, match="PORT_FILE names a file that cannot be read"):
        with_files({"PORT_FILE": "/nowhere/port"})


class Answering(BaseHTTPRequestHandler):
    """200 for the one Host that is served, as the gateway does."""

    def do_GET(self) -> None:
        self.send_response(200 if self.headers["Host"] == "gateway.example.com" else 400)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Answering) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_server_whose_address_and_port_come_from_files_is_alive(server: HTTPServer, tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://gateway.example.com")
    (tmp_path / "port").write_text(str(server.server_port))
    environ = {"BASE_URL_FILE": str(tmp_path / "url"), "PORT_FILE": str(tmp_path / "port")}
    assert is_alive(with_files(environ))
    assert not is_alive(with_files({**environ, "BASE_URL": "https://other.example.com"}))


@pytest.mark.parametrize(("role", "name"), [("worker", "celery@abc"), ("shipping", "shipping@abc")])
def test_the_health_of_a_worker_is_that_of_the_one_in_this_container(
    monkeypatch: pytest.MonkeyPatch, role: str, name: str
) -> None:
    assert ping_command(role, "abc")[-4:] == ("--destination", name, "--timeout", "5")
    became: list[tuple[str, ...]] = []
    monkeypatch.setattr(entrypoint.os, "execv", lambda _, command: became.append(command) or 0)
    monkeypatch.setattr(entrypoint.socket, "gethostname", lambda: "abc")
    monkeypatch.setattr(sys, "argv", ["entrypoint", "health", role])
    assert entrypoint.main() == 0
    assert became == [ping_command(role, "abc")]


def test_the_image_s_command_passes_words_and_exit_code_on(tmp_path: Path) -> None:
    (tmp_path / "manage.py").write_text("import json, sys; print(json.dumps(sys.argv[1:])); sys.exit(3)\n")
    environ = {"PATH": f"{Path(sys.executable).parent}:/bin:/usr/bin", "APP": str(tmp_path)}
    script = str(ROOT / "gateway" / "container" / "manage.sh")
    ran = subprocess.run([script, "create_org", "Ann & Bo", "*"], env=environ, capture_output=True, text=True)
    assert (json.loads(ran.stdout), ran.returncode) == (["create_org", "Ann & Bo", "*"], 3)
    assert "gateway/container/manage.sh /usr/local/bin/manage" in (ROOT / "Dockerfile").read_text()
