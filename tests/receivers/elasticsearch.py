"""Elasticsearch and OpenSearch: POST /_bulk or /INDEX/_bulk with create operations.

Sources:
https://www.elastic.co/guide/en/elasticsearch/reference/7.1/docs-bulk.html
https://www.elastic.co/guide/en/elasticsearch/reference/7.1/indices-create-index.html (names of indexes)
https://www.elastic.co/guide/en/elasticsearch/reference/8.17/security-api-create-api-key.html
github.com/elastic/elasticsearch docs/reference/docs/bulk.asciidoc (the answers)
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tests.receivers.strict_json import NotJson, parsed, text_of
from tests.receivers.wire import Event, Reply, Request, Wire, in_json

PATH = re.compile(r"(?:/([^/]+))?/_bulk")
META = {"_index", "_id", "routing", "require_alias", "pipeline", "dynamic_templates", "list_executed_pipelines"}
PARAMETERS = {
    *("filter_path", "pipeline", "pretty", "refresh", "require_alias", "require_data_stream", "routing", "timeout"),
    *("error_trace", "human", "wait_for_active_shards"),
}
BAD_IN_NAME = set('\\/*?"<>| ,#:')
LONGEST_ID_BYTES = 512
REASONS = {
    400: ("document_parsing_exception", "[1:9] failed to parse field [http.response.bytes] of type [long]"),
    429: ("es_rejected_execution_exception", "rejected execution of coordinating operation"),
}


class Elasticsearch(Wire):
    """`api_key`: the base64 form that the platform shows; without it anybody may write."""

    has_partial_failures = True

    def __init__(self, *, api_key: str = "", **settings: Any) -> None:
        super().__init__(**settings)
        self.api_key = api_key
        self.documents: dict[tuple[str, str], dict[str, Any]] = {}

    def in_words(self, status: int) -> Reply:
        kinds = {401: "security_exception", 403: "security_exception", 413: "content_too_long_exception"}
        return fault(status, kinds.get(status, REASONS[429][0]), "said by the receiver")

    def read(self, request: Request) -> list[Event]:
        self.must_be_post(request, fault(405, "illegal_argument_exception", "Incorrect HTTP method, allowed: [POST]"))
        path = PATH.fullmatch(request.path)
        if path is None:
            self.refuse(fault(400, "illegal_argument_exception", "no handler found"), f"path {request.path}")
        for name in request.query.keys() - PARAMETERS:
            words = f"request [{request.path}] contains unrecognized parameter: [{name}]"
            self.refuse(fault(400, "illegal_argument_exception", words), words)
        self._check_key(request)
        if request.media_type not in ("application/x-ndjson", "application/json"):
            words = f"Content-Type header [{request.media_type}] is not supported"
            self.refuse(fault(406, "media_type_header_exception", words), words)
        return self._operations(request.body, path[1])

    def _check_key(self, request: Request) -> None:
        if not self.api_key:
            return
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme != "ApiKey":
            words = f"missing authentication credentials for REST request [{request.target}]"
            self.refuse(fault(401, "security_exception", words), "no Authorization: ApiKey")
        try:
            if b":" not in base64.b64decode(key, validate=True):
                self.breach("the key is not base64 of id:key")
        except binascii.Error:
            self.breach("the key is not base64")
        if key != self.api_key:
            words = f"unable to authenticate with provided credentials for REST request [{request.target}]"
            self.refuse(fault(401, "security_exception", words))

    def _operations(self, body: bytes, index: str | None) -> list[Event]:
        if not body:
            self._illegal("request body is required", "parse_exception")
        if not body.endswith(b"\n"):
            self._illegal("The bulk request must be terminated by a newline [\\n]")
        lines = body.removesuffix(b"\n").split(b"\n")
        if len(lines) % 2:
            self._illegal("an operation without its document")
        return [
            self._operation(number, action, source, index)
            for number, (action, source) in enumerate(zip(lines[::2], lines[1::2], strict=True))
        ]

    def _operation(self, number: int, action: bytes, source: bytes, index: str | None) -> Event:
        line = 2 * number + 1
        try:
            operation, document = parsed(text_of(action)), parsed(text_of(source))
        except NotJson as reason:
            self._illegal(f"Malformed action/metadata line [{line}] or document: {reason}")
        if (
            not isinstance(operation, dict)
            or list(operation) != ["create"]
            or not isinstance(operation["create"], dict)
        ):
            self._illegal(f"Malformed action/metadata line [{line}], expected one [create]")
        meta = operation["create"]
        for name in meta.keys() - META:
            self._illegal(f"Action/metadata line [{line}] contains an unknown parameter [{name}]")
        name, document_id = meta.get("_index", index), meta.get("_id")
        if not isinstance(name, str) or not _is_index_name(name):
            self._illegal(f"Validation Failed: 1: index is missing or invalid: {name};")
        if not isinstance(document_id, str) or not 0 < len(document_id.encode()) <= LONGEST_ID_BYTES:
            self._illegal(
                f"Validation Failed: 1: id {document_id!r} is missing or longer than {LONGEST_ID_BYTES} bytes;"
            )
        if not isinstance(document, dict) or "@timestamp" not in document:
            self.breach(f"the document of line {line + 1} is no object with an @timestamp")
        return {"_index": name, "_id": document_id, "_source": document}

    def _illegal(self, words: str, kind: str = "illegal_argument_exception") -> NoReturn:
        self.refuse(fault(400, kind, words), words)

    def answer(self, events: Sequence[Event], refused: Mapping[int, int]) -> Reply:
        items, stored = [], []
        for place, event in enumerate(events):
            key = (event["_index"], event["_id"])
            item: dict[str, Any] = {"_index": key[0], "_id": key[1]}
            if place in refused:
                kind, reason = REASONS.get(refused[place], REASONS[400])
                item |= {"status": refused[place], "error": {"type": kind, "reason": reason}}
            elif key in self.documents:
                reason = f"[{key[1]}]: version conflict, document already exists (current version [1])"
                error = {"type": "version_conflict_engine_exception", "reason": reason, "shard": "0", "index": key[0]}
                item |= {"status": 409, "error": error}
            else:
                self.documents[key] = event["_source"]
                stored.append(place)
                item |= {"_version": 1, "result": "created", "status": 201, "_seq_no": len(self.documents) - 1}
            items.append({"create": item})
        return in_json(200, {"took": 7, "errors": len(stored) < len(events), "items": items}, stored)


def fault(status: int, kind: str, reason: str) -> Reply:
    cause = {"type": kind, "reason": reason}
    return in_json(status, {"error": {"root_cause": [cause], **cause}, "status": status})


def _is_index_name(name: str) -> bool:
    plain = 0 < len(name.encode()) <= 255 and name not in (".", "..") and name[0] not in "-_+"
    return plain and name == name.lower() and not BAD_IN_NAME & set(name)
