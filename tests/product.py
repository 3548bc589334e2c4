"""The product's own packages, for tests that read its source."""

from __future__ import annotations

PACKAGES = ("gateway", "audit", "orgs", "billing", "oauth_ext", "credentials", "proxy")
