"""Pure: mail domains whose addresses anybody can get, so that no organization can be theirs."""

from __future__ import annotations

_PROVIDERS = frozenset(
    """
    126.com 163.com aol.com arcor.de bluewin.ch btinternet.com comcast.net cox.net duck.com fastmail.com fastmail.fm
    free.fr freenet.de gmail.com googlemail.com gmx.at gmx.ch gmx.com gmx.de gmx.net hey.com hushmail.com icloud.com
    inbox.lv kakao.com laposte.net libero.it mac.com mail.com mail.de mail.ru mailbox.org mailinator.com me.com msn.com
    naver.com o2.pl online.de onet.pl orange.fr passport.com pm.me posteo.de proton.me protonmail.ch protonmail.com
    qq.com rambler.ru rediffmail.com rocketmail.com seznam.cz sfr.fr sina.com t-online.de tuta.com tutanota.com
    tutanota.de virgilio.it wanadoo.fr web.de wp.pl xs4all.nl yandex.com yandex.ru ymail.com zoho.com zohomail.com
    """.split()
)
# With a domain in many countries, such as yahoo.co.uk.
_WORLDWIDE = frozenset({"aol", "gmx", "hotmail", "live", "outlook", "yahoo", "yandex"})
_SECOND_LEVEL = frozenset({"ac", "co", "com", "ne", "net", "org"})


def is_public_provider(domain: str) -> bool:
    """`domain`: in lower case."""
    labels = domain.split(".")
    is_country = len(labels) == 2 or (len(labels) == 3 and labels[1] in _SECOND_LEVEL)
    return domain in _PROVIDERS or (labels[0] in _WORLDWIDE and is_country)
