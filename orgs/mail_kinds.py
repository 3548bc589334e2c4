"""The kinds of messages of this app are registered when their modules are loaded."""

from orgs import notices
from orgs.services import invitation_mail, mail_domains

KINDS = (*notices.KINDS, invitation_mail.INVITATION, mail_domains.ASKED_TO_JOIN)
