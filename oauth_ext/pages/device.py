"""The device page: enter a code, see the request, decide. Spec: §4.2 · ux.md 4"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy

from gateway.lib.errors import DomainError
from gateway.lib.translated import translated
from gateway.web.signed_in import SignedInPage
from oauth_ext import scopes, user_codes
from oauth_ext.models import Decision, DeviceGrant
from oauth_ext.scopes_backend import vendor_names
from oauth_ext.services.devices import CodeNotValid, decide_device, decided_device, waiting_device

_DECISIONS = {"approve": Decision.APPROVED, "deny": Decision.DENIED}
_WARN_AT = 3  # attempts left from which the page shows their number


class DevicePage(SignedInPage):
    """GET, POST /device. Every step sends the code, and each step checks it anew."""

    title = gettext_lazy("Connect a device")

    def get(self, request: HttpRequest) -> HttpResponse:
        # A code in the address only fills in the field: a followed link must decide nothing.
        return self._page("enter", {"typed": request.GET.get("user_code", "")[:40]})

    def post(self, request: HttpRequest) -> HttpResponse:
        typed, actor = request.POST.get("user_code", ""), self.actor
        decision = _DECISIONS.get(request.POST.get("action", ""))
        try:
            device = waiting_device(actor=actor, typed=typed, address=str(getattr(request, "ip_address", "")))
            if decision is not None and not decide_device(actor=actor, device=device, decision=decision):
                raise CodeNotValid(_WARN_AT + 1)
        except DomainError as refusal:
            # A repeated decision shows the result again, also when both requests came at once.
            mine = None if decision is None else decided_device(actor=actor, typed=typed)
            return self._refused(refusal) if mine is None else self._done(mine)
        if decision is None:
            code = user_codes.shown(user_codes.read(typed) or "")
            return self._page("confirm", {"code": code, **_about(device)})
        device.decision = decision.value
        return self._done(device)

    def _done(self, device: DeviceGrant) -> HttpResponse:
        return self._page("done", {"approved": device.decision == Decision.APPROVED, **_about(device)})

    def _refused(self, refusal: DomainError) -> HttpResponse:
        left = refusal.attempts_left if isinstance(refusal, CodeNotValid) else 0
        shown_left = left if isinstance(refusal, CodeNotValid) and left <= _WARN_AT else None
        page = self._page(
            "enter", {"error": translated(refusal.message), "attempts_left": shown_left}, status=refusal.status
        )
        for name, value in refusal.headers.items():
            page[name] = value
        return page

    def _page(self, step: str, context: dict[str, object], *, status: int = 200) -> HttpResponse:
        return self.page("oauth_ext/device.html", {"step": step, **context}, status=status)


def _about(device: DeviceGrant) -> dict[str, object]:
    asked = device.scope.split()
    return {
        "device": device,
        "agent": device.client,
        "asked_organization": device.client.organization,
        "everything": not scopes.EVERYTHING.isdisjoint(asked),
        "vendors": vendor_names(asked),
    }
