"""Numbers as pages write them: 12,345 in English, 12.345 in German."""

from __future__ import annotations

from django.utils.formats import number_format
from django.utils.translation import gettext

_FIRST_GROUP = 1_000  # no language parts a number below it


def grouped(number: int) -> str:
    if 0 <= number < _FIRST_GROUP:
        return str(number)
    return number_format(number, use_l10n=True, force_grouping=True)


def percent(part: int, whole: int, *, decimals: int = 0) -> str:
    """ "68%", in German "68 %"; 0 of 0 is 0."""
    # number_format cuts further decimals off.
    shown = number_format(round(100 * part / whole, decimals) if whole else 0, decimals, use_l10n=True)
    return gettext("%(percent)s%%") % {"percent": shown}
