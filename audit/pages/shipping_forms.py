"""The forms of a destination, in the words of its platform."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from audit.shipping.platforms.platform import ConfigField, Platform
from audit.shipping.validation import VALUE_CHARACTERS
from audit.shipping_models import NAME_CHARACTERS, URL_CHARACTERS
from gateway.lib.translated import translated

CONFIG = "config."  # the prefix of fields of the configuration, as refusals name them
REMOVE = "remove."
_INERT = {"autocomplete": "off", "spellcheck": "false"}


class _SecretLines(forms.Textarea):
    """A browser joins the lines of what is pasted into a field of one line."""

    def format_value(self, value: object) -> str:
        return ""


class DestinationForm(forms.Form):
    """`stored`: the masked configuration of a destination that exists. A secret that is left empty stays."""

    def __init__(
        self,
        platform: Platform,
        data: Mapping[str, Any] | None = None,
        *,
        stored: Mapping[str, str] | None = None,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=dict(initial or {}))
        self._platform = platform
        self.fields["label"] = forms.CharField(
            label=gettext("Name"),
            max_length=NAME_CHARACTERS,
            help_text=gettext("As your colleagues know it, for example “Security team”."),
            widget=forms.TextInput(attrs={"autocomplete": "off"}),
        )
        self.fields["endpointUrl"] = forms.CharField(
            label=translated(platform.endpoint_label),
            required=not platform.preset_url,
            max_length=URL_CHARACTERS,
            help_text=translated(platform.endpoint_help),
            widget=forms.TextInput(attrs={**_INERT, "inputmode": "url", "placeholder": platform.endpoint_example}),
        )
        for field in platform.fields:
            self._add(field, (stored or {}).get(field.name, ""))

    def config(self) -> dict[str, str]:
        """The keys that were entered or emptied."""
        config = {}
        for field in self._platform.fields:
            value = self.cleaned_data[f"{CONFIG}{field.name}"]
            if value or not field.secret or self.cleaned_data.get(f"{REMOVE}{field.name}"):
                config[field.name] = value
        return config

    def _add(self, field: ConfigField, stored: str) -> None:
        common: dict[str, Any] = {
            "label": translated(field.label),
            "required": field.required and not (field.secret and stored),
            "help_text": translated(field.help),
            "max_length": VALUE_CHARACTERS,
        }
        name = f"{CONFIG}{field.name}"
        if not field.secret:
            self.fields[name] = forms.CharField(initial=stored, widget=forms.TextInput(attrs=_INERT), **common)
            return
        # Secrets are never filled in again, not even after an error.
        if field.has_lines:
            secret: forms.Widget = _SecretLines(attrs={**_INERT, "rows": 3, "placeholder": stored})
        else:
            attributes = {**_INERT, "autocomplete": "new-password", "placeholder": stored}
            secret = forms.PasswordInput(attrs=attributes, render_value=False)
        self.fields[name] = forms.CharField(widget=secret, **common)
        if stored and not field.required:
            self.fields[f"{REMOVE}{field.name}"] = forms.BooleanField(
                label=gettext("Remove the stored value of “%(label)s”") % {"label": translated(field.label)},
                required=False,
            )


class ReplayForm(forms.Form):
    since = forms.DateTimeField(
        label=gettext_lazy("From (UTC)"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"],
        help_text=gettext_lazy(
            "Records from that time on are delivered again. Most platforms recognize repeated ones by their ID."
        ),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )

    def clean_since(self) -> datetime:
        since: datetime = self.cleaned_data["since"]
        return since.replace(tzinfo=UTC)
