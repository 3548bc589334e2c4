"""Pure: which caller asks which vendor in each part of a run, and the books that the load generator reads."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bench import vendor_answers as vendor_words
from bench.targets import SITES, http_request, marks, sites
from bench.turns import Template, TurnBook, callers_in_turn, turns_of
from bench.wide.results import UNKNOWN_CALLER, UNKNOWN_LIST, UNKNOWN_ORGANIZATION
from bench.wide.sizes import Sizes, exposed_tool, template_of

_BEARER = "<bearer>"
Call = tuple[int, int]  # caller, vendor


def templates(vendors: int) -> list[Template]:
    """A tools/call for each vendor and site, in the order of `template_of`."""
    return [
        _template(vendor, site, mark) for vendor in range(vendors) for site, mark in zip(sites(), marks(), strict=True)
    ]


def _template(vendor: int, site: str, mark: bytes) -> Template:
    params = {"name": exposed_tool(vendor, vendor_words.READ_TOOL), "arguments": {"site": site}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {"MCP-Protocol-Version": vendor_words.PROTOCOL_VERSION, "Authorization": f"Bearer {_BEARER}"}
    head, tail = http_request("/v1/mcp", headers, body).split(_BEARER.encode())
    return Template(head, tail, mark)


def load_book(sizes: Sizes, bearers: Sequence[str]) -> TurnBook:
    """All callers in turn, each pass with another vendor."""
    calls = callers_in_turn(sizes.organizations, sizes.callers, sizes.vendors)
    return book_of(calls, sizes, bearers[: sizes.all_callers])


def book_of(calls: Sequence[Call], sizes: Sizes, bearers: Sequence[str]) -> TurnBook:
    return TurnBook([bearer.encode() for bearer in bearers], templates(sizes.vendors), turns_of(calls, SITES))


def requests_of(calls: Sequence[Call], sizes: Sizes, bearers: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """(request, mark) of each call."""
    found = templates(sizes.vendors)
    chosen = [(caller, found[template_of(vendor, number % SITES)]) for number, (caller, vendor) in enumerate(calls)]
    return [(each.head + bearers[caller].encode() + each.tail, each.mark) for caller, each in chosen]


class Passes:
    """The first calls to a process, in parts: each meets one kind of thing that the process does not know yet.

    The first half of the organizations comes first, so that the memory of the later parts is that of the rows alone and
    not of what a process takes for its first callers.
    """

    def __init__(self, sizes: Sizes) -> None:
        numbers, per = range(sizes.organizations), sizes.callers
        half = sizes.organizations // 2
        self.begin: list[Call] = [(number * per, 0) for number in numbers[:half]]
        self.parts: dict[str, list[Call]] = {
            UNKNOWN_ORGANIZATION: [(number * per, 0) for number in numbers[half:]],
            UNKNOWN_CALLER: [(number * per + caller, 0) for caller in range(1, per) for number in numbers],
            UNKNOWN_LIST: [(number * per, vendor) for vendor in range(1, sizes.vendors) for number in numbers],
        }
