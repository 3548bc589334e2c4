"""The alerts and messages of one organization, newest first; and the removal of old ones."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from gateway.lib import clock
from orgs.alert_terms import MESSAGES_KEPT_FOR, AlertKind, Moment
from orgs.models import Alert, AlertMessage, Organization
from proxy.control_plane.alerts import words
from proxy.control_plane.alerts.facts import SIGN_IN_NEEDED


def alerts_of(organization: Organization) -> QuerySet[Alert]:
    return Alert.objects.filter(organization=organization).order_by("-began_at", "-id")


def open_alerts_of(organization: Organization) -> QuerySet[Alert]:
    return alerts_of(organization).filter(ended_at__isnull=True)


def alerts_for_home(organization: Organization) -> QuerySet[Alert]:
    """Those that go on, of causes that Home reads from nowhere else. Spec: D166"""
    kinds = Q(kind__in=[AlertKind.ERROR_SPIKE.value, AlertKind.LOG_SHIPPING_FAILING.value])
    sign_in = Q(kind=AlertKind.CREDENTIAL_REJECTED.value, detail=SIGN_IN_NEEDED)
    return open_alerts_of(organization).filter(kinds | sign_in)


def messages_of(organization: Organization) -> QuerySet[AlertMessage]:
    return AlertMessage.objects.filter(organization=organization).order_by("-created_at", "-id")


def in_words_of(alert: Alert) -> str:
    """The headline and the detail of an alert that goes on."""
    told = told_by(alert)
    return ": ".join(filter(None, (words.headline(told), words.detail(told))))


def told_by(alert: Alert) -> words.Told:
    return words.Told(AlertKind(alert.kind), Moment.BEGIN, alert.label, alert.detail, alert.level)


def told_in(message: AlertMessage) -> words.Told:
    """Of a message that is not a test."""
    moment = Moment(message.moment)
    return words.Told(AlertKind(message.kind), moment, message.label, message.detail, message.level)


def remove_old() -> int:
    """Remove messages, and alerts that are over; return the number of rows."""
    before = clock.now() - MESSAGES_KEPT_FOR
    messages = AlertMessage.objects.filter(created_at__lt=before).exclude(webhook=AlertMessage.Delivery.WAITING)
    removed, _ = messages.delete()
    told = AlertMessage.objects.filter(alert=OuterRef("pk"))
    over = Alert.objects.filter(ended_at__lt=before, told_level=0).exclude(Exists(told))
    return removed + over.delete()[0]
