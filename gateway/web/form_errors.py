"""Domain errors shown beside the form fields they concern."""

from __future__ import annotations

from django import forms

from gateway.lib.errors import DomainError
from gateway.lib.translated import translated


def show_on(form: forms.Form, refusal: DomainError) -> None:
    shown = False
    for field, texts in refusal.fields.items():
        for text in texts:
            form.add_error(field if field in form.fields else None, translated(text))
            shown = True
    if not shown:
        form.add_error(None, translated(refusal.message))
