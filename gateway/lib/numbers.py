"""Numbers as pages write them: 12,345 in English, 12.345 in German."""

from __future__ import annotations

from django.utils.formats import number_format


def grouped(number: int) -> str:
    return number_format(number, use_l10n=True, force_grouping=True)
