"""The style sheet and the icons that pages load: nothing that a page uses is missing, and little else is there."""

from __future__ import annotations

import re

from scripts import used_assets

REGENERATE = "run: .venv/bin/python scripts/used_assets.py"
SHEET = (
    ":root{--bs-read:1px;--bs-unread:2px}"
    ".kept,.dropped{margin:var(--bs-read)}"
    ".kept:not(.dropped){color:red}"
    ".kept .dropped{color:blue}"
    "@media print{.dropped{margin:0}}"
    "@media (min-width:1px){.kept{margin:0}.dropped{margin:1px}}"
    "h1{margin:0}"
)


def test_rules_of_unused_classes_are_dropped() -> None:
    kept = used_assets.kept_rules(SHEET, frozenset({"kept"}))
    assert used_assets.without_unread(kept, "") == (
        ":root{--bs-read:1px;}"
        ".kept{margin:var(--bs-read)}"
        ".kept:not(.dropped){color:red}"
        "@media (min-width:1px){.kept{margin:0}}"
        "h1{margin:0}"
    )


def test_the_style_sheet_has_every_class_that_a_page_uses() -> None:
    source = used_assets.ALL_STYLES.read_text(encoding="utf-8")
    served = used_assets.STYLES.read_text(encoding="utf-8")
    needed = set(used_assets.CLASS.findall(used_assets.styles()))
    assert needed - set(used_assets.CLASS.findall(served)) == set(), REGENERATE
    assert len(served) < len(source) / 5
    assert "Licensed under MIT" in served


def test_the_sprite_has_every_icon_that_a_page_uses() -> None:
    served = set(re.findall(r'<symbol id="([^"]+)"', used_assets.ICONS.read_text(encoding="utf-8")))
    assert set(re.findall(r'<symbol id="([^"]+)"', used_assets.icons())) <= served, REGENERATE
