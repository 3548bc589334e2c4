"""Pure: one message of a vendor, taken apart. Results stay the bytes they came as."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from proxy.protocol import reserved_meta

MAX_ERROR_TEXT_BYTES: Final = 4 * 1024
MAX_REFUSAL_BYTES: Final = 64 * 1024  # of the body of an HTTP error that is looked into
# Of a result that is looked into: some megabytes of rows have fewer objects, and no tool answers in so many blocks.
MOST_OBJECTS: Final = 500_000
MOST_BLOCKS: Final = 10_000
MOST_ODD_PARTS: Final = 1_000
MOST_ODD_BYTES: Final = 512 * 1024
NO_ERROR_TEXT: Final = "The tool failed and gave no reason."

_T = TypeVar("_T")


class BadVendorReply(ValueError):
    """The vendor answered what the protocol does not allow; `reason` says what, and quotes nothing of it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class VendorResult(msgspec.Struct, frozen=True):
    """The answer to a request; `raw_result` is a JSON object. `is_error`: the tool itself says that it failed."""

    id: str | int
    raw_result: bytes
    is_error: bool


class VendorError(msgspec.Struct, frozen=True):
    """The refusal of a request. `id` is None if the vendor could not tell which; `raw_error` is its error object."""

    id: str | int | None
    code: int
    message: str
    raw_error: bytes


class VendorNotification(msgspec.Struct, frozen=True):
    """News from the vendor, such as progress; `raw` is the whole message."""

    method: str
    raw: bytes


class VendorRequest(msgspec.Struct, frozen=True):
    """Something the vendor asks. Without an answer its tool may hang."""

    id: str | int
    method: str


class ToolsPage(msgspec.Struct, frozen=True):
    """One page of a vendor's tools, not looked into yet, and the cursor of the next one."""

    tools: list[Any]
    next_cursor: str | None


class RawToolsPage(msgspec.Struct, frozen=True):
    """The same, each tool still the JSON that it came as."""

    tools: list[Raw]
    next_cursor: str | None


VendorMessage: TypeAlias = VendorResult | VendorError | VendorNotification | VendorRequest


class _Envelope(msgspec.Struct):
    jsonrpc: str
    id: str | int | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    result: Raw = Raw()
    error: Raw = Raw()


class _ErrorObject(msgspec.Struct):
    code: int
    message: str


class _ResultHead(msgspec.Struct, rename="camel"):
    is_error: bool | None = None
    meta: Raw = msgspec.field(name="_meta", default=Raw())


class _Handshake(msgspec.Struct, rename="camel"):
    protocol_version: str


class _ServerInfo(msgspec.Struct):
    version: str = ""


class _Introduction(msgspec.Struct, rename="camel"):
    server_info: _ServerInfo


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None


class _ToolResult(msgspec.Struct, rename="camel"):
    content: list[_Block] | None = None
    structured_content: Raw = Raw()


class _OddToolResult(msgspec.Struct, rename="camel"):
    content: list[Raw] | None = None
    structured_content: Raw = Raw()


class _ToolList(msgspec.Struct, rename="camel"):
    tools: list[Any]
    next_cursor: str | None = None


class _RawToolList(msgspec.Struct, rename="camel"):
    tools: list[Raw]
    next_cursor: str | None = None


_envelopes = msgspec.json.Decoder(_Envelope)
_errors = msgspec.json.Decoder(_ErrorObject)
_result_heads = msgspec.json.Decoder(_ResultHead)
_handshakes = msgspec.json.Decoder(_Handshake)
_introductions = msgspec.json.Decoder(_Introduction)
_tool_results = msgspec.json.Decoder(_ToolResult)
_odd_tool_results = msgspec.json.Decoder(_OddToolResult)
_blocks = msgspec.json.Decoder(_Block)
_tool_lists = msgspec.json.Decoder(_ToolList)
_raw_tool_lists = msgspec.json.Decoder(_RawToolList)
_anything = msgspec.json.Decoder()


def parse_message(data: bytes) -> VendorMessage:
    """Return what one message of a vendor is; a `result` or `error` of null counts as absent.

    Results and errors go on to callers as they came, so that they are checked to be UTF-8 and JSON throughout. Only
    reserved members of a result's `_meta` are left out.

    Raises: BadVendorReply.   Spec: §4.14 (5) · protocol.md A.4, A.6 · D105
    """
    if not data.isascii():
        _refuse_other_encodings(data)  # the decoder does not look into what it only carries along
    message = _decoded(_envelopes, data, "it is no JSON-RPC message")
    if message.jsonrpc != "2.0":
        raise BadVendorReply("it is not JSON-RPC 2.0")
    raw_result, raw_error = _present(message.result), _present(message.error)
    if message.method is not UNSET:
        if raw_result or raw_error:
            raise BadVendorReply("it asks and answers at once")
        return _asked(message.id, message.method, data)
    if raw_result and not raw_error:
        return _answered(message.id, raw_result)
    if raw_error and not raw_result:
        return _refused(message.id, raw_error)
    raise BadVendorReply("it must have either a result or an error")


def _asked(message_id: str | int | UnsetType | None, method: str, data: bytes) -> VendorMessage:
    if message_id is UNSET:
        return VendorNotification(method, data)
    if message_id is None:
        raise BadVendorReply("its request has no id")
    return VendorRequest(message_id, method)


def _answered(message_id: str | int | UnsetType | None, raw_result: bytes) -> VendorResult:
    if message_id is None or message_id is UNSET:
        raise BadVendorReply("its result has no id")
    head = _decoded(_result_heads, raw_result, "its result is malformed")
    if head.meta or reserved_meta.mentions_meta(raw_result):
        raw_result = reserved_meta.cleaned_result(raw_result)
    return VendorResult(message_id, raw_result, bool(head.is_error))


def _refused(message_id: str | int | UnsetType | None, raw_error: bytes) -> VendorError:
    error = _decoded(_errors, raw_error, "its error is malformed")
    return VendorError(None if message_id is UNSET else message_id, error.code, error.message, raw_error)


def protocol_version(raw_result: bytes) -> str | None:
    """Return the version that a vendor's result of `initialize` names, or None if it names none."""
    try:
        return _handshakes.decode(raw_result).protocol_version
    except msgspec.ValidationError:
        return None


def server_version(raw_result: bytes) -> str:
    """Return the version that a server gives itself in its result of `initialize`, at most 50 characters, or ""."""
    try:
        return _introductions.decode(raw_result).server_info.version[:50]
    except msgspec.ValidationError:
        return ""


def tools_page(raw_result: bytes) -> ToolsPage:
    """Return what a vendor's result of `tools/list` holds; an empty cursor ends the list as a missing one does.

    Raises: BadVendorReply.   Spec: protocol.md A.5
    """
    page = _decoded(_tool_lists, raw_result, "its list of tools is malformed")
    return ToolsPage(page.tools, page.next_cursor or None)


def raw_tools_page(raw_result: bytes) -> RawToolsPage:
    """Return the same with each tool as its JSON: a large page is taken apart in slices, by whoever has the time.

    Raises: BadVendorReply.
    """
    page = _decoded(_raw_tool_lists, raw_result, "its list of tools is malformed")
    return RawToolsPage(page.tools, page.next_cursor or None)


def tools_of(raw_tools: Iterable[Raw]) -> Iterator[object]:
    """Yield each tool of raw pages, read when it is its turn.

    Raises: BadVendorReply.
    """
    for raw in raw_tools:
        yield _decoded(_anything, raw, "its list of tools is malformed")


def error_text(raw_result: bytes) -> str:
    """Return the text with which a tool says that it failed, at most 4 KiB of it and never "". Spec: D100"""
    try:
        texts, _ = _looked_into(raw_result)
    except BadVendorReply:
        return NO_ERROR_TEXT
    return cut_text("\n".join(filter(None, texts))) or NO_ERROR_TEXT


def cut_text(text: str) -> str:
    """Return at most 4 KiB of a vendor's words. Spec: D100"""
    return text.encode("utf-8", "replace")[:MAX_ERROR_TEXT_BYTES].decode("utf-8", "ignore")


def cli_content(raw_result: bytes) -> list[dict[str, str]]:
    """Return a tool's result as text blocks `{type: "text", text}`; what is no text is written down as JSON.

    A result that has structured content only yields one block with that.

    Raises: BadVendorReply.   Spec: §4.14 · D101
    """
    texts, structured = _looked_into(raw_result)
    if None in texts:
        came = _decoded(_odd_tool_results, raw_result, "its content is not a list").content or ()
        texts = [bytes(raw).decode() if text is None else text for text, raw in zip(texts, came, strict=True)]
    if not texts and structured:
        texts = [structured.decode()]
    return [{"type": "text", "text": text or ""} for text in texts]


def refusal(body: bytes, message_id: int) -> VendorError | None:
    """Return the JSON-RPC error in the body of an HTTP error that answers our request `message_id`, if it is one.

    The transport layer of a server may not have looked at the message, and says null or a word of its own as id.

    Spec: protocol.md A.4 · D105
    """
    if not body or len(body) > MAX_REFUSAL_BYTES:
        return None
    try:
        message = parse_message(body)
    except BadVendorReply:
        return None
    if not isinstance(message, VendorError) or (isinstance(message.id, int) and message.id != message_id):
        return None
    return message


def _refuse_other_encodings(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        raise BadVendorReply("it is not UTF-8") from None


def _decoded(decoder: msgspec.json.Decoder[_T], data: bytes | Raw, reason: str) -> _T:
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        raise BadVendorReply(reason) from None
    except msgspec.DecodeError:
        raise BadVendorReply("it is not JSON") from None
    except RecursionError:
        raise BadVendorReply("it is nested too deeply") from None


def _present(raw: Raw) -> bytes:
    """Return the JSON a message holds in one place; b"" if there is none, or null."""
    value = bytes(raw)
    return b"" if value == b"null" else value


def _looked_into(raw_result: bytes) -> tuple[list[str | None], bytes]:
    """The text of each block, None where it has another form, and the structured content or b"".

    A result may be made to take all our time and memory: what it has more of than any tool needs is refused.
    Raises: BadVendorReply.
    """
    if raw_result.count(b"{") > MOST_OBJECTS:
        raise BadVendorReply("it has too many parts")
    try:
        result = _tool_results.decode(raw_result)
    except msgspec.ValidationError:  # something in it is no block
        return _odd_looked_into(raw_result)
    except msgspec.DecodeError:
        raise BadVendorReply("it is not JSON") from None
    except RecursionError:
        raise BadVendorReply("it is nested too deeply") from None
    if len(result.content or ()) > MOST_BLOCKS:
        raise BadVendorReply("it has too many content blocks")
    return [_text_of(block) for block in result.content or ()], _present(result.structured_content)


def _odd_looked_into(raw_result: bytes) -> tuple[list[str | None], bytes]:
    """The same block by block, which takes longer."""
    if len(raw_result) > MOST_ODD_BYTES and raw_result.count(b",") > MOST_ODD_PARTS:
        raise BadVendorReply("its content is not a list of blocks")
    result = _decoded(_odd_tool_results, raw_result, "its content is not a list")
    if len(result.content or ()) > MOST_ODD_PARTS:
        raise BadVendorReply("its content is not a list of blocks")
    return [_odd_text_of(raw) for raw in result.content or ()], _present(result.structured_content)


def _odd_text_of(raw: Raw) -> str | None:
    try:
        return _text_of(_blocks.decode(raw))
    except (msgspec.ValidationError, RecursionError):
        return None


def _text_of(block: _Block) -> str | None:
    return block.text if block.type == "text" else None
