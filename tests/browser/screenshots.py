"""Pictures of every page of the demo organization: as owner or signed out, wide and small, light and dark.

`.venv/bin/python -m tests.browser.screenshots [--language de] [--theme light] [./screenshots]`; the pages are those of
the URL configuration. Chromium is the system's, or the one that CHROMIUM names.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from django.conf import settings  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from scripts.test import find_chromium  # noqa: E402
from tests.browser.conftest import Visitor, visitors  # noqa: E402
from tests.browser.every_page import get, role_visitors  # noqa: E402
from tests.browser.looking import DARK_PHONE, DARK_WIDE, LIGHT_PHONE, LIGHT_WIDE, View, excess_width, show  # noqa: E402
from tests.e2e.started import started  # noqa: E402

VIEWS = (LIGHT_WIDE, DARK_WIDE, LIGHT_PHONE, DARK_PHONE)
HEIGHT, PAGE_HEIGHT = 800, "document.documentElement.scrollHeight"
CALLS = {
    "Demo agent": (*["acme_list_devices"] * 12, *["acme_whoami"] * 4, "acme_fail"),
    "Triage bot": (*["acme_list_devices"] * 5, *["acme_whoami"] * 2, "acme_unknown", "acme_list_devices"),
}


def file_name(route: str) -> str:
    """A route as the name of a file."""
    return re.sub(r"[^a-z-]+", "-", re.sub(r"<(?:\w+:)?(\w+)>", r"\1", route)).strip("-") or "landing"


def take(people: Sequence[Visitor], paths: dict[str, str], folder: Path, views: Sequence[View] = VIEWS) -> int:
    """A picture of each page in each view, as the first of the people whom it leads nowhere else; their number."""
    taken = 0
    for route, path in paths.items():
        someone = next((each for each in people if shows(each, path)), None)
        if someone is None:
            continue
        for view in views:
            show(someone.page, view)
            excess_width(someone.page, view.width)  # charts follow a new width a few frames later
            # A window as high as the page: what sticks to its lower edge covers nothing.
            someone.page.set_viewport_size({"width": view.width, "height": someone.page.evaluate(PAGE_HEIGHT)})
            someone.page.screenshot(path=folder / f"{file_name(route)}.{view.width}.{view.theme}.png", full_page=True)
            someone.page.set_viewport_size({"width": view.width, "height": HEIGHT})
            taken += 1
    return taken


def shows(someone: Visitor, path: str) -> bool:
    """Whether there is a page at this very address. Some take a form alone, and some are steps of a form."""
    answer = someone.page.goto(f"{someone.base}{path}")
    if answer is None or answer.status >= 500:
        raise SystemExit(f"{path} answers {answer and answer.status}")
    return answer.status != 405 and urlsplit(someone.page.url).path == path


def prepare(owner: Visitor, org: str) -> None:
    """The demo's agents have called tools."""
    clients = get(owner, f"{org}/service-clients")
    [bot] = [each["id"] for each in clients if each["name"] == "Triage bot"]
    keys = {
        "Demo agent": owner.ready["agent_key"],
        "Triage bot": owner.post(f"/api{org}/service-clients/{bot}/agent-key")["agent_key"],
    }
    for name, tools in CALLS.items():
        for tool in tools:
            owner.call_tool(keys[name], tool)


def arguments() -> argparse.Namespace:
    """The folder of the pictures, the language of the pages and the themes."""
    parser = argparse.ArgumentParser(description="Pictures of every page of the demo organization.")
    parser.add_argument("folder", nargs="?", default="screenshots", type=lambda name: Path(name).resolve())
    parser.add_argument("--language", default="en", choices=[code for code, _ in settings.LANGUAGES])
    parser.add_argument("--theme", action="append", choices=["light", "dark"], help="both by default")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    given.folder.mkdir(parents=True, exist_ok=True)
    views = [view for view in VIEWS if not given.theme or view.theme in given.theme]
    with tempfile.TemporaryDirectory() as var, started(Path(var)) as service, sync_playwright() as playwright:
        service.wait_ready()
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        with visitors(service, browser) as make:
            people, paths = role_visitors(make)
            owner = people["owner"]
            prepare(owner, f"/orgs/{owner.ready['org_id']}")
            # Pages follow the browser's language; those that made things are in English.
            reader, stranger = make(locale=given.language), make(locale=given.language)
            reader.sign_in_owner()
            taken = take((reader, stranger), paths, given.folder, views)
            sys.stdout.write(f"{taken} pictures in {given.folder}\n")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
