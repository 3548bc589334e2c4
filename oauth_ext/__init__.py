"""OAuth clients, agent keys, tokens and signing keys: the only app that imports django-oauth-toolkit and oauthlib."""
