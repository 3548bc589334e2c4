"""Numbers as pages write them: 12,345 in English, 12.345 in German."""

from __future__ import annotations

from collections.abc import Callable

from django.utils.formats import number_format
from django.utils.translation import gettext

_FIRST_GROUP = 1_000  # no language parts a number below it


def grouped(number: int) -> str:
    if 0 <= number < _FIRST_GROUP:
        return str(number)
    return number_format(number, use_l10n=True, force_grouping=True)


def percents(whole: int, *, decimals: int = 0) -> Callable[[int], str]:
    """Writes parts of `whole`, as in "68%" or, in German, "68 %". It looks the language up once."""
    form = gettext("%(percent)s%%")

    def written(part: int) -> str:
        share = round(100 * part / whole, decimals) if whole else 0
        # number_format, which is slow, cuts further decimals off.
        shown = number_format(share, decimals, use_l10n=True) if decimals else str(round(share))
        return form % {"percent": shown}

    return written
