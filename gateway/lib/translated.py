"""Sentences of services in the language of a page. docs/decisions/0075"""

from __future__ import annotations

from django.utils.translation import gettext

from gateway.lib.errors import DomainError
from gateway.lib.sentences import Sentence


def translated(text: str) -> str:
    """A text that is in no catalog, such as a vendor's, stays as it is."""
    if isinstance(text, Sentence):
        values = {name: translated(each) if isinstance(each, str) else each for name, each in text.values.items()}
        return gettext(text.template) % values
    # The empty message would give the header of the catalog.
    return gettext(text) if text else ""


def sentences_of(refusal: DomainError) -> str:
    """The texts of all fields; without fields, the message."""
    texts = [text for each in refusal.fields.values() for text in each] or [refusal.message]
    return " ".join(map(translated, texts))
