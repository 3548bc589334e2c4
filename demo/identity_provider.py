"""A small, strict OpenID Connect provider for `make run` and the tests: any e-mail address may sign in.

    python -m demo.identity_provider --keys var/idp --redirect-origin http://127.0.0.1:8000

Authorization code flow with PKCE S256, one client, RS256. It checks no password: never use it in production.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from demo import identity_pages as pages
from demo import identity_requests as requests
from demo.identity_grants import TOKEN_LIFETIME_S, Grant, GrantStore, InvalidGrantError, Person
from demo.identity_keys import ALGORITHM, SigningKey, load_signing_key
from demo.identity_people import SIGN_IN_COOKIE, People
from demo.identity_requests import AuthorizationRequest, ClientAuthError, OAuthError, PageError, Registration
from demo.listening import StartError, add_listen_arguments, fail, http_origin, require_loopback, serve

NAME = "Demo identity provider"
# The largest form body that is read.
MAX_FORM_BYTES = 16 * 1024
# For the whole body of a form.
FORM_DEADLINE_S = 10
# Of an ID token.
ID_TOKEN_LIFETIME_S = 300
STYLE_FILE = Path(__file__).with_suffix(".css")
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}


@dataclass(frozen=True)
class IdentityProvider:
    issuer: str
    registration: Registration
    key: SigningKey
    grants: GrantStore
    people: People
    clock: Callable[[], float]

    async def configuration(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/oauth2/authorize",
                "token_endpoint": f"{self.issuer}/oauth2/token",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
                "jwks_uri": f"{self.issuer}/jwks",
                "end_session_endpoint": f"{self.issuer}/oauth2/end_session",
                "scopes_supported": ["openid", "email", "profile", "offline_access"],
                "response_types_supported": ["code"],
                "response_modes_supported": ["query"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": [ALGORITHM],
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
                "code_challenge_methods_supported": ["S256"],
                "claims_supported": [
                    *("iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "email", "email_verified", "name")
                ],
                "claims_parameter_supported": False,
                "request_parameter_supported": False,
                "request_uri_parameter_supported": False,
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def key_set(self, request: Request) -> Response:
        return JSONResponse({"keys": [self.key.public_jwk()]})

    async def authorize(self, request: Request) -> Response:
        """GET shows the form. POST with `sub` redirects with a code, with `action=deny` with access_denied."""
        try:
            fields = _query_fields(request)
            redirect_uri = requests.find_redirect(fields, self.registration)
        except PageError as error:
            return self._refusal(str(error))
        try:
            authorization = requests.check_authorization(fields, redirect_uri)
            if authorization.is_silent:
                return self._answer_silently(request, authorization)
            return (
                await self._answer_form(request, authorization)
                if request.method == "POST"
                else self._show_form(authorization)
            )
        except OAuthError as error:
            # `redirect_uri` is validated by now, so the client may get the error.
            answer = {"error": error.code, "error_description": str(error)}
            return self._redirect(redirect_uri, fields.get("state"), **answer)
        except PageError as error:
            return self._refusal(str(error))

    @property
    def _form_targets(self) -> tuple[str, ...]:
        """Origins that the form may redirect to: the registered client, and any https client that it signs in for."""
        # Browsers apply form-action to every redirect that follows.
        return (*self.registration.redirect_origins, "https:")

    def _show_form(self, authorization: AuthorizationRequest) -> Response:
        page = pages.sign_in_page(redirect_uri=authorization.redirect_uri, email=authorization.login_hint)
        return HTMLResponse(page, headers=pages.page_headers(self._form_targets))

    async def _answer_form(self, request: Request, authorization: AuthorizationRequest) -> Response:
        # CSRF: only this provider's own form may submit.
        if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            raise PageError("The sign-in form was sent from another site.")
        try:
            form = await _form_fields(request)
        except ValueError as error:
            raise PageError(f"The sign-in form cannot be read: {error}.") from error
        if form.get("action") == "deny":
            raise OAuthError("access_denied", "the person did not sign in")
        typed_email, typed_name = form.get("sub", ""), form.get("name", "")
        try:
            person = requests.check_person(typed_email, typed_name)
            if self.people.is_removed(person.email):
                raise ValueError("This person was removed from the identity provider.")
        except ValueError as error:
            page = pages.sign_in_page(
                redirect_uri=authorization.redirect_uri, email=typed_email, name=typed_name, error=str(error)
            )
            headers = pages.page_headers(self._form_targets)
            return HTMLResponse(page, status_code=400, headers=headers)
        answer = self._code(authorization, person)
        cookie = self.people.begin_sign_in(person)
        answer.set_cookie(SIGN_IN_COOKIE, cookie, httponly=True, samesite="lax")
        return answer

    def _answer_silently(self, request: Request, authorization: AuthorizationRequest) -> Response:
        """prompt=none: redirect with a code for the signed-in person, without a page (OpenID Connect Core 3.1.2.1)."""
        person = self.people.signed_in(request.cookies.get(SIGN_IN_COOKIE))
        if person is None:
            raise OAuthError("login_required", "nobody is signed in here")
        return self._code(authorization, person)

    def _code(self, authorization: AuthorizationRequest, person: Person) -> Response:
        grant = Grant(
            client_id=authorization.client_id,
            redirect_uri=authorization.redirect_uri,
            challenge=authorization.challenge,
            nonce=authorization.nonce,
            scope=authorization.scope,
            person=person,
            signed_in_at=int(self.clock()),
        )
        return self._redirect(authorization.redirect_uri, authorization.state, code=self.grants.issue_code(grant))

    async def token(self, request: Request) -> Response:
        """Exchange a code or refresh token for ID and access token, after client authentication."""
        try:
            form = await _form_fields(request)
            client_id = requests.authenticate_client(self.registration, request.headers.get("authorization"), form)
            if form.get("grant_type") == "refresh_token":
                return self._refreshed(form, client_id)
            grant, access_token = self._exchange(form, client_id)
        except ClientAuthError as error:
            challenge = {"WWW-Authenticate": f'Basic realm="{self.issuer}"'} if error.used_basic else {}
            return _oauth_error("invalid_client", str(error), status=401, headers=challenge)
        except InvalidGrantError as error:
            return _oauth_error("invalid_grant", str(error))
        except OAuthError as error:
            return _oauth_error(error.code, str(error))
        except ValueError as error:
            return _oauth_error("invalid_request", str(error))
        return JSONResponse(
            {
                "access_token": access_token,
                "token_type": "Bearer",
                "expires_in": TOKEN_LIFETIME_S,
                "scope": grant.scope,
                "id_token": self._id_token(grant),
                **self._refresh_token(grant.person, client_id, grant.scope),
            },
            headers=NO_STORE,
        )

    def _refreshed(self, form: dict[str, str], client_id: str) -> Response:
        person, scope = self.people.refreshed(form.get("refresh_token", ""), client_id)
        answer = {
            "access_token": self.grants.issue_token(person),
            "token_type": "Bearer",
            "expires_in": TOKEN_LIFETIME_S,
        }
        return JSONResponse(
            {**answer, "scope": scope, **self._refresh_token(person, client_id, scope)}, headers=NO_STORE
        )

    def _refresh_token(self, person: Person, client_id: str, scope: str) -> dict[str, str]:
        if "offline_access" not in scope.split(" "):
            return {}
        return {"refresh_token": self.people.refresh_token(person, client_id, scope)}

    def _exchange(self, form: dict[str, str], client_id: str) -> tuple[Grant, str]:
        if form.get("grant_type") != "authorization_code":
            if "grant_type" not in form:
                raise ValueError("grant_type is missing")
            raise OAuthError("unsupported_grant_type", "only authorization_code and refresh_token are supported")
        for name in ("code", "redirect_uri"):
            if name not in form:
                raise ValueError(f"{name} is missing")
        return self.grants.redeem_code(
            form["code"],
            client_id=client_id,
            redirect_uri=form["redirect_uri"],
            verifier=form.get("code_verifier", ""),
        )

    def _id_token(self, grant: Grant) -> str:
        now = int(self.clock())
        claims: dict[str, object] = {
            "iss": self.issuer,
            "aud": grant.client_id,
            "iat": now,
            "exp": now + ID_TOKEN_LIFETIME_S,
            "auth_time": grant.signed_in_at,
            **_person_claims(grant.person),
        }
        if grant.nonce is not None:
            claims["nonce"] = grant.nonce
        return self.key.sign(claims)

    async def userinfo(self, request: Request) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return Response(status_code=401, headers={**NO_STORE, "WWW-Authenticate": "Bearer"})
        person = self.grants.person_of(token.strip())
        if person is None or self.people.is_removed(person.email):
            challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            return _oauth_error("invalid_token", "the access token is unknown or has expired", 401, challenge)
        return JSONResponse(_person_claims(person), headers=NO_STORE)

    async def end_session(self, request: Request) -> Response:
        """Sign the browser out, then redirect to the client or show a notice."""
        try:
            fields = await _form_fields(request) if request.method == "POST" else _query_fields(request)
        except (ValueError, PageError) as error:
            return self._refusal(f"The request cannot be read: {error}.")
        self.people.end_sign_in(request.cookies.get(SIGN_IN_COOKIE))
        target, state = fields.get("post_logout_redirect_uri"), fields.get("state")
        if target is None:
            page = pages.notice_page("Signed out", "You are signed out. You may close this page.")
            return HTMLResponse(page, headers=pages.page_headers())
        if not self.registration.allows_after_sign_out(target):
            return self._refusal(
                "The application asked to send you to an address it has not registered (post_logout_redirect_uri)."
            )
        if state is not None:
            target += ("&" if "?" in target else "?") + urlencode({"state": state})
        return RedirectResponse(target, status_code=302, headers=NO_STORE)

    async def change_people(self, request: Request) -> Response:
        """GET shows a form; POST with `sub` and `action` (remove, restore) changes a person."""
        if request.method == "GET":
            return HTMLResponse(pages.people_page(), headers=pages.page_headers())
        if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            return self._refusal("The form was sent from another site.")
        try:
            form = await _form_fields(request)
            person = requests.check_person(form.get("sub", ""), "")
            change = {"remove": self.people.remove, "restore": self.people.restore}[form.get("action", "")]
        except (ValueError, KeyError) as error:
            return self._refusal(f"The form cannot be read: {error}.")
        change(person.email)
        said = f"{person.email} {'was removed' if form['action'] == 'remove' else 'may sign in again'}."
        return HTMLResponse(pages.people_page(said), headers=pages.page_headers())

    async def style(self, request: Request) -> Response:
        return FileResponse(STYLE_FILE, media_type="text/css", headers={"X-Content-Type-Options": "nosniff"})

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"}, headers=NO_STORE)

    def _redirect(self, redirect_uri: str, state: str | None, **answer: str) -> Response:
        address = requests.answer_address(redirect_uri, issuer=self.issuer, state=state, **answer)
        return RedirectResponse(address, status_code=302, headers={**NO_STORE, "Referrer-Policy": "no-referrer"})

    def _refusal(self, sentence: str) -> Response:
        page = pages.notice_page("This sign-in cannot go on", sentence)
        return HTMLResponse(page, status_code=400, headers=pages.page_headers())


def _person_claims(person: Person) -> dict[str, object]:
    return {"sub": person.email, "email": person.email, "email_verified": True, "name": person.name}


def _query_fields(request: Request) -> dict[str, str]:
    try:
        return requests.parse_fields(request.url.query)
    except ValueError as error:
        raise PageError(f"The request cannot be read: {error}.") from error


async def _form_fields(request: Request) -> dict[str, str]:
    """Fields of a form body of at most MAX_FORM_BYTES. Raises: ValueError for anything else."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise ValueError("the body must be application/x-www-form-urlencoded")
    body = bytearray()
    try:
        async with asyncio.timeout(FORM_DEADLINE_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_FORM_BYTES:
                    raise ValueError("the body is too large")
    except (TimeoutError, ClientDisconnect) as error:
        raise ValueError("the body did not arrive") from error
    return requests.parse_fields(body.decode())


def _oauth_error(code: str, description: str, status: int = 400, headers: dict[str, str] | None = None) -> Response:
    body = {"error": code, "error_description": description}
    return JSONResponse(body, status_code=status, headers={**NO_STORE, **(headers or {})})


def create_app(
    *,
    issuer: str,
    registration: Registration,
    key: SigningKey,
    # Seconds since the epoch.
    clock: Callable[[], float] = time.time,
    folder: Path | None = None,
) -> Starlette:
    """The ASGI application. `folder` stores removals. Raises: ValueError if `issuer` is no origin."""
    if not requests.is_origin(issuer):
        raise ValueError(f"{issuer!r} is not an origin such as http://127.0.0.1:9400")
    provider = IdentityProvider(
        issuer=issuer,
        registration=registration,
        key=key,
        grants=GrantStore(clock),
        people=People(key, issuer, clock, folder),
        clock=clock,
    )
    return Starlette(
        routes=[
            Route("/.well-known/openid-configuration", provider.configuration),
            Route("/jwks", provider.key_set),
            Route("/oauth2/authorize", provider.authorize, methods=["GET", "POST"]),
            Route("/oauth2/token", provider.token, methods=["POST"]),
            Route("/userinfo", provider.userinfo, methods=["GET", "POST"]),
            Route("/oauth2/end_session", provider.end_session, methods=["GET", "POST"]),
            Route("/people", provider.change_people, methods=["GET", "POST"]),
            Route(pages.STYLE_PATH, provider.style),
            Route("/healthz", provider.health),
        ]
    )


def _parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m demo.identity_provider", description=(__doc__ or "").split("\n")[0]
    )
    add_listen_arguments(parser, port=9400)
    parser.add_argument("--keys", type=Path, required=True, metavar="DIR", help="where the signing key is kept")
    parser.add_argument("--issuer", help="the issuer (default: http://HOST:PORT)")
    parser.add_argument("--client-id", default="gateway", help="the one client (default: %(default)s)")
    parser.add_argument(
        "--client-secret-env",
        default="DEMO_IDP_CLIENT_SECRET",
        metavar="VARIABLE",
        help="environment variable that holds the client's secret (default: %(default)s)",
    )
    parser.add_argument(
        "--redirect-origin",
        action="append",
        required=True,
        metavar="ORIGIN",
        help=f"origin the client may be called back at, as ORIGIN{requests.CALLBACK_PATH}; may be given again",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = _parse_arguments(arguments)
    try:
        require_loopback(options.host, allow_remote=options.allow_remote)
        registration = Registration(
            client_id=options.client_id,
            client_secret=os.environ.get(options.client_secret_env, ""),
            redirect_origins=tuple(options.redirect_origin),
        )
        app = create_app(
            issuer=options.issuer or http_origin(options.host, options.port),
            registration=registration,
            key=load_signing_key(options.keys),
            folder=options.keys,
        )
        serve(app, name=NAME, host=options.host, port=options.port)
    except (StartError, ValueError) as error:
        return fail(NAME, error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
