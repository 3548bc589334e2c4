"""The name of a person or an agent in a log, as a link to its page; short addresses for the links of many rows."""

from __future__ import annotations

from posixpath import dirname, relpath
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString

from audit.actor_words import actor_words
from gateway.lib import ids

register = template.Library()


@register.simple_tag(takes_context=True)
def caller_link(context: dict[str, Any], subject: str, label: str, *, is_near: bool = False) -> SafeString:
    """`subject`: a person's id, or `svc:<org-id>:<client-id>`. Any other is a plain name, such as that of the service.

    `is_near` gives the address as `near` does.
    """
    url = _page_of(str(context["organization"].id), subject)
    if url and is_near:
        url = near(url, context["request"].path)
    return format_html('<a href="{}">{}</a>', url, label) if url else conditional_escape(actor_words(subject, label))


register.filter(actor_words)


@register.filter
def near(url: str, page: str) -> str:
    """`url` as seen from the path `page`: in a table of 50 rows, the ids of organizations are a tenth of the page."""
    return relpath(url, dirname(page))


def _page_of(org_id: str, subject: str) -> str:
    if subject.startswith(f"svc:{org_id}:"):
        return reverse("oauth_pages:service-client", args=[org_id, subject.rpartition(":")[2]])
    person = ids.parse_id(subject)
    return "" if person is None else reverse("orgs:person", args=[org_id, person])
