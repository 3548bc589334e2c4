"""The frame of both logs' pages: filters, time range, count, export and live tail. The filters are the query string."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext

from audit.csv_columns import CsvColumns
from audit.distinct_values import latest_labels
from audit.filters import Filters, Parsers, parse_before
from audit.log_pages import MAX_EXACT_TOTAL, Total, exceeds_one_export, page_of, total_of
from audit.log_query import MAX_EXPORTED, LogQuery
from audit.matching import matching_entries
from audit.models import LogModel
from audit.pages import time_range
from audit.pages.people import People
from gateway.lib import clock
from gateway.lib.errors import Invalid
from gateway.lib.ids import known_id
from gateway.lib.numbers import grouped
from gateway.lib.rows import required_row
from gateway.lib.translated import translated
from gateway.web.gate import Gate, PlanFunction
from gateway.web.log_reads import log_read
from gateway.web.org_page import OrgPage
from gateway.web.signed_in import is_by_htmx
from orgs.roles import Role

PAGE_SIZE = 50
# The suggestions of one filter that come with the page; its script fetches longer lists when a field is focused.
SUGGESTED_AT_FIRST = 20
AROUND = timedelta(minutes=5)
Asked = dict[str, str]


class LogPage(OrgPage):
    """A subclass names its filters and its rows. Spec: §4.10 · D79, D83-D85, D147"""

    # Like the log's API, it is withheld without an active plan.
    gates = {"GET": Gate(Role.ADMIN, plan=PlanFunction.LOGS)}
    template: ClassVar[str]
    api_route: ClassVar[str]
    # By the name in the query string, the label of its pill; in the order of the pills.
    filters: ClassVar[Mapping[str, str | Promise]]
    # The filter by a person or service client.
    subject: ClassVar[str]
    log: ClassVar[LogModel]
    parsers: ClassVar[Parsers]
    columns: ClassVar[CsvColumns]
    # The count of rows in words, by `number`; of more than can be counted; and of none.
    rows_found: ClassVar[Any]
    more_rows: ClassVar[str | Promise]
    no_rows: ClassVar[str | Promise]

    # The part with all details of one row.
    drawer: ClassVar[str]

    def row(self, entry: Any) -> dict[str, Any]:
        """More of a row for its line in the list."""
        return {}

    def details(self, entry: Any) -> dict[str, Any]:
        """More of it for its drawer."""
        raise NotImplementedError

    def choices(self) -> dict[str, Any]:
        """Context of the filters' fields."""
        raise NotImplementedError

    def fixed(self) -> Asked:
        """Filters that the page's address names; they have no field and no pill."""
        return {}

    def callers(self) -> Sequence[str] | None:
        """The subjects whose rows the page shows; None for all."""
        return None

    def labels(self) -> Mapping[str, str]:
        """The names that the filter of people suggests, by id."""
        return latest_labels(self.log, self.organization.id, self.subject)

    def suggestions(self, people: People) -> dict[str, list[str]]:
        """Texts that the fields of the filters suggest, by the id of the list."""
        return {"people": people.listed}

    def meant(self, name: str, value: str) -> str:
        """The value behind a text that was typed into the field of a filter."""
        return value

    def get(self, request: HttpRequest, **path: Any) -> HttpResponse:
        """`?entry=` names one row, which is shown with its details. Raises: ShareTaken, SlotsTaken; NotFound.

        The page's script gets the row's details alone, and with `?suggestions` all suggestions of the filters.
        """
        if "entry" in request.GET and is_by_htmx(request):
            return self._drawer(request)
        with log_read(self.organization.id):
            if "suggestions" in request.GET and is_by_htmx(request):
                return self._all_suggestions(request)
            return self._one(request) if "entry" in request.GET else self._answer(request)

    def _drawer(self, request: HttpRequest) -> HttpResponse:
        """One row, found by its id: it takes no slot of the long reads."""
        entry = self._entry(request)
        shown = {"organization": self.organization, "entry": entry, "row": self._with_details(entry)}
        return render(request, self.drawer, shown)

    def _all_suggestions(self, request: HttpRequest) -> HttpResponse:
        return render(request, "audit/_all_suggested.html", {"suggested": self.suggestions(People(self.labels()))})

    def _one(self, request: HttpRequest) -> HttpResponse:
        entry = self._entry(request)
        people = People(self.labels())
        context = {
            **self.choices(),
            **self._filter_context({}, people),
            "rows": [self._with_details(entry)],
            "drawer": self.drawer,
            "newest_url": self.request.path,
            "count": self._counted(Total(1, is_estimate=False)),
            "entries_url": self._api(),
        }
        return self.page(self.template, context)

    def _entry(self, request: HttpRequest) -> Any:
        """Raises: NotFound, also for a row that this page does not list."""
        filters = replace(Filters.parse(self.parsers, self.fixed()), callers=self.callers())
        rows = matching_entries(self.log, self.organization.id, filters)
        return required_row(rows.filter(id=known_id(request.GET["entry"])))

    def _with_details(self, entry: Any) -> dict[str, Any]:
        return {"entry": entry, "around": self.around(entry), **self.row(entry), **self.details(entry)}

    def _answer(self, request: HttpRequest) -> HttpResponse:
        people = People(self.labels())
        asked = self._asked(request, people)
        context = {**self.choices(), **self._filter_context(asked, people)}
        try:
            query = time_range.resolved(asked) | self.fixed()
            filters = replace(Filters.parse(self.parsers, query), callers=self.callers())
            rows = matching_entries(self.log, self.organization.id, filters)
            before = parse_before(request.GET)
        except Invalid as refusal:
            # A wrong filter matches nothing: rows that it would have left out are not shown either.
            context["errors"] = [
                (self.label_of(name), " ".join(map(translated, texts)))
                for name, texts in sorted(refusal.fields.items())
            ]
            return self.page(self.template, context, status=400)
        return self.page(self.template, {**context, **self._found(rows, asked, query, before)})

    def label_of(self, name: str) -> str:
        labels = {**self.filters, time_range.NAME: gettext("Time"), "start": gettext("From"), "end": gettext("To")}
        return str(labels.get(name, name))

    def text_of(self, name: str, value: str) -> str:
        """The value of a filter as its pill shows it."""
        return value

    def url_with(self, **filters: str) -> str:
        return f"?{urlencode({name: value for name, value in filters.items() if value})}"

    def around(self, entry: Any) -> str:
        """The address of the same person's rows within AROUND."""
        return self.between(getattr(entry, self.subject), entry.timestamp - AROUND, entry.timestamp + AROUND)

    def between(self, subject_id: str, start: datetime, end: datetime) -> str:
        period = {"start": clock.rfc3339(start), "end": clock.rfc3339(end)}
        return self.url_with(**{self.subject: subject_id, **period})

    def _asked(self, request: HttpRequest, people: People) -> Asked:
        names = [*self.filters, time_range.NAME, *time_range.OWN]
        typed = {name: value for name in names if (value := request.GET.get(name, "").strip())}
        asked = {name: self.meant(name, value) for name, value in typed.items()}
        if any(name in asked for name in time_range.OWN):
            asked.pop(time_range.NAME, None)
        if self.subject in asked:
            asked[self.subject] = people.id_of(asked[self.subject])
        return asked

    def _filter_context(self, asked: Asked, people: People) -> dict[str, Any]:
        subject = people.text_of(asked.get(self.subject, ""))
        texts = {**{name: self.text_of(name, value) for name, value in asked.items()}, self.subject: subject}
        if (period := asked.get(time_range.NAME, "")) in time_range.PRESETS:
            texts[time_range.NAME] = str(time_range.PRESETS[period].label)
        suggested = self.suggestions(people)
        return {
            "asked": asked,
            "subject": subject,
            "no_rows": self.no_rows,
            "suggested": {name: values[:SUGGESTED_AT_FIRST] for name, values in suggested.items()},
            "suggests_more": any(len(values) > SUGGESTED_AT_FIRST for values in suggested.values()),
            "pills": [(self.label_of(name), texts[name], self.url_with(**_without(asked, name))) for name in asked],
            "presets": self._presets(asked),
            "page_url": self.request.path,
        }

    def _presets(self, asked: Asked) -> list[tuple[str, str, bool]]:
        """(label, address, whether it is the current one); the first one is all time."""
        others = _without(asked, time_range.NAME, *time_range.OWN)
        presets = [
            (str(preset.label), self.url_with(**others, **{time_range.NAME: name}), asked.get(time_range.NAME) == name)
            for name, preset in time_range.PRESETS.items()
        ]
        return [(gettext("All time"), self.url_with(**others), others == asked), *presets]

    def _found(
        self, rows: QuerySet[Any], asked: Asked, query: Mapping[str, str], before: uuid.UUID | None
    ) -> dict[str, Any]:
        page = page_of(rows, LogQuery(limit=PAGE_SIZE, cursor=before))
        total = total_of(rows)
        older = page.next_cursor
        return {
            "entries": page.entries,
            "rows": [{"entry": entry, **self.row(entry)} for entry in page.entries],
            "older_url": self.url_with(**asked, before=str(older)) if older else "",
            "newest_url": self.url_with(**asked) if before else "",
            "count": self._counted(total),
            "entries_url": self._api(),
            "tail_url": "" if before or "end" in query else self._tail(query, page.entries),
            **self._export(rows, total, query),
        }

    def _counted(self, total: Total) -> str:
        if total.is_estimate:
            return str(self.more_rows) % {"count": grouped(MAX_EXACT_TOTAL)}
        return str(self.rows_found % {"number": total.rows, "count": grouped(total.rows)})

    def _export(self, rows: QuerySet[Any], total: Total, query: Mapping[str, str]) -> dict[str, Any]:
        too_many = exceeds_one_export(rows, total)
        return {
            "export_url": "" if too_many or not total.rows else self._api(**query, format="csv"),
            "too_many": grouped(MAX_EXPORTED) if too_many else "",
            "columns": self.columns,
        }

    def _tail(self, query: Mapping[str, str], entries: Sequence[Any]) -> str:
        """The API's count of rows that are newer than the first one shown."""
        newest = entries[0].timestamp + clock.MILLISECOND if entries else clock.now()
        return self._api(**{**query, "start": clock.rfc3339(newest)}, limit="1")

    def _api(self, **query: str) -> str:
        return f"{reverse(self.api_route)}?{urlencode({'org_id': str(self.organization.id), **query})}"


def _without(asked: Asked, *names: str) -> Asked:
    return {name: value for name, value in asked.items() if name not in names}
