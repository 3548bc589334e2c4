"""The document of each client, written from the guide that its pages show, so that the two cannot differ."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proxy.pages.client_guides import ClientGuide

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|])")
_NEEDS = {
    "browser": "You sign in with your browser, so no key is needed.",
    "key": "Needs an agent key in `GATEWAY_KEY`. An admin creates one under Agents; it is shown once.",
    "secret": "Needs an agent's client ID and secret in `GATEWAY_CLIENT_ID` and `GATEWAY_CLIENT_SECRET`. An admin makes"
    " them under Agents; the secret is shown once.",
}


def markdown_of(guide: ClientGuide) -> str:
    """`guide` is filled in for the service."""
    return "\n\n".join(_paragraphs(guide)) + "\n"


def _paragraphs(guide: ClientGuide) -> Iterator[str]:
    client = _plain(guide.client)
    yield f"# {client}"
    yield _NEEDS[guide.needs]
    if guide.needs_public_address:
        yield f"{client} calls from its own servers, so the gateway needs an https address on the internet."
    yield "## Set it up"
    yield f"{_plain(guide.where)}:"
    yield f"~~~\n{guide.code}\n~~~"
    yield "\n".join(f"{number}. {_plain(step)}" for number, step in enumerate(guide.steps, start=1))
    yield "[Set up a client](/setup) shows the same to people who are signed in, with the vendors that they can use."
    yield "## Sign in again, or use a new key"
    yield _plain(guide.again)
    yield "## Where this comes from"
    yield _origin(guide)
    yield "A client that does not connect: [Find out why a call was refused](/docs/recipes/why-refused)."


def _origin(guide: ClientGuide) -> str:
    if guide.checked == "run":
        return f"Run against this service with {_plain(guide.version)} on {guide.checked_on}."
    if guide.checked == "documentation":
        return f"Taken from {_plain(guide.source)} on {guide.checked_on}; not run here."
    return "Not checked here."


def _plain(text: str) -> str:
    """The text without a meaning in Markdown."""
    return _MARKS.sub(r"\\\1", text)
