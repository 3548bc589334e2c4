"""What one method of the API takes and gives, as data: the view is run by it and the OpenAPI document is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rest_framework.serializers import BaseSerializer


@dataclass(frozen=True, slots=True)
class Shape:
    """`body` validates the request, `answer` renders the result; None for neither.

    `texts`: a bare array of strings; `many`: a bare array of answers. `refusals` are statuses beyond those
    that the gate and the body imply, with a sentence each.
    """

    summary: str
    body: type[BaseSerializer[Any]] | None = None
    answer: type[BaseSerializer[Any]] | None = None
    texts: bool = False
    many: bool = False
    status: int = 200
    refusals: Mapping[int, str] = field(default_factory=dict)
