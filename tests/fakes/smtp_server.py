"""A real mail server on 127.0.0.1: it accepts, refuses one address, or does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


class Mailbox:
    """`refused`: addresses with the server's reply. `data_reply`: its answer to every message.

    `is_silent`: a message gets no answer.
    """

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.refused: dict[str, str] = {}
        self.data_reply = "250 OK"
        self.is_silent = False
        self.port = 0

    async def handle_RCPT(  # noqa: N802 - the library's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[Any]
    ) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.is_silent:
            await asyncio.Event().wait()
        if self.data_reply.startswith("250"):
            content = envelope.content
            assert isinstance(content, bytes)
            self.messages.append(message_from_bytes(content, policy=policy.default))
            self.recipients += envelope.rcpt_tos
        return self.data_reply

    def text_of(self, place: int, kind: str = "plain") -> str:
        part = self.messages[place].get_body((kind,))
        assert part is not None
        return str(part.get_content())


class _AnyPort(Controller):
    def _trigger_server(self) -> None:
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def running(settings: Any) -> Iterator[Mailbox]:
    """The server, named by `settings` as EMAIL_URL does it."""
    mailbox = Mailbox()
    controller = _AnyPort(mailbox, hostname="127.0.0.1", port=0)
    controller.start()
    mailbox.port = controller.port
    settings.MAIL_DELIVERY = "server"
    settings.EMAIL_BACKEND = "gateway.mail.smtp.BoundedEmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", mailbox.port
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    try:
        yield mailbox
    finally:
        controller.stop()
