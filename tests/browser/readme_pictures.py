"""The pictures of the README, of an organization with a month of calls.

`.venv/bin/python -m tests.browser.readme_pictures [FOLDER]` writes them to docs/images, or to the folder. With `--wide`
they have the width of a large screen.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from playwright.sync_api import Page, sync_playwright  # noqa: E402

from scripts.test import find_chromium  # noqa: E402
from tests.browser.conftest import Visitor, visitors  # noqa: E402
from tests.browser.looking import DARK_WIDE, LIGHT_WIDE, View, excess_width, show  # noqa: E402
from tests.e2e.started import ROOT, Started, started  # noqa: E402

EMAIL, NAME = "mara@northwind.example", "Mara Lind"
# Name of the file, page below the organization, view, height.
PICTURES = (
    ("overview", "", LIGHT_WIDE, 900),
    ("vendor", "/vendors/acme", LIGHT_WIDE, 960),
    ("calls", "/activity", LIGHT_WIDE, 860),
    ("usage", "/activity/usage", DARK_WIDE, 940),
)
LARGE_SCREEN = 1920
FREQUENT = {"HEALTH_PROBE_INTERVAL": "5"}
PROBED_S = 30  # a vendor is probed within this time: HEALTH_PROBE_INTERVAL below


def seeded(service: Started) -> dict[str, str]:
    """The organization's id and an agent's key, made inside the installation."""
    code = f"from tests.browser.readme_data import make; print(make({EMAIL!r}))"
    command = [sys.executable, "-m", "gateway.supervisor.manage", "shell", "-c", code]
    environment = {**os.environ, **service.variables}
    environment.pop("DJANGO_SETTINGS_MODULE")
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def prepare(owner: Visitor, service: Started) -> str:
    """The path of the organization. Its newest call and its credentials are real, and the vendor was probed."""
    owner.sign_in(EMAIL, NAME)
    made = seeded(service)
    org = f"/orgs/{made['org_id']}"
    owner.has_acme(org)
    owner.call_tool(made["agent_key"], "acme_list_devices")
    page = owner.open(f"{org}/vendors/acme")
    for _ in range(PROBED_S):
        if page.get_by_text("Checking…").count() == 0:
            break
        page.wait_for_timeout(1_000)
        page.reload()
    return org


def take(page: Page, view: View, height: int, path: Path) -> None:
    page.set_viewport_size({"width": view.width, "height": height})
    show(page, view)
    excess_width(page, view.width)  # charts follow a new width a few frames later
    page.screenshot(path=path)


def main() -> int:
    parser = argparse.ArgumentParser(description="The pictures of the README.")
    parser.add_argument("folder", nargs="?", default=ROOT / "docs/images", type=Path)
    parser.add_argument("--wide", action="store_true", help=f"{LARGE_SCREEN} pixels wide")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as var,
        started(Path(var), FREQUENT) as service,
        sync_playwright() as playwright,
    ):
        service.wait_ready()
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        with visitors(service, browser) as make:
            owner = make()
            org = prepare(owner, service)
            for name, page, view, height in PICTURES:
                owner.open(f"{org}{page}")
                seen = replace(view, width=LARGE_SCREEN) if given.wide else view
                take(owner.page, seen, height, given.folder / f"{name}.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
