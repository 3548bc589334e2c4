"""Confirmation of an irreversible action by typing a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.translation import gettext


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
            parts = {"name": name, "because": because}
            text = gettext("Type %(name)s to confirm: %(because)s") if because else gettext("Type %(name)s to confirm")
            self._fault = f"{text % parts}."
            attributes = {"autocomplete": "off", "spellcheck": "false", "data-confirm-text": name}
            self.fields["typed_name"] = forms.CharField(
                label=format_html(
                    text.replace("%(name)s", "<strong>{name}</strong>").replace("%(because)s", "{because}"), **parts
                ),
                error_messages={"required": self._fault},
                widget=forms.TextInput(attrs=attributes),
            )

    def clean_typed_name(self) -> str:
        typed: str = self.cleaned_data["typed_name"]
        if typed != self._name:
            raise forms.ValidationError(self._fault)
        return typed
