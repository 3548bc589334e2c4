"""The suite's settings: the same parts, with throw-away keys. `make test` chooses the back ends by environment."""

import base64
import os
import tempfile
from pathlib import Path

_worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
# Parallel processes of one run share nothing: an epoch that one of them bumps is not seen by the others.
_run = Path(os.environ.setdefault("GATEWAY_TEST_VAR", tempfile.mkdtemp(prefix="gateway-test-"))) / _worker
_run.mkdir(exist_ok=True)
os.environ.update(
    GATEWAY_MODE="embedded",
    SECRET_KEY="for the suite only: 0123456789abcdefghijklmnopqrstuvwxyz",
    CREDENTIAL_KEYS="test-2:"
    + base64.b64encode(bytes(range(32))).decode()
    + ",test-1:"
    + base64.b64encode(bytes(range(1, 33))).decode(),
    BASE_URL="http://testserver",
    VAR=str(_run),
    OIDC_OP_DISCOVERY_URL="http://127.0.0.1:9/.well-known/openid-configuration",
    OIDC_RP_CLIENT_ID="gateway",
    OIDC_RP_CLIENT_SECRET="for-the-suite-only",
    LOG_LEVEL=os.environ.get("LOG_LEVEL", "WARNING"),
)
for _name in (
    "TOKEN_SIGNING_KEYS",
    "VENDOR_CATALOG",
    "VENDOR_TOOL_CONFIG",
    "TRUSTED_PROXIES",
    "ALLOWED_ORIGINS",
    "ALLOWED_HOSTS",
):
    os.environ.pop(_name, None)

from gateway.settings import *  # noqa: E402, F403
from gateway.settings import CACHES, DATABASES, REDIS_URL  # noqa: E402

# Databases and stores of a machine are shared by all that run: ours carry the name of this run.
_name = os.environ.setdefault("GATEWAY_TEST_RUN", str(os.getpid()))
_database = DATABASES["default"]
if _database["ENGINE"].endswith("sqlite3"):
    _database["NAME"] = f"{_run}/unused.sqlite3"
    _database["TEST"] = {"NAME": f"{_run}/test.sqlite3"}
    # Rows come in no order unless a query asks for one. PostgreSQL shows that now and then, and here always.
    _pragmas = ("journal_mode=WAL", "synchronous=OFF", "foreign_keys=ON", "reverse_unordered_selects=ON")
    _database["OPTIONS"]["init_command"] = "".join(f"PRAGMA {each};" for each in _pragmas)
else:
    _database["TEST"] = {"NAME": f"gateway_test_{_name}"}
    # The pool bounds what 200 threads ask of a server with 100 connections, as it does in production. They queue for
    # longer here: a slow machine makes a test slow and never turns an answer into 503.
    _database["OPTIONS"]["pool"] |= {"min_size": 0, "max_size": 20, "timeout": 120}
# Each client of a test has a handler of its own; without this, each handler reads all static files when it is made.
WHITENOISE_AUTOREFRESH = True
COORDINATION_PREFIX = f"gateway-test-{_name}-{_worker}:"
CACHES["default"]["KEY_PREFIX"] = COORDINATION_PREFIX
if REDIS_URL:  # a slow machine must not send a request to the other counter
    CACHES["default"]["OPTIONS"] |= {"socket_timeout": 20.0, "socket_connect_timeout": 20.0}
_store = "Redis" if REDIS_URL else "the in-process store"
TEST_BACKENDS = f"{_database['ENGINE'].rsplit('.', 1)[1]} and {_store}"
