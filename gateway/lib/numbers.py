"""Numbers as pages write them: 12,345 in English, 12.345 in German."""

from __future__ import annotations

from django.utils.formats import number_format

_FIRST_GROUP = 1_000  # no language parts a number below it


def grouped(number: int) -> str:
    if 0 <= number < _FIRST_GROUP:
        return str(number)
    return number_format(number, use_l10n=True, force_grouping=True)
