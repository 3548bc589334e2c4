"""Pure: parses the form body of an OAuth request in one unambiguous way. Spec: RFC 6749 3.2 · D18, D125"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from urllib.parse import parse_qsl

FORM = "application/x-www-form-urlencoded"
REPEATABLE = frozenset({"resource"})  # RFC 8707
MAX_FIELDS = 100  # more fields are refused unread
_CREDENTIALS = frozenset({"client_id", "client_secret"})
# Every field that a grant reads. oauthlib turns each field into an attribute of its request, where an unknown one could
# pass for the client or the person, so all others are dropped.
TOKEN_FIELDS = _CREDENTIALS | frozenset(
    (
        "grant_type scope resource code redirect_uri code_verifier refresh_token device_code assertion "
        "subject_token subject_token_type actor_token actor_token_type requested_token_type audience"
    ).split()
)
DEVICE_FIELDS = _CREDENTIALS | frozenset({"scope", "resource"})
REVOCATION_FIELDS = _CREDENTIALS | frozenset({"token", "token_type_hint"})


class FormError(ValueError):
    """The body is ambiguous or malformed; `reason` is a sentence that never repeats the body."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Fields = Mapping[str, tuple[str, ...]]


def parse(content_type: str, body: bytes, known: frozenset[str] = TOKEN_FIELDS) -> Fields:
    """Raises: FormError for another media type, a repeated field, or a value outside printable ASCII."""
    if not body and not content_type:  # a client may send everything by HTTP Basic
        return {}
    if content_type.partition(";")[0].strip().lower() != FORM:
        raise FormError(f"The body must be {FORM}.")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise FormError("The body is not a well-formed form.") from None
    counts = Counter(name for name, _ in pairs)
    if any(count > 1 and name not in REPEATABLE for name, count in counts.items()):
        raise FormError("A parameter appears twice.")
    fields: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        # Unknown and empty fields count as absent.
        if name not in known or not value:
            continue
        if not (value.isascii() and value.isprintable()):
            raise FormError(f"The parameter {name} contains characters that are not allowed.")
        fields[name] = (*fields.get(name, ()), value)
    return fields


def first(fields: Fields, name: str) -> str:
    """Returns an empty text when the field is absent."""
    return fields.get(name, ("",))[0]
