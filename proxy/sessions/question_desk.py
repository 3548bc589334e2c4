"""Questions of vendors that wait for their caller's answer, and the answers' way to the process that waits.

asked --answer here--> answered
  |  \\--answer at another process, through the exchange--> answered
  +--deadline--> not answered        +--call ends--> forgotten
An answer counts once: the question leaves the table with the first one. docs/decisions/0110
"""

from __future__ import annotations

import asyncio
import hmac
import os
from uuid import UUID

import msgspec
import structlog

from gateway.coordination.exchange import Exchange
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib.crypto import CryptoError, open_sealed, seal
from orgs.principal import Principal
from proxy.progress_relay import ProgressRelay
from proxy.protocol import jsonrpc, questions
from proxy.protocol.questions import Reply, VendorQuestion
from proxy.sessions.client_session import ClientSession
from proxy.sessions.question_ids import BOX_BYTES, QuestionId, QuestionIds
from proxy.sessions.shared_places import SharedPlaces

log = structlog.get_logger(__name__)
# For a person to read a form and to fill it in.
ANSWER_WITHIN_S = 300.0
_LOOK_S = 5.0  # of one wait for answers from other processes
_PAUSE_S = 1.0  # while the exchange is away
TOO_LATE = "The client did not answer in time."
TOO_MANY = "Too many questions wait for an answer."


class NoSuchQuestion(Exception):
    """The answer's id is unknown, of another caller or session, late, or was used before."""


class _Sent(msgspec.Struct, frozen=True, array_like=True):
    """An answer on its way to another process."""

    number: bytes
    org_id: bytes
    reply: Reply


class _Waiting(msgspec.Struct, frozen=True):
    org_id: UUID
    answer: asyncio.Future[Reply]


_sent = msgspec.msgpack.Decoder(_Sent)


class QuestionDesk:
    """One event loop."""

    def __init__(
        self, exchange: Exchange, secret: bytes, *, of_vendor: int, of_organization: int, of_subject: int
    ) -> None:
        """`secret` is the deployment's. The rest bounds the open questions: of one vendor, of an organization at one
        vendor, of a subject."""
        self._exchange = exchange
        self._ids = QuestionIds(secret)
        self._key = hmac.digest(secret, b"question-answers|values", "sha256")
        self._places = SharedPlaces(of_vendor, of_organization, of_subject)
        self._box = os.urandom(BOX_BYTES)
        self._waiting: dict[bytes, _Waiting] = {}
        self._collector: asyncio.Task[None] | None = None

    @property
    def open_count(self) -> int:
        return len(self._waiting)

    async def ask(
        self,
        principal: Principal,
        session: ClientSession,
        vendor: str,
        question: VendorQuestion,
        relay: ProgressRelay,
    ) -> Reply:
        """The caller's answer, or an error in its place. Cancelled with its call."""
        holders = (vendor, (principal.org_id, vendor), (principal.org_id, principal.subject))
        question_id, text = self._ids.issue(self._box, principal, session, ANSWER_WITHIN_S)
        if not self._places.take(*holders):
            return questions.failure(TOO_MANY)
        waiting = _Waiting(principal.org_id, asyncio.get_running_loop().create_future())
        self._waiting[question_id.number] = waiting
        self._collect()
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await relay.send(jsonrpc.request(text, question.method, question.params))
                return await waiting.answer
        except TimeoutError:
            relay.send_now(jsonrpc.notification("notifications/cancelled", {"requestId": text, "reason": TOO_LATE}))
            return questions.failure(TOO_LATE)
        finally:
            self._waiting.pop(question_id.number, None)
            self._places.give_back(*holders)

    async def answer(self, principal: Principal, session: ClientSession, answer: jsonrpc.Response) -> None:
        """Hand an answer to the call that waits for it. Raises: NoSuchQuestion; CoordinationUnavailable."""
        question_id = self._ids.read(answer.id, principal, session)
        reply = questions.reply_of(answer)
        if question_id is None or reply is None:
            raise NoSuchQuestion
        if question_id.box != self._box:
            await self._send(question_id, principal, reply)
        elif not self._take(question_id.number, principal.org_id, reply):
            raise NoSuchQuestion

    async def aclose(self) -> None:
        if self._collector is not None:
            self._collector.cancel()
            await asyncio.gather(self._collector, return_exceptions=True)

    def _take(self, number: bytes, org_id: UUID, reply: Reply) -> bool:
        waiting = self._waiting.get(number)
        if waiting is None or waiting.org_id != org_id or waiting.answer.done():
            return False
        waiting.answer.set_result(reply)
        del self._waiting[number]
        return True

    # --- between processes --------------------------------------------------------------------------------------------

    async def _send(self, question_id: QuestionId, principal: Principal, reply: Reply) -> None:
        # So that answers sent again and again do not fill the store.
        if not await self._exchange.claim(f"answered:{question_id.number.hex()}", int(ANSWER_WITHIN_S) + 1):
            raise NoSuchQuestion
        sent = msgspec.msgpack.encode(_Sent(question_id.number, principal.org_id.bytes, reply))
        box = _box_name(question_id.box)
        await self._exchange.push(box, seal(self._key, sent, box.encode()), int(ANSWER_WITHIN_S))

    def _collect(self) -> None:
        if self._collector is None or self._collector.done():
            self._collector = asyncio.ensure_future(self._collect_answers())

    async def _collect_answers(self) -> None:
        """While questions are open."""
        box = _box_name(self._box)
        while self._waiting:
            try:
                found = await self._exchange.take(box, _LOOK_S)
            except CoordinationUnavailable as fault:
                log.info("answers of other processes not read", fault=str(fault))
                await asyncio.sleep(_PAUSE_S)
                continue
            for sealed in found:
                self._receive(box, sealed)

    def _receive(self, box: str, sealed: bytes) -> None:
        try:
            sent = _sent.decode(open_sealed(self._key, sealed, box.encode()))
        except (CryptoError, msgspec.MsgspecError) as fault:
            log.warning("answer of another process not read", fault=type(fault).__name__)
            return
        self._take(sent.number, UUID(bytes=sent.org_id), sent.reply)


def _box_name(box: bytes) -> str:
    return f"answers:{box.hex()}"
