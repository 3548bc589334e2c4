"""What one method of the API takes and gives, as data: the view is run by it and the OpenAPI document is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rest_framework.serializers import BaseSerializer


@dataclass(frozen=True, slots=True)
class Shape:
    """`body` validates the request, `answer` renders the result; None for neither.

    `texts`: a bare array of strings; `many`: a bare array of answers;
    `parts`: `limit` and `cursor` ask for some of them. `refusals` are statuses beyond those
    that the gate and the body imply, with a sentence each. `status` None: no request succeeds.
    `shows_secret`: the answer holds what nobody can be shown again, and is kept nowhere.
    """

    summary: str
    body: type[BaseSerializer[Any]] | None = None
    answer: type[BaseSerializer[Any]] | None = None
    texts: bool = False
    parts: bool = False
    many: bool = False
    status: int | None = 200
    shows_secret: bool = False
    refusals: Mapping[int, str] = field(default_factory=dict)

    @property
    def creates(self) -> bool:
        """Whether a success makes something new, so that a request sent twice would make two."""
        return self.status == 201
