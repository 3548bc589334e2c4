"""The organization's mail domain, and the buttons of people who are offered to join by theirs."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy

from billing import entitlements
from gateway.lib import ids
from gateway.lib.errors import DomainError
from gateway.lib.translated import sentences_of
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from gateway.web.signed_in import SignedInPage
from orgs.roles import Role
from orgs.services.mail_domains import (
    ask_to_join,
    change_offer,
    claim_domain,
    domain_of,
    domains_of,
    join_by_domain,
    offered_organization,
    release_domain,
)


class OfferForm(forms.Form):
    offer = forms.ChoiceField(
        label=gettext_lazy("People with an address in this domain can"),
        choices=[("ask", gettext_lazy("Ask to join")), ("join", gettext_lazy("Join as a member"))],
    )


class MailDomainPage(OrgFormPage[OfferForm]):
    """GET, POST /orgs/:orgId/settings/mail-domain. Spec: D167"""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER)}
    title = gettext_lazy("Mail domain")
    nav_route = "orgs:settings"
    form_class = OfferForm
    template = "orgs/mail_domain.html"

    def save(self, form: OfferForm) -> HttpResponse:
        action, offer = self.request.POST.get("action", ""), form.cleaned_data["offer"]
        of: dict[str, Any] = {"actor": self.actor, "organization": self.organization}
        if action == "claim":
            row = claim_domain(**of, offer=offer)
            return self._done(gettext("%(domain)s is claimed. Support will confirm it."), row.domain)
        key = ids.known_id(self.request.POST.get("domain", ""))
        if action == "release":
            release_domain(**of, domain_id=key)
            return self.done(gettext("The domain was released. Members stay."), "orgs:mail-domain")
        row = change_offer(**of, domain_id=key, offer=offer)
        return self._done(gettext("Saved for %(domain)s."), row.domain)

    def context(self) -> dict[str, Any]:
        own = domain_of(self.actor)
        rows = domains_of(self.organization)
        return {"domains": rows, "own_domain": "" if own in {row.domain for row in rows} else own}

    def _done(self, text: str, domain: str) -> HttpResponse:
        return self.done(text % {"domain": domain}, "orgs:mail-domain")


class JoinPage(SignedInPage):
    """POST /welcome/join: joins the organization of the person's mail domain, or asks to. Spec: D167"""

    http_method_names = ["post"]
    title = gettext_lazy("Welcome")

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            organization = offered_organization(self.actor, ids.known_id(request.POST.get("organization", "")))
            if request.POST.get("action") == "join":
                # As by a link: new members need an active plan.
                entitlements.require_active(organization)
                join_by_domain(user=self.actor, organization=organization)
                return redirect("proxy_pages:home", organization.pk)
            ask_to_join(user=self.actor, organization=organization)
        except DomainError as refusal:
            messages.error(request, sentences_of(refusal))
        else:
            text = gettext("You asked to join %(name)s. An admin will decide.") % {"name": organization.name}
            messages.success(request, text)
        return redirect("orgs:welcome")
