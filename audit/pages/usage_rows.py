"""Rows of the usage page: their texts, numbers and addresses, each made once for all rows where it is the same.

A tag per cell took most of the time of a page with 50 vendors.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from audit.usage.selectors import UserCalls, VendorUsage
from gateway.lib.numbers import grouped, percents


@dataclass(frozen=True, slots=True)
class VendorRow:
    """`calls_text`: behind the number, for a screen reader. `tools`: links, the most called first."""

    name: str
    url: str
    calls: int
    calls_shown: str
    calls_text: str
    calls_url: str
    share: str  # of all calls
    meter_label: str
    callers: str
    average_ms: str
    p95_ms: str
    tools: SafeString


@dataclass(frozen=True, slots=True)
class PersonRow:
    user_id: str
    user_label: str
    calls: int
    calls_shown: str
    calls_text: str
    calls_url: str
    share: str  # of all calls
    meter_label: str


def vendor_rows(org_id: uuid.UUID, vendors: Sequence[VendorUsage], total: int) -> Iterator[VendorRow]:
    """`total`: calls of the period."""
    vendors_url = reverse("proxy_pages:vendors", args=[org_id])
    log_url = reverse("audit_pages:request-log", args=[org_id])
    share_of = gettext("Calls to %(display_name)s, as a share of all calls")
    share = percents(total)
    calls_to = gettext("calls to %(display_name)s")
    for each in vendors:
        slug, name = quote(each.vendor, safe=""), {"display_name": each.display_name}
        url = f"{vendors_url}/{slug}"
        yield VendorRow(
            name=each.display_name,
            url=url,
            calls=each.total.calls,
            calls_shown=grouped(each.total.calls),
            calls_text=calls_to % name,
            calls_url=f"{log_url}?vendor={slug}",
            share=share(each.total.calls),
            meter_label=share_of % name,
            callers=grouped(each.user_count),
            average_ms=grouped(each.total.average_ms),
            p95_ms=grouped(each.percentiles.p95_ms),
            tools=_tools(f"{url}/tools", each),
        )


def person_rows(org_id: uuid.UUID, people: Sequence[UserCalls], total: int) -> Iterator[PersonRow]:
    """As `vendor_rows`."""
    log_url = reverse("audit_pages:request-log", args=[org_id])
    share_of = gettext("Calls by %(user_label)s, as a share of all calls")
    share = percents(total)
    calls_by = gettext("calls by %(user_label)s")
    for each in people:
        label = {"user_label": each.user_label}
        yield PersonRow(
            user_id=each.user_id,
            user_label=each.user_label,
            calls=each.calls,
            calls_shown=grouped(each.calls),
            calls_text=calls_by % label,
            calls_url=f"{log_url}?user_id={quote(each.user_id)}",
            share=share(each.calls),
            meter_label=share_of % label,
        )


def number_cells(numbers: Sequence[int]) -> SafeString:
    return format_html_join("", '<td class="num">{}</td>', ((grouped(number),) for number in numbers))


def _tools(url: str, vendor: VendorUsage) -> SafeString:
    return format_html_join(
        ", ",
        '<span class="small"><a href="{}/{}"><code>{}</code></a> {}</span>',
        ((url, quote(each.tool), each.tool, grouped(each.calls)) for each in vendor.tools),
    )
