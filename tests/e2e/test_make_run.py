"""`make run` as a newcomer meets it: it starts, says what to paste, keeps its data, and leaves nothing behind.

Contract: 1, 2
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from gateway.supervisor.secret_store import parse_secrets
from tests.e2e.deployment_data import Template
from tests.e2e.started import ROOT, Started, living, real_back_ends, refusal, started, used_back_ends

pytest_plugins = ("tests.e2e.fixtures",)

KEYS = "base_url mcp_url idp_url vendor_url org_id owner_email agent_key client_id client_secret".split()
BAD_CATALOG = """\
[[vendor]]
slug = "Not A Slug"
name = "Broken"
url = "http://127.0.0.1:9/mcp"
"""
GOOD_CATALOG = """\
[[vendor]]
slug = "extra"
name = "Extra"
url = "http://127.0.0.1:9/mcp"
category = "demo"
docs_url = "https://docs.example.com/extra"
[[vendor.headers]]
name = "X-Api-Key"
value = "{apiKey}"
[[vendor.fields]]
name = "apiKey"
label = "API key"
secret = true
required = true
"""


@pytest.fixture
def back_ends() -> Iterator[dict[str, str]]:
    with real_back_ends() as variables:
        yield variables


@pytest.fixture
def used(template: Template, tmp_path: Path) -> Iterator[dict[str, str]]:
    """For a start in `tmp_path`, where there was one before: the tested part begins after the migrations."""
    with used_back_ends(template, tmp_path / "var") as variables:
        yield variables


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """One start for the tests that change nothing about it."""
    with real_back_ends() as variables, started(tmp_path_factory.mktemp("running"), variables) as start:
        start.wait_ready()
        yield start


def paste(line: str) -> dict[str, object]:
    """The JSON that a line prints in a plain shell."""
    result = subprocess.run(
        ["sh", "-c", line], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    answer: dict[str, object] = json.loads(result.stdout)
    return answer


def status_of(url: str) -> int:
    with urllib.request.urlopen(url, timeout=10) as response:
        return int(response.status)


@pytest.mark.one_back_end
def test_the_ready_file_is_the_contract(running: Started) -> None:
    ready = running.ready()
    port, idp_port, vendor_port = (running.variables[name] for name in ("PORT", "IDP_PORT", "VENDOR_PORT"))
    assert list(ready) == KEYS
    assert ready["base_url"] == f"http://127.0.0.1:{port}"
    assert ready["mcp_url"] == f"http://127.0.0.1:{port}/v1/mcp"
    assert ready["idp_url"] == f"http://127.0.0.1:{idp_port}"
    assert ready["vendor_url"] == f"http://127.0.0.1:{vendor_port}"
    assert ready["agent_key"].startswith("cak_")
    assert ready["client_id"].startswith("svc_")
    assert all(ready[key] for key in KEYS)


@pytest.mark.one_back_end
def test_what_it_keeps_is_private(running: Started) -> None:
    assert stat.S_IMODE(running.ready_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(running.var.stat().st_mode) == 0o700
    kept = [path for path in running.var.rglob("*") if not path.is_symlink()]
    assert [str(path) for path in kept if path.stat().st_mode & 0o077] == []


@pytest.mark.one_back_end
def test_the_terminal_says_how_to_sign_in(running: Started) -> None:
    ready = running.ready()
    assert f"{ready['base_url']}/signin" in running.output()
    assert ready["owner_email"] in running.output()
    assert ready["agent_key"] in running.output()
    assert status_of(f"{ready['base_url']}/signin") == 200


@pytest.mark.one_back_end
def test_both_pasted_lines_work_as_they_stand(running: Started) -> None:
    list_line, call_line = running.pasted_lines()
    listed = paste(list_line)
    names = [tool["name"] for tool in listed["result"]["tools"]]  # type: ignore[index]
    assert [name for name in names if name.startswith("acme_")]
    called = paste(call_line)
    (content,) = called["result"]["content"]  # type: ignore[index]
    assert content["type"] == "text"
    assert content["text"]


@pytest.mark.one_back_end
def test_no_secret_is_in_a_log(running: Started) -> None:
    ready = running.ready()
    stored = parse_secrets((running.var / "secrets.env").read_text())
    secrets = [ready["agent_key"], ready["client_secret"], *stored.values()]
    logs = {path.name: path.read_text() for path in (running.var / "logs").iterdir()}
    assert {"web.log", "worker.log", "vendor.log", "identity.log", "preparation.log"} <= logs.keys()
    assert [name for name, text in logs.items() for secret in secrets if secret in text] == []


@pytest.mark.one_back_end
def test_a_second_start_in_the_same_folder_is_refused(running: Started, tmp_path: Path) -> None:
    code, output = refusal(tmp_path, {"VAR": running.variables["VAR"]})
    assert code == 2
    assert output.startswith("Already running on VAR=")
    assert f"(process {running.process.pid})" in output
    assert output.count("\n") == 1
    assert running.ready_path.exists()


@pytest.mark.one_back_end
@pytest.mark.parametrize("name", ["PORT", "IDP_PORT", "VENDOR_PORT"])
def test_a_taken_port_is_named_with_a_free_one(running: Started, tmp_path: Path, name: str) -> None:
    # Another test may take the free port before it is tried here.
    assert any(is_free(named_port(tmp_path, name, running.variables[name])) for _ in range(5))


def named_port(tmp_path: Path, name: str, taken: str) -> int:
    """The port that a start names which finds its own taken."""
    code, output = refusal(tmp_path, {name: taken})
    assert code == 2
    assert output.startswith(f"Port {taken} is taken. Stop what uses it or start with: make run {name}=")
    assert output.count("\n") == 1
    return int(output.rpartition("=")[2])


def is_free(port: int) -> bool:
    with socket.socket() as probe, suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False


def test_a_stop_leaves_no_process_and_a_restart_keeps_the_data(back_ends: dict[str, str], tmp_path: Path) -> None:
    with started(tmp_path, back_ends) as first:
        first.wait_ready()
        before, lines = first.ready(), first.pasted_lines()
        assert f"Database        {'PostgreSQL' if 'DATABASE_URL' in back_ends else 'SQLite'}," in first.output()
        worker_log = (first.var / "logs" / "worker.log").read_text()
        assert f"Connected to {'redis' if 'REDIS_URL' in back_ends else 'filesystem'}:" in worker_log
        processes = first.processes()
        assert len(processes) >= 4
        assert first.stop() == 0
        assert living(processes, 0) == []
        assert "Stopped." in first.output()
        assert "Traceback" not in first.output()
    with started(tmp_path, {**first.variables}) as second:
        second.wait_ready()
        after = second.ready()
        lasting = [key for key in KEYS if key not in {"agent_key", "client_secret"}]
        assert {key: after[key] for key in lasting} == {key: before[key] for key in lasting}
        assert "up to date" in second.output()
        assert re.search(r"^Ready after [0-9.]+ s\.$", second.output(), re.MULTILINE)
        assert "result" in paste(second.pasted_lines()[0])
        assert after["agent_key"] != before["agent_key"]
        assert "result" not in paste(lines[0])
        processes = second.processes()
        assert second.stop(signal.SIGINT) == 0
        assert living(processes, 0) == []


@pytest.mark.one_back_end
def test_without_the_demo_nothing_of_it_is_there(used: dict[str, str], tmp_path: Path) -> None:
    catalog = tmp_path / "more.toml"
    catalog.write_text(GOOD_CATALOG)
    with started(tmp_path, {**used, "DEMO": "0", "CATALOG": str(catalog)}) as start:
        start.wait_ready()
        ready = start.ready()
        assert list(ready) == KEYS
        assert [ready[key] for key in KEYS[2:]] == [None] * 7
        assert start.pasted_lines() == []
        assert "more.toml" in start.output()
        assert status_of(f"{ready['base_url']}/health") == 200
        for name in ("IDP_PORT", "VENDOR_PORT"):
            with socket.socket() as probe:
                assert probe.connect_ex(("127.0.0.1", int(start.variables[name]))) != 0


@pytest.mark.one_back_end
def test_a_worker_that_dies_is_started_again_and_a_web_server_ends_the_run(
    used: dict[str, str], tmp_path: Path
) -> None:
    with started(tmp_path, {**used, "DEMO": "0"}) as start:
        start.wait_ready()
        worker = start.process_running("--beat")
        worker.kill()
        start.wait_for("Worker stopped (exit code -9); starting it again in 1 s.")
        assert living([worker], 5) == []
        again = wait_for_process(start, "--beat")
        assert again.pid != worker.pid
        processes = start.processes()
        start.process_running("gateway.asgi:application").kill()
        assert start.wait_end() == 1
        assert "Web server stopped (exit code -9), so everything stops." in start.output()
        assert living(processes, 0) == []


def wait_for_process(start: Started, word: str) -> psutil.Process:
    for _ in range(100):
        found = [child for child in psutil.Process(start.process.pid).children() if word in child.cmdline()]
        if found:
            return found[0]
        time.sleep(0.1)
    raise AssertionError(start.output())


@pytest.mark.one_back_end
def test_a_killed_supervisor_takes_everything_with_it(used: dict[str, str], tmp_path: Path) -> None:
    with started(tmp_path, {**used, "DEMO": "0"}) as start:
        start.wait_ready()
        processes = start.processes()
        assert start.stop(signal.SIGKILL) == -signal.SIGKILL
        assert living(processes, 15) == []


@pytest.mark.one_back_end
def test_a_stop_during_the_start_ends_it(back_ends: dict[str, str], tmp_path: Path) -> None:
    with started(tmp_path, back_ends) as start:
        start.wait_for("MCP gateway at")
        processes = start.processes()
        assert start.stop() == 0
        assert living(processes, 0) == []
        assert not start.ready_path.exists()


@pytest.mark.one_back_end
def test_make_itself_passes_its_signal_on(used: dict[str, str], tmp_path: Path) -> None:
    variables = {**used, "DEMO": "0", "VENV": sys.prefix}
    with started(tmp_path, variables, command=("make", "--no-print-directory", "run")) as start:
        start.wait_ready()
        processes = start.processes()
        start.stop()
        assert "Stopped." in start.output()
        assert living(processes, 0) == []


@pytest.mark.one_back_end
@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"SECRET_KEY": "short"}, "SECRET_KEY must be set to at least 32 random characters"),
        ({"CREDENTIAL_KEYS": "first:AAAA"}, "CREDENTIAL_KEYS is missing or weak"),
        ({"DATABASE_URL": "mysql://h/d"}, "DATABASE_URL must name a PostgreSQL or SQLite database"),
        ({"GATEWAY_MODE": "production"}, "must"),
        ({"AUDIT_RETENTION_DAYS": "soon"}, "AUDIT_RETENTION_DAYS must be a whole number"),
    ],
)
def test_a_weak_or_wrong_setting_is_one_sentence(tmp_path: Path, variables: dict[str, str], says: str) -> None:
    code, output = refusal(tmp_path, variables)
    assert code == 1
    assert says in output.splitlines()[-1]
    assert "Traceback" not in output
    assert not (tmp_path / "var" / "ready.json").exists()


@pytest.mark.one_back_end
def test_a_database_that_is_away_is_one_sentence(tmp_path: Path) -> None:
    code, output = refusal(tmp_path, {"DATABASE_URL": "postgres://nobody@127.0.0.1:9/nothing"})
    assert code == 1
    assert output.splitlines()[-1].endswith("Check DATABASE_URL.")
    assert "Traceback" not in output


@pytest.mark.one_back_end
def test_a_catalog_with_an_error_is_one_sentence_that_names_line_and_key(used: dict[str, str], tmp_path: Path) -> None:
    catalog = tmp_path / "bad.toml"
    catalog.write_text(BAD_CATALOG)
    code, output = refusal(tmp_path, {**used, "CATALOG": str(catalog)})
    last = output.splitlines()[-1]
    assert code == 1
    assert "bad.toml" in last
    assert "2" in last
    assert "slug" in last
    assert "Traceback" not in output


@pytest.mark.one_back_end
def test_a_catalog_that_is_not_there_is_refused_before_anything_starts(tmp_path: Path) -> None:
    code, output = refusal(tmp_path, {"CATALOG": str(tmp_path / "none.toml")})
    assert (code, output.count("\n")) == (2, 1)
    assert output.startswith("CATALOG=")


@pytest.mark.one_back_end
def test_lost_keys_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir(mode=0o700)
    (tmp_path / "var" / "gateway.sqlite3").touch()
    code, output = refusal(tmp_path, {})
    assert code == 2
    assert "CREDENTIAL_KEYS is missing" in output
    assert "Traceback" not in output


@pytest.mark.one_back_end
def test_a_command_runs_beside_the_service(running: Started) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "VAR": str(running.var)}
    environ |= {name: value for name, value in running.variables.items() if name in {"DATABASE_URL", "REDIS_URL"}}
    words = """ARGS=create_org "Ann's & Bo's" ann@example.com"""
    made = subprocess.run(["make", "-s", "manage", words], cwd=ROOT, env=environ, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert "Ann's & Bo's" in made.stdout
    failed = subprocess.run(
        ["make", "-s", "manage", "ARGS=add_member nowhere a@example.com"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert failed.returncode != 0
    assert "There is no organization nowhere." in failed.stderr
    kept = json.loads((running.var / "environment.json").read_text())
    assert kept["kept"]["BASE_URL"] == running.ready()["base_url"]
