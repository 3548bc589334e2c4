"""Idempotency-Key: a repeated POST creates once. Spec: D29"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.http import HttpRequest
from rest_framework.response import Response

from gateway.keys.current import sealing_keys
from gateway.lib import clock, secrets
from gateway.lib.crypto import CryptoError
from gateway.lib.errors import Conflict, DomainError, Invalid
from gateway.lib.keyed_digests import keyed_digest, known_digests
from gateway.lib.keyring import keyring
from gateway.web.api_errors import refusal_of
from gateway.web.api_json import JSONRenderer
from gateway.web.models import IdempotencyRecord
from gateway.web.operation import Operation
from orgs.models import User

HEADER = "Idempotency-Key"
# Retention of a claim and its answer.
KEPT = timedelta(hours=24)
_SALT = "gateway.web.idempotency"
KEY_PATTERN = r"[\x21-\x7e]{1,255}"


class InvalidIdempotencyKey(Invalid):
    code, message = "invalid_idempotency_key", "An Idempotency-Key must have 1 to 255 visible ASCII characters."


class IdempotencyKeyReused(DomainError):
    code, message, status = (
        "idempotency_key_reused",
        "This Idempotency-Key was already used with a different body.",
        422,
    )


class FirstRequestUnfinished(Conflict):
    """The first request is still running, or its process died."""

    code = "idempotency_unfinished"
    message = (
        "The first request with this Idempotency-Key has not finished. Check what it did before you use a new key."
    )


class ResponseNotStored(Conflict):
    """The first request succeeded, and its answer held a secret."""

    code = "idempotency_answer_not_kept"
    message = "This request was already processed. Its response held a secret, which is shown only once."


def run_idempotently(
    request: HttpRequest, user: User, operation: Operation, run: Callable[[], Response], organization: str = ""
) -> Response:
    """Run `run`, or replay its stored answer. Raises: the errors above; the errors of `run`."""
    # The key is claimed before the work, and the answer is stored after it. A process that dies in between leaves a
    # claim without an answer: a retry gets 409, and the work is never repeated.
    row, is_first = _claim(request, user, organization)
    if not is_first:
        return _replay(row)
    try:
        answer = run()
    except Exception as fault:
        refusal = refusal_of(fault)
        if refusal is not None and refusal.status < 500:  # after a 5xx the work may have been done
            row.delete()
        raise
    row.status = answer.status_code
    if not operation.shows_secret:
        keys = sealing_keys()
        row.sealing_key_id = keys.current_id
        row.sealed = keys.wrap(JSONRenderer().render(answer.data), _aad(row))
    row.save(update_fields=["status", "sealed", "sealing_key_id"])
    return answer


def delete_expired() -> None:
    IdempotencyRecord.objects.filter(created_at__lte=clock.now() - KEPT).delete()


def _claim(request: HttpRequest, user: User, organization: str) -> tuple[IdempotencyRecord, bool]:
    key = request.headers[HEADER]
    if not re.fullmatch(KEY_PATTERN, key):
        raise InvalidIdempotencyKey
    delete_expired()
    # The primary organization can change between two requests, so it is part of the key where the path does not name
    # it.
    named = "" if organization in request.path_info else f"{organization}\0"
    key_sha256 = secrets.sha256(f"{request.path_info}\0{named}{key}")
    # An HMAC: bodies hold vendors' passwords, and a plain digest in a stolen table would allow guessing them.
    body_sha256 = keyed_digest(_SALT, request.body)
    try:
        with transaction.atomic():
            row = IdempotencyRecord.objects.create(user=user, key_sha256=key_sha256, body_sha256=body_sha256)
    except IntegrityError:
        known = IdempotencyRecord.objects.filter(user=user, key_sha256=key_sha256).first()
        if known is None:  # the first request was refused and its claim deleted meanwhile
            raise FirstRequestUnfinished from None
        if not any(secrets.equal(bytes(known.body_sha256), each) for each in known_digests(_SALT, request.body)):
            raise IdempotencyKeyReused from None
        return known, False
    return row, True


def _replay(row: IdempotencyRecord) -> Response:
    if row.status is None:
        raise FirstRequestUnfinished
    if not row.sealed:
        raise ResponseNotStored
    try:
        body = keyring().unwrap(row.sealing_key_id, bytes(row.sealed), _aad(row))
    except CryptoError as fault:
        raise ResponseNotStored from fault
    return Response(json.loads(body), status=row.status, headers={"Idempotent-Replayed": "true"})


def _aad(row: IdempotencyRecord) -> bytes:
    return f"answer|{row.user_id}|{bytes(row.key_sha256).hex()}".encode()
