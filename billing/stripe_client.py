"""The payment provider's library over the guarded client. The only module that imports it, and only when it is needed:
a process without the mode does not pay for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import stripe
import structlog
from django.conf import settings

from billing.errors import BillingProviderError, ProviderBusy, ProviderRefused
from gateway.lib import guarded_client, strict_json
from gateway.lib.outbound import AddressRefused

TIMEOUT_S = 10.0  # of one request
MAX_BYTES = 1024 * 1024  # of one answer
# The others name this machine and its Python.
_HEADERS = {"authorization", "content-type", "idempotency-key", "stripe-version"}
_ERROR_MEMBERS = ("type", "code", "param", "message")

# The library reports the durations of requests to the provider.
stripe.enable_telemetry = False


log = structlog.get_logger(__name__)


class Client:
    """`left_s` says how many seconds all requests together have left; each has TIMEOUT_S at most."""

    def __init__(self, left_s: Callable[[], float], *, retries_of_reads: int) -> None:
        self._retries = {"get": retries_of_reads}
        self._client = stripe.StripeClient(
            settings.STRIPE_SECRET_KEY,
            stripe_version=settings.STRIPE_API_VERSION,
            base_addresses={"api": settings.STRIPE_API_BASE},
            http_client=GuardedHTTPClient(left_s),
        )

    def ask(self, method: str, path: str, params: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """The object, and the Date of the answer. Raises: ProviderRefused, ProviderBusy, BillingProviderError."""
        try:
            answer = self._client.raw_request(method, path, max_network_retries=self._retries.get(method, 0), **params)
        except stripe.StripeError as fault:
            raise _refusal(method, path, fault) from None
        if not isinstance(answer.data, dict):
            raise BillingProviderError
        return answer.data, str(answer.headers.get("Date", ""))


def _refusal(method: str, path: str, fault: stripe.StripeError) -> BillingProviderError:
    reason = fault.code or ""
    # Neither the provider's text nor an id: a person may have typed it.
    log.warning(
        "billing.provider_failed",
        fault=type(fault).__name__,
        asked=f"{method} {path.split('/')[2]}",
        status=fault.http_status,
        reason=reason[:80],
    )
    if fault.http_status == HTTPStatus.CONFLICT:
        return ProviderBusy()
    if isinstance(fault, stripe.InvalidRequestError):
        return ProviderRefused(reason=reason, param=fault.param or "")
    return BillingProviderError()


class GuardedHTTPClient(stripe.HTTPClient):
    """The library's transport. Answers that are no JSON object, redirects among them, count as no answer."""

    name = "guarded"

    def __init__(self, left_s: Callable[[], float] | None = None) -> None:
        super().__init__()
        self._left_s = left_s or (lambda: TIMEOUT_S)

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        post_data: Any = None,
        *,
        _usage: list[str] | None = None,
    ) -> tuple[str, int, Mapping[str, str]]:
        """Raises: stripe.APIConnectionError."""
        timeout_s = min(TIMEOUT_S, self._left_s())
        if timeout_s <= 0:
            raise _unusable("out of time")
        try:
            answer = guarded_client.send(
                method.upper(),
                url,
                allow_private=settings.STRIPE_API_IS_PRIVATE,
                timeout_s=timeout_s,
                max_bytes=MAX_BYTES,
                headers={name: value for name, value in (headers or {}).items() if name.lower() in _HEADERS},
                body=post_data.encode() if post_data else None,
            )
        except (guarded_client.OutboundError, AddressRefused) as fault:
            raise _unusable(type(fault).__name__, may_retry=True) from None
        return _checked(answer), answer.status, answer.headers

    def close(self) -> None:
        """Each request has a connection of its own, which is closed with it."""


def _unusable(why: str, *, may_retry: bool = False) -> stripe.APIConnectionError:
    return stripe.APIConnectionError(why, should_retry=may_retry)  # type: ignore[no-untyped-call]


def _checked(answer: guarded_client.Response) -> str:
    """JSON in the shape that the library takes for granted. Raises: stripe.APIConnectionError."""
    try:
        found = strict_json.loads(answer.body)
    except strict_json.StrictJSONError:
        raise _unusable("no JSON") from None
    if not isinstance(found, dict) or 300 <= answer.status < 400:
        raise _unusable("no answer of the API")
    if answer.status < 300:
        return json.dumps(found)
    error = found.get("error")
    if not isinstance(error, dict):
        raise _unusable("no error of the API")
    return json.dumps({"error": {name: error[name] for name in _ERROR_MEMBERS if isinstance(error.get(name), str)}})
