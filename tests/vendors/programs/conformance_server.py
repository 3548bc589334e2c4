"""A vendor with what the protocol's conformance suite asks for: `conformance_server.py everything|tools|changes PORT`.

A tool that does not get what it needs of its client answers an error of its own, as the suite's notes ask.
Runs on the newest Python SDK.
"""

import base64
import json
import re
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.jsonrpc import MISSING_REQUIRED_CLIENT_CAPABILITY

PNG = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
).decode()
WAV = base64.b64encode(
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"
).decode()
MOMENT_S = 0.05
STATIC_TEXT, STATIC_BINARY = "test://static-text", "test://static-binary"
WATCHED = "test://watched-resource"
CHANGES = InMemorySubscriptionBus()
RESOURCE_NOT_FOUND = -32002
PLAIN: dict[str, Any] = {"type": "object", "properties": {}}
PROMPT: dict[str, Any] = {"type": "object", "properties": {"prompt": {"type": "string"}}}
MIRRORED: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}
SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

Context = ServerRequestContext[Any, Any]
Blocks = list[types.ContentBlock]
Tool = Callable[[Context, dict[str, Any]], Awaitable[Blocks]]


def text(words: str) -> types.ContentBlock:
    """One text block."""
    return types.TextContent(type="text", text=words)


def image() -> types.ContentBlock:
    """One red pixel."""
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def resource(uri: str, mime_type: str, words: str) -> types.ContentBlock:
    """A text resource inside a result."""
    inside = types.TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    return types.EmbeddedResource(type="resource", resource=inside)


async def simple_text(ctx: Context, arguments: dict[str, Any]) -> Blocks:
    return [text("This is a simple text response for testing.")]


async def image_content(ctx: Context, arguments: dict[str, Any]) -> Blocks:
    return [image()]


async def audio_content(ctx: Context, arguments: dict[str, Any]) -> Blocks:
    return [types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")]


async def change_resource(ctx: Context, arguments: dict[str, Any]) -> Blocks:
    await CHANGES.publish(ResourceUpdated(WATCHED))
    return [text("Changed.")]


async def embedded_resource(ctx: Context, arguments: dict[str, Any]) -> Blocks:
    return [resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


async def multiple_content_types(ctx: Context, arguments: dict[str, Any]) -> Blocks:
    data = resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return [text("Multiple content types test:"), image(), data]


async def tool_with_logging(ctx: Context, arguments: dict[str, Any]) -> Blocks:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        params = types.LoggingMessageNotificationParams(level="info", data=words)
        await ctx.session.send_notification(types.LoggingMessageNotification(params=params), ctx.request_id)
        await anyio.sleep(MOMENT_S)
    return [text("Three messages were logged.")]


async def tool_with_progress(ctx: Context, arguments: dict[str, Any]) -> Blocks:
    for progress in (0, 50, 100):
        await ctx.session.report_progress(progress, 100)
        await anyio.sleep(MOMENT_S)
    return [text("Three reports were sent.")]


async def error_handling(ctx: Context, arguments: dict[str, Any]) -> Blocks:
    raise RuntimeError("This tool intentionally returns an error for testing")


async def missing_capability(ctx: Context, arguments: dict[str, Any]) -> Blocks:
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs a client that can sample.", needed)
    return [text("The client can sample.")]


async def reconnection(ctx: Context, arguments: dict[str, Any]) -> Blocks:
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await anyio.sleep(MOMENT_S)
    return [text("The stream was closed and taken up again.")]


DEFAULTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
TITLED = [{"const": f"value{number}", "title": f"{word} Option"} for number, word in enumerate(("First", "Second"), 1)]
OPTIONS = ["option1", "option2", "option3"]
ENUMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
    "required": [],
}


async def asks_in_the_middle(
    ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """By a request to the client, or by a result where the revision has no such requests."""
    question = ASKING[params.name](params.arguments or {})
    if ctx.session.can_send_request:
        kind = types.CreateMessageResult if isinstance(question, types.CreateMessageRequest) else types.ElicitResult
        related = ServerMessageMetadata(related_request_id=ctx.request_id)
        answer: Any = await ctx.session.send_request(question, kind, metadata=related)
    else:
        answer = (params.input_responses or {}).get("question")
        if answer is None:
            return types.InputRequiredResult(input_requests={"question": question})
    return types.CallToolResult(content=[text(f"LLM response or elicitation completed: {answer}")])


def form(message: str, name: str, kind: str = "string") -> types.ElicitRequest:
    return asks(message, {"type": "object", "properties": {name: {"type": kind}}, "required": [name]})


def asks(message: str, schema: dict[str, Any]) -> types.ElicitRequest:
    """A form for the person behind the client."""
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(words: str) -> types.CreateMessageRequest:
    content = types.TextContent(type="text", text=words)
    message = types.SamplingMessage(role="user", content=content)
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=100))


NAME = {"user_name": form("What is your name?", "name")}
EVERYTHING = {**NAME, "greeting": sample("Generate a greeting"), "client_roots": types.ListRootsRequest()}
# The questions of each tool, round by round; and whether it gives a state of its own.
ROUNDS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "elicitation": ([NAME], False),
    "sampling": ([{"capital_question": sample("What is the capital of France?")}], False),
    "list_roots": ([{"client_roots": types.ListRootsRequest()}], False),
    "request_state": ([{"confirm": form("Please confirm", "ok", "boolean")}], True),
    "multiple_inputs": ([EVERYTHING], True),
    "multi_round": (
        [{"step1": form("Step 1: your name?", "name")}, {"step2": form("Step 2: your color?", "color")}],
        True,
    ),
    "tampered_state": ([{"confirm": form("Please confirm", "ok", "boolean")}], True),
    "capabilities": ([EVERYTHING], False),
}
PREFIX = "test_input_required_result_"
CAPABILITY_OF = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def in_rounds(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    """The next question, or the result once the last one is answered."""
    name = params.name.removeprefix(PREFIX)
    rounds, has_state = ROUNDS[name]
    given = params.input_responses or {}
    done = next((number for number, each in enumerate(rounds, 1) if each.keys() <= given.keys()), 0)
    if done == len(rounds):
        return types.CallToolResult(content=[text(f"state-ok Hello, {sorted(given)}!")])
    asked = rounds[done]
    if name == "capabilities":
        can = ctx.session.client_capabilities
        asked = {key: each for key, each in asked.items() if getattr(can, CAPABILITY_OF[each.method], None) is not None}
    return types.InputRequiredResult(input_requests=asked, request_state=f"round-{done + 1}" if has_state else None)


TOOLS: dict[str, tuple[Tool, str, dict[str, Any]]] = {
    "test_simple_text": (simple_text, "Answers with text.", PLAIN),
    "test_image_content": (image_content, "Answers with an image.", PLAIN),
    "test_audio_content": (audio_content, "Answers with a sound.", PLAIN),
    "test_change_resource": (change_resource, "Changes the watched resource.", PLAIN),
    "test_embedded_resource": (embedded_resource, "Answers with a resource.", PLAIN),
    "test_multiple_content_types": (multiple_content_types, "Answers with text, an image and a resource.", PLAIN),
    "test_tool_with_logging": (tool_with_logging, "Logs while it runs.", PLAIN),
    "test_tool_with_progress": (tool_with_progress, "Reports progress while it runs.", PLAIN),
    "test_error_handling": (error_handling, "Fails.", PLAIN),
    "test_missing_capability": (missing_capability, "Needs a client that can sample.", PLAIN),
    "test_logging_tool": (tool_with_logging, "Logs while it runs.", PLAIN),
    "test_x_mcp_header": (simple_text, "Takes an argument that a header repeats.", MIRRORED),
    "test_reconnection": (reconnection, "Closes its stream before it answers.", PLAIN),
    "json_schema_2020_12_tool": (simple_text, "Takes arguments of every kind of schema.", SCHEMA_2020_12),
}


Question = types.CreateMessageRequest | types.ElicitRequest
ASKING: dict[str, Callable[[dict[str, Any]], Question]] = {
    "test_sampling": lambda arguments: sample(str(arguments.get("prompt", ""))),
    "test_elicitation": lambda arguments: form(str(arguments.get("message", "")), "username"),
    "test_streaming_elicitation": lambda arguments: form("Please answer.", "name"),
    "test_elicitation_sep1034_defaults": lambda arguments: asks("Please check.", DEFAULTS),
    "test_elicitation_sep1330_enums": lambda arguments: asks("Please choose.", ENUMS),
}


async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """All of them, on one page."""
    return types.ListToolsResult(
        tools=[
            types.Tool(name=name, description=words, input_schema=schema) for name, (_, words, schema) in TOOLS.items()
        ]
        + [types.Tool(name=name, description="Asks the client.", input_schema=PROMPT) for name in ASKING]
        + [types.Tool(name=PREFIX + name, description="Asks first.", input_schema=PLAIN) for name in ROUNDS]
    )


async def call_tool(
    ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """The tool's blocks, or its own fault as text."""
    if params.name.startswith(PREFIX):
        return in_rounds(ctx, params)
    try:
        if params.name in ASKING:
            return await asks_in_the_middle(ctx, params)
        return types.CallToolResult(content=await TOOLS[params.name][0](ctx, params.arguments or {}))
    except (RuntimeError, KeyError, MCPError) as fault:
        if isinstance(fault, MCPError) and fault.code == MISSING_REQUIRED_CLIENT_CAPABILITY:
            raise  # no fault of the tool's own: the request itself is refused
        return types.CallToolResult(content=[text(str(fault))], is_error=True)


async def list_resources(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    """All of them, on one page."""
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=STATIC_TEXT, name="Static text", description="A text.", mime_type="text/plain"),
            types.Resource(uri=STATIC_BINARY, name="Static picture", description="A picture.", mime_type="image/png"),
            types.Resource(uri=WATCHED, name="Watched", description="Changes with a tool.", mime_type="text/plain"),
        ]
    )


async def list_templates(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    """One, of data by number."""
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="Data", description="Data.", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """The one that has the address."""
    uri = str(params.uri)
    contents: types.TextResourceContents | types.BlobResourceContents
    if uri == STATIC_BINARY:
        contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri == STATIC_TEXT:
        words = "This is the content of the static text resource."
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=words)
    elif uri == WATCHED:
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text="It may change.")
    elif found := re.fullmatch(r"test://template/([^/]+)/data", uri):
        data = json.dumps({"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"})
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=data)
    else:
        raise MCPError(RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})
    return types.ReadResourceResult(contents=[contents])


ASKING_PROMPT = f"{PREFIX}prompt"
PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    ASKING_PROMPT: (),
}


async def list_prompts(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    """All of them, on one page."""
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description=f"The prompt {name}.",
                arguments=[
                    types.PromptArgument(name=each, description=f"The argument {each}.", required=True)
                    for each in arguments
                ],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def get_prompt(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    """The prompt with this name, filled in."""
    if params.name == ASKING_PROMPT and "user_context" not in (params.input_responses or {}):
        return types.InputRequiredResult(
            input_requests={"user_context": form("What context should the prompt use?", "context")}
        )
    said = params.arguments or {}
    blocks = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            text(f"Prompt with arguments: arg1='{said.get('arg1', '')}', arg2='{said.get('arg2', '')}'")
        ],
        "test_prompt_with_embedded_resource": [
            resource(said.get("resourceUri", STATIC_TEXT), "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [image(), text("Please analyze the image above.")],
        ASKING_PROMPT: [text("Please use the context.")],
    }.get(params.name)
    if blocks is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=each) for each in blocks])


async def complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Cities that begin with the value."""
    found = [city for city in ("paris", "park", "party") if city.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=found, total=len(found), has_more=False))


BESIDE_TOOLS: dict[str, Any] = {
    "on_list_resources": list_resources,
    "on_list_resource_templates": list_templates,
    "on_read_resource": read_resource,
    "on_list_prompts": list_prompts,
    "on_get_prompt": get_prompt,
    "on_completion": complete,
    "on_subscriptions_listen": ListenHandler(CHANGES),
}


class Changing:
    """Lists that grow by one entry with each call of a tool, which announces it on the stream of the call."""

    def __init__(self) -> None:
        self.tools, self.prompts = ["tool_change", "prompt_change"], ["prompt"]

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name=name, description="Changes a list.", input_schema=PLAIN) for name in self.tools]
        )

    async def list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name=name, description="One.") for name in self.prompts])

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        note: types.ServerNotification
        if params.name == "prompt_change":
            self.prompts.append(f"prompt{len(self.prompts)}")
            note = types.PromptListChangedNotification()
        else:
            self.tools.append(f"tool{len(self.tools)}")
            note = types.ToolListChangedNotification()
        await ctx.session.send_notification(note, ctx.request_id)
        return types.CallToolResult(content=[text("Changed.")])


if __name__ == "__main__":
    offers, port = sys.argv[1:]
    beside = BESIDE_TOOLS if offers == "everything" else {}
    tools: dict[str, Any] = {"on_list_tools": list_tools, "on_call_tool": call_tool}
    if offers == "changes":
        changing = Changing()
        tools = {"on_list_tools": changing.list_tools, "on_call_tool": changing.call_tool}
        beside = {"on_list_prompts": changing.list_prompts}
    server: Server[Any] = Server("conformance", version="1.0.0", **tools, **beside)
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(port), log_level="warning")
