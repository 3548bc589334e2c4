"""Text with code between back-quotes, as HTML."""

from __future__ import annotations

from django import template
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def code_marks(text: str) -> SafeString:
    """Every second part between back-quotes is code. A text with a back-quote too many is left as it is."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return conditional_escape(text)
    marked = (format_html("<code>{}</code>", part) if at % 2 else part for at, part in enumerate(parts))
    return format_html_join("", "{}", ((part,) for part in marked))
