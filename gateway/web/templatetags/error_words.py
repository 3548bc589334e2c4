"""Filter: `{{ code|error_words }}`, the error code of a call in words; "" for a code that is not known."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext_lazy

register = template.Library()

WORDS = {
    "bad_arguments": gettext_lazy("The arguments can’t be used"),
    "bad_vendor_response": gettext_lazy("The vendor sent a response that can’t be read"),
    "client_closed": gettext_lazy("The caller disconnected before the response"),
    "gateway_stopped": gettext_lazy("The service stopped before the response"),
    "insufficient_scope": gettext_lazy("The app’s token doesn’t cover this vendor"),
    "internal_error": gettext_lazy("Something went wrong on our side"),
    "item_not_allowed": gettext_lazy("The caller isn’t allowed to use this resource or prompt"),
    "no_credentials": gettext_lazy("The vendor wasn’t connected for this caller"),
    "no_server_access": gettext_lazy("The caller didn’t have access to this vendor"),
    "rate_limited": gettext_lazy("Too many calls"),
    "tool_error": gettext_lazy("The tool reported an error"),
    "tool_not_allowed": gettext_lazy("The caller isn’t allowed to call this tool"),
    "unknown_item": gettext_lazy("The caller has no resource or prompt with this name"),
    "unknown_tool": gettext_lazy("The caller has no tool with this name"),
    "unknown_vendor": gettext_lazy("No vendor has this name"),
    "unusable_credentials": gettext_lazy("The stored credentials couldn’t be used"),
    "vendor_error": gettext_lazy("The vendor returned an error"),
    "vendor_rejected_credentials": gettext_lazy("The vendor rejected the credentials"),
    "vendor_scope_needed": gettext_lazy("The connection lacks scopes that the vendor asked for"),
    "vendor_timeout": gettext_lazy("The vendor didn’t respond in time"),
    "vendor_unavailable": gettext_lazy("The vendor couldn’t be reached"),
}


@register.filter
def error_words(code: str) -> str:
    return str(WORDS.get(code, ""))
