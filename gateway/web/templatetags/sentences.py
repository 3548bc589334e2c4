"""Filter: `{{ text|translated }}`, a sentence or a word of a service in the language of the page."""

from __future__ import annotations

from django import template

from gateway.lib.translated import translated

register = template.Library()
register.filter("translated", translated)
