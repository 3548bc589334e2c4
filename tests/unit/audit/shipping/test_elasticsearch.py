from __future__ import annotations

import json
from typing import Any

import pytest

from audit.shipping.platforms.elasticsearch import Elasticsearch
from audit.shipping.platforms.exchange import (
    Delivered,
    DestinationRefused,
    InvalidDestination,
    Outgoing,
    RetryLater,
    Target,
    Verdict,
)
from tests.unit.audit.shipping.samples import BATCH, CALL_ID, CHANGE_ID, NOW, answer
from tests.unit.audit.shipping.test_ecs import CALL, CHANGE

HOST = "https://es.example"
PARTS = "filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason"


def outgoing(url: str = HOST, **config: str) -> Outgoing:
    return Elasticsearch().request(Target(url, config), BATCH, now=NOW, token="")


def read(body: Any, status: int = 200) -> Verdict:
    return Elasticsearch().read(answer(status, json.dumps(body)), BATCH)


def items(*outcomes: dict[str, Any]) -> dict[str, Any]:
    return {"errors": True, "items": [{"create": outcome} for outcome in outcomes]}


def failed(status: int, kind: str, reason: str = "why") -> dict[str, Any]:
    return {"status": status, "error": {"type": kind, "reason": reason}}


STORED = {"status": 201}
ALREADY_THERE = failed(409, "version_conflict_engine_exception")


def test_the_body_is_an_action_and_a_document_for_each_record() -> None:
    sent = outgoing()
    assert sent.body.decode() == "".join(
        json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n"
        for line in (
            {"create": {"_id": CALL_ID}},
            {"@timestamp": "2026-11-23T10:15:30.123Z", **in_order(CALL)},
            {"create": {"_id": CHANGE_ID}},
            {"@timestamp": "2026-11-23T10:15:31.000Z", **in_order(CHANGE)},
        )
    )
    assert sent.headers == {"Content-Type": "application/x-ndjson"}
    assert sent.may_compress


def in_order(document: dict[str, Any]) -> dict[str, Any]:
    """The members in the order of the row's columns, which the body keeps."""
    order = ["ecs", "event", "organization", "user", "mcp_gateway", "error", "source", "http"]
    return {name: document[name] for name in order if name in document}


@pytest.mark.parametrize(
    ("url", "index", "address", "in_action"),
    [
        (HOST, "", f"{HOST}/logs-mcp_gateway-default/_bulk?{PARTS}", None),
        (f"{HOST}:9243/", "", f"{HOST}:9243/logs-mcp_gateway-default/_bulk?{PARTS}", None),
        (HOST, "audit", f"{HOST}/audit/_bulk?{PARTS}", None),
        (f"{HOST}/_bulk", "audit", f"{HOST}/audit/_bulk?{PARTS}", None),
        (f"{HOST}/_bulk?pipeline=p", "", f"{HOST}/logs-mcp_gateway-default/_bulk?pipeline=p&{PARTS}", None),
        (f"{HOST}/mine/_bulk", "", f"{HOST}/mine/_bulk?{PARTS}", None),
        (f"{HOST}/es/_bulk", "audit", f"{HOST}/es/_bulk?{PARTS}", "audit"),
    ],
)
def test_the_index_is_in_the_path_unless_the_address_is_full(
    url: str, index: str, address: str, in_action: str | None
) -> None:
    sent = outgoing(url, index=index)
    assert sent.url == address
    assert json.loads(sent.body.splitlines()[0])["create"].get("_index") == in_action


@pytest.mark.parametrize(
    ("config", "header"),
    [
        ({"apiKey": "aWQ6a2V5"}, "ApiKey aWQ6a2V5"),
        ({"apiKey": "id:key"}, "ApiKey aWQ6a2V5"),
        ({"username": "ana", "password": "pass word"}, "Basic YW5hOnBhc3Mgd29yZA=="),
        ({}, None),
    ],
)
def test_who_sends_is_proven(config: dict[str, str], header: str | None) -> None:
    sent = outgoing(**config)
    assert sent.headers.get("Authorization") == header
    assert header is None or header not in repr(sent)


@pytest.mark.parametrize(
    ("url", "config"),
    [
        (HOST, {}),
        (f"{HOST}/_bulk", {"apiKey": "aWQ6a2V5", "index": "logs-mcp.gateway-eu_1"}),
        (f"{HOST}/es/_bulk", {"username": "ana", "password": "é"}),
    ],
)
def test_a_usable_destination_passes(url: str, config: dict[str, str]) -> None:
    Elasticsearch().check(url, config)


@pytest.mark.parametrize(
    ("url", "config", "code", "field"),
    [
        (f"{HOST}/app/home", {}, "endpoint_not_allowed", "endpointUrl"),
        (HOST, {"apiKey": "a\nb"}, "config_missing", "apiKey"),
        (HOST, {"apiKey": "é"}, "config_missing", "apiKey"),
        (HOST, {"apiKey": "a", "username": "b", "password": "c"}, "config_missing", "apiKey"),
        (HOST, {"username": "b"}, "config_missing", "password"),
        (HOST, {"password": "c"}, "config_missing", "username"),
        (HOST, {"username": "a:b", "password": "c"}, "config_missing", "username"),
        (HOST, {"index": "Audit"}, "config_missing", "index"),
        (HOST, {"index": "a/b"}, "config_missing", "index"),
        (HOST, {"index": "_all"}, "config_missing", "index"),
        (HOST, {"index": "a\n"}, "config_missing", "index"),
    ],
)
def test_an_unusable_destination_is_refused_by_field(url: str, config: dict[str, str], code: str, field: str) -> None:
    with pytest.raises(InvalidDestination) as refused:
        Elasticsearch().check(url, config)
    assert (refused.value.code, [*refused.value.fields]) == (code, [field])


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ({"errors": False, "items": [{"create": STORED}, {"create": STORED}]}, Delivered()),
        ({"errors": False}, Delivered()),
        (items(STORED, ALREADY_THERE), Delivered()),
        (items(ALREADY_THERE, ALREADY_THERE), Delivered()),
        (
            items(STORED, failed(400, "document_parsing_exception")),
            Delivered({1: "400: document_parsing_exception: why"}),
        ),
        (
            items(failed(400, "illegal_argument_exception"), failed(413, "too_large")),
            Delivered({0: "400: illegal_argument_exception: why", 1: "413: too_large: why"}),
        ),
        (
            items(STORED, failed(429, "es_rejected_execution_exception")),
            RetryLater("429: es_rejected_execution_exception: why"),
        ),
        (
            items(failed(400, "document_parsing_exception"), failed(503, "unavailable_shards_exception")),
            RetryLater("503: unavailable_shards_exception: why"),
        ),
        (items(STORED, failed(403, "cluster_block_exception")), RetryLater("403: cluster_block_exception: why")),
        (items(STORED, {}), RetryLater("0")),
        (items(STORED, failed(403, "security_exception")), DestinationRefused("403: security_exception: why")),
        (
            items(STORED, failed(404, "index_not_found_exception")),
            DestinationRefused("404: index_not_found_exception: why"),
        ),
        (items(STORED, failed(400, "index_closed_exception")), DestinationRefused("400: index_closed_exception: why")),
        (
            items(STORED, failed(400, "illegal_argument_exception", "no write index is defined for alias [a]")),
            DestinationRefused("400: illegal_argument_exception: no write index is defined for alias [a]"),
        ),
        (
            items(STORED, failed(400, "illegal_argument_exception", "pipeline with id [p] does not exist")),
            DestinationRefused("400: illegal_argument_exception: pipeline with id [p] does not exist"),
        ),
    ],
)
def test_the_items_decide(body: Any, verdict: Verdict) -> None:
    assert read(body) == verdict


def test_a_long_reason_is_cut() -> None:
    verdict = read(items(STORED, failed(400, "document_parsing_exception", "x" * 5000)))
    assert isinstance(verdict, Delivered)
    assert len(verdict.refused[1]) == 200


@pytest.mark.parametrize(
    "body", ["", "<html>Sign in</html>", "[]", '{"took":1}', "[" * 200_000, b"\xff{", '{"errors":"no"}']
)
def test_another_answer_is_no_delivery(body: str | bytes) -> None:
    assert isinstance(Elasticsearch().read(answer(200, body), BATCH), RetryLater)


def test_an_answer_for_fewer_records_is_no_delivery() -> None:
    assert isinstance(read(items(STORED)), RetryLater)


def test_records_are_well_formed_so_an_index_is_missing_or_the_like() -> None:
    assert isinstance(read({"error": {"type": "some_exception"}, "status": 400}, 400), DestinationRefused)
