"""The first page of a person without an organization, and the form that makes one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy

from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.web.form_page import FormPage
from orgs.services.mail_domains import join_offers
from orgs.services.organizations import create_organization


class OrganizationForm(forms.Form):
    """The name of a new organization."""

    name = forms.CharField(
        label=gettext_lazy("Organization name"),
        max_length=NAME_MAX_CHARACTERS,
        help_text=gettext_lazy("Your company or team. You can change it later."),
        widget=forms.TextInput(attrs={"autocomplete": "organization"}),
    )


class WelcomePage(FormPage[OrganizationForm]):
    """GET, POST /welcome. Also shows the organizations that the person already has."""

    title = gettext_lazy("Welcome")
    form_class = OrganizationForm
    template = "orgs/welcome.html"

    def save(self, form: OrganizationForm) -> HttpResponse:
        organization = create_organization(actor=self.actor, name=form.cleaned_data["name"])
        messages.success(
            self.request, gettext("%(name)s is ready. Connect a vendor next.") % {"name": organization.name}
        )
        return redirect("proxy_pages:home", organization.id)

    def context(self) -> dict[str, Any]:
        return {"offers": join_offers(self.actor)}
