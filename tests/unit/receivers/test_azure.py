"""The receiver of Azure's ingestion and its token endpoint take what the documentation shows, and find the rest."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.receivers import Fault, Receiver
from tests.unit.receivers.talking import Answer, as_json, send

pytestmark = pytest.mark.one_back_end
RULE = "dcr-000a00a000a00000a000000aa000a0aa"
SETTINGS = {
    "tenant": "8eaef023-2b34-4da1-9baa-8bc8c9d6a490",
    "client_id": "535fb089-9ff3-47b6-9bfb-4f1264799865",
    "client_secret": "sampleCredentials",
    "rule": RULE,
}
FORM = {
    "client_id": SETTINGS["client_id"],
    "scope": "https://monitor.azure.com//.default",
    "client_secret": SETTINGS["client_secret"],
    "grant_type": "client_credentials",
}
TOKENS = f"/{SETTINGS['tenant']}/oauth2/v2.0/token"
STREAM = f"/dataCollectionRules/{RULE}/streams/Custom-MyTable?api-version=2023-01-01"
ROW = {"TimeGenerated": "2023-11-14T15:10:02.123Z", "Computer": "Value01", "NestedJson": {"Key1": "Value03"}}


class Clock:
    now = datetime(2026, 11, 1, 10, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def receiver(clock: Clock) -> Iterator[Receiver]:
    with Receiver("azure_monitor", clock=clock, streams=("Custom-MyTable",), **SETTINGS) as started:
        yield started


def ask(receiver: Receiver, path: str = TOKENS, **changes: str) -> Answer:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return send(receiver, path, urlencode({**FORM, **changes}).encode(), headers)


def upload(receiver: Receiver, body: Any, token: str = "", path: str = STREAM, **headers: str) -> Answer:
    token = token or ask(receiver).json()["access_token"]
    raw = body if isinstance(body, bytes) else as_json(body)
    return send(
        receiver, path, raw, {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
    )


def test_a_token_and_an_upload(receiver: Receiver) -> None:
    answer = ask(receiver)
    assert answer.status == 200
    assert {**answer.json(), "access_token": ""} == {"token_type": "Bearer", "expires_in": 3599, "access_token": ""}
    token = answer.json()["access_token"]
    assert upload(receiver, [ROW, {**ROW, "Computer": "b"}], token)[:2] == (204, b"")
    zipped = upload(receiver, gzip.compress(as_json([ROW])), token, **{"Content-Encoding": "gzip"})
    assert zipped.status == 204
    assert receiver.ids("Computer") == ["Value01", "b", "Value01"]
    assert receiver.violations == []


def test_a_token_ends(receiver: Receiver, clock: Clock) -> None:
    token = ask(receiver).json()["access_token"]
    clock.now += timedelta(seconds=3598)
    assert upload(receiver, [ROW], token).status == 204
    clock.now += timedelta(seconds=1)
    answer = upload(receiver, [ROW], token)
    assert (answer.status, answer.json()["error"]["code"]) == (401, "AuthenticationTokenInvalid")
    assert receiver.violations == []


@pytest.mark.parametrize(
    ("path", "changes", "status", "error", "breaches"),
    [
        (TOKENS, {"client_secret": "other"}, 401, ("invalid_client", 7000215), 0),
        (TOKENS, {"client_id": "other"}, 400, ("unauthorized_client", 700016), 0),
        ("/other/oauth2/v2.0/token", {}, 400, ("invalid_request", 90002), 0),
        (TOKENS, {"scope": "https://monitor.azure.com/"}, 400, ("invalid_scope", 70011), 1),
        (TOKENS, {"grant_type": "password"}, 400, ("unsupported_grant_type", 70003), 1),
        (TOKENS, {"resource": "x"}, 400, ("invalid_request", 900144), 1),
    ],
)
def test_requests_for_a_token_that_are_refused(
    receiver: Receiver, path: str, changes: dict[str, str], status: int, error: tuple[str, int], breaches: int
) -> None:
    answer = ask(receiver, path, **changes)
    assert answer.status == status
    assert (answer.json()["error"], answer.json()["error_codes"]) == (error[0], [error[1]])
    assert answer.json()["error_description"].startswith(f"AADSTS{error[1]}: ")
    assert len(receiver.violations) == breaches


def test_a_request_for_a_token_that_is_no_form(receiver: Receiver) -> None:
    assert send(receiver, TOKENS, as_json(FORM), {"Content-Type": "application/json"}).status == 400
    assert receiver.violations == ["POST with application/json for a token"]


def test_what_the_destination_may_refuse_without_a_breach(receiver: Receiver) -> None:
    other_rule = STREAM.replace("000a", "111a")
    assert upload(receiver, [ROW], "other").status == 401
    assert upload(receiver, [ROW], path=other_rule).status == 404
    assert upload(receiver, [ROW], path=STREAM.replace("MyTable", "Other")).json()["error"]["code"] == "InvalidStream"
    large = upload(receiver, b" " * 1_048_577)
    assert (large.status, large.json()["error"]["code"]) == (413, "ContentLengthLimitExceeded")
    receiver.wire.may_write = False
    assert upload(receiver, [ROW]).status == 403
    receiver.fail_next(Fault.answers(429, retry_after=60), on="/dataCollectionRules/")
    busy = upload(receiver, [ROW])
    assert (busy.status, busy.headers["Retry-After"], busy.json()["error"]["code"]) == (429, "60", "TooManyRequests")
    assert receiver.violations == []
    assert receiver.events == []


def test_a_body_is_measured_without_its_compression(receiver: Receiver) -> None:
    zipped = gzip.compress(as_json([{**ROW, "Computer": "x" * 1_048_576}]))
    assert upload(receiver, zipped, **{"Content-Encoding": "gzip"}).status == 413


@pytest.mark.parametrize("body", [b"{", ROW, [], ["x"], [[ROW]]])
def test_a_body_that_is_no_list_of_objects(receiver: Receiver, body: Any) -> None:
    answer = upload(receiver, body)
    assert (answer.status, answer.json()["error"]["code"]) == (400, "InvalidPayload")
    assert len(receiver.violations) == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"TimeGenerated": None}, "row 0: TimeGenerated is no time of ISO 8601: None"),
        (
            {"TimeGenerated": "2023-11-14 15:10:02"},
            "row 0: TimeGenerated is no time of ISO 8601: '2023-11-14 15:10:02'",
        ),
        ({"_private": 1}, "row 0: _private is no name of a column"),
        ({"http.status": 1}, "row 0: http.status is no name of a column"),
        ({"x" * 46: 1}, f"row 0: {'x' * 46} is no name of a column"),
        ({"TenantId": "x"}, "row 0: TenantId is no name of a column"),
        ({"Text": "x" * 65_537}, "row 0: Text is longer than 65536 bytes"),
    ],
)
def test_what_azure_would_change_in_silence(receiver: Receiver, change: dict[str, Any], sentence: str) -> None:
    assert upload(receiver, [{**ROW, **change}]).status == 204
    assert receiver.violations == [sentence]


def test_other_breaches(receiver: Receiver) -> None:
    token = ask(receiver).json()["access_token"]
    assert upload(receiver, [ROW], token, STREAM.replace("2023-01-01", "2021-11-01-preview")).status == 404
    assert upload(receiver, [ROW], token, STREAM.replace("Custom-", "")).status == 404
    assert upload(receiver, [ROW], token, **{"Content-Type": "text/json"}).status == 415
    assert upload(receiver, [ROW], Authorization=token).status == 401
    assert len(receiver.violations) == 4
