"""A mail server that answers drop by drop holds the sender no longer than one that does not answer."""

from __future__ import annotations

import contextlib
import smtplib
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core.mail.backends.smtp import EmailBackend
from django.core.mail.message import EmailMessage


class _Deadline:
    """Ends the connection of a conversation that is not over in time. One conversation at a time."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._is_over = False

    def watch(self, connection: socket.socket) -> None:
        # TLS takes the socket over, so this is a second handle on the connection.
        self.forget()
        self._socket = connection.dup()

    def forget(self) -> None:
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()

    @contextlib.contextmanager
    def after(self, seconds: float) -> Iterator[None]:
        """Raises: TimeoutError, also when the conversation seemed to end well: half a reply is none."""
        self._is_over = False
        timer = threading.Timer(seconds, self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            if self._is_over:
                raise TimeoutError("the mail server took too long") from None

    def _end(self) -> None:
        """The side that reads or writes gets an error at once."""
        self._is_over = True
        connection = self._socket
        if connection is not None:
            with contextlib.suppress(OSError):  # it has ended by itself
                connection.shutdown(socket.SHUT_RDWR)


class _Watched(smtplib.SMTP):
    deadline: _Deadline

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        made: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]
        self.deadline.watch(made)
        return made


class _WatchedOverTls(smtplib.SMTP_SSL, _Watched):  # type: ignore[misc]
    """Its own socket is made by the class after it, before TLS begins."""


class BoundedEmailBackend(EmailBackend):
    """Django's, with EMAIL_MESSAGE_TIMEOUT for opening, for each message and for the end, however often it is answered.

    EMAIL_TIMEOUT bounds each step. Spec: D167
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._deadline = _Deadline()

    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        made_of = _WatchedOverTls if self.use_ssl else _Watched
        return type(made_of.__name__, (made_of,), {"deadline": self._deadline})

    def open(self) -> bool | None:
        try:
            with self._deadline.after(settings.EMAIL_MESSAGE_TIMEOUT):
                return super().open()
        except BaseException:
            self._deadline.forget()
            raise

    def close(self) -> None:
        try:
            with self._deadline.after(settings.EMAIL_MESSAGE_TIMEOUT):
                super().close()
        finally:
            self._deadline.forget()

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        with self._deadline.after(settings.EMAIL_MESSAGE_TIMEOUT):
            return super().send_messages(email_messages) or 0
