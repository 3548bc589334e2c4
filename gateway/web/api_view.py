"""Base of all API views. `ApiView.initial` runs the checks in one order. Spec: D5

404 route > body size 413 > authentication 401 > method 405 > membership and role 404/403 > rate limit 429 >
subscription 402 > validation 4xx > the view's own method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, UnreadablePostError
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway.coordination.store import Admission
from gateway.lib.declared_length import declared_length
from gateway.lib.errors import Invalid, MethodNotAllowed
from gateway.lib.sentences import sentence
from gateway.web import idempotency, rate
from gateway.web.admission import pass_gate
from gateway.web.api_json import BodyTooLarge, InvalidJSON, UnsupportedBody
from gateway.web.api_paging import paginate
from gateway.web.gate import Gate
from gateway.web.operation import NAME, Operation
from gateway.web.session_authentication import Unauthenticated
from gateway.web.token_authentication import ScopeTooLow, SessionNeeded, forget_token
from orgs.models import ManagementToken, Membership, Organization, User
from orgs.roles import TokenScope

_SAFE = frozenset({"GET", "HEAD"})
NAME_CHARACTERS = 1_000  # longer than any name or address


class ApiView(APIView):
    """A view for any signed-in person, and for management tokens where a gate lets them in.

    `gates` and `operations` name the same methods; other methods get 405.
    """

    gates: ClassVar[Mapping[str, Gate]] = {}
    operations: ClassVar[Mapping[str, Operation]] = {}
    org_argument: ClassVar[str | None] = None

    _admission: Admission | None = None
    _membership: Membership | None = None

    @property
    def allowed_methods(self) -> list[str]:
        return sorted([*self.gates, *(["HEAD"] if "GET" in self.gates else [])])

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        http: HttpRequest = request._request
        self.format_kwarg = None
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        _take_body(http)
        if not isinstance(request.user, User):
            # Anonymous requests count against their address.
            rate.count(http, settings.BACKSTOP)
            raise Unauthenticated
        gate = self.gate_of(http)
        if gate is None:
            rate.count(http, settings.BACKSTOP)
            raise MethodNotAllowed(", ".join(self.allowed_methods))
        token = self.token
        if token is not None:
            self._require_scope(http, gate, token)
        # A token opens its own organization: for any other one the answer is that of an unknown id.
        among = None if token is None else [token.membership]
        passed = pass_gate(http, request.user, gate, self.organization_id(http, request.user, kwargs), among=among)
        self._membership, self._admission = passed.membership, passed.admission
        _check_media_type(http)
        if http.method == "POST" and self.operations["POST"].creates and idempotency.HEADER in http.headers:
            # DRF looks the handler up by name after `initial`, so the wrapper shadows it on the instance.
            self.__dict__["post"] = partial(self._idempotent, self.post)  # type: ignore[attr-defined]

    @property
    def token(self) -> ManagementToken | None:
        """The management token of the request; None with a session."""
        found = self.request.auth
        return found if isinstance(found, ManagementToken) else None

    def _require_scope(self, http: HttpRequest, gate: Gate, token: ManagementToken) -> None:
        """Raises: SessionNeeded, ScopeTooLow. Such requests count too."""
        if gate.token is None:
            rate.count(http, settings.BACKSTOP)
            raise SessionNeeded
        if not token.may_change and (gate.token is not TokenScope.READ or http.method not in _SAFE):
            rate.count(http, settings.BACKSTOP)
            raise ScopeTooLow

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        try:
            return super().dispatch(request, *args, **kwargs)
        finally:
            forget_token()

    def gate_of(self, http: HttpRequest) -> Gate | None:
        """None: the method is not allowed. The body has been taken and not been checked."""
        return self.gates.get("GET" if http.method == "HEAD" else http.method or "")

    def organization_id(self, http: HttpRequest, user: User, path: Mapping[str, Any]) -> str | None:
        """The organization id as sent; None for routes without an organization."""
        return str(path.get(self.org_argument, "")) if self.org_argument else None

    def _idempotent(self, handler: Callable[..., Response], request: Request, *args: Any, **kwargs: Any) -> Response:
        run = partial(handler, request, *args, **kwargs)
        organization = "" if self._membership is None else str(self._membership.organization_id)
        return idempotency.run_idempotently(request._request, self.actor, self.operations["POST"], run, organization)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        # Every counted response carries the remaining quota.
        if self._admission is not None:
            rate.add_headers(response, self._admission)
        return super().finalize_response(request, response, *args, **kwargs)

    @property
    def actor(self) -> User:
        if not isinstance(self.request.user, User):
            raise Unauthenticated
        return self.request.user

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The validated body members. Raises: ValidationError, InvalidJSON, UnsupportedBody. Spec: D3, D16"""
        serializer_class = self.operations[self.request.method or ""].body
        if serializer_class is None:
            raise RuntimeError(f"{type(self).__name__} reads a body that its operation does not have")
        serializer = serializer_class(data=self.request.data)
        # Unknown members are ignored.
        serializer.is_valid(raise_exception=True)
        checked: dict[str, Any] = serializer.validated_data
        return checked

    def answer(self, result: object = None) -> Response:
        method = "GET" if self.request.method == "HEAD" else self.request.method or ""
        operation = self.operations[method]
        if operation.texts:
            return Response(result, status=operation.status)
        if operation.answer is None:
            return Response(status=operation.status)
        return Response(operation.answer(result, many=operation.many).data, status=operation.status)

    def asked_name(self) -> str | None:
        """The `name` of the query string. Raises: Invalid where there are several."""
        names = self.request._request.GET.getlist(NAME.name)
        if len(names) > 1:
            raise Invalid(sentence("Send name once, with a shorter value."))
        # PostgreSQL has no text with NUL, and SQLite compares no pattern that is so long.
        if names and ("\0" in names[0] or len(names[0]) > NAME_CHARACTERS):
            raise Invalid(sentence("Send name once, with a shorter value."))
        return names[0] if names else None

    def answer_page(self, *lists: QuerySet[Any], as_body: Callable[[Any], Any] | None = None) -> Response:
        """The page of `lists` that the caller asks for, all rows by default. Raises: Invalid."""
        page = paginate(self.request._request, *lists)
        answer = self.answer([as_body(row) for row in page.rows] if as_body else page.rows)
        for name, value in page.headers.items():
            answer[name] = value
        return answer


class OrgView(ApiView):
    # Every gate of such a view names a role.
    org_argument: ClassVar[str | None] = "org_id"

    @property
    def membership(self) -> Membership:
        if self._membership is None:
            raise RuntimeError("a gate of an organization's route names no role")
        return self._membership

    @property
    def organization(self) -> Organization:
        return self.membership.organization


def _take_body(http: HttpRequest) -> None:
    """Raises: BodyTooLarge; InvalidJSON when the client disconnected before the end."""
    declared = declared_length(http.META.get("CONTENT_LENGTH") or "")
    if declared is not None and declared > settings.API_BODY_BYTES:
        raise BodyTooLarge
    try:
        # A chunked body declares no length, so the read itself is bounded.
        body = http.read(settings.API_BODY_BYTES + 1)
    except UnreadablePostError as fault:
        raise InvalidJSON("The body did not arrive.") from fault
    if len(body) > settings.API_BODY_BYTES:
        raise BodyTooLarge
    http._body = body
    http.META["CONTENT_LENGTH"] = str(len(body))


def _check_media_type(http: HttpRequest) -> None:
    """Raises: UnsupportedBody, also on routes that read no body: a client must not believe that its body counted."""
    if not http.body or http.method in _SAFE:
        return
    if http.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise UnsupportedBody("Send the body without Content-Encoding.")
    media_type, _, parameters = (http.content_type or "").partition(";")
    charset = (http.content_params or {}).get("charset", "utf-8")
    if media_type.strip().lower() != "application/json" or parameters or charset.lower() not in {"utf-8", "utf8"}:
        raise UnsupportedBody
