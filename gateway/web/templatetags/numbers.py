"""Filter: `{{ number|grouped }}`, 12345 as the language of the page writes it."""

from __future__ import annotations

from django import template

from gateway.lib.numbers import grouped

register = template.Library()
register.filter("grouped", grouped)
