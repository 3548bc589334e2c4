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
    token = fields.get(ACCESS_TOKEN) if vendor.oauth is not None else None
    if token:
        return _headers_of_connection(vendor, token)
    values = _values(vendor, fields)
    # A header whose fields are all optional and empty is left out.
    return {
        each.name: _header_value(each.value, names, values)
        for each in vendor.headers
        if not (names := placeholders(each.value)) or any(values.get(name) for name in names)
    }


def _headers_of_connection(vendor: Vendor, token: str) -> dict[str, str]:
    """The token takes the place of the fields: of those only defaults are sent, and no other Authorization."""
    values = {each.name: each.default for each in vendor.fields}
    headers = {}
    for each in vendor.headers:
        names = placeholders(each.value)
        if each.name.lower() != "authorization" and all(values[name] for name in names):
            headers[each.name] = _header_value(each.value, names, values)
    return {**headers, "Authorization": f"Bearer {token}"}  # its characters were checked when it was received


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
