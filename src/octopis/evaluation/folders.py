"""Where everything of an evaluation is, and whether a folder holds the one that is asked for."""

from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from octopis.core.topology import NamedTopology, format_topology, from_catalogue, parse_topology
from octopis.errors import InvalidConfiguration
from octopis.evaluation.experiments import OF_THE_PAPER, OVERLAY, EvaluationSize
from octopis.files import check_local, is_draft, remove_drafts, write_json
from octopis.scenario.costs import Costs
from octopis.trace.summary import FILE as SUMMARY

REQUEST = "evaluation.json"
PAPERS = format_topology(from_catalogue(OVERLAY))
"""The document of the paper's overlay."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is evaluated: two equal requests have equal results."""

    version: str
    size: EvaluationSize
    seeds: int
    profile: str
    costs: Costs
    quotes: list[str]
    """Files of quotes; none for synthetic ones."""
    topology: str = PAPERS
    """The overlay's document."""
    algorithms: tuple[str, ...] = tuple(each.value for each in OF_THE_PAPER)
    """Those that are compared; where a request does not say, it is from before there was TNR."""

    @property
    def overlay(self) -> NamedTopology:
        """The overlay that everything runs on."""
        return parse_topology(self.topology, "the evaluation's topology")


@dataclass(frozen=True)
class Folders:
    """The parts of an evaluation's folder; what is there is whole."""

    out: Path

    @property
    def quotes(self) -> Path:
        """The ingested quotes."""
        return self.out / "quotes"

    @property
    def runs(self) -> Path:
        """All traces."""
        return self.out / "runs"

    @property
    def report(self) -> Path:
        """The page, its figures and tables."""
        return self.out / "report"

    @property
    def page(self) -> Path:
        """The page itself."""
        return self.report / "index.html"

    def scenario(self, name: str) -> Path:
        """A scenario."""
        return self.out / "scenarios" / name

    def truth(self, name: str) -> Path:
        """The fingerprint of a scenario's ground truth."""
        return self.out / "truth" / f"{name}.json"

    def trace(self, run: str) -> Path:
        """A trace's summary, which is written last."""
        return self.runs / run / SUMMARY

    def metrics(self, group: str) -> Path:
        """The metrics of a group of runs."""
        return self.out / "metrics" / group


def claim_folder(out: Path, request: Request) -> Folders:
    """Make `out` the folder of this evaluation, or go on with the one that is there.

    One that has fewer seeds gets the others as well. Raises InvalidConfiguration where the folder
    holds another evaluation, or something else.
    """
    check_local(out)
    path = out / REQUEST
    try:
        if path.exists():
            before = msgspec.json.decode(path.read_bytes(), type=Request)
            _check_same(before, request, out)
            if request.seeds > before.seeds:
                write_json(path, request)
        elif out.exists() and any(not is_draft(each) for each in out.iterdir()):
            raise InvalidConfiguration(
                f"{out} is not empty and holds no evaluation: choose another folder"
            )
        else:
            out.mkdir(parents=True, exist_ok=True)
            write_json(path, request)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot write {out}: {failure.strerror}") from failure
    except msgspec.DecodeError as failure:
        raise InvalidConfiguration(f"{path} is not an evaluation's: {failure}") from failure
    remove_drafts(out)
    return Folders(out)


def _check_same(before: Request, request: Request, out: Path) -> None:
    if request.seeds < before.seeds:
        raise InvalidConfiguration(
            f"{out} holds an evaluation with {before.seeds} seeds: say --seeds {before.seeds} or "
            "more, or choose another folder"
        )
    difference = _difference(replace(before, seeds=request.seeds), request)
    if difference:
        raise InvalidConfiguration(
            f"{out} holds an evaluation with another {difference}:"
            " choose another folder, or remove it"
        )


def _difference(before: msgspec.Struct, request: msgspec.Struct) -> str:
    """Return the first field that differs, with both values; of costs, which one."""
    for name in request.__struct_fields__:
        old, new = getattr(before, name), getattr(request, name)
        if old != new:
            if isinstance(new, Costs):
                return _difference(old, new)
            if name == "topology":
                old, new = _overlay_name(old), _overlay_name(new)
            return f"{name} ({_shown(old)}, not {_shown(new)})"
    return ""


def _overlay_name(document: str) -> str:
    return parse_topology(document, "the evaluation's topology").name


def _shown(value: object) -> str:
    return (", ".join(value) or "none") if isinstance(value, list | tuple) else str(value)
