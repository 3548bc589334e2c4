"""Pure: a vendor's headers and address, filled in with credential fields."""

from collections.abc import Mapping

from gateway.catalog.characters import has_control_characters
from gateway.catalog.template_grammar import FieldError, placeholders, render
from gateway.catalog.url_templates import render_url
from gateway.catalog.vendor import Vendor

__all__ = ["FieldError", "vendor_headers", "vendor_url"]


def vendor_headers(vendor: Vendor, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that carry these credential fields to `vendor`.

    A header whose fields are all optional and empty is left out.
    Raises: FieldError: a required field is missing, or a value cannot stand in a header.
    Spec: contract §4 · D64
    """
    values = _values(vendor, fields)
    headers: dict[str, str] = {}
    for header in vendor.headers:
        names = placeholders(header.value)
        if not names or any(values.get(name) for name in names):
            headers[header.name] = _header_value(header.value, names, values)
    return headers


def vendor_url(vendor: Vendor, fields: Mapping[str, str]) -> str:
    """Return the address of `vendor` for these credential fields.

    Raises: FieldError: a required field is missing, or a value would change what the address means.
    Spec: contract §4
    """
    if not vendor.customer_supplied_url:
        return vendor.url
    return render_url(vendor.url, _values(vendor, fields))


def _values(vendor: Vendor, fields: Mapping[str, str]) -> dict[str, str]:
    """Every field of `vendor`, with its default where nothing was given, or empty."""
    values = {each.name: fields.get(each.name) or each.default for each in vendor.fields}
    for each in vendor.fields:
        if each.required and not values[each.name]:
            raise FieldError(each.name, "is required")
    return values


def _header_value(template: str, names: tuple[str, ...], values: Mapping[str, str]) -> str:
    # Checked again although fields are checked when they are stored: a line break here is a header of the
    # attacker's choice, and stored values may be older than the check.
    value = render(template, values)
    if _fits_in_header(value):
        return value.strip()
    offender = next((name for name in names if not _fits_in_header(values[name])), names[0] if names else "headers")
    raise FieldError(offender, "has characters that cannot be sent in a header")


def _fits_in_header(text: str) -> bool:
    return not has_control_characters(text) and all(ord(character) < 256 for character in text)
