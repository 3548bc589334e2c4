"""The revision that a vendor speaks, from answers of every shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.protocol.modern import eras
from proxy.protocol.modern.eras import Era
from proxy.protocol.replies import RpcError, VendorResult

OURS, LEGACY, LATER = "2026-07-28", ["2025-11-25", "2025-06-18"], ["2027-01-01"]


def error(code: int, message: str = "", data: Any = None, message_id: Any = 1) -> RpcError:
    raw = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return RpcError(message_id, code, message, json.dumps(raw).encode())


def result(members: Any) -> VendorResult:
    return VendorResult(1, json.dumps(members).encode(), False)


def versions(*named: Any) -> dict[str, Any]:
    return {"supportedVersions": list(named), "capabilities": {}, "resultType": "complete"}


@pytest.mark.parametrize(
    ("status", "answer", "era"),
    [
        (200, result(versions(OURS)), Era.MODERN),
        (200, result(versions(*LATER, OURS, *LEGACY)), Era.MODERN),
        (400, error(-32020), Era.MODERN),
        (400, error(-32021, data={"requiredCapabilities": {}}), Era.MODERN),
        (400, error(-32022, data={"supported": [OURS], "requested": OURS}), Era.MODERN),
        (200, result(versions(*LEGACY)), Era.EARLIER),  # a shim that answers for a server of the earlier revisions
        (200, result(versions(*LATER)), Era.EARLIER),
        (200, result(versions()), Era.EARLIER),
        (200, result(versions(7, None)), Era.EARLIER),
        (200, result({"supportedVersions": OURS}), Era.EARLIER),
        (200, result({"protocolVersion": OURS}), Era.EARLIER),
        (200, error(-32020), Era.EARLIER),
        (200, error(-32601), Era.EARLIER),
        (404, error(-32601), Era.EARLIER),
        (400, error(-32602, data={"supported": LEGACY, "requested": OURS}), Era.EARLIER),
        (400, error(-32022, data={"supported": LATER}), Era.EARLIER),
        (400, error(-32022, data={"supported": OURS}), Era.EARLIER),
        (400, error(-32022, data=[OURS]), Era.EARLIER),
        (400, error(-32022), Era.EARLIER),
        (200, None, Era.EARLIER),
        (404, None, Era.EARLIER),
    ],
)
def test_answers_to_discover(status: int, answer: VendorResult | RpcError | None, era: Era) -> None:
    assert eras.of_status(status) is None
    assert eras.of_answer(status, answer) is era


@pytest.mark.parametrize("status", [301, 302, 307, 401, 403, 407, 408, 425, 429, 500, 502, 503, 504])
def test_statuses_that_say_nothing_about_the_revision(status: int) -> None:
    assert eras.of_status(status) is Era.UNKNOWN


@pytest.mark.parametrize("status", [405, 406, 411, 415, 422])
def test_statuses_of_a_server_that_does_not_know_the_question(status: int) -> None:
    assert eras.of_status(status) is Era.EARLIER


@pytest.mark.parametrize(
    ("status", "refusal", "is_certain"),
    [
        (400, error(-32022, data={"supported": [OURS], "requested": "2025-11-25"}), True),
        (400, error(-32022), True),
        (400, error(-32020), True),
        (200, error(-32022, data={"supported": [OURS]}), False),  # the tool's own words, after it ran
        (404, error(-32022, data={"supported": [OURS]}), False),
        (400, error(-32022, data={"supported": LATER}), False),  # no revision that the gateway speaks
        (400, error(-32602, "params._meta must be an object"), False),
        (400, error(-32021), False),
        (400, None, False),
    ],
)
def test_refusals_of_an_earlier_request(status: int, refusal: RpcError | None, is_certain: bool) -> None:
    assert eras.refuses_earlier(status, refusal) is is_certain


NAMES_OURS = {"supported": LEGACY, "requested": OURS}
UNSUPPORTED = "Bad Request: Unsupported protocol version: 2026-07-28 (supported versions: 2025-11-25)"


@pytest.mark.parametrize(
    ("status", "refusal", "is_certain"),
    [
        (400, error(-32022, data=NAMES_OURS), True),
        (400, error(-32602, "Unsupported protocol version", NAMES_OURS), True),
        (400, error(-32600, UNSUPPORTED, message_id="server-error"), True),
        (400, error(-32000, UNSUPPORTED, message_id=None), True),
        (400, error(-32600, "Bad Request: Missing session ID", message_id="server-error"), True),
        (400, error(-32000, "Bad Request: No valid session ID provided", message_id=None), True),
        (400, error(-32000, "Bad Request: Server not initialized", message_id=None), True),
        (404, error(-32600, "Session not found", message_id="server-error"), True),
        (200, error(-32602, "Unsupported protocol version", NAMES_OURS), False),
        (400, error(-32602, "Unsupported protocol version"), False),
        (400, error(-32602, "Unsupported", {"supported": [OURS], "requested": OURS}), False),
        (400, error(-32602, "Unsupported", {"supported": LEGACY, "requested": "2025-11-25"}), False),
        (400, error(-32600, UNSUPPORTED, message_id=1), False),  # the request's id: the method itself answered
        (400, error(-32600, "Your session is over", message_id=None), False),
        (400, error(-32603, "Missing session ID", message_id=None), False),
        (404, None, False),
        (500, error(-32022, data=NAMES_OURS), False),
    ],
)
def test_refusals_of_a_modern_request(status: int, refusal: RpcError | None, is_certain: bool) -> None:
    assert eras.refuses_modern(status, b"", refusal) is is_certain


def test_doubts() -> None:
    assert eras.casts_doubt(404, None)
    assert eras.casts_doubt(404, error(-32601))
    assert eras.casts_doubt(400, error(-32600, "Your session is over", message_id=None))
    assert not eras.casts_doubt(400, error(-32602, "Unknown tool"))
