from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy, ngettext

from gateway.lib import clock, ids
from gateway.lib.errors import DomainError, NotFound
from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.lib.translated import sentences_of, translated
from gateway.web.form_page import FormPage
from gateway.web.sessions import key_of
from gateway.web.signed_in import SignedInPage
from orgs.selectors import management_tokens
from orgs.services.browser_sessions import end_other_sessions, end_session, sessions_in_force
from orgs.services.mail_choices import choose_mail, mail_choices
from orgs.services.profile import update_profile


class ProfileForm(forms.Form):
    display_name = forms.CharField(
        label=gettext_lazy("Display name"),
        max_length=NAME_MAX_CHARACTERS,
        required=False,
        help_text=gettext_lazy("Shown in lists and logs."),
    )
    first_name = forms.CharField(label=gettext_lazy("First name"), max_length=NAME_MAX_CHARACTERS, required=False)
    last_name = forms.CharField(label=gettext_lazy("Last name"), max_length=NAME_MAX_CHARACTERS, required=False)


class ProfilePage(FormPage[ProfileForm]):
    """GET, POST /profile."""

    title = gettext_lazy("Profile")
    form_class = ProfileForm
    template = "orgs/profile.html"

    def initial(self) -> dict[str, Any]:
        return {name: getattr(self.actor, name) for name in ProfileForm.base_fields}

    def save(self, form: ProfileForm) -> HttpResponse:
        update_profile(user=self.actor, **form.cleaned_data)
        messages.success(self.request, gettext("Saved."))
        return redirect("profile")

    def context(self) -> dict[str, Any]:
        own_key = key_of(self.request.session)
        return {
            "tokens": [(row, row.is_expired(clock.now())) for row in management_tokens(self.actor)],
            "mail": mail_choices(self.actor),
            "languages": settings.LANGUAGES,
            "delivery": settings.MAIL_DELIVERY,
            "sessions": [(row, row.session_id == own_key) for row in sessions_in_force(self.actor)],
        }


class MailChoicesPage(SignedInPage):
    """POST /profile/mail: the language of messages and the optional ones that the person wants. Spec: D167"""

    http_method_names = ["post"]
    title = gettext_lazy("Profile")

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            choose_mail(
                user=self.actor, language=request.POST.get("language", ""), wanted=request.POST.getlist("wanted")
            )
        except DomainError as refusal:
            messages.error(request, sentences_of(refusal))
        else:
            messages.success(request, gettext("Saved."))
        return redirect("profile")


class EndSessionsPage(SignedInPage):
    """POST /profile/sessions: ends one session, or with `others` all but this one."""

    http_method_names = ["post"]
    title = gettext_lazy("Profile")

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            messages.success(request, self._ended())
        except NotFound:
            messages.info(request, gettext("This session has already ended."))
        except DomainError as refusal:
            messages.error(request, translated(refusal.message))
        return redirect("profile")

    def _ended(self) -> str:
        if "others" in self.request.POST:
            count = end_other_sessions(actor=self.actor, session=self.request.session, key_of=key_of)
            return ngettext(
                "Signed out of %(count)s other browser.", "Signed out of %(count)s other browsers.", count
            ) % {"count": count}
        key = ids.known_id(self.request.POST.get("session", ""))
        ended = end_session(actor=self.actor, own_key=key_of(self.request.session), session_id=key)
        return gettext("Signed out of %(browser)s.") % {"browser": translated(ended.in_words)}
