"""Pure: a vendor's headers and address, filled in with credential fields."""

from collections.abc import Mapping

from gateway.catalog.characters import has_control_characters
from gateway.catalog.template_grammar import FieldError, placeholders, render
from gateway.catalog.url_templates import render_url
from gateway.catalog.vendor import Vendor

# The field of a connection that holds the vendor's token. No catalog field has such a name.
ACCESS_TOKEN = "oauth.access_token"  # noqa: S105 - a name
__all__ = ["ACCESS_TOKEN", "FieldError", "vendor_headers", "vendor_url"]


def vendor_headers(vendor: Vendor, fields: Mapping[str, str]) -> dict[str, str]:
    """Raises: FieldError for a missing required field or a value not allowed in a header. Spec: contract §4 · D64"""
    values = _values(vendor, fields)
    headers: dict[str, str] = {}
    for header in vendor.headers:
        names = placeholders(header.value)
        # A header whose fields are all optional and empty is left out.
        if not names or any(values.get(name) for name in names):
            headers[header.name] = _header_value(header.value, names, values)
    if vendor.oauth is not None and (token := fields.get(ACCESS_TOKEN)):
        headers["Authorization"] = f"Bearer {token}"  # its characters were checked when it was received
    return headers


def vendor_url(vendor: Vendor, fields: Mapping[str, str]) -> str:
    """Raises: FieldError for a missing required field or a value that changes the address's structure. Spec: contract
    §4
    """
    if not vendor.customer_supplied_url:
        return vendor.url
    return render_url(vendor.url, _values(vendor, fields))


def _values(vendor: Vendor, fields: Mapping[str, str]) -> dict[str, str]:
    """Every field's value, else its default, else the empty string."""
    values = {each.name: fields.get(each.name) or each.default for each in vendor.fields}
    for each in vendor.fields:
        if each.required and not values[each.name]:
            raise FieldError(each.name, "is required")
    return values


def _header_value(template: str, names: tuple[str, ...], values: Mapping[str, str]) -> str:
    # Header injection: checked again here, because stored values may be older than the check at storage.
    value = render(template, values)
    if _fits_in_header(value):
        return value.strip()
    offender = next((name for name in names if not _fits_in_header(values[name])), names[0] if names else "headers")
    raise FieldError(offender, "has characters that cannot be sent in a header")


def _fits_in_header(text: str) -> bool:
    # HTTP header values are latin-1.
    return not has_control_characters(text) and all(ord(character) < 256 for character in text)
