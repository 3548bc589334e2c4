"""SELECTs over the tables of `audit.usage.parts`, by the figures that they are for. Names are those of their kinds."""

from __future__ import annotations

from audit.usage.parts import CALLED, COUNTED_ONLY, branch

_DURATION = "CAST(SUM(duration_ms) AS bigint)"
DAY_BRANCH = branch("day", "CAST(day AS text)", "outcome", "source", where="level = 'day'", amount=_DURATION)
_PAIR = branch("pair", "vendor", "caller", where=f"{CALLED} AND vendor <> ''")
_USER = branch("user", "user_id", table="caller")
_PERSON = branch("user", "caller", where="level = 'person' AND caller IS NOT NULL")
# The same buckets as without the vendor.
_BUCKET_OF_VENDOR = branch("bucket", "vendor", table="bucket", by="bucket")
OF_DAYS = {"day": DAY_BRANCH, "user": _PERSON}
OF_USAGE = {
    "day": DAY_BRANCH,
    "pair": _PAIR,
    "user": _USER,
    "label": branch("label", "user_id", "label", latest="row_id", table="label", calls="0"),
    "new label": branch("label", "user_id", "user_label", latest="id", table="loose", calls="0"),
    "bucket": branch("bucket", table="bucket", by="bucket"),
}
OF_VENDORS = {
    "pair": _PAIR,
    "vendor": branch("vendor", "vendor", "outcome", where="level = 'tool'", amount=_DURATION),
    "tool": branch("tool", "vendor", "tool", where=f"level = 'tool' AND {COUNTED_ONLY}"),
    "bucket": _BUCKET_OF_VENDOR,
}
OF_SAVINGS = {
    "source": branch(
        "source",
        "source",
        where=f"level = 'day' AND {COUNTED_ONLY}",
        amount="CAST(SUM(response_bytes) AS bigint)",
    ),
    # One row for each list that a command-line caller did not load on a day.
    "list": branch("list", "vendor", where=f"{CALLED} AND unloaded IS NOT NULL", calls="COUNT(*)"),
}
# All that a ready day has.
OF_A_DAY = OF_DAYS | OF_SAVINGS | OF_VENDORS | {"user": _USER}
