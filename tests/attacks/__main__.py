"""`python -m tests.attacks`: the sixty attacks as a table, one line a row; exit code 1 unless all of them are ok.

They run on PostgreSQL and Redis where TEST_DATABASE_URL and TEST_REDIS_URL (or DATABASE_URL and REDIS_URL) name them.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

ROWS = 60
NUMBER = re.compile(r"\[(\d\d) (.*)\]$")


@dataclass
class Report:
    """Counts the cases of each row as they end."""

    passed: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    failed: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    titles: defaultdict[int, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))  # in their order

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = NUMBER.search(report.nodeid)
        if found is None:
            return
        number = int(found[1])
        self.titles[number][found[2].partition(": ")[0]] = None
        if report.failed or report.skipped:
            self.failed[number].append(found[2])
        elif report.when == "call":
            self.passed[number] += 1

    def lines(self) -> list[str]:
        """One for each row: its number, whether it is ok, the number of cases, and the name of the attack."""
        found = []
        for number in range(1, ROWS + 1):
            failed, passed = self.failed[number], self.passed[number]
            word = "FAILED" if failed else "ok" if passed else "MISSING"
            cases = f"{passed} of {passed + len(failed)} cases"
            line = f"{number:2} {word:7} {cases:14}  {'; '.join(self.titles[number])}".rstrip()
            found.append(line + "".join(f"\n           {name}" for name in failed))
        return found

    def is_good(self) -> bool:
        return not any(self.failed.values()) and all(self.passed[number] for number in range(1, ROWS + 1))


def main(options: list[str]) -> int:
    """Run the tests of this folder, then print the table."""
    for name in ("DATABASE_URL", "REDIS_URL"):
        if value := os.environ.get(f"TEST_{name}"):
            os.environ[name] = value
    report = Report()
    code = pytest.main(["tests/attacks", "-q", "-p", "no:schemathesis", *options], plugins=[report])
    lines, cases = report.lines(), sum(report.passed.values())
    good = sum(line.split()[1] == "ok" for line in lines)
    sys.stdout.write("\n".join([*lines, f"{good} of {ROWS} rows ok, {cases} cases passed", ""]))
    return 0 if code == 0 and report.is_good() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
