"""The kinds of messages of this app are registered when their modules are loaded."""

from proxy.control_plane.alerts.mail import ALERT

KINDS = (ALERT,)
