"""`make audit`, against a service of the test's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from scripts import audit_dependencies
from scripts.audit_dependencies import FOUND, NOT_ASKED, NotAsked, advisories, main, pinned

LOCK = """django==5.2.19 \\
    --hash=sha256:00
celery[redis]==5.7.0 ; python_version >= "3.11" \\
    --hash=sha256:00
"""


class Advisories(BaseHTTPRequestHandler):
    """Knows something about one package."""

    asked: ClassVar[list[dict[str, Any]]]
    answer: ClassVar[bytes | None]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        results = [{"vulns": [{"id": "GHSA-1"}]} if _is_celery(each) else {} for each in body["queries"]]
        self.send_response(200 if self.path == "/v1/querybatch" else 404)
        self.end_headers()
        self.wfile.write(self.answer if self.answer is not None else json.dumps({"results": results}).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _is_celery(query: dict[str, Any]) -> bool:
    return query == {"package": {"name": "celery", "ecosystem": "PyPI"}, "version": "5.7.0"}


@pytest.fixture
def service() -> Iterator[str]:
    Advisories.asked, Advisories.answer = [], None
    with HTTPServer(("127.0.0.1", 0), Advisories) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_names_and_versions_are_read_from_a_lock_file() -> None:
    assert pinned(LOCK) == {("django", "5.2.19"), ("celery", "5.7.0")}


def test_what_is_known_is_found_in_portions(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_dependencies, "AT_ONCE", 1)
    assert advisories([("django", "5.2.19"), ("celery", "5.7.0")], service) == {("celery", "5.7.0"): ["GHSA-1"]}
    assert len(Advisories.asked) == 2


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"results": []}', b'{"results": ["x"]}', b"<html>"])
def test_an_odd_answer_is_no_clean_one(service: str, answer: bytes) -> None:
    Advisories.answer = answer
    with pytest.raises(NotAsked):
        advisories([("django", "5.2.19")], service)


def test_the_exit_code_says_what_was_found(
    service: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OSV_URL", service)
    monkeypatch.setattr(audit_dependencies, "pinned", lambda _: {("celery", "5.7.0")})
    assert main() == FOUND
    assert "celery 5.7.0: GHSA-1" in capsys.readouterr().out
    monkeypatch.setattr(audit_dependencies, "pinned", lambda _: {("django", "5.2.19")})
    assert main() == 0
    monkeypatch.setenv("OSV_URL", "http://127.0.0.1:9")
    assert main() == NOT_ASKED
    assert "were not audited" in capsys.readouterr().out


def test_continuous_integration_asks_before_the_suite_and_fails_when_something_is_known() -> None:
    script = (audit_dependencies.ROOT / ".ci" / "run").read_text(encoding="utf-8")
    steps = (
        'timed "make audit" .venv/bin/python scripts/audit_dependencies.py || answer=$?',
        f'[[ $answer -eq 0 || ( $answer -eq {NOT_ASKED} && ${{AUDIT:-}} != 1 ) ]] || exit "$answer"',
        'timed "make test"',
    )
    places = [script.find(step) for step in steps]
    assert -1 not in places
    assert places == sorted(places)
