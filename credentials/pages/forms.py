from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext

from gateway.catalog.vendor import CredentialField, Vendor

# 8 KiB a value, as in the API; the service counts the bytes. Spec: D64
VALUE_MAX_CHARACTERS = 8 * 1024


class CredentialForm(forms.Form):
    """One form field per credential field of the vendor's catalog entry."""

    def __init__(self, vendor: Vendor, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in vendor.fields:
            self.fields[field.name] = _form_field(field)

    def values(self) -> dict[str, str]:
        # An empty optional field is left out.
        return {name: value for name, value in self.cleaned_data.items() if value}


def _form_field(field: CredentialField) -> forms.Field:
    common: dict[str, Any] = {"label": field.label, "required": field.required, "help_text": field.help}
    attributes = {"placeholder": field.placeholder, "autocomplete": "off", "spellcheck": "false"}
    if field.options:
        choices = [(option, option) for option in field.options]
        # Without a default the person decides: a first option would look like a decision.
        blank = [] if field.default else [("", gettext("Choose one") if field.required else gettext("Default"))]
        return forms.ChoiceField(choices=[*blank, *choices], initial=field.default, **common)
    if field.secret:
        # Secrets are never filled in again, not even after an error.
        widget = forms.PasswordInput(attrs={**attributes, "autocomplete": "new-password"}, render_value=False)
        return forms.CharField(widget=widget, max_length=VALUE_MAX_CHARACTERS, strip=True, **common)
    return forms.CharField(
        widget=forms.TextInput(attrs=attributes),
        max_length=VALUE_MAX_CHARACTERS,
        initial=field.default,
        strip=True,
        **common,
    )
