"""Addresses of documents: the one that helps with the page, and the entry of an error code."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

from gateway.lib import error_help
from gateway.web import page_help

register = template.Library()


@register.simple_tag(takes_context=True)
def help_url(context: Context) -> str:
    request: Any = context.get("request")
    match = getattr(request, "resolver_match", None)
    return page_help.help_url(match.view_name if match else "")


@register.filter
def code_help(code: str) -> str:
    return f"{error_help.PATH}#{code}"
