"""Pages of a person's management tokens: create, see once, revoke. docs/decisions/0099"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy, ngettext

from gateway.lib.translated import translated
from gateway.web import rate
from gateway.web.form_page import FormPage
from oauth_ext.selectors import clients_shown_to
from orgs import membership_check, selectors
from orgs.models import ManagementToken
from orgs.models.management_token import NAME_CHARACTERS
from orgs.roles import TOKEN_SCOPE_CHOICES, Role, TokenScope
from orgs.services.management_tokens import create_token, revoke_token

LIFETIMES_DAYS = (7, 30, 90, 180, 365)


class NewTokenForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=NAME_CHARACTERS,
        help_text=gettext_lazy("Shown in lists and logs, for example Terraform."),
    )
    organization = forms.ChoiceField(label=gettext_lazy("Organization"))
    scope = forms.ChoiceField(
        label=gettext_lazy("Scope"),
        widget=forms.RadioSelect,
        initial=TokenScope.READ.value,
        help_text=gettext_lazy("The token never allows more than your role does at that moment."),
    )
    expires_in_days = forms.TypedChoiceField(label=gettext_lazy("Expires after"), coerce=int)

    def __init__(self, organizations: list[tuple[str, str]], data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="%s")
        fields: dict[str, Any] = self.fields
        fields["organization"].choices = organizations
        fields["scope"].choices = [(value, translated(words)) for value, words in TOKEN_SCOPE_CHOICES]
        fields["expires_in_days"].choices = [(days, _days(days)) for days in LIFETIMES_DAYS]
        fields["expires_in_days"].initial = settings.MANAGEMENT_TOKEN_DEFAULT_DAYS


def _days(count: int) -> str:
    return ngettext("%(count)s day", "%(count)s days", count) % {"count": count}


class NewTokenPage(FormPage[NewTokenForm]):
    """GET, POST /profile/tokens/new."""

    title = gettext_lazy("Create management token")
    form_class = NewTokenForm
    template = "orgs/management_token_new.html"
    already_sent = gettext_lazy("Already created. If you lost it, create a new one.")

    def new_form(self, data: QueryDict | None = None) -> NewTokenForm:
        own = [(str(each.organization_id), each.organization.name) for each in selectors.memberships(self.actor)]
        return NewTokenForm(own, data)

    def save(self, form: NewTokenForm) -> HttpResponse:
        rate.count(self.request, settings.MANAGEMENT_TOKEN_CREATE)
        fields = dict(form.cleaned_data)
        membership = membership_check.require_membership(self.actor, fields.pop("organization"), role=Role.MEMBER)
        made = create_token(actor=self.actor, organization=membership.organization, **fields)
        secret = {
            "client": made.row,
            "kind": "management_token",
            "title": gettext("Management token"),
            "values": [(gettext("Management token"), "GATEWAY_TOKEN", made.token)],
        }
        api_url = f"{settings.BASE_URL}/api/orgs/{membership.organization_id}"
        context = {"secret": secret, "back_url": reverse("profile"), "api_url": api_url}
        return self.page("orgs/management_token_made.html", context, status=201)

    def sent_again(self) -> str:
        return reverse("profile")


class RevokeTokenPage(FormPage[forms.Form]):
    """GET, POST /profile/tokens/:tokenId/revoke."""

    title = gettext_lazy("Revoke management token")
    form_class = forms.Form
    template = "orgs/management_token_revoke.html"

    @cached_property
    def row(self) -> ManagementToken:
        """Raises: NotFound, also for another person's."""
        return selectors.management_token(self.actor, self.kwargs["token_id"])

    def context(self) -> dict[str, Any]:
        membership = self.row.membership
        shown = clients_shown_to(membership.organization, self.actor, token=self.row)
        return {"token": self.row, "agents": [client.name for client in shown]}

    def save(self, form: forms.Form) -> HttpResponse:
        ended = revoke_token(actor=self.actor, token_id=self.row.pk)
        messages.success(self.request, gettext("%(name)s is revoked.") % {"name": ended.name})
        return redirect("profile")
