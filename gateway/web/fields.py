"""Members of request and answer bodies: strict about types, because a value that was guessed is stored wrong."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers

from gateway.lib import clock
from gateway.lib.text import NAME_MAX_CHARACTERS, clean_name


class Text(serializers.CharField):
    """A JSON string. The library would take numbers too."""

    def to_internal_value(self, data: object) -> str:
        """The string."""
        if not isinstance(data, str):
            raise serializers.ValidationError("Must be text.")
        value: str = super().to_internal_value(data)
        return value


class Name(Text):
    """A name by the rule that all names keep. Spec: D17"""

    def __init__(self, **options: Any) -> None:
        """`allow_blank`: an empty name is one."""
        super().__init__(**{"trim_whitespace": False, **options})
        # The rule counts after trimming; the schema says the number all the same.
        self.documented_max_length = NAME_MAX_CHARACTERS

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """The cleaned name; the sentence beside the member otherwise."""
        if data == "" and not self.allow_blank:
            raise serializers.ValidationError("Enter a name.")
        return super().run_validation(data)

    def to_internal_value(self, data: object) -> str:
        """The cleaned name."""
        try:
            return clean_name(super().to_internal_value(data), allow_empty=self.allow_blank)
        except ValueError as fault:
            raise serializers.ValidationError(str(fault)) from fault


class WholeNumber(serializers.IntegerField):
    """A JSON integer: no text, no 1.0, no true."""

    def to_internal_value(self, data: object) -> int:
        """The integer."""
        if not isinstance(data, int) or isinstance(data, bool):
            raise serializers.ValidationError("Must be a whole number.")
        return data


class Texts(serializers.ListField):
    """A JSON array of strings."""

    def __init__(self, **options: Any) -> None:
        """`max_characters` of each."""
        self.max_characters = options.pop("max_characters", 200)
        super().__init__(child=Text(max_length=self.max_characters, trim_whitespace=False), **options)

    def to_internal_value(self, data: object) -> list[Any]:
        """The strings in their order."""
        if not isinstance(data, list):
            raise serializers.ValidationError("Must be a list of texts.")
        return list(super().to_internal_value(data))


class Timestamp(serializers.DateTimeField):
    """RFC 3339 in UTC with milliseconds. Spec: D15"""

    def __init__(self, **options: Any) -> None:
        """Answers only."""
        super().__init__(**{"read_only": True, **options})

    def to_representation(self, value: datetime) -> str:
        """The text."""
        return clock.rfc3339(value)
