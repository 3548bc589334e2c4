"""Operators' settings for single vendor tools. Spec: §4.14 · D103"""

from __future__ import annotations

from gateway.catalog.tool_config import ToolConfig, ToolConfigError, parse_tool_config
from gateway.settings import env


def _tool_config() -> ToolConfig:
    try:
        return parse_tool_config(env.text("VENDOR_TOOL_CONFIG"))
    except ToolConfigError as fault:
        return env.refuse("VENDOR_TOOL_CONFIG", f"cannot be used: {fault}.")


VENDOR_TOOL_CONFIG = _tool_config()
