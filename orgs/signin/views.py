"""The two ends of the code flow. The library keeps state, nonce and verifier; we add discovery and words."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView, get_next_url

from orgs.signin import provider
from orgs.signin.provider import ProviderUnavailable


class AuthenticateView(OIDCAuthenticationRequestView):
    """GET /oidc/authenticate/?next=/… goes to the identity provider. Contract: 3"""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The endpoint comes from discovery at the moment of use."""
        self.OIDC_RP_CLIENT_ID = self.get_settings("OIDC_RP_CLIENT_ID")

    def get(self, request: HttpRequest) -> HttpResponse:
        """Redirect to the provider, or say that it cannot be reached."""
        try:
            self.OIDC_OP_AUTH_ENDPOINT = provider.current().authorization_endpoint
        except ProviderUnavailable:
            return _failed("unreachable", get_next_url(request, "next"))
        response: HttpResponse = super().get(request)
        return response


class CallbackView(OIDCAuthenticationCallbackView):
    """GET /oidc/callback/ ends the flow."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Sign the person in. What no sign-in of this browser led to is refused, and an error among it signs nobody
        out: pages may link here.

        Raises: SuspiciousOperation, a 400: the state is missing, another browser's or was used.
        """
        if request.GET.get("state") not in request.session.get("oidc_states", {}):
            if "error" in request.GET:
                return self.login_failure()
            raise SuspiciousOperation("the callback belongs to no sign-in of this browser")
        response: HttpResponse = super().get(request)
        return response

    def login_failure(self) -> HttpResponseRedirect:
        """One page for every failure: why is in the log, not in the address."""
        denied = self.request.GET.get("error") == "access_denied"
        return _failed("denied" if denied else "1", self.request.session.get("oidc_login_next"))


def _failed(why: str, target: str | None) -> HttpResponseRedirect:
    """The sign-in page with words for `why`. Its button starts again and still leads to where the person wanted to go,
    which may be an app that waits; nothing starts by itself, so a provider that is away is no loop.
    """
    wanted = {"failed": why, **({"next": target} if target else {})}
    return HttpResponseRedirect(f"{reverse('signin')}?{urlencode(wanted)}")
