"""The state that a caller keeps between a vendor's question and its answer: the vendor's own state, sealed.

A vendor binds its state to its own customer, which is the organization. So that no member answers another one's
question, the seal holds the caller, the credential and the call. docs/decisions/0107
"""

from __future__ import annotations

import base64
import binascii
import hmac
from uuid import UUID

import msgspec
from django.conf import settings

from gateway.lib import clock
from gateway.lib.crypto import CryptoError, open_sealed, seal
from orgs.principal import Principal
from proxy.calls.find_tool import FoundTool
from proxy.protocol.modern.input_required import MAX_SEALED_CHARACTERS

# For a person to read a question and answer it. As in the Python SDK.
LIFETIME_S = 600
_PURPOSE = b"request-state|"


class InvalidState(Exception):
    """The state is not one of this caller, for this call, at this time."""


class _State(msgspec.Struct, frozen=True, array_like=True):
    """`binding`: of the call that asked. `vendor_state`: None if the vendor gave none."""

    expires_at_s: float
    binding: tuple[str, ...]
    arguments: bytes
    vendor_state: str | None


_decoder = msgspec.msgpack.Decoder(_State)


def sealed(principal: Principal, found: FoundTool, arguments: bytes, vendor_state: str | None) -> str:
    """For the caller, in place of the vendor's state. `arguments`: their digest."""
    expires_at_s = clock.now().timestamp() + LIFETIME_S
    state = _State(expires_at_s, _binding(principal, found), arguments, vendor_state)
    raw = seal(_key(principal.org_id), msgspec.msgpack.encode(state), _PURPOSE + principal.org_id.bytes)
    return base64.urlsafe_b64encode(raw).decode("ascii")


def opened(principal: Principal, found: FoundTool, arguments: bytes, state: str) -> str | None:
    """The vendor's state. `arguments`: their digest. Raises: InvalidState."""
    if len(state) > MAX_SEALED_CHARACTERS:
        raise InvalidState
    try:
        raw = base64.b64decode(state.encode("ascii"), altchars=b"-_", validate=True)
        found_state = _decoder.decode(open_sealed(_key(principal.org_id), raw, _PURPOSE + principal.org_id.bytes))
    except (ValueError, binascii.Error, CryptoError, msgspec.MsgspecError) as fault:
        raise InvalidState from fault
    is_same_call = found_state.binding == _binding(principal, found) and found_state.arguments == arguments
    if not is_same_call or clock.now().timestamp() >= found_state.expires_at_s:
        raise InvalidState
    return found_state.vendor_state


def _binding(principal: Principal, found: FoundTool) -> tuple[str, ...]:
    """A replaced credential has another revision: questions asked under the former one end with it."""
    credential = found.credential
    who = (principal.kind.value, principal.subject, principal.client_id)
    what = (found.vendor.slug, found.tool.vendor_name, credential.id.hex, str(credential.revision))
    return (*who, *what)


def _key(org_id: UUID) -> bytes:
    return hmac.digest(settings.SECRET_KEY.encode(), _PURPOSE + org_id.bytes, "sha256")
