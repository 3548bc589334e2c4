"""Confirmation of an irreversible action by typing a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.html import format_html


class TypedNameForm(forms.Form):
    """Valid if `name` is typed into its field. An empty `name` needs no typing.

    `because`: the reason, a clause after the colon of the label.
    """

    use_required_attribute = False

    def __init__(
        self, name: str, data: Mapping[str, Any] | None = None, *, because: str = "", initial: Any = None
    ) -> None:
        super().__init__(data, auto_id="%s", initial=initial)
        self._name = name
        if name:
            reason = f": {because}" if because else ""
            self._fault = f"Type {name} to confirm{reason}."
            attributes = {"autocomplete": "off", "spellcheck": "false", "data-confirm-text": name}
            self.fields["typed_name"] = forms.CharField(
                label=format_html("Type <strong>{}</strong> to confirm{}", name, reason),
                error_messages={"required": self._fault},
                widget=forms.TextInput(attrs=attributes),
            )

    def clean_typed_name(self) -> str:
        typed: str = self.cleaned_data["typed_name"]
        if typed != self._name:
            raise forms.ValidationError(self._fault)
        return typed
