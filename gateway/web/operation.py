"""Request and response of one API method as data, used by the view and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rest_framework.serializers import BaseSerializer


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """One name of the query string, for the OpenAPI document: the view itself parses it."""

    name: str
    text: str
    # JSON Schema of the value.
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})


# For lists of things with names.
NAME = QueryParameter("name", "Only items with exactly this name, to find their ids.")


@dataclass(frozen=True, slots=True)
class Operation:
    """One method: `body` validates the request, `answer` renders the result; None for neither."""

    summary: str
    body: type[BaseSerializer[Any]] | None = None
    answer: type[BaseSerializer[Any]] | None = None
    # A bare array of strings.
    texts: bool = False
    # Takes `limit` and `cursor`.
    paged: bool = False
    # Names besides those of `paged` and `org_id`.
    query: Sequence[QueryParameter] = ()
    # A media type besides JSON that the query can ask for.
    download: str | None = None
    # A bare array of `answer`.
    many: bool = False
    # None: no request succeeds.
    status: int | None = 200
    # The answer holds a secret that is shown once, so the idempotency store does not keep it.
    shows_secret: bool = False
    # Statuses beyond those that the gate and the body imply, with a sentence each.
    refusals: Mapping[int, str] = field(default_factory=dict)

    @property
    def creates(self) -> bool:
        # A repeated request would create a second row.
        return self.status == 201
