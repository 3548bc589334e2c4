"""Samples by layer."""

from __future__ import annotations

import pytest

from bench.profiling import WAITING, group, layer_of

ROOT = "/app"
SITE = "/app/.venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("frames", "layer"),
    [
        (
            [f"run ({SITE}/uvicorn/server.py:1)", f"call_tool ({ROOT}/proxy/calls/call_tool.py:9)"],
            "decision, finding the tool",
        ),
        (
            [f"request ({ROOT}/proxy/vendors/transport.py:1)", f"_request ({SITE}/aiohttp/client.py:7)"],
            "vendor client: aiohttp",
        ),
        ([f"_request ({SITE}/aiohttp/client.py:7)", "call_soon (uvloop/loop.pyx:1)"], "event loop, tasks"),
        ([f"_run ({ROOT}/audit/writer.py:1)", f"commit ({ROOT}/audit/postgresql_connection.py:9)"], "audit"),
        ([f"_run ({ROOT}/audit/writer.py:1)", f"_next_batch ({ROOT}/audit/writer.py:9)"], WAITING),
        ([f"__call__ ({ROOT}/gateway/hot_path_app.py:1)", f"__init__ ({SITE}/django/http/request.py:9)"], "Django"),
        (["main (main.py:1)"], "other"),
    ],
)
def test_a_sample_belongs_to_its_innermost_layer(frames: list[str], layer: str) -> None:
    assert layer_of(frames) == layer


def test_waiting_and_broken_lines_do_not_count() -> None:
    profile = group(
        [
            f"a ({SITE}/uvicorn/server.py:1);b ({SITE}/aiohttp/client.py:7) 30\n",
            f"a ({SITE}/uvicorn/server.py:1) 10\n",
            f"_next_batch ({ROOT}/audit/writer.py:9) 500\n",
            "\n",
            "no count here\n",
        ]
    )
    assert profile.samples == 40
    assert profile.layers == {"vendor client: aiohttp": 30, "ASGI server": 10}
    assert profile.lines()[:2] == [" 75.0 %  vendor client: aiohttp", " 25.0 %  ASGI server"]


def test_an_empty_profile_has_no_lines_of_layers() -> None:
    assert group([]).lines() == ["innermost functions:"]
