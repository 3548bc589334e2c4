"""A person's sign-in in a browser, done by a plain HTTP client with a cookie jar."""

from __future__ import annotations

import httpx

MAX_HOPS = 12


class SignInError(Exception):
    """The walk ended somewhere else than at the gateway; the message names the place without its query."""


def walk_sign_in(client: httpx.Client, url: str, email: str, *, name: str = "", deny: bool = False) -> httpx.Response:
    """The gateway's last answer after `email` signed in, or refused to (`deny`), at the demo identity provider.

    `url` is the gateway's /oidc/authenticate/?next=/..., absolute or relative to the client's base. Every redirect is
    followed by hand; cookies stay in the client. Without a sign-in on the way the gateway's first answer is returned.
    Raises: SignInError when the provider refuses, or the redirects do not end.
    Contract: §3.
    """
    response = client.get(url, follow_redirects=False)
    gateway, is_form_sent = _origin(response.url), False
    for _ in range(MAX_HOPS):
        if response.is_redirect:
            target = response.url.join(response.headers["Location"])
            response = client.get(target, follow_redirects=False)
        elif _origin(response.url) == gateway:
            return response
        elif response.status_code == 200 and not is_form_sent:
            form = {"action": "deny"} if deny else {"sub": email, "name": name}
            response = client.post(response.url, data=form, follow_redirects=False)
            is_form_sent = True
        else:
            raise SignInError(f"{response.status_code} from {_origin(response.url)}{response.url.path}")
    raise SignInError(f"more than {MAX_HOPS} steps, the last at {_origin(response.url)}{response.url.path}")


def _origin(url: httpx.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii')}"
