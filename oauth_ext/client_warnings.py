"""Pure: what the consent page warns of. An app on the person's own computer is normal, and causes no warning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from urllib.parse import urlsplit

from oauth_ext import redirect_uris

# A client this young has registered itself for this one sign-in.
NEW_FOR = timedelta(minutes=15)


class ClientWarning(StrEnum):
    OTHER_NAME = "other_name"  # the name belongs to another host
    UNVERIFIED_HOST = "unverified_host"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class AskingClient:
    """`vouching_host`: of the document that describes the client, "" without one. `age`: since its registration."""

    name: str
    redirect_uri: str
    registered_itself: bool
    vouching_host: str
    age: timedelta


_CLAUDE = ("claude.ai", "claude.com", "anthropic.com")
_OPENAI = ("chatgpt.com", "openai.com")
# The domains of products whose names apps use, by a word of the name.
_DOMAINS_BY_WORD = {
    "anthropic": _CLAUDE,
    "chatgpt": _OPENAI,
    "claude": _CLAUDE,
    "copilot": ("github.com", "githubcopilot.com", "microsoft.com"),
    "cursor": ("cursor.com", "cursor.sh"),
    "github": ("github.com", "githubcopilot.com"),
    "openai": _OPENAI,
    "vscode": ("vscode.dev", "visualstudio.com"),
}
# The exact hosts of callbacks. A domain alone would also stand for pages that its users make.
_CALLBACK_HOSTS = frozenset({"chatgpt.com", "claude.ai", "claude.com", "insiders.vscode.dev", "vscode.dev"})
_WORD = re.compile(r"[a-z0-9]+")
# A domain in a name, under an ending that is no file's.
_DOMAIN = re.compile(r"(?<![a-z0-9.-])(?:[a-z0-9-]+\.)+(?:ai|app|com|dev|net|org)(?![a-z0-9-])")


def warnings_of(client: AskingClient) -> list[ClientWarning]:
    """The gravest first; none for a client that an operator made."""
    if not client.registered_itself or redirect_uris.stays_on_the_computer(client.redirect_uri):
        return []
    host = urlsplit(client.redirect_uri).hostname or ""
    found = []
    if any(not any(_is_within(host, domain) for domain in claim) for claim in _claims(client.name)):
        found.append(ClientWarning.OTHER_NAME)
    vouching = urlsplit(f"//{client.vouching_host}").hostname or ""
    if host not in _CALLBACK_HOSTS and not (vouching and _is_within(host, vouching)):
        found.append(ClientWarning.UNVERIFIED_HOST)
        # A client with a document is as old as our copy of it.
        if not vouching and client.age < NEW_FOR:
            found.append(ClientWarning.NEW)
    return found


def _claims(name: str) -> list[set[str]]:
    """For the products that the name mentions, and for each domain in it: the domains that stand for the claim."""
    lowered = name.casefold()
    of_products = {domain for word in _WORD.findall(lowered) for domain in _DOMAINS_BY_WORD.get(word, ())}
    # Each claim counts alone: the sender's own domain beside a product's name proves nothing.
    return [*([of_products] if of_products else []), *({domain} for domain in _DOMAIN.findall(lowered))]


def _is_within(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")
