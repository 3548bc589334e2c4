"""The id of a question to a caller: unguessable, of one session of one caller, and good for a short time.

It names the process that waits for the answer, so that any process can hand the answer on. docs/decisions/0110
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os

import msgspec

from gateway.lib import clock
from orgs.principal import Principal
from proxy.sessions.client_session import ClientSession

BOX_BYTES = 8
_RANDOM_BYTES = 16
_TIME_BYTES = 5
_MAC_BYTES = 16
_WHOLE_BYTES = BOX_BYTES + _RANDOM_BYTES + _TIME_BYTES + _MAC_BYTES
_PURPOSE = b"question-id|"


class QuestionId(msgspec.Struct, frozen=True):
    """`box`: of the process that waits. `number`: random, of the question."""

    box: bytes
    number: bytes


class QuestionIds:
    """`secret` is the deployment's."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, _PURPOSE, "sha256")

    def issue(
        self, box: bytes, principal: Principal, session: ClientSession, lifetime_s: float
    ) -> tuple[QuestionId, str]:
        """A new id, and its text for the caller."""
        until_s = int(clock.now().timestamp() + lifetime_s) + 1
        number = os.urandom(_RANDOM_BYTES)
        body = box + number + until_s.to_bytes(_TIME_BYTES, "big")
        text = base64.urlsafe_b64encode(body + self._mac(body, principal, session)).decode("ascii")
        return QuestionId(box, number), text

    def read(self, text: object, principal: Principal, session: ClientSession) -> QuestionId | None:
        """None for an id of another caller or session, a late one, and what is none."""
        if not isinstance(text, str) or len(text) != _WHOLE_BYTES * 4 // 3:
            return None
        try:
            raw = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            return None
        body, mac = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(body, principal, session)):
            return None
        until_s = int.from_bytes(body[-_TIME_BYTES:], "big")
        if clock.now().timestamp() >= until_s:
            return None
        return QuestionId(body[:BOX_BYTES], body[BOX_BYTES:-_TIME_BYTES])

    def _mac(self, body: bytes, principal: Principal, session: ClientSession) -> bytes:
        who = (principal.org_id.hex, principal.kind.value, principal.subject, principal.client_id)
        return hmac.digest(self._key, msgspec.msgpack.encode((body, session.id, who)), "sha256")[:_MAC_BYTES]
