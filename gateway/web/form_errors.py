"""Domain refusals beside the fields they are about."""

from __future__ import annotations

from django import forms

from gateway.lib.errors import DomainError


def show_on(form: forms.Form, refusal: DomainError) -> None:
    """Put each message where the person looks: beside its field, or above the form."""
    shown = False
    for field, texts in refusal.fields.items():
        for text in texts:
            form.add_error(field if field in form.fields else None, text)
            shown = True
    if not shown:
        form.add_error(None, refusal.message)
