"""The demonstration from beginning to end."""

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvloop

from octopis.core.routing import Algorithm
from octopis.demo import report as names
from octopis.demo.comparison import Compared, cautions, compared
from octopis.demo.deliveries import check_deliveries, write_deliveries
from octopis.demo.display import Scene
from octopis.demo.fault.cast import FaultPlan, cast_of
from octopis.demo.fault.display import FaultScene
from octopis.demo.fault.outcome import FaultOutcome
from octopis.demo.fault.play import play_fault
from octopis.demo.report import check_folder, report_page, write_pictures
from octopis.demo.rounds import Round, overlay_document, play_round
from octopis.demo.stage import Stage
from octopis.demo.texts import clients_sentence, overlay_sentence, slowed_sentence, tree_sentence
from octopis.demo.workload import (
    SHARE,
    SPARK_SETTINGS,
    Feed,
    Prepared,
    SlowedLink,
    prepare,
)
from octopis.files import whole_folder, write_json
from octopis.overlay.gateway import gateway_socket, gateway_url
from octopis.pipeline.spark.session import open_spark
from octopis.scenario.plan import ScenarioPlan
from octopis.signals import interrupts_cancel, stops_as_interrupts

ROUNDS = (Algorithm.BID, Algorithm.SNR, Algorithm.DNR, Algorithm.TNR)


@dataclass(frozen=True)
class Demonstrated:
    """What a demonstration has shown."""

    seed: int
    feed: Feed
    link: SlowedLink
    rows: list[Compared]
    fault: FaultOutcome

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "seed": self.seed,
            "slowed_link": {
                "source": self.link.source.short,
                "target": self.link.target.short,
                "bytes_per_s": self.link.bytes_per_s,
                "share_of_feed": SHARE,
                "hops_beyond": self.link.hops_beyond,
            },
            "high_rate_per_s": round(self.feed.per_s, 1),
            "conclusive": not cautions(self.rows),
            "cautions": cautions(self.rows),
            "rounds": [row.document() for row in self.rows],
            "fault": self.fault.document(),
        }


def run_demo(  # noqa: PLR0913, PLR0917 - each is an option of the command
    plan: ScenarioPlan,
    fault_plan: FaultPlan,
    out: Path,
    stage: Stage,
    settings: Mapping[str, str] | None = None,
    gateway_port: int | None = None,
) -> Demonstrated:
    """Prepare, play four rounds and a fault, check, and leave a report in `out`, made anew.

    `settings` are what the user wants of Spark. With a `gateway_port` (0: any that is free) the
    dashboard is there while brokers run. Raises InvalidConfiguration where `out` holds anything but
    an earlier demonstration's report, OperationFailed where the port is taken. Interrupted at any
    moment, it leaves no process, and `out` as it was.
    """
    with stops_as_interrupts(), whole_folder(out, check_folder) as draft:
        with ExitStack() as stack:
            door = None
            if gateway_port is not None:
                door = stack.enter_context(gateway_socket(gateway_port))
                stage.say(f"Watch it live: {gateway_url(door)}")
            with stage.doing("Starting Spark"):
                spark = stack.enter_context(open_spark(None, settings, defaults=SPARK_SETTINGS))
            with stage.doing("Making a scenario of stock quotes and its ground truth, on Spark"):
                prepared = prepare(spark, plan, draft / names.SCENARIO)
            _introduce(stage, prepared)
            rounds = _play(stage, prepared, draft, door)
            fault = _play_fault(stage, fault_plan, draft, door)
            if door is not None:
                door.close()  # no more overlays: pages are told so, and do not wait
            with stage.doing("Checking every delivery against the ground truth, on Spark"):
                write_deliveries(rounds, draft / names.DELIVERIES)
                verdicts = check_deliveries(
                    spark, prepared.scenario, draft / names.DELIVERIES, ROUNDS
                )
        rows = compared(rounds, verdicts)
        shown = Demonstrated(plan.seed, prepared.feed, prepared.link, rows, fault)
        with stage.doing("Drawing the report"):
            _leave(draft, prepared, shown, rounds)
    return shown


def _introduce(stage: Stage, prepared: Prepared) -> None:
    scenario, link = prepared.scenario, prepared.link
    stage.say("")
    stage.say(overlay_sentence(scenario))
    stage.say(clients_sentence(scenario, prepared.due))
    stage.say(f"{slowed_sentence(link, prepared.feed)} {tree_sentence(link)}")
    stage.say("")


def _play(stage: Stage, prepared: Prepared, draft: Path, door: socket.socket | None) -> list[Round]:
    scenario, link, rounds = prepared.scenario, prepared.link, list[Round]()
    for number, algorithm in enumerate(ROUNDS, 1):
        scene = Scene(
            scot=scenario.topology.scot,
            link=link,
            algorithm=algorithm,
            number=number,
            rounds=len(ROUNDS),
            notifications=scenario.notification_count,
            due=prepared.due,
        )
        with (
            TemporaryDirectory(dir=draft) as folder,
            stage.round(scene) as show_moment,
            interrupts_cancel(),
        ):
            played = play_round(scenario, link, algorithm, Path(folder), show_moment, door)
            rounds.append(uvloop.run(played))
    return rounds


def _play_fault(
    stage: Stage, plan: FaultPlan, draft: Path, door: socket.socket | None
) -> FaultOutcome:
    scene = FaultScene(cast_of(plan.topology), plan.per_s, number=len(ROUNDS) + 1)
    with (
        TemporaryDirectory(dir=draft) as folder,
        stage.fault(scene) as show_moment,
        interrupts_cancel(),
    ):
        return uvloop.run(play_fault(plan, Path(folder), show_moment, door))


def _leave(draft: Path, prepared: Prepared, shown: Demonstrated, rounds: list[Round]) -> None:
    write_pictures(draft, prepared, rounds, shown.fault)
    page = report_page(draft, prepared, shown.rows, shown.fault)
    (draft / names.REPORT).write_text(page, encoding="utf-8")
    document = overlay_document(prepared.scenario.topology, shown.link, Algorithm.TNR)
    (draft / names.OVERLAY).write_text(document, encoding="utf-8")
    write_json(draft / names.COMPARISON, shown.document())
