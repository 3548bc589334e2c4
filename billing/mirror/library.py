"""dj-stripe, reduced: it reads only, knows a name in the place of the secret key, and has a part of its models."""

from __future__ import annotations

from typing import Any

import stripe
from django.conf import settings
from django.db.models import CheckConstraint, Model, Q
from djstripe.settings import DjstripeSettings

from billing.mirror.http_client import KEY_NAME, ReadingHTTPClient

# Customers, subscriptions and events with all that their foreign keys and their synchronization reach. The library has
# 62 models, and their tables would make the first start four times as long.
MODELS = frozenset(
    {
        "account",
        "apikey",
        "coupon",
        "customer",
        "event",
        "feature",
        "file",
        "paymentmethod",
        "price",
        "product",
        "productfeature",
        "subscription",
        "subscriptionitem",
        "taxrate",
    }
)


def prepare() -> None:
    """Before the models are imported. The settings of the `stripe` module are those of the library alone."""
    stripe.api_base = settings.STRIPE_API_BASE
    stripe.api_version = settings.STRIPE_API_VERSION
    stripe.default_http_client = ReadingHTTPClient()
    stripe.max_network_retries = 0
    # The library writes the key that it knows into a table. The client puts the key in the place of its name.
    DjstripeSettings.STRIPE_SECRET_KEY = KEY_NAME  # type: ignore[misc, assignment]


def reduce(models: dict[str, type[Model]]) -> None:
    """After the models are imported. `models` is the registry of the app by lower-case names, and is changed."""
    import djstripe._stripe_compat  # noqa: F401 - gives the provider's objects the methods that the models use
    from djstripe import models as library
    from djstripe.management.commands.djstripe_sync_models import Command

    for name, model in list(models.items()):
        # The table between two models belongs to the one that declares the field.
        declaring: Any = model._meta.auto_created or model
        if declaring._meta.model_name not in MODELS:
            del models[name]
    library.StripeModel._find_owner_account = classmethod(_no_account)
    library.Event._attach_objects_hook = _note_request
    # Cards and bank accounts have no tables here.
    library.Customer.expand_fields = []
    Command.sync_bank_accounts_and_cards = _skip
    Command.get_stripe_account = classmethod(_one_account)
    _constrain(library.APIKey)


def _no_account(cls: type[Model], data: Any, api_key: Any = None, livemode: Any = None) -> None:
    # The library asks for the account of the key before each object, and stores the key to remember the answer. There
    # is one account here.
    return None


def _one_account(cls: type, api_key: str, *_: Any, **__: Any) -> set[None]:
    # The library's command asks for the account and for accounts connected to it, once for each model.
    return {None}


def _skip(self: Any, *_: Any, **__: Any) -> None:
    pass


def _note_request(self: Any, cls: type[Model], data: Any, **_: Any) -> None:
    # The library's own takes the `stripe` objects of today for text, which is longer than its column.
    request = data.get("request") or {}
    self.request_id, self.idempotency_key = request.get("id") or "", request.get("idempotency_key") or ""


def _constrain(api_keys: type[Model]) -> None:
    """The database refuses every row that holds a key."""
    constraint = CheckConstraint(condition=Q(secret=""), name="djstripe_apikey_holds_no_secret")
    api_keys._meta.constraints = [constraint]
    # Migrations look here for the options that a model declares.
    api_keys._meta.original_attrs["constraints"] = [constraint]
