"""The doctor page: findings in the home, and their remedies."""

from __future__ import annotations

from dataclasses import replace

from nicegui import ui

from keepstone.model import Finding
from keepstone.operations.documents import finding_document
from keepstone.operations.error_codes import message_of
from keepstone.text.display import counted
from keepstone.text.pasting import placed
from keepstone.web.components import FindingList
from keepstone.web.elements import EXPECTED, aside, box, button, empty, failure, say
from keepstone.web.frame import frame
from keepstone.web.phrases import shown
from keepstone.web.site import Place

_WORST_FIRST = ("error", "warning", "ok")


class DoctorPage:
    """State of the page: the latest findings."""

    def __init__(self, place: Place) -> None:
        self.place = place

    async def build(self) -> None:
        """Draw the page, which then starts the check."""
        lead = "Every log is read and every index compared with it. Nothing is changed."
        with frame(self.place, "doctor", "Doctor", lead) as head:
            with head:
                self.again = button("Check again", self._check, "plain")
            self.sum = say("p", "Checking …", "answer-line", role="status")
            self.list = FindingList()
            self.none = box()
            ui.timer(0, self._check, once=True)

    async def _check(self) -> None:
        self.sum.text = "Checking …"
        self.again.props.update(disabled=True)
        self.none.clear()
        try:
            self._draw(await aside(self._findings))
        except EXPECTED as error:
            with self.none:
                failure(message_of(error))
        self.again.props.update(disabled=False)

    def _findings(self) -> list[Finding]:
        """Return the findings about agents that the reader may see."""
        allowed, findings = self.place.access.agents, self.place.site.home.doctor()
        if allowed is None:
            return findings
        return [finding for finding in findings if finding.agent in allowed]

    def _draw(self, findings: list[Finding]) -> None:
        findings = sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.level))
        place = self.place.site.place
        findings = [replace(each, remedy=placed(each.remedy, place)) for each in findings]
        views = [
            {name: shown(str(value)) for name, value in finding_document(finding).items()}
            for finding in findings
        ]
        self.list.show(findings=views)
        self.sum.text = _sum(findings)
        if not findings:
            with self.none:
                empty("Nothing to check yet", "The first log is created with the first entry.")


def _sum(findings: list[Finding]) -> str:
    levels = [finding.level for finding in findings]
    bad = [counted(levels.count(level), level) for level in ("error", "warning") if level in levels]
    return " and ".join(bad) or "All is well."


async def build(place: Place) -> None:
    """Draw the page."""
    await DoctorPage(place).build()
