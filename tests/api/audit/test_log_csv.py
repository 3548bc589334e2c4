"""Both logs as CSV: columns, harmless cells, the part that is asked for, and the bounds. Spec: D84, D85, D146"""

from __future__ import annotations

import csv
import gc
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from django.db import OperationalError
from pytest_django.asserts import assertNumQueries

from audit import log_pages, log_query
from gateway.lib.database_threads import with_own_connection
from gateway.web import csv_export
from gateway.web.csv_export import ExportBroken, exports
from tests.api.audit.log_rows import add_call, add_calls, add_change
from tests.factories.api import Api
from tests.factories.streamed import body_of, parts_of

REQUEST_HEADER = "user,user_id,timestamp,vendor,tool,source,status,duration_ms,client_id,request_id,count,kind,item"
ADMIN_HEADER = "actor,actor_id,target,target_id,event_type,timestamp,metadata"
LOGS = pytest.mark.parametrize("path", ["/audit", "/audit/admin"])
LATE = datetime(2026, 12, 31, 23, 59, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _foreign_rows(api: Api) -> None:
    add_call(api.cast.other_org.id, user_label="Foreign")
    add_change(api.cast.other_org.id, actor_label="Foreign")


@pytest.fixture(autouse=True)
def _every_slot_is_given_back() -> Iterator[None]:
    yield
    gc.collect()
    assert not exports.taken


def export(api: Api, path: str, query: str = "", **headers: str) -> Any:
    answer = api.send("admin", "GET", f"{path}?format=csv&{query}", headers=headers)
    assert answer.status_code == 200, answer.content
    return answer


def rows(api: Api, path: str, query: str = "") -> list[dict[str, str]]:
    answer = export(api, path, query)
    body = body_of(answer).decode()
    assert "Foreign" not in body
    found = list(csv.DictReader(io.StringIO(body, newline=""), strict=True))
    assert int(answer["X-Total-Count"]) == len(found)
    return found


def test_calls_have_the_documented_columns(api: Api) -> None:
    add_call(api.cast.org.id, duration_ms=30, client_id="client-1", count=3)
    assert body_of(export(api, "/audit")).decode() == (
        f"{REQUEST_HEADER}\r\nAna,user-1,2026-03-10T12:00:00.000Z,acme,acme_list,mcp,success,30,client-1,r-1,3,tool,\r\n"
    )


def test_changes_have_the_documented_columns(api: Api) -> None:
    add_change(api.cast.org.id, metadata={"vendors": ["acme", "é"], "role": "admin"})
    add_change(api.cast.org.id, minutes=-1, target_id="", target_label="")
    assert body_of(export(api, "/audit/admin")).decode() == (
        f"{ADMIN_HEADER}\r\n"
        "Ana,user-1,Ben,user-2,member.removed,2026-03-10T12:00:00.000Z,"
        '"{""role"":""admin"",""vendors"":[""acme"",""é""]}"\r\n'
        "Ana,user-1,,,member.removed,2026-03-10T11:59:00.000Z,{}\r\n"
    )


@LOGS
def test_the_headers_of_an_export(api: Api, path: str) -> None:
    with time_machine.travel(LATE, tick=False):
        answer = export(api, path)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="audit-2026-12-31.csv"'
    assert answer["X-Total-Count"] == "0"
    assert answer["Cache-Control"] == "no-store"
    assert "Accept-Encoding" in answer["Vary"]
    assert "Content-Length" not in answer
    assert "RateLimit" in answer
    header = REQUEST_HEADER if path == "/audit" else ADMIN_HEADER
    assert body_of(answer) == f"{header}\r\n".encode(), "no BOM, and the header alone for an empty log"


HOSTILE = [
    "=cmd|'/C calc'!A0",
    "+1",
    "-1",
    "@x",
    "\ttab",
    "\rreturn",
    'say "hi", you',
    "two\nlines",
    "two\r\nlines",
    "\u202egnp.exe",
    "ends,with\\",
    "'quoted",
    "",
    " =1",
    "naïve 名前 😀",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_a_text_holds_it_is_one_harmless_row(api: Api, text: str) -> None:
    """Rows as an older writer might have left them: today's replaces line ends and hidden characters."""
    call, change = add_call(api.cast.org.id), add_change(api.cast.org.id)
    type(call).objects.filter(pk=call.pk).update(user_label=text, tool=text, client_id=text)
    type(change).objects.filter(pk=change.pk).update(actor_label=text, target_label=text, metadata={text: text})
    shown = f"'{text}" if text[:1] in set("=+-@\t\r") and text else text
    (found,) = rows(api, "/audit")
    assert None not in found
    assert [found[name] for name in ("user", "tool", "client_id")] == [shown] * 3
    assert (found["user_id"], found["count"]) == ("user-1", "1")
    (found,) = rows(api, "/audit/admin")
    assert [found[name] for name in ("actor", "target")] == [shown] * 2
    assert json.loads(found["metadata"]) == {text: text}


def test_hidden_characters_of_a_name_do_not_reach_the_export(api: Api) -> None:
    add_call(api.cast.org.id, user_label="\u202egnp.exe\nx")
    (found,) = rows(api, "/audit")
    assert found["user"] == "\ufffdgnp.exe\ufffdx"


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(log_pages, "EXPORT_PAGE_ROWS", 4)
    return 4


def ids(api: Api, query: str) -> list[str]:
    return [row["request_id"] for row in rows(api, "/audit", query)]


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("number", [3, 4, 5, 8, 9])
def test_all_rows_come_once_and_newest_first(api: Api, number: int) -> None:
    add_calls(api.cast.org.id, number)
    assert ids(api, "") == [f"r-{each}" for each in range(number)]


@pytest.mark.usefixtures("small_pages")
def test_a_part_of_the_rows(api: Api) -> None:
    add_calls(api.cast.org.id, 10)
    assert ids(api, "limit=6") == [f"r-{each}" for each in range(6)]
    assert ids(api, "limit=1") == ["r-0"]
    assert ids(api, "offset=7") == ["r-7", "r-8", "r-9"]
    assert ids(api, "offset=1&limit=5") == [f"r-{each}" for each in range(1, 6)]
    assert ids(api, "offset=10") == []
    assert ids(api, "request_id=r-3") == ["r-3"]
    cursor = api.get("admin", "/audit?limit=8")["nextCursor"]
    assert ids(api, f"cursor={cursor}") == ["r-8", "r-9"]


def test_a_limit_above_the_one_of_pages_is_kept(api: Api) -> None:
    add_calls(api.cast.org.id, 503)
    assert len(rows(api, "/audit", "limit=502")) == 502


def test_no_export_is_longer_than_the_most(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_query, "MAX_EXPORTED", 6)
    add_calls(api.cast.org.id, 8)
    assert ids(api, "") == ids(api, "limit=7") == [f"r-{each}" for each in range(6)]


@pytest.mark.usefixtures("small_pages")
def test_rows_that_arrive_during_an_export_stay_out(api: Api) -> None:
    add_calls(api.cast.org.id, 6)
    answer = export(api, "/audit")
    add_call(api.cast.org.id, minutes=1, request_id="late")
    found = list(csv.DictReader(io.StringIO(body_of(answer).decode())))
    assert [row["request_id"] for row in found] == [f"r-{each}" for each in range(6)]


@pytest.mark.usefixtures("small_pages")
def test_each_page_is_two_statements_of_its_own(api: Api) -> None:
    add_calls(api.cast.org.id, 9)
    answer = export(api, "/audit")
    with assertNumQueries(3 * 2 + 1):  # ids and rows of each page; no more ids
        parts = parts_of(answer)
    assert [part.count(b"\r\n") for part in parts] == [1, 4, 4, 1]


@pytest.mark.usefixtures("small_pages")
@LOGS
def test_gzip_can_be_read_as_it_comes(api: Api, path: str) -> None:
    add_calls(api.cast.org.id, 9)
    add_change(api.cast.org.id)
    plain, packed = export(api, path), export(api, path, **{"Accept-Encoding": "br, gzip;q=0.5"})
    assert ("Content-Encoding" in plain, packed["Content-Encoding"]) == (False, "gzip")
    expected, parts = parts_of(plain), parts_of(packed)
    assert gzip.decompress(b"".join(parts)) == b"".join(expected)
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    assert [unpacker.decompress(part) for part in parts] == [*expected, b""]


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "br, gzip; q=0.000", "*;q=0"])
def test_gzip_is_not_forced_on_anybody(api: Api, accepted: str) -> None:
    answer = export(api, "/audit", **{"Accept-Encoding": accepted})
    assert "Content-Encoding" not in answer
    assert body_of(answer).decode() == f"{REQUEST_HEADER}\r\n"


@LOGS
def test_head_has_the_headers_and_asks_for_no_page(api: Api, path: str) -> None:
    add_call(api.cast.org.id)
    add_change(api.cast.org.id)
    answer = api.send("admin", "HEAD", f"{path}?format=csv")
    assert (answer.status_code, answer["X-Total-Count"]) == (200, "1")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert body_of(answer) == b""


def test_one_organization_runs_a_few_exports_at_once(api: Api) -> None:
    running = [export(api, "/audit"), export(api, "/audit/admin")]
    answer = api.send("owner", "GET", "/audit?format=csv")
    found = json.loads(answer.content)
    assert (answer.status_code, found["error"]) == (429, "rate_limited")
    assert int(answer["Retry-After"]) == found["retryAfter"] > 0
    assert api.send("owner", "GET", "/audit").status_code == 200, "pages of the log go on"
    other = api.send("other_owner", "GET", "/audit?format=csv")
    assert (other.status_code, body_of(other).count(b"Foreign")) == (200, 1)
    body_of(running.pop())
    assert body_of(api.send("owner", "GET", "/audit?format=csv"))
    body_of(running.pop())


def test_the_process_runs_a_few_exports_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "_size", 1)
    running = export(api, "/audit")
    answer = api.send("other_owner", "GET", "/audit?format=csv")
    assert (answer.status_code, json.loads(answer.content)["error"]) == (503, "overloaded")
    assert int(answer["Retry-After"]) > 0
    body_of(running)
    assert body_of(api.send("other_owner", "GET", "/audit?format=csv")).count(b"Foreign") == 1


def test_an_answer_that_is_never_sent_gives_its_slot_back(api: Api) -> None:
    answer = export(api, "/audit")
    assert exports.taken.total() == 1
    del answer
    gc.collect()
    assert not exports.taken


@pytest.mark.parametrize("query", ["start=x", "limit=0", "user_id=a%00b"])
def test_a_refused_export_takes_no_slot(api: Api, query: str) -> None:
    assert api.send("admin", "GET", f"/audit?format=csv&{query}").status_code == 400
    assert not exports.taken


def test_a_failing_count_gives_the_slot_back(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr("audit.api.logs.export_of", fail)
    assert api.refused("admin", "GET", "/audit?format=csv") == (503, "unavailable")
    assert not exports.taken


@pytest.mark.usefixtures("small_pages")
def test_a_database_that_fails_ends_the_body_before_its_end(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret of a statement is not in the error, and nothing says that the body is complete."""
    add_calls(api.cast.org.id, 9)
    asked = 0

    def fail_at_third(work: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise OperationalError("SELECT secret")
        return with_own_connection(work)

    monkeypatch.setattr(csv_export, "with_own_connection", fail_at_third)
    answer = export(api, "/audit")
    with pytest.raises(ExportBroken) as fault:
        parts_of(answer)
    assert "secret" not in str(fault.value)
    assert fault.value.__suppress_context__


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("changes", [{"LONGEST_S": -1.0}, {"GRACE_S": -1_000.0}], ids=["in all", "by its pace"])
def test_a_reader_that_takes_too_long_is_cut_off(
    api: Api, monkeypatch: pytest.MonkeyPatch, changes: dict[str, float]
) -> None:
    add_calls(api.cast.org.id, 9)
    for name, value in changes.items():
        monkeypatch.setattr(csv_export, name, value)
    with pytest.raises(ExportBroken, match="too long"):
        parts_of(export(api, "/audit"))
