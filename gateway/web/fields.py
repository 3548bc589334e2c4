"""Serializer fields that are strict about JSON types: a coerced value would be stored wrong."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers

from audit.query_values import moment_of
from gateway.lib import clock
from gateway.lib.sentences import sentence
from gateway.lib.text import NAME_MAX_CHARACTERS, clean_name


class Text(serializers.CharField):
    """A JSON string. DRF's CharField would also take numbers."""

    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError(sentence("Must be text."))
        value: str = super().to_internal_value(data)
        return value


class Name(Text):
    """A display name, cleaned by `clean_name`. Spec: D17"""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **options})
        # `clean_name` counts after trimming, so only the OpenAPI schema uses this maximum.
        self.documented_max_length = NAME_MAX_CHARACTERS

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if data == "" and not self.allow_blank:
            raise serializers.ValidationError(sentence("Enter a name."))
        return super().run_validation(data)

    def to_internal_value(self, data: object) -> str:
        try:
            return clean_name(super().to_internal_value(data), allow_empty=self.allow_blank)
        except ValueError as fault:
            raise serializers.ValidationError(str(fault)) from fault


class WholeNumber(serializers.IntegerField):
    def to_internal_value(self, data: object) -> int:
        # Refuses text, 1.0 and true.
        if not isinstance(data, int) or isinstance(data, bool):
            raise serializers.ValidationError(sentence("Must be a whole number."))
        return data


class TrueOrFalse(serializers.BooleanField):
    def to_internal_value(self, data: object) -> bool:
        # Refuses the texts and numbers that DRF takes for one.
        if not isinstance(data, bool):
            raise serializers.ValidationError(sentence("Must be true or false."))
        return data


class Texts(serializers.ListField):
    def __init__(self, **options: Any) -> None:
        """`max_characters`: the limit of each string, 200 by default."""
        # Characters of each string.
        self.max_characters = options.pop("max_characters", 200)
        super().__init__(child=Text(max_length=self.max_characters, trim_whitespace=False), **options)

    def to_internal_value(self, data: object) -> list[Any]:
        if not isinstance(data, list):
            raise serializers.ValidationError(sentence("Must be a list of strings."))
        return list(super().to_internal_value(data))


class Moment(Text):
    """A time in RFC 3339, or a date for its first moment; without a zone in UTC. Spec: D15"""

    def to_internal_value(self, data: object) -> datetime:  # type: ignore[override]
        try:
            return moment_of(super().to_internal_value(data))
        except ValueError as fault:
            raise serializers.ValidationError(str(fault)) from fault


class Timestamp(serializers.DateTimeField):
    """Read-only RFC 3339 in UTC with milliseconds. Spec: D15"""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"read_only": True, **options})

    def to_representation(self, value: datetime) -> str:
        return clock.rfc3339(value)
