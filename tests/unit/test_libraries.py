"""What a web process loads, and above all what it does not: each name here was megabytes of every process once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gateway.libraries import LEFT_OUT, missing

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
UNNEEDED = {"aiohttp", "celery", "kombu", "drf_spectacular.generators", "django.test"}
# Nobody answers there, and nobody is asked.
POSTGRESQL_AND_REDIS = {"DATABASE_URL": "postgres://nobody@127.0.0.1:9/none", "REDIS_URL": "redis://127.0.0.1:9/0"}


@pytest.mark.parametrize(
    ("back_ends", "needed", "unneeded"),
    [({}, {"sqlite3"}, {"psycopg", "redis"}), (POSTGRESQL_AND_REDIS, {"psycopg", "redis"}, {"sqlite3"})],
)
def test_a_web_process_loads_what_it_needs(back_ends: dict[str, str], needed: set[str], unneeded: set[str]) -> None:
    others = {name: value for name, value in os.environ.items() if name not in POSTGRESQL_AND_REDIS}
    environment = {**others, "DJANGO_SETTINGS_MODULE": "gateway.settings", **back_ends}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", START], env=environment, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    left_out = {package for packages in LEFT_OUT.values() for package in packages}
    assert needed | {*LEFT_OUT} <= loaded
    assert not loaded & (unneeded | UNNEEDED | left_out)
    assert not done.stderr


def test_what_is_missing_is_missing_inside_the_block_only() -> None:
    loaded = sys.modules["pytest"]
    sys.modules.pop("this", None)
    with missing("this", "pytest"):
        with pytest.raises(ImportError):
            import this  # noqa: F401
        assert sys.modules["pytest"] is loaded, "what is loaded stays"
    assert "this" not in sys.modules
    assert sys.modules["pytest"] is loaded
