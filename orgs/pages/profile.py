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
from orgs.services.profile import update_profile


class ProfileForm(forms.Form):
    display_name = forms.CharField(
        label="Display name",
        max_length=NAME_MAX_CHARACTERS,
        required=False,
        help_text="What others see in lists and logs.",
    )
    first_name = forms.CharField(label="First name", max_length=NAME_MAX_CHARACTERS, required=False)
    last_name = forms.CharField(label="Last name", max_length=NAME_MAX_CHARACTERS, required=False)


class ProfilePage(LoginRequiredMixin, View):
    """GET, POST /profile."""

    http_method_names = ["get", "head", "post"]

    def get(self, request: HttpRequest) -> HttpResponse:
        user = signed_in(request)
        initial = {"display_name": user.display_name, "first_name": user.first_name, "last_name": user.last_name}
        return self._page(request, ProfileForm(initial=initial))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = ProfileForm(request.POST)
        if form.is_valid():
            try:
                update_profile(user=signed_in(request), **form.cleaned_data)
            except DomainError as refusal:
                show_on(form, refusal)
            else:
                messages.success(request, "Saved.")
                return redirect("profile")
        return self._page(request, form, status=422)

    @staticmethod
    def _page(request: HttpRequest, form: ProfileForm, *, status: int = 200) -> HttpResponse:
        context = {"form": form, "memberships": memberships(signed_in(request)), "page_title": "Profile"}
        return render(request, "orgs/profile.html", context, status=status)
