"""Libraries that a web process does not load: each name here was megabytes of every process once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.one_back_end

# All that a process has loaded when it has answered calls, pages and token requests.
START = """
import sys
import gateway.asgi
import gateway.urls, proxy.views.urls
import audit.audit_connection, oauth_ext.validator
from gateway.coordination import backend
backend.current()
print(*sys.modules)
"""
UNNEEDED = {"aiohttp", "celery", "kombu", "drf_spectacular.generators", "django.test", "stripe", "djstripe"}
# No server answers at these addresses, and none is asked.
POSTGRESQL_AND_REDIS = {"DATABASE_URL": "postgres://nobody@127.0.0.1:9/none", "REDIS_URL": "redis://127.0.0.1:9/0"}


@pytest.mark.parametrize(
    ("back_ends", "needed", "unneeded"),
    [({}, {"sqlite3"}, {"redis"}), (POSTGRESQL_AND_REDIS, {"psycopg", "redis"}, {"sqlite3"})],
)
def test_a_web_process_loads_what_it_needs(back_ends: dict[str, str], needed: set[str], unneeded: set[str]) -> None:
    others = {name: value for name, value in os.environ.items() if name not in POSTGRESQL_AND_REDIS}
    environment = {**others, "DJANGO_SETTINGS_MODULE": "gateway.settings", **back_ends}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", START], env=environment, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert needed <= loaded
    assert not loaded & (unneeded | UNNEEDED)
    assert not done.stderr


def test_a_worker_loads_no_library_of_a_provider_that_is_not_used() -> None:
    start = "import sys, gateway.celery as c; c.app.loader.import_default_modules(); print(*c.app.tasks, *sys.modules)"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "gateway.settings"}
    done = subprocess.run([sys.executable, "-c", start], env=environment, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"billing.mirror", "billing.reconcile"} <= loaded
    assert not loaded & {"stripe", "djstripe"}
