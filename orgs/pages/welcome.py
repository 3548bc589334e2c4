"""The first page of a person without an organization, and the form that makes one."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views import View

from gateway.lib.errors import DomainError
from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.web.form_errors import show_on
from gateway.web.signed_in import signed_in
from orgs.selectors import memberships
from orgs.services.organizations import create_organization


class OrganizationForm(forms.Form):
    """The name of a new organization."""

    name = forms.CharField(
        label="Organization name",
        max_length=NAME_MAX_CHARACTERS,
        help_text="Your company or team. You can change it later.",
        widget=forms.TextInput(attrs={"autocomplete": "organization"}),
    )


class WelcomePage(LoginRequiredMixin, View):
    """GET, POST /welcome."""

    http_method_names = ["get", "head", "post"]

    def get(self, request: HttpRequest) -> HttpResponse:
        """The form, and the organizations the person already has."""
        return self._page(request, OrganizationForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        """Create, then go to its overview."""
        form = OrganizationForm(request.POST)
        if form.is_valid():
            try:
                organization = create_organization(actor=signed_in(request), name=form.cleaned_data["name"])
            except DomainError as refusal:
                show_on(form, refusal)
            else:
                messages.success(request, f"{organization.name} is ready. Connect a vendor next.")
                return redirect("orgs:overview", organization.id)
        return self._page(request, form, status=422)

    @staticmethod
    def _page(request: HttpRequest, form: OrganizationForm, *, status: int = 200) -> HttpResponse:
        context = {"form": form, "memberships": memberships(signed_in(request)), "page_title": "Welcome"}
        return render(request, "orgs/welcome.html", context, status=status)
