"""The state that a caller keeps between a vendor's question and its answer: the vendor's own state, sealed.

A vendor binds its state to its own customer, which is the organization. So that no member answers another one's
question, the seal holds the caller, the credential and the call. docs/decisions/0107
"""

from __future__ import annotations

import msgspec

from gateway.lib import clock
from orgs.principal import Principal
from proxy.caller_seal import CallerSeal, NotOpened
from proxy.calls.asking_request import AskingRequest
from proxy.protocol.modern.input_required import MAX_SEALED_CHARACTERS

# For a person to read a question and answer it. As in the Python SDK.
LIFETIME_S = 600


class InvalidState(Exception):
    """The state is not one of this caller, for this call, at this time."""


class State(msgspec.Struct, frozen=True, array_like=True):
    """`binding`: of the call that asked. `vendor_state`: None if the vendor gave none. `kinds`: of its questions."""

    expires_at_s: float
    binding: tuple[str, ...]
    arguments: bytes
    vendor_state: str | None
    kinds: tuple[str, ...] = ()


_seal = CallerSeal(b"request-state|", State, max_characters=MAX_SEALED_CHARACTERS)


def sealed(
    principal: Principal,
    request: AskingRequest,
    arguments: bytes,
    vendor_state: str | None,
    kinds: tuple[str, ...] = (),
) -> str:
    """For the caller, in place of the vendor's state. `arguments`: their digest."""
    expires_at_s = clock.now().timestamp() + LIFETIME_S
    state = State(expires_at_s, _binding(principal, request), arguments, vendor_state, kinds)
    return _seal.seal(principal.org_id, state)


def opened(principal: Principal, request: AskingRequest, arguments: bytes, state: str) -> State:
    """`arguments`: their digest. Raises: InvalidState."""
    try:
        found_state = _seal.open(principal.org_id, state)
    except NotOpened as fault:
        raise InvalidState from fault
    if found_state.binding != _binding(principal, request) or found_state.arguments != arguments:
        raise InvalidState
    return found_state


def _binding(principal: Principal, request: AskingRequest) -> tuple[str, ...]:
    """A replaced credential has another revision: questions asked under the former one end with it."""
    credential = request.credential
    who = (principal.kind.value, principal.subject, principal.client_id)
    what = (request.method, request.vendor.slug, request.name, credential.id.hex, str(credential.revision))
    return (*who, *what)
