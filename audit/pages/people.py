"""The people and service accounts of a log, as its filter lists them and as they may be typed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from audit.selectors import KnownUser


class People:
    """`listed` has a text for each subject that no other subject has."""

    def __init__(self, known: Iterable[KnownUser]) -> None:
        users = list(known)
        same = Counter(user.user_label.casefold() for user in users)
        self._shown = {
            user.user_id: user.user_label
            if same[user.user_label.casefold()] == 1
            else f"{user.user_label} ({user.user_id})"
            for user in users
        }
        self._ids = {shown.casefold(): user_id for user_id, shown in self._shown.items()}

    @property
    def listed(self) -> list[str]:
        return list(self._shown.values())

    def id_of(self, typed: str) -> str:
        """The id behind a listed text; any other text, an id among them, as it was typed."""
        return typed if typed in self._shown else self._ids.get(typed.casefold(), typed)

    def text_of(self, user_id: str) -> str:
        return self._shown.get(user_id, user_id)
