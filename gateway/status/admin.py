"""Incidents for support staff: they post, nothing is edited. Django's own log of the admin has a line for each post."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext, gettext_lazy

from gateway.lib.errors import DomainError, NotFound
from gateway.lib.read_only_admin import ReadOnlyAdmin
from gateway.lib.translated import translated
from gateway.status.incidents import NewIncident, Poster, known_parts, post_incident, post_update, stages_left
from gateway.status.models import (
    TEXT_MAX_CHARACTERS,
    TITLE_MAX_CHARACTERS,
    Incident,
    IncidentUpdate,
    PartDay,
    PartStatus,
)
from gateway.status.stages import Kind, Severity, Stage

_TEXT_HELP = gettext_lazy("Everyone can read it. Plain text only; don’t name customers.")


class IncidentForm(forms.Form):
    """A new incident or maintenance."""

    kind = forms.ChoiceField(label=gettext_lazy("Kind"), choices=Kind.choices)
    title = forms.CharField(label=gettext_lazy("Title"), max_length=TITLE_MAX_CHARACTERS)
    severity = forms.ChoiceField(label=gettext_lazy("Severity"), choices=Severity.choices)
    parts = forms.MultipleChoiceField(label=gettext_lazy("Parts"), widget=forms.CheckboxSelectMultiple)
    starts_at = forms.DateTimeField(
        label=gettext_lazy("Start (UTC)"),
        required=False,
        help_text=gettext_lazy("For example 2027-01-31 22:00. Leave empty for now."),
    )
    ends_at = forms.DateTimeField(
        label=gettext_lazy("End (UTC)"), required=False, help_text=gettext_lazy("For maintenance only.")
    )
    text = forms.CharField(
        label=gettext_lazy("First update"), widget=forms.Textarea, max_length=TEXT_MAX_CHARACTERS, help_text=_TEXT_HELP
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["parts"].choices = list(known_parts().items())  # type: ignore[attr-defined]

    def save(self, poster: Poster) -> Incident:
        values = self.cleaned_data
        new = NewIncident(
            kind=Kind(values["kind"]),
            title=values["title"],
            severity=Severity(values["severity"]),
            parts=values["parts"],
            text=values["text"],
            starts_at=values["starts_at"],
            ends_at=values["ends_at"],
        )
        return post_incident(poster=poster, new=new)


class UpdateForm(forms.Form):
    """The next update of an incident."""

    stage = forms.ChoiceField(label=gettext_lazy("Stage"))
    text = forms.CharField(
        label=gettext_lazy("Text"), widget=forms.Textarea, max_length=TEXT_MAX_CHARACTERS, help_text=_TEXT_HELP
    )

    def __init__(self, *args: Any, incident: Incident, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._incident = incident
        choices = [(each.value, each.label) for each in stages_left(incident)]
        self.fields["stage"].choices = choices  # type: ignore[attr-defined]

    def save(self, poster: Poster) -> Incident:
        stage = Stage(self.cleaned_data["stage"])
        post_update(poster=poster, incident_id=self._incident.pk, stage=stage, text=self.cleaned_data["text"])
        return self._incident


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    """The pages `post` and `update` are beside Django's own, which change nothing."""

    fields = ("kind", "title", "severity", "parts", "starts_at", "ends_at", "posted_at", "ended_at", "all_updates")
    readonly_fields = ("all_updates",)
    list_display = ("title", "kind", "severity", "starts_at", "ends_at", "ended_at")
    list_filter = ("kind", "severity")
    search_fields = ("title", "updates__text", "=id")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("status.view_incident")

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        # Incidents are public: staff who post them see them here too.
        return request.user.has_perm("status.view_incident")

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("post/", wrap(self.post_page), name="status_incident_post"),
            path("<uuid:incident_id>/update/", wrap(self.update_page), name="status_incident_update"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        may = request.user.has_perm("status.add_incident")
        return super().changelist_view(request, {**(extra_context or {}), "may_post": may})

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        may = request.user.has_perm("status.change_incident")
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "may_post": may})

    @admin.display(description=gettext_lazy("Updates, newest first"))
    def all_updates(self, incident: Incident) -> str:
        rows = [
            (f"{each.posted_at:%Y-%m-%d %H:%M} UTC", each.get_stage_display(), each.posted_by, each.text)
            for each in incident.updates.all()
        ]
        return format_html_join("", "<p>{}, {}, {}<br>{}</p>", rows)

    def post_page(self, request: HttpRequest) -> HttpResponse:
        _require(request, "status.add_incident")
        form = IncidentForm(request.POST or None)
        return self._page(request, form, gettext("Post an incident"), self.log_addition)

    def update_page(self, request: HttpRequest, incident_id: UUID) -> HttpResponse:
        _require(request, "status.change_incident")
        incident = Incident.objects.filter(pk=incident_id).first()
        if incident is None:
            raise Http404
        if incident.ended_at is not None:
            messages.error(request, gettext("This incident has ended. Post a new one."))
            return _to(incident)
        form = UpdateForm(request.POST or None, incident=incident)
        title = gettext("Update: %(title)s") % {"title": incident.title}
        return self._page(request, form, title, self.log_change)

    def _page(
        self,
        request: HttpRequest,
        form: IncidentForm | UpdateForm,
        title: str,
        write_log: Callable[[HttpRequest, Incident, Any], object],
    ) -> HttpResponse:
        if request.method == "POST" and form.is_valid():
            try:
                with transaction.atomic():
                    incident = form.save(_poster(request))
                    write_log(request, incident, {"posted": {"text": form.cleaned_data["text"]}})
            except NotFound as gone:
                raise Http404 from gone
            except DomainError as refusal:
                _mark(form, refusal)
            else:
                messages.success(request, gettext("Posted. The status page shows it."))
                return _to(incident)
        context = {**self.admin_site.each_context(request), "form": form, "title": title, "opts": self.opts}
        return TemplateResponse(request, "admin/status/incident/post.html", context)


def _require(request: HttpRequest, permission: str) -> None:
    if not request.user.has_perm(permission):
        raise PermissionDenied


def _poster(request: HttpRequest) -> Poster:
    return Poster(id=str(request.user.pk), label=str(getattr(request.user, "label", request.user)))


def _mark(form: forms.Form, refusal: DomainError) -> None:
    for name, texts in refusal.fields.items():
        for text in texts:
            form.add_error(name if name in form.fields else None, translated(text))
    if not refusal.fields:
        form.add_error(None, translated(refusal.message))


def _to(incident: Incident) -> HttpResponse:
    return redirect(reverse("admin:status_incident_change", args=[incident.pk]))


@admin.register(IncidentUpdate)
class IncidentUpdateAdmin(ReadOnlyAdmin):
    fields = ("incident", "stage", "text", "posted_at", "posted_by", "posted_by_id")
    list_display = ("incident", "stage", "posted_at", "posted_by")
    list_filter = ("stage",)
    list_select_related = ("incident",)
    search_fields = ("incident__title", "text", "posted_by")


@admin.register(PartStatus)
class PartStatusAdmin(ReadOnlyAdmin):
    fields = ("part", "status", "since", "checked_at")
    list_display = fields
    list_filter = ("status",)
    search_fields = ("part",)


@admin.register(PartDay)
class PartDayAdmin(ReadOnlyAdmin):
    fields = ("part", "day", "operational_s", "degraded_s", "down_s")
    list_display = fields
    search_fields = ("part",)
    date_hierarchy = "day"
