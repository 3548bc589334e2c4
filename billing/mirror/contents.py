"""Secrets inside the provider's objects, which are removed before a copy is stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import JSONField, Model
from django.db.models.signals import pre_save

# A client secret confirms a payment, the secret of an endpoint signs webhooks. The addresses open without a sign-in: a
# page with a person's invoice, its file, and a receipt.
SECRETS = frozenset({"client_secret", "secret", "hosted_invoice_url", "invoice_pdf", "receipt_url"})


def without_secrets(value: Any) -> Any:
    """A copy of a JSON value in which members of SECRETS are null, at any depth."""
    if isinstance(value, dict):
        return {name: None if name in SECRETS else without_secrets(member) for name, member in value.items()}
    if isinstance(value, list):
        return [without_secrets(member) for member in value]
    return value


def guard(models: Iterable[type[Model]]) -> None:
    for model in models:
        pre_save.connect(_remove_secrets, sender=model, dispatch_uid=f"mirror-{model._meta.label}")


def _remove_secrets(sender: type[Model], instance: Model, **_: Any) -> None:
    for field in sender._meta.concrete_fields:
        if isinstance(field, JSONField):
            setattr(instance, field.attname, without_secrets(getattr(instance, field.attname)))
