"""The page of one tool: what it does, who may call it, and a run with the reader's own rights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_lazy

from gateway.lib.errors import DomainError, NotFound
from gateway.lib.translated import translated
from gateway.web import form_idempotency
from gateway.web.gate import Gate
from orgs import selectors
from orgs.roles import Role
from proxy.control_plane.calls_from_pages import TOOL_RUNNER, PageCaller, RanTool, run_tool, why_refused
from proxy.control_plane.offered_tool import OfferedTool, offered_tool
from proxy.outcomes import Denied
from proxy.pages.call_snippets import call_snippets
from proxy.pages.run_result import result_of
from proxy.pages.tool_arguments import Argument, arguments_of, read_form, read_json
from proxy.pages.tool_callers import ShownCallers, shown_callers
from proxy.pages.vendor import VendorThingPage


class ToolPage(VendorThingPage):
    """GET, POST /orgs/:orgId/vendors/:vendor/tools/:tool. A POST is a call like any other. Spec: D155"""

    gates = {"GET": Gate(Role.MEMBER), "POST": Gate(Role.MEMBER)}
    title = gettext_lazy("Tool")
    tab_route = "proxy_pages:tool-access"

    def tab_ids(self) -> tuple[object, ...]:
        return (self.vendor.slug,)

    def get(self, request: HttpRequest, vendor: str, tool: str) -> HttpResponse:
        typed = {each.field: each.default for each in self._arguments}
        return self._show(typed, "form", _example(self._arguments))

    def post(self, request: HttpRequest, vendor: str, tool: str) -> HttpResponse:
        """Raises: NotFound."""
        mode = "json" if request.POST.get("mode") == "json" else "form"
        text = request.POST.get("json", "")
        typed = {each.field: request.POST.get(each.field, "") for each in self._arguments}
        values, faults = (
            read_json(self._arguments, text) if mode == "json" else read_form(self._arguments, request.POST)
        )
        # The typed values fill the other form too, so that the reader may go on there.
        if mode == "form":
            text = _json_text(values)
        else:
            typed = {each.field: each.typed(values[each.name]) for each in self._arguments if each.name in values}
        asks = not self._tool.is_read_only and "confirm" not in request.POST
        if faults or asks:
            return self._show(typed, mode, text, faults=faults, asks=asks, status=422)
        if not form_idempotency.claim_key(request):
            return self._show(typed, mode, text, refusal=gettext("This run was already sent."), status=409)
        return self._run(values, typed, mode, text)

    def _run(self, values: dict[str, Any], typed: Mapping[str, str], mode: str, text: str) -> HttpResponse:
        size = len(json.dumps(values, ensure_ascii=False).encode())
        try:
            ran = run_tool(self._caller, self.vendor, self._tool.exposed_name, values, request_bytes=size)
        except DomainError as refusal:
            answer = self._show(typed, mode, text, refusal=translated(refusal.message), status=refusal.status)
            for name, value in refusal.headers.items():
                answer[name] = value
            return answer
        return self._show(typed, mode, text, ran=ran, values=values)

    def _show(
        self,
        typed: Mapping[str, str],
        mode: str,
        text: str,
        *,
        faults: Mapping[str, str] | None = None,
        asks: bool = False,
        refusal: str = "",
        ran: RanTool | None = None,
        values: Mapping[str, Any] | None = None,
        status: int = 200,
    ) -> HttpResponse:
        faults = faults or {}
        fields = [(each, typed.get(each.field, ""), faults.get(each.name, "")) for each in self._arguments]
        context = {
            "tool": self._tool,
            "fields": fields,
            "faults": faults,
            "json_faults": [(name, fault) for name, fault in faults.items()] if mode == "json" else [],
            "mode": mode,
            "json_text": text,
            "asks": asks,
            "refusal": refusal,
            "ran": ran,
            "result": result_of(ran.outcome, self.vendor.name) if ran else None,
            "request_id": getattr(self.request, "request_id", ""),
            "has_plan": self.has_plan,
            "snippets": call_snippets(settings.BASE_URL, self.vendor.slug, self._tool.exposed_name, values or {}),
            "form_key": form_idempotency.new_key(self.request),
            "is_replay": self.request.GET.get("from") == "log",
            "denied": self._denied,
            "admins": selectors.people_who_may(self.organization, Role.ADMIN) if self._denied else (),
            "callers": self._callers,
        }
        return self.page("proxy/tool.html", context, status=status)

    @cached_property
    def _caller(self) -> PageCaller:
        request: Any = self.request
        return PageCaller(
            self.actor.id, self.organization.id, TOOL_RUNNER, request.request_id, ip_address=request.ip_address
        )

    @cached_property
    def _denied(self) -> Denied | None:
        if self._callers is not None:
            return self._callers.refused.get(self.actor.id)
        return why_refused(self._caller, self.vendor, self._tool.name, is_read_only=self._tool.is_read_only)

    @cached_property
    def _callers(self) -> ShownCallers | None:
        """For admins; a run shows its result instead."""
        if not self.is_admin or self.request.method == "POST":
            return None
        return shown_callers(self.request, self.organization, self.people_vendors, self.vendor, self._tool)

    @cached_property
    def _tool(self) -> OfferedTool:
        found = offered_tool(self.membership, self.vendor, self.kwargs["tool"])
        if found is None:
            raise NotFound
        return found

    @cached_property
    def _arguments(self) -> list[Argument]:
        return arguments_of(self._tool.definition)


def _example(arguments: list[Argument]) -> str:
    """The defaults as JSON."""
    return _json_text({each.name: each.schema["default"] for each in arguments if "default" in each.schema})


def _json_text(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False)
