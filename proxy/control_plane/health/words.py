"""The monitor's remarks as sentences that pages can translate. They are stored, and sent by /api, in English."""

from __future__ import annotations

import re

from gateway.lib.sentences import sentence

# By pattern, the sentence with the values of the pattern's groups. `states` and `probe` write these texts.
_ONE_FAILURE = re.compile(r"(?P<what>.+), 1 failure")
_FAILURES = re.compile(r"(?P<what>.+), (?P<count>\d+) failures in a row")
_ODD_ANSWER = re.compile(r"answered initialize with (?P<answer>.+); tool calls may fail")
_TIMED_OUT = re.compile(r"timed out after (?P<seconds>\S+) s")
_STATUS = re.compile(r"answered HTTP (?P<status>\d+)")
_SLOW = re.compile(r"slow: answered after (?P<duration_ms>\d+) ms")
# Texts without values, for the catalogs.
PLAIN = (
    sentence("could not be reached"),
    sentence("host name not found"),
    sentence("cut off its response"),
    sentence("something that is not MCP"),
)


def in_words(text: str) -> str:
    """The same text; with the parts that a page can translate, if the text is one of the monitor's."""
    if found := _FAILURES.fullmatch(text):
        return sentence("%(what)s, %(count)s failures in a row", what=in_words(found["what"]), count=found["count"])
    if found := _ONE_FAILURE.fullmatch(text):
        return sentence("%(what)s, 1 failure", what=in_words(found["what"]))
    if found := _ODD_ANSWER.fullmatch(text):
        return sentence("answered initialize with %(answer)s; tool calls may fail", **found.groupdict())
    if found := _TIMED_OUT.fullmatch(text):
        return sentence("timed out after %(seconds)s s", **found.groupdict())
    if found := _STATUS.fullmatch(text):
        return sentence("answered HTTP %(status)s", **found.groupdict())
    if found := _SLOW.fullmatch(text):
        return sentence("slow: answered after %(duration_ms)s ms", **found.groupdict())
    return text


def joined(error_detail: str | None, remark: str) -> str:
    """Both remarks on a vendor in one text; "" without one."""
    if error_detail and remark:
        return sentence("%(error)s; %(remark)s", error=in_words(error_detail), remark=in_words(remark))
    return in_words(error_detail or remark)
