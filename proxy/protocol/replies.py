"""Pure: parses a vendor's message. Results stay the bytes received."""

from collections.abc import Iterable, Iterator, Set
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from proxy.protocol import reserved_meta

MAX_ERROR_TEXT_BYTES: Final = 4 * 1024
MAX_UPDATE_BYTES: Final = 64 * 1024  # of a change that is announced; a larger one has no address in use
MAX_ACKNOWLEDGEMENT_BYTES: Final = 256 * 1024  # of the subscriptions of one stream
MAX_REFUSAL_BYTES: Final = 64 * 1024  # of an HTTP error's body; larger ones are not parsed
# Limits of a parsed result: megabytes of table rows have fewer objects, and no tool answers in so many blocks.
MAX_OBJECTS: Final = 500_000
MAX_BLOCKS: Final = 10_000
MAX_ODD_PARTS: Final = 1_000  # blocks parsed one by one
MAX_ODD_BYTES: Final = 512 * 1024
NO_ERROR_TEXT: Final = "The tool failed and gave no reason."

_T = TypeVar("_T")


class BadVendorReply(ValueError):
    """The vendor broke the protocol. `reason` quotes nothing of its message."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class VendorResult(msgspec.Struct, frozen=True):
    """`raw_result` is a JSON object; `is_error`: the tool itself failed. `is_personal`: the vendor may know things in
    this session that its one caller answered, or was refused an answer, so the result is for this caller alone."""

    id: str | int
    raw_result: bytes
    is_error: bool
    is_personal: bool = False


class RpcError(msgspec.Struct, frozen=True):
    """A refused request; `id` is None if unknown, `raw_error` the error object."""

    id: str | int | None
    code: int
    message: str
    raw_error: bytes


class VendorNotification(msgspec.Struct, frozen=True):
    method: str
    raw: bytes


class VendorRequest(msgspec.Struct, frozen=True):
    """Must be answered: the vendor's tool may wait. `raw`: the whole message."""

    id: str | int
    method: str
    raw: bytes = b""


class ToolsPage(msgspec.Struct, frozen=True):
    tools: list[Any]
    next_cursor: str | None


class RawToolsPage(msgspec.Struct, frozen=True):
    tools: list[Raw]
    next_cursor: str | None


VendorMessage: TypeAlias = VendorResult | RpcError | VendorNotification | VendorRequest


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


class _Declared(msgspec.Struct):
    capabilities: dict[str, Raw] = {}


class _UpdateParams(msgspec.Struct):
    uri: str


class _Update(msgspec.Struct):
    params: _UpdateParams


class _Honoured(msgspec.Struct, rename="camel"):
    resource_subscriptions: list[str] = []


class _AcknowledgementParams(msgspec.Struct):
    notifications: _Honoured


class _Acknowledgement(msgspec.Struct):
    params: _AcknowledgementParams


class _ServerInfo(msgspec.Struct):
    version: str = ""


class _InitializeResult(msgspec.Struct, rename="camel"):
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
_declared = msgspec.json.Decoder(_Declared)
_updates = msgspec.json.Decoder(_Update)
_acknowledgements = msgspec.json.Decoder(_Acknowledgement)
_members = msgspec.json.Decoder(dict[str, Raw])
_TRUE: Final = Raw(b"true")
_initialize_results = msgspec.json.Decoder(_InitializeResult)
_tool_results = msgspec.json.Decoder(_ToolResult)
_odd_tool_results = msgspec.json.Decoder(_OddToolResult)
_blocks = msgspec.json.Decoder(_Block)
_tool_lists = msgspec.json.Decoder(_ToolList)
_raw_tool_lists = msgspec.json.Decoder(_RawToolList)
_anything = msgspec.json.Decoder()


def parse_message(data: bytes) -> VendorMessage:
    """A `result` or `error` of null is absent. Raises: BadVendorReply. Spec: §4.14 (5), protocol.md A.4, A.6, D105"""
    if not data.isascii():
        _refuse_other_encodings(data)  # the decoder does not check raw members, which go on to callers
    message = _decoded(_envelopes, data, "it is no JSON-RPC message")
    if message.jsonrpc != "2.0":
        raise BadVendorReply("it is not JSON-RPC 2.0")
    raw_result, raw_error = _present(message.result), _present(message.error)
    if message.method is not UNSET:
        if raw_result or raw_error:
            raise BadVendorReply("it is a request and a response at once")
        return _parse_request(message.id, message.method, data)
    if raw_result and not raw_error:
        return _parse_result(message.id, raw_result)
    if raw_error and not raw_result:
        return _parse_error(message.id, raw_error)
    raise BadVendorReply("it must have either a result or an error")


def _parse_request(message_id: str | int | UnsetType | None, method: str, data: bytes) -> VendorMessage:
    if message_id is UNSET:
        return VendorNotification(method, data)
    if message_id is None:
        raise BadVendorReply("its request has no id")
    return VendorRequest(message_id, method, data)


def _parse_result(message_id: str | int | UnsetType | None, raw_result: bytes) -> VendorResult:
    if message_id is None or message_id is UNSET:
        raise BadVendorReply("its result has no id")
    head = _decoded(_result_heads, raw_result, "its result is malformed")
    if head.meta or reserved_meta.mentions_meta(raw_result):
        raw_result = reserved_meta.cleaned_result(raw_result)  # all else keeps its bytes
    return VendorResult(message_id, raw_result, bool(head.is_error))


def _parse_error(message_id: str | int | UnsetType | None, raw_error: bytes) -> RpcError:
    error = _decoded(_errors, raw_error, "its error is malformed")
    return RpcError(None if message_id is UNSET else message_id, error.code, error.message, raw_error)


def protocol_version(raw_result: bytes) -> str | None:
    """The version in a result of `initialize`; None without one."""
    try:
        return _handshakes.decode(raw_result).protocol_version
    except msgspec.ValidationError:
        return None


def declared(raw_result: bytes, known: Set[str]) -> frozenset[str]:
    """Those of the `known` capabilities that the server declares in a result of `initialize`.

    `resources.subscribe` is the member `subscribe` of `resources`, which must be true.
    """
    try:
        found = _declared.decode(raw_result).capabilities
    except (msgspec.DecodeError, RecursionError):
        return frozenset()
    return frozenset(name for name in known if _declares(found, name))


def _declares(capabilities: dict[str, Raw], name: str) -> bool:
    capability, _, member = name.partition(".")
    raw = bytes(capabilities.get(capability, Raw()))
    if not member or raw[:1] != b"{":
        return raw[:1] == b"{"
    try:
        return _members.decode(raw).get(member) == _TRUE
    except (msgspec.DecodeError, RecursionError):
        return False


def updated_address(raw_notification: bytes) -> str | None:
    """The address in `notifications/resources/updated`; None without one that a caller could have."""
    if len(raw_notification) > MAX_UPDATE_BYTES:
        return None
    try:
        return _updates.decode(raw_notification).params.uri
    except (msgspec.DecodeError, RecursionError):
        return None


def honoured_addresses(raw_notification: bytes) -> frozenset[str]:
    """The resource subscriptions in `notifications/subscriptions/acknowledged`; none in one that is too long."""
    if len(raw_notification) > MAX_ACKNOWLEDGEMENT_BYTES:
        return frozenset()
    try:
        return frozenset(_acknowledgements.decode(raw_notification).params.notifications.resource_subscriptions)
    except (msgspec.DecodeError, RecursionError):
        return frozenset()


def server_version(raw_result: bytes) -> str:
    """The server's own version in a result of `initialize`: at most 50 characters, or ""."""
    try:
        return _initialize_results.decode(raw_result).server_info.version[:50]
    except msgspec.ValidationError:
        return ""


def tools_page(raw_result: bytes) -> ToolsPage:
    """Raises: BadVendorReply. Spec: protocol.md A.5"""
    page = _decoded(_tool_lists, raw_result, "its list of tools is malformed")
    return ToolsPage(page.tools, page.next_cursor or None)  # an empty cursor ends the list too


def raw_tools_page(raw_result: bytes) -> RawToolsPage:
    """As `tools_page`, to be parsed in slices with `tools_of`. Raises: BadVendorReply."""
    page = _decoded(_raw_tool_lists, raw_result, "its list of tools is malformed")
    return RawToolsPage(page.tools, page.next_cursor or None)


def tools_of(raw_tools: Iterable[Raw]) -> Iterator[object]:
    """Parses lazily. Raises: BadVendorReply."""
    for raw in raw_tools:
        yield _decoded(_anything, raw, "its list of tools is malformed")


def error_text(raw_result: bytes) -> str:
    """The text of a failed tool: at most 4 KiB, never "". Spec: D100"""
    try:
        texts, _ = _inspect(raw_result)
    except BadVendorReply:
        return NO_ERROR_TEXT
    return cut_text("\n".join(filter(None, texts))) or NO_ERROR_TEXT


def cut_text(text: str) -> str:
    return text.encode("utf-8", "replace")[:MAX_ERROR_TEXT_BYTES].decode("utf-8", "ignore")


def cli_content(raw_result: bytes) -> list[dict[str, str]]:
    """Blocks `{type: "text", text}`; other blocks as JSON. Raises: BadVendorReply. Spec: §4.14 · D101"""
    texts, structured = _inspect(raw_result)
    if None in texts:
        blocks = _decoded(_odd_tool_results, raw_result, "its content is not a list").content or ()
        texts = [bytes(raw).decode() if text is None else text for text, raw in zip(texts, blocks, strict=True)]
    if not texts and structured:
        texts = [structured.decode()]  # a result with nothing else
    return [{"type": "text", "text": text or ""} for text in texts]


def refusal(body: bytes, message_id: int) -> RpcError | None:
    """The JSON-RPC error in an HTTP error's body, if it answers request `message_id`. Spec: protocol.md A.4 · D105"""
    if not body or len(body) > MAX_REFUSAL_BYTES:
        return None
    try:
        message = parse_message(body)
    except BadVendorReply:
        return None
    # A server's transport may not have parsed the request: then the id is null or a text.
    if not isinstance(message, RpcError) or (isinstance(message.id, int) and message.id != message_id):
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
    """b"" for null too."""
    value = bytes(raw)
    return b"" if value == b"null" else value


def _inspect(raw_result: bytes) -> tuple[list[str | None], bytes]:
    """The text of each block, None for other forms, and the structured content or b"". Raises: BadVendorReply."""
    # Checked before parsing: a hostile result could take all time and memory.
    if raw_result.count(b"{") > MAX_OBJECTS:
        raise BadVendorReply("it has too many parts")
    try:
        result = _tool_results.decode(raw_result)
    except msgspec.ValidationError:  # a block of unknown form
        return _inspect_odd(raw_result)
    except msgspec.DecodeError:
        raise BadVendorReply("it is not JSON") from None
    except RecursionError:
        raise BadVendorReply("it is nested too deeply") from None
    if len(result.content or ()) > MAX_BLOCKS:
        raise BadVendorReply("it has too many content blocks")
    return [_text_of(block) for block in result.content or ()], _present(result.structured_content)


def _inspect_odd(raw_result: bytes) -> tuple[list[str | None], bytes]:
    if len(raw_result) > MAX_ODD_BYTES and raw_result.count(b",") > MAX_ODD_PARTS:
        raise BadVendorReply("its content is not a list of blocks")
    # Block by block, which takes longer.
    result = _decoded(_odd_tool_results, raw_result, "its content is not a list")
    if len(result.content or ()) > MAX_ODD_PARTS:
        raise BadVendorReply("its content is not a list of blocks")
    return [_odd_text_of(raw) for raw in result.content or ()], _present(result.structured_content)


def _odd_text_of(raw: Raw) -> str | None:
    try:
        return _text_of(_blocks.decode(raw))
    except (msgspec.ValidationError, RecursionError):
        return None


def _text_of(block: _Block) -> str | None:
    return block.text if block.type == "text" else None
