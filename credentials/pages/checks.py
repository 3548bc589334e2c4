"""The button that checks a stored credential now."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy

from credentials import selectors
from credentials.pages.credential import counted_tools, tools_not_loaded
from credentials.pages.rows import shown_rows
from credentials.rejections import summaries_with_rejection
from credentials.vendor_check import Verdict
from gateway.catalog import registry
from gateway.catalog.registry import known_vendor
from gateway.lib.errors import NotFound
from gateway.lib.translated import translated
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs.roles import Role
from proxy.control_plane.check_credential import check_again
from proxy.control_plane.connect_vendor import load_tools


class CheckPage(OrgPage):
    """POST /orgs/:orgId/credentials/:credentialId/check: asks the vendor, then leads back to the credential's page."""

    gates = {"POST": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS)}
    title = gettext_lazy("Check credentials")
    nav_route = "proxy_pages:vendors"

    def post(self, request: HttpRequest, credential_id: UUID) -> HttpResponse:
        found = selectors.credential(self.organization, credential_id)
        checked = check_again(actor=self.actor, organization=self.organization, credential=found)
        summaries = summaries_with_rejection(self.organization, vendor=found.vendor)
        row = next((each for each in shown_rows(self.organization.id, summaries) if each.stored.id == found.id), None)
        if row is None:
            raise NotFound
        tell = {Verdict.VALIDATED.value: messages.success, Verdict.REJECTED.value: messages.error}
        say = tell.get(checked.check_verdict, messages.warning)
        name = registry.load().name_of(found.vendor)
        parts = {"vendor": name, "credential": row.whose, "detail": translated(checked.check_detail)}
        text = gettext("%(vendor)s (%(credential)s): %(detail)s") % parts
        if checked.check_tools is not None:
            text = f"{text} {counted_tools(checked.check_tools)}"
        say(request, text)
        if checked.check_verdict == Verdict.VALIDATED.value:
            loaded = load_tools(self.organization, known_vendor(found.vendor), checked)
            if loaded.count is None:
                messages.warning(request, tools_not_loaded(loaded))
        if request.POST.get("from") == "vendor":
            return redirect("credentials:connection", self.organization.id, found.vendor)
        return redirect(row.page)
