"""Pure: validation of credential fields against the vendor's definition."""

from collections.abc import Mapping

from gateway.catalog.characters import has_control_characters, one_line
from gateway.catalog.templates import FieldError, vendor_headers, vendor_url
from gateway.catalog.vendor import CredentialField, Vendor
from gateway.lib.errors import Invalid

MAX_FIELDS = 32
# Bytes in UTF-8.
MAX_VALUE_BYTES = 8 * 1024
_TOO_LONG = f"Must be at most {MAX_VALUE_BYTES} bytes long."


def check_fields(vendor: Vendor, raw: Mapping[str, object]) -> dict[str, str]:
    """The values to store: trimmed, without the empty ones. Raises: Invalid with every fault by field.

    The key `fields` stands for the credential as a whole. Errors never hold a value.   Spec: §4.6 · D3, D16, D64
    """
    if len(raw) > MAX_FIELDS:
        raise Invalid(fields={"fields": [f"A credential has at most {MAX_FIELDS} fields."]})
    known = {each.name: each for each in vendor.fields}
    errors = {one_line(name): ["This vendor has no such field."] for name in raw if name not in known}
    values: dict[str, str] = {}
    for name, each in known.items():
        value, problem = _checked(each, raw.get(name, ""))
        if problem:
            errors[name] = [problem]
        elif value:
            values[name] = value
    if not errors:
        errors = _unusable(vendor, values)
    if errors:
        raise Invalid(fields=errors)
    return values


def _checked(field: CredentialField, raw: object) -> tuple[str, str]:
    """(trimmed value, fault); one of the two is empty."""
    if not isinstance(raw, str):
        return "", "Must be text."
    if len(raw) > MAX_VALUE_BYTES:  # before any pass over the text; never fewer bytes than characters
        return "", _TOO_LONG
    value = raw.strip()
    if has_control_characters(value):
        return "", "Must not contain line breaks or other control characters."
    if len(value.encode()) > MAX_VALUE_BYTES:
        return "", _TOO_LONG
    if not value:
        return "", "This field is required." if field.required and not field.default else ""
    if field.options and value not in field.options:
        return "", f"Must be one of: {', '.join(field.options)}."
    return value, ""


def _unusable(vendor: Vendor, values: Mapping[str, str]) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    # Some faults show only in the finished header or address: find them now, not at the first call.
    for build in (vendor_url, vendor_headers):
        try:
            build(vendor, values)
        except FieldError as error:
            errors.setdefault(error.field, []).append(error.message[:1].upper() + error.message[1:] + ".")
    return errors
