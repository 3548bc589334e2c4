"""Pure: environments of the processes that the supervisor starts. Contract: 1, 5"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gateway.supervisor.options import Options, is_given

DEMO_CLIENT_ID = "gateway"
READY_FILE_VARIABLE = "WORKER_READY_FILE"
# Make's variables for its own child processes.
LEFT_OUT = frozenset({"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKE_TERMOUT", "MAKE_TERMERR", "MAKEOVERRIDES"})
# Variables that a demo server inherits: none of the service's secrets.
SHARED_WITH_DEMO = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "SSL_CERT_FILE", "LD_LIBRARY_PATH")


def service_environment(options: Options, environ: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """Environment of web server, worker and preparation; the caller's variables win over the defaults. Contract: 5"""
    environment = {name: value for name, value in environ.items() if name not in LEFT_OUT and value}
    defaults = {"GATEWAY_MODE": "embedded", **secrets}
    if not options.runs_demo_provider:
        # The generated secret belongs to the demo provider. Another provider would refuse it with a less clear error.
        defaults.pop("OIDC_RP_CLIENT_SECRET", None)
    else:
        defaults |= {
            "OIDC_OP_DISCOVERY_URL": f"{options.idp_url}/.well-known/openid-configuration",
            "OIDC_RP_CLIENT_ID": DEMO_CLIENT_ID,
            "OIDC_PROVIDER_NAME": "Demo ID",
        }
    environment |= {name: value for name, value in defaults.items() if not is_given(environ, name)}
    return environment | {
        "DJANGO_SETTINGS_MODULE": "gateway.settings",
        "VAR": str(options.var),
        "HOST": options.host,
        "PORT": str(options.port),
        "BASE_URL": options.base_url,
        "PYTHONUNBUFFERED": "1",
    }


def demo_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Environment of the demo vendor server, without the service's secrets."""
    shared = {name: environ[name] for name in SHARED_WITH_DEMO if environ.get(name)}
    return shared | {"PYTHONUNBUFFERED": "1"}


def provider_environment(environ: Mapping[str, str], secret: str) -> dict[str, str]:
    """Environment of the demo identity provider, which shares one secret with the service."""
    return demo_environment(environ) | {"DEMO_IDP_CLIENT_SECRET": secret}


def worker_environment(service: Mapping[str, str], ready_file: Path) -> dict[str, str]:
    # Django's checks would load all pages into the worker, in a fifth of a second. The preparation has read the
    # settings, and `make lint` runs the checks.
    return {**service, READY_FILE_VARIABLE: str(ready_file), "CELERY_SKIP_CHECKS": "true"}
