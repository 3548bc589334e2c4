"""Confirmations of an agent: make, rotate or revoke its key, make a new client secret, delete it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpResponse, QueryDict
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy

from gateway.lib import clock
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from gateway.web.typed_name import TypedNameForm
from oauth_ext.pages.service_client import ServiceClientThingPage, mcp_url
from oauth_ext.services.agent_keys import mint_agent_key, revoke_agent_key
from oauth_ext.services.overlap import OVERLAP_HOURS
from oauth_ext.services.service_clients import delete_service_client, rotate_client_secret
from orgs.roles import Role

RECENT = timedelta(hours=24)  # a use within it asks for the typed name
ALREADY_SENT = gettext_lazy("Already created. If you lost it, create a new one.")
_WORDS = {0: gettext_lazy("Immediately"), 1: gettext_lazy("In 1 hour"), 24: gettext_lazy("In 24 hours")}
SETTINGS = "oauth_pages:service-client-settings"


class RotationForm(TypedNameForm):
    """`overlap_hours`: when the value before ends; absent for the first one."""

    def __init__(self, name: str, data: QueryDict | None, *, has_old: bool) -> None:
        super().__init__(name, data, because=gettext("it was used within the last day"))
        if has_old:
            self.fields["overlap_hours"] = forms.TypedChoiceField(
                label=gettext("The old one stops working"),
                required=False,
                coerce=int,
                choices=[(hours, _WORDS[hours]) for hours in OVERLAP_HOURS],
                initial=OVERLAP_HOURS[0],
                widget=forms.RadioSelect,
            )
            self.order_fields(["overlap_hours", "typed_name"])

    @property
    def overlap(self) -> int:
        # Absent or empty: the value before ends now.
        return self.cleaned_data.get("overlap_hours") or 0


class _ConfirmPage(ServiceClientThingPage, OrgFormPage[TypedNameForm]):
    """Confirms a change of one agent. One that was used within a day needs its name."""

    tab_route = SETTINGS
    refusal_status = None

    @property
    def confirmed_name(self) -> str:
        """Empty: the change needs no typed name."""
        used = self.client.last_used_at
        return self.client.name if used is not None and clock.now() - used < RECENT else ""

    def new_form(self, data: QueryDict | None = None) -> TypedNameForm:
        return TypedNameForm(self.confirmed_name, data, because=gettext("it was used within the last day"))

    def sent_again(self) -> str:
        return reverse(SETTINGS, args=[self.organization.id, self.client.client_id])

    def show_once(self, secret: dict[str, Any]) -> HttpResponse:
        context = {
            "secret": {"client": self.client, **secret},
            "back_url": self.sent_again(),
            "mcp_url": mcp_url(),
            "token_url": f"{settings.BASE_URL}/oauth/token",
        }
        return self.page("oauth_ext/secret_once.html", context, status=201)


class AgentKeyPage(_ConfirmPage):
    """GET, POST /orgs/:orgId/agents/:clientId/agent-key: confirm, then mint, rotate or revoke. Spec: D72, D171"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, limit=settings.AGENT_KEY_MINT, entitlement="serviceClients"),
        "POST revoke": Gate(Role.ADMIN),
    }
    title = gettext_lazy("Agent key")
    template = "oauth_ext/agent_key.html"
    already_sent = ALREADY_SENT

    @property
    def is_revoking(self) -> bool:
        return self.request.GET.get("revoke") == "1" or self.request.POST.get("action") == "revoke"

    def new_form(self, data: QueryDict | None = None) -> TypedNameForm:
        if self.is_revoking:
            return super().new_form(data)
        return RotationForm(self.confirmed_name, data, has_old=self.client.agent_key_prefix is not None)

    def save(self, form: TypedNameForm) -> HttpResponse:
        if not isinstance(form, RotationForm):
            revoke_agent_key(actor=self.actor, client=self.client)
            return self.done(
                gettext("The agent key of %(name)s no longer works.") % {"name": self.client.name},
                SETTINGS,
                self.client.client_id,
            )
        minted = mint_agent_key(actor=self.actor, client=self.client, overlap_hours=form.overlap)
        return self.show_once(
            {
                "kind": "agent_key",
                "title": gettext("Agent key"),
                "values": [(gettext("Agent key"), "GATEWAY_KEY", minted.agent_key)],
                "rotated": minted.rotated,
                "overlap": form.overlap,
            }
        )

    def context(self) -> dict[str, Any]:
        return {**super().context(), "revoking": self.is_revoking}


class ClientSecretPage(_ConfirmPage):
    """GET, POST /orgs/:orgId/agents/:clientId/client-secret: confirm, then make a new secret. Spec: D72, D171"""

    # It stays allowed when the plan has lapsed: a secret may be known to others.
    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN, limit=settings.CLIENT_SECRET_ROTATION)}
    title = gettext_lazy("Client secret")
    template = "oauth_ext/client_secret.html"
    already_sent = ALREADY_SENT

    def new_form(self, data: QueryDict | None = None) -> RotationForm:
        return RotationForm(self.confirmed_name, data, has_old=True)

    def save(self, form: TypedNameForm) -> HttpResponse:
        overlap = form.overlap if isinstance(form, RotationForm) else 0
        rotated = rotate_client_secret(actor=self.actor, client=self.client, overlap_hours=overlap)
        return self.show_once(
            {
                "kind": "client_secret",
                "title": gettext("Client secret"),
                "values": [
                    (gettext("Client ID"), "GATEWAY_CLIENT_ID", self.client.client_id),
                    (gettext("Client secret"), "GATEWAY_CLIENT_SECRET", rotated.client_secret),
                ],
                "rotated": True,
                "overlap": overlap,
            }
        )


class DeleteServiceClientPage(_ConfirmPage):
    """GET, POST /orgs/:orgId/agents/:clientId/delete. Spec: D9, D74"""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = gettext_lazy("Delete agent")
    template = "oauth_ext/service_client_delete.html"

    def save(self, form: TypedNameForm) -> HttpResponse:
        delete_service_client(actor=self.actor, client=self.client)
        return self.done(
            gettext("%(name)s was deleted. Its key and tokens no longer work.") % {"name": self.client.name},
            self.nav_route,
        )
