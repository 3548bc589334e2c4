"""Settings of enterprise-managed authorization: the identity providers that may vouch for members. For owners only."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpResponse, QueryDict
from django.utils.translation import gettext, gettext_lazy

from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from oauth_ext.jwt.assertion import ALGORITHMS
from oauth_ext.models import TrustedIssuer
from oauth_ext.models.trusted_issuer import ISSUER_CHARACTERS, JWKS_URL_CHARACTERS
from oauth_ext.selectors import acting_clients
from oauth_ext.services.trusted_issuers import (
    DEFAULT_ALGORITHMS,
    Wanted,
    add_issuer,
    people_with_tokens,
    remove_issuer,
    trusted_issuer,
    trusted_issuers,
)
from orgs.roles import Role
from orgs.services.mail_domains import domains_of


class TrustedIssuerForm(forms.Form):
    issuer = forms.CharField(
        label=gettext_lazy("Issuer"),
        max_length=ISSUER_CHARACTERS,
        help_text=gettext_lazy(
            "The provider’s address as it appears in its tokens, for example https://acme.okta.com."
        ),
        widget=forms.URLInput(attrs={"autocomplete": "off"}),
    )
    jwks_url = forms.CharField(
        label=gettext_lazy("Address of the keys"),
        required=False,
        max_length=JWKS_URL_CHARACTERS,
        help_text=gettext_lazy("Leave it empty if the provider has a discovery document."),
        widget=forms.URLInput(attrs={"autocomplete": "off"}),
    )
    tenant = forms.CharField(
        label=gettext_lazy("Tenant"),
        required=False,
        max_length=ISSUER_CHARACTERS,
        help_text=gettext_lazy("Only for a provider that serves several tenants under one address."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    algorithms = forms.MultipleChoiceField(
        label=gettext_lazy("Signature algorithms"),
        choices=[(name, name) for name in ALGORITHMS],
        initial=DEFAULT_ALGORITHMS,
        widget=forms.CheckboxSelectMultiple,
    )
    client_ids = forms.MultipleChoiceField(
        label=gettext_lazy("Agents"),
        required=False,
        help_text=gettext_lazy("Choose none, and every agent that may act for people can present assertions."),
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, agents: list[tuple[str, str]], data: QueryDict | None = None) -> None:
        super().__init__(data)
        fields: dict[str, Any] = self.fields
        fields["client_ids"].choices = agents


class TrustedIssuersPage(OrgFormPage[TrustedIssuerForm]):
    """GET, POST /orgs/:orgId/settings/identity-providers"""

    gates = {
        "GET": Gate(Role.OWNER),
        "POST": Gate(Role.OWNER, organization_limit=settings.VENDOR_REQUESTS),
    }
    title = gettext_lazy("Trusted identity providers")
    nav_route = "orgs:settings"
    template = "oauth_ext/trusted_issuers.html"

    @cached_property
    def agents(self) -> list[tuple[str, str]]:
        return [(client.client_id, client.name) for client in acting_clients(self.organization)]

    def new_form(self, data: QueryDict | None = None) -> TrustedIssuerForm:
        return TrustedIssuerForm(self.agents, data)

    def save(self, form: TrustedIssuerForm) -> HttpResponse:
        row = add_issuer(actor=self.actor, organization=self.organization, wanted=Wanted(**form.cleaned_data))
        return self.done(gettext("%(issuer)s is trusted.") % {"issuer": row.issuer}, "oauth_pages:trusted-issuers")

    def context(self) -> dict[str, Any]:
        names = dict(self.agents)
        return {
            "issuers": [
                {"row": row, "agents": [names.get(each, each) for each in row.client_ids]}
                for row in trusted_issuers(self.organization)
            ],
            "has_agents": bool(self.agents),
            "has_domain": any(row.confirmed_at for row in domains_of(self.organization)),
            "audience": settings.BASE_URL,
            "resource": f"{settings.BASE_URL}/v1/mcp",
        }


class RemoveTrustedIssuerPage(OrgFormPage[forms.Form]):
    """GET, POST /orgs/:orgId/settings/identity-providers/:issuerId/remove"""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER)}
    title = gettext_lazy("Remove identity provider")
    nav_route = "orgs:settings"
    form_class = forms.Form
    template = "oauth_ext/trusted_issuer_remove.html"

    @cached_property
    def row(self) -> TrustedIssuer:
        """Raises: NotFound."""
        return trusted_issuer(self.organization, self.kwargs["issuer_id"])

    def save(self, form: forms.Form) -> HttpResponse:
        issuer = self.row.issuer
        remove_issuer(actor=self.actor, organization=self.organization, issuer_id=self.row.pk)
        return self.done(
            gettext("%(issuer)s is no longer trusted.") % {"issuer": issuer}, "oauth_pages:trusted-issuers"
        )

    def context(self) -> dict[str, Any]:
        return {"trust": self.row, "people": people_with_tokens(self.row)}
