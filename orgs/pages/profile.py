from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.web.form_page import FormPage
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


class ProfilePage(FormPage[ProfileForm]):
    """GET, POST /profile."""

    title = "Profile"
    form_class = ProfileForm
    template = "orgs/profile.html"

    def initial(self) -> dict[str, Any]:
        return {name: getattr(self.actor, name) for name in ProfileForm.base_fields}

    def save(self, form: ProfileForm) -> HttpResponse:
        update_profile(user=self.actor, **form.cleaned_data)
        messages.success(self.request, "Saved.")
        return redirect("profile")
