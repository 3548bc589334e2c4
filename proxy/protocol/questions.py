"""Pure: a vendor's requests to its caller in the middle of a call, in the earlier revisions, and their answers.

Spec: MCP 2025-11-25, client/elicitation, client/sampling, client/roots · docs/decisions/0110
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw

from proxy.protocol import jsonrpc, progress
from proxy.protocol.tool_definitions import texts_without_hidden

# Methods that a vendor may ask with, and the capability that a caller must have declared.
ELICITATION: Final = "elicitation/create"
CAPABILITY_OF: Final = {
    ELICITATION: "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
# Kinds that a vendor may use where its organization has not chosen. docs/decisions/0118
ALLOWED_BY_DEFAULT: Final = frozenset(("elicitation",))
# Members of each capability that a vendor may rely on. Others, and their values, are of no use to it here.
_MEMBERS: Final = {"elicitation": ("form", "url"), "sampling": ("tools", "context"), "roots": ()}
MAX_QUESTION_BYTES: Final = 512 * 1024
READING_FACTOR: Final = 8  # to read a question takes as long as other work on so many times its bytes
MAX_ANSWER_BYTES: Final = 512 * 1024
NOT_ANSWERED: Final = -32001  # as SDKs report a request that took too long


class VendorQuestion(msgspec.Struct, frozen=True):
    """`params`: JSON as the vendor sent it, without the members of `_meta` that are of its own connection."""

    method: str
    params: dict[str, Raw]
    mode: str  # of an elicitation


class Reply(msgspec.Struct, frozen=True):
    """An answer as JSON: `member` is `result` or `error`."""

    member: str
    raw: bytes

    @property
    def is_result(self) -> bool:
        return self.member == "result"

    def message(self, message_id: jsonrpc.MessageId) -> bytes:
        """The response to request `message_id` of a vendor."""
        if self.is_result:
            return jsonrpc.result_bytes(message_id, self.raw)
        return jsonrpc.error_bytes(message_id, self.raw)


class _Mode(msgspec.Struct):
    mode: str = "form"


class _Request(msgspec.Struct):
    method: str
    params: dict[str, Raw] = {}


class _Address(msgspec.Struct):
    url: str = ""


_requests = msgspec.json.Decoder(_Request)
_addresses = msgspec.json.Decoder(_Address)
_modes = msgspec.json.Decoder(_Mode)
_metas = msgspec.json.Decoder(dict[str, Any])
_encode = msgspec.json.Encoder().encode


def declared(capabilities: object) -> dict[str, dict[str, Any]]:
    """Those of a client's capabilities that a vendor may rely on, in one spelling; {} for what is no such object."""
    if not isinstance(capabilities, Mapping):
        return {}
    found: dict[str, dict[str, Any]] = {}
    for name, members in _MEMBERS.items():
        said = capabilities.get(name)
        if isinstance(said, Mapping):
            found[name] = {member: {} for member in members if isinstance(said.get(member), Mapping)}
    return found


def allowed(capabilities: Mapping[str, Any], kinds: Container[str]) -> dict[str, Any]:
    """The capabilities that an organization lets a vendor rely on."""
    return {name: members for name, members in capabilities.items() if name in kinds}


def can_answer(method: str, mode: str, capabilities: Mapping[str, Any]) -> bool:
    """Whether a client with these capabilities answers `method`. `mode`: of an elicitation."""
    said = capabilities.get(CAPABILITY_OF.get(method, ""))
    if not isinstance(said, Mapping):
        return False
    # Without a mode, a capability means forms.
    return method != ELICITATION or mode in (said or {"form": {}})


def for_a_person(params: dict[str, Raw]) -> dict[str, Raw] | None:
    """Params of `elicitation/create` without hidden characters; None if their address may mislead. Raises: DecodeError;
    RecursionError. docs/decisions/0037"""
    raw = _encode(params)
    if _modes.decode(raw).mode == "url" and not _says_where_it_leads(_addresses.decode(raw).url):
        return None
    if raw.isascii() and b"\\" not in raw:
        return params
    members = texts_without_hidden(_metas.decode(raw))
    return {name: Raw(_encode(value)) for name, value in members.items()}


def _says_where_it_leads(address: str) -> bool:
    """Whether it is a web address whose host is what a person takes it for."""
    if not (address.isascii() and address.isprintable()) or any(sign in address for sign in " \\"):
        return False
    try:
        parts = urlsplit(address)
        return parts.scheme in ("https", "http") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def read(raw: bytes) -> VendorQuestion | None:
    """The question in a request, with `method` and `params`; None for one that cannot be passed on."""
    if len(raw) > MAX_QUESTION_BYTES:
        return None
    try:
        asked = _requests.decode(raw)
        params = dict(asked.params)
        if "_meta" in params:
            _, rest = progress.split_meta(_metas.decode(params.pop("_meta")))
            if rest:
                params["_meta"] = Raw(_encode(rest))
        if asked.method != ELICITATION:
            return VendorQuestion(asked.method, params, "")
        shown = for_a_person(params)
        return None if shown is None else VendorQuestion(asked.method, shown, _modes.decode(_encode(shown)).mode)
    except (msgspec.DecodeError, RecursionError):
        return None


def reply_of(answer: jsonrpc.Response) -> Reply | None:
    """A caller's answer; None for one that is neither a result nor an error, or too long."""
    member, value = ("error", answer.error) if answer.result is None else ("result", answer.result)
    if type(value) is not dict or (answer.error is not None and answer.result is not None):
        return None
    if member == "error" and not (type(value.get("code")) is int and type(value.get("message")) is str):
        return None
    raw = _encode(value)
    return Reply(member, raw) if len(raw) <= MAX_ANSWER_BYTES else None


def failure(text: str) -> Reply:
    """The answer in place of one that did not come."""
    return Reply("error", _encode({"code": NOT_ANSWERED, "message": text}))
