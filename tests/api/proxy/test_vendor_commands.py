"""manage.py vendor_doctor and probe_vendors, against vendors on real sockets."""

from __future__ import annotations

import asyncio
import io
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from gateway.coordination.sqlite_store import SQLiteStore
from proxy.control_plane.doctor import PROBLEMS_SHOWN
from proxy.control_plane.health import state_cache as states
from proxy.control_plane.health.leader import claim_round
from proxy.management.commands import probe_vendors
from tests.factories.cast import Cast
from tests.factories.health import connected_vendor
from tests.factories.tenant import connect, load_vendor
from tests.fakes.vendor import FakeVendor, running_vendor


@pytest.fixture
def vendor() -> Iterator[FakeVendor]:
    """A vendor in a thread of its own, because commands run loops of their own."""
    ready, over = threading.Event(), asyncio.Event()
    found: list[FakeVendor] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with running_vendor() as running:
            found.append(running)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(10)
    yield found[0]
    loop.call_soon_threadsafe(over.set)
    thread.join(10)
    loop.close()


@pytest.fixture
def connected(cast: Cast, vendor: FakeVendor) -> Cast:
    """The first organization uses the vendor."""
    load_vendor(vendor.url)
    connect(cast.org, cast.user("owner"))
    return cast


def doctor(*arguments: str) -> tuple[list[str], str]:
    """The table's lines, runs of blanks as one, and what the command complains about."""
    out = io.StringIO()
    complaint = ""
    try:
        call_command("vendor_doctor", *arguments, stdout=out)
    except CommandError as fault:
        complaint = str(fault)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()], complaint


def the_line(lines: list[str], start: str) -> str:
    """The one line that begins so."""
    (line,) = [line for line in lines if line.startswith(start)]
    return line


def test_a_vendor_in_order(connected: Cast, vendor: FakeVendor) -> None:
    vendor.page_size = 2
    lines, complaint = doctor("fake", "--org", str(connected.org.id))
    assert complaint == ""
    assert the_line(lines, "without credentials").startswith("without credentials HTTP 401, WWW-Authenticate: Bearer, ")
    assert the_line(lines, "initialize ").startswith("initialize HTTP 200, ")
    assert "protocol version 2025-11-25" in lines
    assert "server version 1" in lines
    assert "reply kind JSON" in lines
    assert "session id yes, it keeps state" in lines
    assert "initialized HTTP 202" in lines
    assert the_line(lines, "tools/list").startswith("tools/list 3 tools, ")
    assert "pagination 2 pages" in lines
    assert "tools offered 3, 2 of them read-only" in lines
    assert "tool name no problem" in lines
    assert "definition no problem" in lines
    assert "reference no problem" in lines
    assert "header no problem" in lines
    assert "mended no problem" in lines
    assert "end of session HTTP 204" in lines
    assert "right-key" not in "".join(lines)
    assert vendor.deleted == ["session-1"]


def test_trouble_is_marked_and_the_exit_code_says_so(connected: Cast, vendor: FakeVendor) -> None:
    vendor.tools = [
        {"name": "list devices!"},
        {"name": "twice"},
        {"name": "twice"},
        {"name": "odd\x1b[2Jname", "inputSchema": []},
        "nothing",  # type: ignore[list-item]
    ]
    lines, complaint = doctor("fake", "--org", str(connected.org.id))
    assert complaint.startswith("3 of ")
    assert "tool name list devices! is called fake_list_devices_" in lines
    assert "! definition Tool 3 'twice' is left out: an earlier one has the same name." in lines
    assert (
        r"! definition Tool 4 'odd\x1b[2Jname' is left out: its name does not have 1 to 128 printable characters."
        in lines
    )
    assert "! definition Tool 5 is left out: it is not an object." in lines
    assert "\x1b" not in "".join(lines)


def test_a_tool_that_clients_leave_out_for_its_headers_is_named(connected: Cast, vendor: FakeVendor) -> None:
    marked = {"type": "string", "x-mcp-header": "Region"}
    vendor.tools = [
        {"name": "right", "description": "d", "inputSchema": {"type": "object", "properties": {"a": marked}}},
        {"name": "wrong", "description": "d", "inputSchema": {"type": "object", "additionalProperties": marked}},
    ]
    lines, complaint = doctor("fake", "--org", str(connected.org.id))
    assert complaint.startswith("1 of ")
    assert "! header 'wrong' has a wrong x-mcp-header in its inputSchema" in lines


def test_what_is_odd_about_schemas_is_reported_with_the_tools_name(connected: Cast, vendor: FakeVendor) -> None:
    remote = {"type": "object", "properties": {"a": {"items": [{"$ref": "https://vendor.example/a\x1b.json"}]}}}
    local = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"enum": [{"$ref": "https://no"}]}}}
    vendor.tools = [
        {"name": "bare"},
        {"name": "blank", "description": " ", "inputSchema": {"type": "object"}},
        {"name": "choice", "description": "d", "inputSchema": {"type": "object", "anyOf": [], "allOf": []}},
        {"name": "either", "description": "d", "inputSchema": {"oneOf": []}},
        {"name": "list", "description": "d", "inputSchema": {"type": ["array", "\x1b" * 500]}},
        {"name": "remote", "description": "d", "inputSchema": remote, "outputSchema": {"type": "object", "$ref": "x"}},
        {"name": "local", "description": "d", "inputSchema": local},
        {"name": "right", "description": "d", "inputSchema": {"type": "object", "properties": {"x": {"anyOf": []}}}},
    ]
    lines, complaint = doctor("fake", "--org", str(connected.org.id))
    assert complaint.startswith("4 of "), "two hide characters besides"
    assert [line for line in lines if line.startswith(("mended", "! reference", "reference"))] == [
        r"! reference 'remote' has a $ref out of its inputSchema, to 'https://vendor.example/a\x1b.json'",
        "! reference 'remote' has a $ref out of its outputSchema, to 'x'",
        "mended 'bare': no description, no inputSchema",
        "mended 'blank': no description",
        "mended 'choice': anyOf at the root of its inputSchema, allOf at the root of its inputSchema",
        "mended 'either': the type of its inputSchema is missing, not 'object', oneOf at the root of its inputSchema",
        *[line for line in lines if line.startswith("mended 'list': the type of its inputSchema is \"['array', ")],
    ]
    assert "\x1b" not in "".join(lines)
    assert max(map(len, lines)) < 320


def test_oddities_are_bounded(connected: Cast, vendor: FakeVendor) -> None:
    vendor.tools = [{"name": f"t{number:02}"} for number in range(PROBLEMS_SHOWN + 5)]
    lines, complaint = doctor("fake", "--org", str(connected.org.id))
    assert complaint == ""
    assert sum(line.startswith("mended 't") for line in lines) == PROBLEMS_SHOWN
    assert "mended and 5 more" in lines


def test_a_tool_that_runs_only_as_a_task_is_named(connected: Cast, vendor: FakeVendor) -> None:
    vendor.tools = [{"name": "fake_report", "inputSchema": {}, "execution": {"taskSupport": "required"}}]
    lines, complaint = doctor("fake", "--org", str(connected.org.id))
    assert complaint == ""
    assert the_line(lines, "tools/list").startswith("tools/list 1 tool, ")
    assert "tools offered 0, 0 of them read-only" in lines
    assert "left out fake_report runs only as a task" in lines


def test_a_list_that_never_ends(connected: Cast, vendor: FakeVendor, settings: Any) -> None:
    settings.TOOL_LIST_MAX_PAGES = 2
    vendor.page_size = 1
    lines, complaint = doctor("fake", "--org", str(connected.org.id))
    assert "! pagination it never ends" in lines
    assert complaint


def test_rejected_credentials(connected: Cast, vendor: FakeVendor) -> None:
    vendor.api_key = "another-key"
    lines, complaint = doctor("fake", "--org", str(connected.org.id))
    assert the_line(lines, "! initialize").startswith("! initialize HTTP 401, ")
    assert complaint == "1 of 3 findings are problems."


def test_without_an_organization_only_the_bare_probe(connected: Cast, vendor: FakeVendor) -> None:
    lines, complaint = doctor("fake")
    assert lines[-1] == "with credentials not tried: name an organization with --org"
    assert (len(lines), complaint) == (2, "")
    assert vendor.seen == {"initialize": 1}


def test_a_vendor_that_needs_no_credentials_is_tried_as_it_is(connected: Cast, vendor: FakeVendor) -> None:
    vendor.api_key = None
    lines, complaint = doctor("fake")
    assert "it answers anyone" in lines[0]
    assert "tools offered 3, 2 of them read-only" in lines
    assert complaint == ""
    assert vendor.deleted == ["session-1", "session-2"]


def test_a_vendor_that_is_gone(cast: Cast) -> None:
    load_vendor("http://127.0.0.1:9/mcp")
    lines, complaint = doctor("fake")
    assert lines[0].startswith("! without credentials The vendor couldn’t be reached., ")
    assert complaint
    assert "127.0.0.1" not in "".join(lines)


def test_customer_supplied_addresses_are_not_probed(cast: Cast) -> None:
    connected_vendor(cast.org, "hosted", hosted=True)
    lines, _ = doctor("hosted")
    assert lines[0] == "without credentials not tried: the address is the customer's"


@pytest.mark.parametrize(
    ("slug", "org", "complaint"),
    [
        ("nothing", "", "There is no vendor nothing"),
        ("fake", "nonsense", "There is no organization"),
        ("fake", str(uuid.uuid4()), "There is no organization"),
        ("fake", "other", "Globex has no default credentials for Fake."),
        ("fake", "broken", "cannot be used"),
    ],
)
def test_refusals(cast: Cast, slug: str, org: str, complaint: str) -> None:
    connected_vendor(cast.org, "fake")  # its credential opens nothing
    named = {"other": str(cast.other_org.id), "broken": str(cast.org.id)}.get(org, org)
    _, found = doctor(slug, *(["--org", named] if named else []))
    assert complaint in found


def probe(*arguments: str) -> str:
    out = io.StringIO()
    call_command("probe_vendors", *arguments, stdout=out)
    return out.getvalue()


def test_one_round_at_once_whoever_leads(connected: Cast, vendor: FakeVendor, shared: SQLiteStore) -> None:
    assert claim_round(shared)
    assert probe("--once").startswith("fake: Responding, ")
    assert states.read(shared, ["fake"])["fake"].status == "reachable"
    assert vendor.seen == {"initialize": 1}


def test_nothing_to_probe(cast: Cast, shared: SQLiteStore) -> None:
    load_vendor("http://127.0.0.1:9/mcp")
    assert probe("--once") == "No vendor in use can be probed.\n"


def test_a_round_at_each_interval_unless_somebody_else_leads(
    connected: Cast, vendor: FakeVendor, shared: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    class Over(Exception):
        """Ends the loop."""

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            raise Over

    monkeypatch.setattr(probe_vendors.time, "sleep", sleep)
    monkeypatch.setattr(probe_vendors, "close_old_connections", list)  # the test's own transaction is on it
    with pytest.raises(Over):
        probe()
    assert slept == [60, 60]
    assert vendor.seen == {"initialize": 1}, "the second round came too early to lead"
