"""The page behind the link that each optional message has. RFC 8058 · docs/decisions/0097"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from gateway.mail.opt_outs import Subscription, subscription_of


# The token is the authority, and no cookie is read: mail programs send the POST for the person.
@method_decorator(csrf_exempt, name="dispatch")
class UnsubscribePage(View):
    """GET, POST /mail/unsubscribe/:token. GET changes nothing: mail scanners open each link."""

    http_method_names = ["get", "head", "post"]

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        """Raises: NotFound."""
        return self._page(request, subscription_of(token), is_done=False)

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        """Raises: NotFound."""
        subscription = subscription_of(token)
        subscription.end()
        return self._page(request, subscription, is_done=True)

    def _page(self, request: HttpRequest, subscription: Subscription, *, is_done: bool) -> HttpResponse:
        context = {"page_title": gettext_lazy("Unsubscribe"), "kind": subscription.kind, "is_done": is_done}
        return render(request, "site/unsubscribe.html", context)
