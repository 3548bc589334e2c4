"""ready.json and the lines to paste. Contract: 2"""

from __future__ import annotations

import json
import shlex

import pytest

from gateway.supervisor.ready_block import Ready, call_tool_line, list_tools_line, ready_facts, terminal_block

BASE_URL = "http://127.0.0.1:8765"
SEED = {
    "org_id": "5b0c",
    "owner_email": "owner@demo.example",
    "agent_key": "cak_abc_def",
    "client_id": "svc_abc",
    "client_secret": "s3cret",
}
KEYS = ["base_url", "mcp_url", "idp_url", "vendor_url", *SEED]


@pytest.fixture
def ready() -> Ready:
    urls = {"idp_url": "http://127.0.0.1:9400", "vendor_url": "http://127.0.0.1:9100"}
    return ready_facts(base_url=BASE_URL, seed=SEED, **urls)


def test_the_file_holds_exactly_the_contracts_keys(ready: Ready) -> None:
    content = json.loads(ready.as_json())
    assert list(content) == KEYS
    assert content["mcp_url"] == f"{BASE_URL}/v1/mcp"
    assert {key: content[key] for key in SEED} == SEED


def test_without_the_demo_the_last_seven_are_null() -> None:
    content = json.loads(ready_facts(base_url=BASE_URL, idp_url=None, vendor_url=None, seed={}).as_json())
    assert list(content) == KEYS
    assert [content[key] for key in KEYS[2:]] == [None] * 7


def test_what_the_seed_adds_stays_out(ready: Ready) -> None:
    more = ready_facts(base_url=BASE_URL, idp_url=None, vendor_url=None, seed={**SEED, "note": "x"})
    assert list(json.loads(more.as_json())) == KEYS


def test_a_seed_that_lacks_a_key_is_named() -> None:
    seed = {"org_id": "5b0c", "owner_email": "owner@demo.example"}
    with pytest.raises(KeyError, match="agent_key"):
        ready_facts(base_url=BASE_URL, idp_url=None, vendor_url=None, seed=seed)


def test_the_list_line_is_one_request_with_the_agent_key(ready: Ready) -> None:
    words = shlex.split(list_tools_line(ready))
    assert words[:3] == ["curl", "-sS", f"{BASE_URL}/v1/mcp"]
    assert "Authorization: Bearer cak_abc_def" in words
    assert json.loads(words[words.index("-d") + 1])["method"] == "tools/list"


def test_the_call_line_gets_a_token_instead_of_the_agent_key(ready: Ready) -> None:
    line = call_tool_line(ready)
    assert "cak_" not in line
    assert line.startswith(f"curl -sS {BASE_URL}/v1/acme/cli ")
    for part in ("$(curl -sS", f"{BASE_URL}/oauth/token", "client_id=svc_abc", "client_secret=s3cret", "| python3 -c"):
        assert part in line


def test_lines_to_paste_stand_alone_at_the_left_edge(ready: Ready) -> None:
    lines = terminal_block(ready, folder="./var", elapsed_s=6.2, has_sign_in=True)
    assert [line for line in lines if "curl" in line] == [list_tools_line(ready), call_tool_line(ready)]
    shown = "\n".join(lines)
    for part in (f"{BASE_URL}/signin", "owner@demo.example", "cak_abc_def", "6.2 s", "./var"):
        assert part in shown


@pytest.mark.parametrize(("has_sign_in", "expected"), [(True, f"{BASE_URL}/signin"), (False, "OIDC_OP_DISCOVERY_URL")])
def test_without_the_demo_there_is_nothing_to_paste(has_sign_in: bool, expected: str) -> None:
    ready = ready_facts(base_url=BASE_URL, idp_url=None, vendor_url=None, seed={})
    shown = "\n".join(terminal_block(ready, folder="./var", elapsed_s=1, has_sign_in=has_sign_in))
    assert expected in shown
    assert "curl" not in shown
    assert "None" not in shown
