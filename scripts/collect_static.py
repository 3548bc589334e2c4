"""Collects and compresses the static files while an image is built.

Settings refuse to load without a deployment's secrets, rightly; a build has none, so it runs on throw-away ones that
never leave this process.
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def main() -> None:
    """STATIC_ROOT holds every static file under its hashed name."""
    os.environ.update(
        DJANGO_SETTINGS_MODULE="gateway.settings",
        GATEWAY_MODE="production",
        SECRET_KEY=secrets.token_urlsafe(48),
        CREDENTIAL_KEYS="build:" + base64.b64encode(secrets.token_bytes(32)).decode(),
        BASE_URL="https://build.invalid",
        DATABASE_URL="postgres://build@build.invalid/build",
        OIDC_OP_DISCOVERY_URL="https://build.invalid/.well-known/openid-configuration",
        OIDC_RP_CLIENT_ID="build",
        OIDC_RP_CLIENT_SECRET=secrets.token_urlsafe(32),
    )
    import django
    from django.core.management import call_command

    django.setup()
    call_command("collectstatic", interactive=False, clear=True, verbosity=1)


if __name__ == "__main__":
    main()
