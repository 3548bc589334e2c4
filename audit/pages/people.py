"""The people and agents of a log, as its filter lists them and as they may be typed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gateway.lib.ids import parse_id


class People:
    """`listed` has a text for each subject that no other subject has. `labels` by id."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._shown = _different(labels)
        self._ids = {shown.casefold(): user_id for user_id, shown in self._shown.items()}

    @property
    def listed(self) -> list[str]:
        return list(self._shown.values())

    def id_of(self, typed: str) -> str:
        """The id behind a listed text; any other text, an id among them, as it was typed."""
        return typed if typed in self._shown or _is_id(typed) else self._ids.get(typed.casefold(), typed)

    def text_of(self, user_id: str) -> str:
        return self._shown.get(user_id, user_id)


def _different(labels: Mapping[str, str]) -> dict[str, str]:
    """Texts by id: labels, with the id behind each that more than one subject has."""
    texts = dict(labels)
    while True:
        same = Counter(text.casefold() for text in texts.values())
        repeated = [user_id for user_id, text in texts.items() if same[text.casefold()] > 1]
        if not repeated:
            return texts
        for user_id in repeated:
            texts[user_id] += f" ({user_id})"


def _is_id(text: str) -> bool:
    """A label may look like the id of a subject that is not listed."""
    return parse_id(text) is not None or text.startswith("svc:")
