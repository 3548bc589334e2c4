"""Signing people in through the identity provider (OpenID Connect code flow with PKCE, state and nonce)."""
