"""The health of a home on the overview: findings, their remedies, and repairs that lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from keepstone.home import Home
from keepstone.model import Finding
from keepstone.operations.error_codes import message_of
from keepstone.text.display import counted
from keepstone.text.pasting import placed, split_commands
from keepstone.web.components import FindingList
from keepstone.web.elements import EXPECTED, aside, attempt, box, button, confirmed, empty, failure, say, tell
from keepstone.web.phrases import shown
from keepstone.web.site import Place

_WORST_FIRST = ("error", "warning", "ok")
_FIXES: dict[str, tuple[Callable[[Home], object], str]] = {
    "keepstone doctor --fix": (
        lambda home: home.doctor(fix=True),
        "Everything in this home that can be repaired is repaired, not this finding alone. Unreadable "
        "lines are taken out of their logs; each log that is changed is kept as it was, beside its archive.",
    ),
    "keepstone index --rebuild": (Home.rebuild, "All indexes are made again from the logs, which stay."),
    "keepstone index": (Home.sync, "The indexes take in what is missing. The logs stay."),
}
"""The remedies that this page can apply, as they lose nothing: each with its function and description."""


class Health:
    """A section with the latest findings."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def build(self) -> None:
        """Draw the section, which is empty before the first ``check``."""
        with box("section", "source health", id="health"):
            with box(classes="head"):
                say("h2", "Health")
                box(classes="fill")
                self.again = button("Check", self.check, "plain")
                self.deep = button("Check deeply", partial(self.check, deep=True), "plain")
            say("p", "Every log is read and every index compared with it. Nothing is changed.", "hint")
            self.sum = say("p", "", "answer-line", role="status")
            self.list = FindingList()
            self.list.when("fix", self._fix)
            self.none = box()
            with box("details") as self.fine:
                self.passed = say("summary", "")
                self.fine_list = FindingList()
            self.fine.set_visibility(False)

    async def check(self, *, deep: bool = False) -> None:
        """Check the home; a deep check also finds secrets in old lines, and entries in conflict."""
        self.sum.text = "Checking …"
        for control in (self.again, self.deep):
            control.props.update(disabled=True)
        self.none.clear()
        try:
            self._draw(await aside(self._findings, deep))
        except EXPECTED as error:
            with self.none:
                failure(message_of(error))
        for control in (self.again, self.deep):
            control.props.update(disabled=False)

    async def _fix(self, remedy: str) -> None:
        """Apply a remedy after a confirmation, and check again."""
        if remedy not in _FIXES or not self.place.is_admin:
            return
        apply, words = _FIXES[remedy]
        if not await confirmed("Repair this home?", words, "Repair"):
            return
        with attempt():
            await self.place.check_admin()
            await aside(apply, self.place.site.home)
            tell("Repaired")
        await self.check()
        self.again.run_method("focus")

    def _findings(self, deep: bool) -> list[Finding]:  # noqa: FBT001  Called by place.
        """Return the findings about agents that the reader may see."""
        allowed, findings = self.place.access.agents, self.place.site.home.doctor(deep=deep)
        if allowed is None:
            return findings
        return [finding for finding in findings if finding.agent in allowed]

    def _draw(self, findings: list[Finding]) -> None:
        findings = sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.level))
        fine = [finding for finding in findings if finding.level == "ok"]
        self.list.show(findings=[self._view(finding) for finding in findings if finding.level != "ok"])
        self.fine_list.show(findings=[self._view(finding) for finding in fine])
        self.passed.text = f"{counted(len(fine), 'check')} passed"
        self.fine.set_visibility(bool(fine))
        self.sum.text = _sum(findings)
        if not findings:
            with self.none:
                empty("Nothing to check yet", "The first log is created with the first entry.")

    def _view(self, finding: Finding) -> dict[str, Any]:
        options = self.place.site.place
        return {
            "level": finding.level,
            "subject": shown(finding.subject),
            "message": _pieces(placed(finding.message, options)),
            "cost": shown(finding.cost),
            "remedy": _pieces(placed(finding.remedy, options)),
            "fix": finding.remedy if self.place.is_admin and finding.remedy in _FIXES else "",
        }


def _pieces(text: str) -> list[dict[str, str]]:
    return [{"kind": kind, "text": shown(piece)} for kind, piece in split_commands(text)]


def _sum(findings: list[Finding]) -> str:
    levels = [finding.level for finding in findings]
    bad = [counted(levels.count(level), level) for level in ("error", "warning") if level in levels]
    return " and ".join(bad) or "All is well."
