"""The base of every API view: the order of checks, once. Spec: D5

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
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway.coordination.store import Admission
from gateway.web import idempotency, rate
from gateway.web.admission import pass_gate
from gateway.web.api_errors import MethodNotAllowed
from gateway.web.api_json import BodyTooLarge, InvalidJSON, UnsupportedBody
from gateway.web.api_paging import part_of
from gateway.web.gate import Gate
from gateway.web.session import Unauthenticated
from gateway.web.shape import Shape
from orgs.models import Membership, Organization, User

_SAFE = frozenset({"GET", "HEAD"})


class ApiView(APIView):
    """A view for any signed-in person. `gates` and `shapes` name the same methods; any other method is refused."""

    gates: ClassVar[Mapping[str, Gate]] = {}
    shapes: ClassVar[Mapping[str, Shape]] = {}
    org_argument: ClassVar[str | None] = None

    _admission: Admission | None = None
    _membership: Membership | None = None

    @property
    def allowed_methods(self) -> list[str]:
        """The methods with a gate, as `Allow` and the document name them."""
        return sorted([*self.gates, *(["HEAD"] if "GET" in self.gates else [])])

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Everything that comes before the view's own method."""
        http: HttpRequest = request._request
        self.format_kwarg = None
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        _take_body(http)
        if not isinstance(request.user, User):
            rate.count(http, settings.BACKSTOP)
            raise Unauthenticated
        gate = self.gates.get("GET" if http.method == "HEAD" else http.method or "")
        if gate is None:
            rate.count(http, settings.BACKSTOP)
            raise MethodNotAllowed
        passed = pass_gate(http, request.user, gate, self.organization_id(http, request.user, kwargs))
        self._membership, self._admission = passed.membership, passed.admission
        _check_media_type(http)
        if http.method == "POST" and self.shapes["POST"].creates and idempotency.HEADER in http.headers:
            # The library looks the handler up by its name after this.
            self.__dict__["post"] = partial(self._once, self.post)  # type: ignore[attr-defined]

    def organization_id(self, http: HttpRequest, user: User, path: Mapping[str, Any]) -> str | None:
        """The id whose membership the gate asks for, as it was sent; None for routes of no organization."""
        return str(path.get(self.org_argument, "")) if self.org_argument else None

    def _once(self, handler: Callable[..., Response], request: Request, *args: Any, **kwargs: Any) -> Response:
        run = partial(handler, request, *args, **kwargs)
        organization = "" if self._membership is None else str(self._membership.organization_id)
        return idempotency.answer_once(request._request, self.actor, self.shapes["POST"], run, organization)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Say on every counted answer what is left."""
        if self._admission is not None:
            for name, value in rate.headers(self._admission).items():
                response.headers.setdefault(name, value)
        return super().finalize_response(request, response, *args, **kwargs)

    @property
    def actor(self) -> User:
        """The person who acts."""
        if not isinstance(self.request.user, User):
            raise Unauthenticated
        return self.request.user

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The members of the body that this method knows, checked. Others are ignored. Spec: D3, D16

        Raises: ValidationError, InvalidJSON, UnsupportedBody.
        """
        serializer_class = self.shapes[self.request.method or ""].body
        if serializer_class is None:
            raise RuntimeError(f"{type(self).__name__} reads a body that its shape does not have")
        serializer = serializer_class(data=self.request.data)
        serializer.is_valid(raise_exception=True)
        checked: dict[str, Any] = serializer.validated_data
        return checked

    def answer(self, result: object = None) -> Response:
        """`result` in the shape of this method."""
        method = "GET" if self.request.method == "HEAD" else self.request.method or ""
        shape = self.shapes[method]
        if shape.texts:
            return Response(result, status=shape.status)
        if shape.answer is None:
            return Response(status=shape.status)
        return Response(shape.answer(result, many=shape.many).data, status=shape.status)

    def answer_part(self, *lists: QuerySet[Any], as_body: Callable[[Any], Any] | None = None) -> Response:
        """The part of the lists that the caller asks for, each row as `as_body` has it; all of them by default.

        Raises: Invalid.
        """
        part = part_of(self.request._request, *lists)
        answer = self.answer([as_body(row) for row in part.rows] if as_body else part.rows)
        for name, value in part.headers.items():
            answer[name] = value
        return answer


class OrgView(ApiView):
    """A view below /api/orgs/:orgId. Every gate names a role."""

    org_argument: ClassVar[str | None] = "org_id"

    @property
    def membership(self) -> Membership:
        """The person's place in the organization of the path."""
        if self._membership is None:
            raise RuntimeError("a gate of an organization's route names no role")
        return self._membership

    @property
    def organization(self) -> Organization:
        """The organization of the path, of which the person is a member."""
        return self.membership.organization


def _take_body(http: HttpRequest) -> None:
    """Read the body once, and no further than allowed. A chunked one has no length to look at.

    Raises: BodyTooLarge; InvalidJSON when the client left in the middle.
    """
    declared = http.META.get("CONTENT_LENGTH") or "0"
    if declared.isdigit() and int(declared) > settings.API_BODY_BYTES:
        raise BodyTooLarge
    try:
        body = http.read(settings.API_BODY_BYTES + 1)
    except UnreadablePostError as fault:
        raise InvalidJSON("The body did not arrive.") from fault
    if len(body) > settings.API_BODY_BYTES:
        raise BodyTooLarge
    http._body = body
    http.META["CONTENT_LENGTH"] = str(len(body))


def _check_media_type(http: HttpRequest) -> None:
    """A body that is not JSON is refused also where none is read: nobody should think it counted.

    Raises: UnsupportedBody.
    """
    if not http.body or http.method in _SAFE:
        return
    if http.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise UnsupportedBody("Send the body without Content-Encoding.")
    media_type, _, parameters = (http.content_type or "").partition(";")
    charset = (http.content_params or {}).get("charset", "utf-8")
    if media_type.strip().lower() != "application/json" or parameters or charset.lower() not in {"utf-8", "utf8"}:
        raise UnsupportedBody
