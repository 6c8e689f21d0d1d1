"""The report of an evaluation: one page with everything in it, figures and tables beside it."""

import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyspark

from octopis.evaluation.claims import outcome
from octopis.evaluation.claims_section import OURS, THE_PAPERS, add_claims, write_claims
from octopis.evaluation.exact import Exact, exact
from octopis.evaluation.experiments import PUBLISHERS, RATES, SIZES, EvaluationSize, several
from octopis.evaluation.figures import all_figures
from octopis.evaluation.folders import PAPERS, Folders, Request
from octopis.evaluation.measures import Measures
from octopis.evaluation.paper_claims import CLAIMS
from octopis.evaluation.tables import rounded, run_rows, sensitivity, series_rows, write_csv
from octopis.evaluation.target_claims import TARGET_CLAIMS
from octopis.files import whole_folder
from octopis.report.machine import describe
from octopis.report.page import Link, Page
from octopis.report.pictures import write_figure
from octopis.scenario.costs import TARGET_STEP, Profile


class Report:
    """What an evaluation found, worked out, and the page that says it."""

    def __init__(
        self, folders: Folders, request: Request, profile: Profile, measures: Measures
    ) -> None:
        self._folders = folders
        self._request = request
        self._profile = profile
        self._measures = measures
        self.outcomes = [outcome(claim, measures) for claim in CLAIMS]
        self.target_outcomes = [outcome(claim, measures) for claim in TARGET_CLAIMS]
        self.exact = exact(measures)
        self.cautions = cautions(request)

    @property
    def has_seeds(self) -> bool:
        """Whether there are several seeds, and so a spread to show."""
        return len(self._measures.seeds) > 1

    def write(self) -> Path:
        """Leave the page with its figures and tables, and return where it is."""
        # One that is there is replaced: it follows from the rest, and is quickly made.
        with whole_folder(self._folders.report, lambda _: None) as folder:
            self._write(folder)
        return self._folders.page

    def _write(self, folder: Path) -> None:
        self._tables(folder / "tables")
        page = Page("OctopiS beside the paper", self._lead(), self.cautions)
        self._exact_section(page)
        self._claims_section(page)
        self._target_section(page)
        page.section("Figures")
        for name, (figure, caption) in all_figures(self._measures).items():
            paths = [folder / "figures" / f"{name}{ending}" for ending in (".png", ".svg")]
            write_figure(figure, paths)
            page.figure(paths[1], caption)
            beside = [*paths, folder / "tables" / "figure-11.csv"][
                : 3 if name == "figure-11" else 2
            ]
            page.files("As files:", [_beside(path, folder) for path in beside])
        self._sensitivity_section(page)
        self._how_section(page)
        (folder / self._folders.page.name).write_text(page.text(), encoding="utf-8")

    def _lead(self) -> str:
        verdicts = Counter(each.verdict for each in self.outcomes)
        missed = verdicts["not reproduced"]
        near = verdicts["near"]
        held = sum(each.verdict == "holds" for each in self.target_outcomes)
        exactly = "all" if all(each.holds for each in self.exact) else "NOT all"
        return (
            f"Of {len(self.outcomes)} claims of the paper, {len(self.outcomes) - missed} go in the "
            f"same direction here, {near} of them with a figure near the paper's; {missed} are not "
            f"reproduced. What must hold exactly does in {exactly} of "
            f"{len(self._measures.all)} runs. Of {len(self.target_outcomes)} claims of our own, "
            f"about target routing, {held} hold. Nothing was tuned towards any of them."
        )

    def _exact_section(self, page: Page) -> None:
        page.section("What must hold exactly")
        page.table(
            ("what", "found", "holds"),
            [
                (each.text, each.found, ("good", "yes") if each.holds else ("bad", "NO"))
                for each in self.exact
            ],
        )
        page.files("As a file:", [_table("exact")])

    def _claims_section(self, page: Page) -> None:
        page.section(THE_PAPERS.title)
        seeds = " and over the seeds" if self.has_seeds else ""
        page.paragraph(
            f"Ours is the mean over the points of an experiment{seeds}. A figure is near if it is "
            "within a quarter of the paper's, or within 2 points of a percentage."
        )
        add_claims(page, THE_PAPERS, self.outcomes, has_seeds=self.has_seeds)

    def _target_section(self, page: Page) -> None:
        page.section(OURS.title)
        page.paragraph(
            "Target routing (TNR) is ours, not the paper's: a notification is matched once, at its "
            "publisher's host, and carries its targets. These are the goals that we set for it "
            f"before it was measured. {self._target_cost()}"
        )
        add_claims(page, OURS, self.target_outcomes, has_seeds=self.has_seeds)

    def _target_cost(self) -> str:
        if self._request.costs.target_routing_us is None:
            return (
                "The profile does not say what its step costs: it is taken to cost "
                f"{TARGET_STEP:g} of BID's, as measured between our own brokers."
            )
        return "What its step costs is `target_routing_us` in the table of costs below."

    def _sensitivity_section(self, page: Page) -> None:
        page.section("Sensitivity")
        page.paragraph(
            "Most costs of the model are assumed. Two small scenarios, one without and one with a "
            "burst, were run again with one assumption changed at a time. Figures are how many "
            "percent less the first has than the second; below 0 it has more."
        )
        table = sensitivity(self._measures)
        page.table(
            ("changed", *table.titles),
            [
                (f"`{name}`", *(("number", rounded(value)) for value in values))
                for name, values in table.rows
            ],
            groups=(("", 1), *table.groups),
        )
        page.files("As a file:", [_table("sensitivity")])

    def _how_section(self, page: Page) -> None:
        request = self._request
        page.section("How it was run")
        page.table(("", ""), setting(request))
        page.table(
            (f"cost (profile {request.profile})", "value", "source"),
            [
                (f"`{name}`", getattr(request.costs, name), self._profile.sources[name])
                for name in request.costs.__struct_fields__
                if getattr(request.costs, name) is not None  # what is not said is as BID's
            ],
        )

    def _tables(self, folder: Path) -> None:
        write_claims(folder, THE_PAPERS, self.outcomes)
        write_claims(folder, OURS, self.target_outcomes)
        write_csv(
            folder / "exact.csv",
            ("what", "found", "holds"),
            [(each.text, each.found, each.holds) for each in self.exact],
        )
        table = sensitivity(self._measures)
        rows = [(name, *values) for name, values in table.rows]
        write_csv(folder / "sensitivity.csv", ("changed", *table.columns), rows)
        write_csv(folder / "runs.csv", *run_rows(self._measures))
        write_csv(folder / "figure-11.csv", *series_rows(self._measures))


def cautions(request: Request) -> list[str]:
    """Return what one has to know before one compares our figures with the paper's."""
    found = []
    if request.topology != PAPERS:
        found.append(
            f"This is not the paper's overlay, but {_overlay(request)}: what differs from the "
            "paper's figures may differ for that reason alone."
        )
    if request.size is EvaluationSize.FULL:
        return found
    quick, full = SIZES[EvaluationSize.QUICK], SIZES[EvaluationSize.FULL]
    return [
        *found,
        "This is a quick run: all experiments have the paper's shape, but not its size. The burst, "
        f"for one, is of {quick.burst_high_rate:,} notifications and not of "
        f"{full.burst_high_rate:,}. Directions can be compared with the paper's; times in seconds, "
        "shares and lengths of queues cannot. `octopis evaluate --full` has the paper's size.",
    ]


def _overlay(request: Request) -> str:
    overlay = request.overlay
    name = "the paper's S_e" if request.topology == PAPERS else overlay.name
    regions, clusters = len(overlay.scot.regions), len(overlay.scot.clusters)
    brokers = len(overlay.scot.brokers)
    return f"{name}: {regions} regions, {clusters} clusters, {brokers} brokers"


def _beside(path: Path, folder: Path) -> Link:
    return Link(path.name, path.relative_to(folder).as_posix())


def _table(name: str) -> Link:
    return Link(f"{name}.csv", f"tables/{name}.csv")


def failed(found: list[Exact]) -> list[str]:
    """Return what must hold exactly and does not."""
    return [f"{each.text}: {each.found}" for each in found if not each.holds]


def setting(request: Request) -> list[tuple[str, str]]:
    """Return sizes, seeds, quotes, versions and the machine."""
    sizes = SIZES[request.size]
    rates = ", ".join(f"{rate // 1000}K" for rate in RATES)
    return [
        ("size, seeds", f"{request.size.value}, {_seeds(request.seeds)}"),
        ("overlay", _overlay(request)),
        (
            "subscriber scalability",
            f"{_listed(sizes.subscribers)} subscribers; {PUBLISHERS} publishers of "
            f"{sizes.subscribers_notifications:,} notifications, 60 a minute",
        ),
        (
            "publisher scalability",
            f"{_listed(sizes.publishers)} publishers of {sizes.publishers_notifications:,}, 100 a "
            f"minute; {sizes.publishers_subscribers:,} subscribers",
        ),
        (
            "burst",
            f"{sizes.burst_subscribers:,} subscribers; {PUBLISHERS} publishers of "
            f"{sizes.burst_notifications:,}, 60 a minute; a high-rate publisher of "
            f"{sizes.burst_high_rate:,} at {rates} a minute; tau 10, t_w 50 ms",
        ),
        (
            "several high-rate publishers",
            f"1, {_listed(several(sizes, request.overlay))}, at {RATES[0] // 1000}K",
        ),
        ("quotes", ", ".join(Path(path).name for path in request.quotes) or "synthetic, seed 1"),
        (
            "versions",
            f"OctopiS {request.version}, Spark {pyspark.__version__}, "
            f"Python {platform.python_version()}",
        ),
        ("machine of this report", describe()),
    ]


def _seeds(count: int) -> str:
    return "seed 1" if count == 1 else f"seeds 1 to {count}"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)
