"""Database sessions stored under the hash of their cookie: a stolen table or backup opens no session."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db.models import QuerySet

from gateway.lib import clock, secrets

KEY_CHARACTERS = 40  # the width of the table's column, 160 bits
CLEARED_AT_ONCE = 5_000  # rows in one transaction


def stored_key(session_key: str) -> str:
    return secrets.sha256(session_key).hex()[:KEY_CHARACTERS]


def key_of(session: SessionBase) -> str:
    """The primary key of the session's row."""
    return stored_key(session.session_key or "")


class SessionStore(db.SessionStore):
    """Django's database sessions, looked up and written under `stored_key`. Spec: §5 (1)"""

    def exists(self, session_key: str) -> bool:
        return super().exists(stored_key(session_key))

    async def aexists(self, session_key: str) -> bool:
        return await super().aexists(stored_key(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        return _hashed(super().create_model_instance(data))

    async def acreate_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        return _hashed(await super().acreate_model_instance(data))

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            super().delete(stored_key(key))

    async def adelete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            await super().adelete(stored_key(key))

    @classmethod
    def clear_expired(cls) -> None:
        rows = cls.get_model_class()._default_manager
        expired = rows.filter(expire_date__lt=clock.now()).order_by("expire_date").values("pk")
        # Short transactions, so that the cleanup holds few row locks at a time.
        removed = CLEARED_AT_ONCE
        while removed == CLEARED_AT_ONCE:
            removed, _ = rows.filter(pk__in=expired[:CLEARED_AT_ONCE]).delete()

    def _get_session_from_db(self) -> AbstractBaseSession | None:
        return self._known(self._own_row().first())

    async def _aget_session_from_db(self) -> AbstractBaseSession | None:
        return self._known(await self._own_row().afirst())

    def _own_row(self) -> QuerySet[AbstractBaseSession]:
        rows: QuerySet[AbstractBaseSession] = self.model._default_manager.all()
        return rows.filter(session_key=stored_key(self.session_key or ""), expire_date__gt=clock.now())

    def _known(self, row: AbstractBaseSession | None) -> AbstractBaseSession | None:
        if row is None:
            # Session fixation: the sender chose this cookie, so it must not become the key of a new session.
            self._session_key = None
        return row


def _hashed(row: AbstractBaseSession) -> AbstractBaseSession:
    row.session_key = stored_key(row.session_key)
    return row
