"""A second web process for the tests of limits: many threads, each one request; prints how many were let through.

Arguments: database name, session cookie, path, how many.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")


def main() -> None:
    """Connect to the test's database, wait for the word, then all at once."""
    import django

    django.setup()
    from django.conf import settings
    from django.db import connection

    from tests.patience import widen_deadlines

    widen_deadlines()
    name, cookie, path, how_many = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    settings.DATABASES["default"]["NAME"] = name
    connection.settings_dict["NAME"] = name
    settings.ALLOWED_HOSTS = ["testserver"]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(f"{let_through(cookie, path, how_many)}\n")


def let_through(cookie: str, path: str, how_many: int) -> int:
    """How many of so many requests at once are not answered 429."""
    from django.conf import settings
    from django.test import Client as Browser

    from tests.factories.races import at_once

    def ask() -> int:
        browser = Browser(raise_request_exception=False)
        browser.cookies[settings.SESSION_COOKIE_NAME] = cookie
        return browser.post(path, "{}", content_type="application/json").status_code

    statuses = at_once(*[ask] * how_many)
    assert set(statuses) <= {400, 404, 429}, statuses
    return sum(status != 429 for status in statuses)


if __name__ == "__main__":
    main()
