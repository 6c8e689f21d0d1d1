"""Dashboard, alerts and docs/operations.md speak of metrics that there are, as Prometheus does."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics.exposition import generate_latest

from octopis.benchmarks.processes import free_ports
from octopis.broker.settings import Durability, Metrics
from octopis.broker.telemetry.options import SpanOptions
from octopis.broker.telemetry.visits import Kind
from octopis.core.routing import Algorithm
from octopis.gateway.counts import Counts, registry_of
from support.collector import but_resends, collecting, tree
from support.live import in_a_thread, line, overlay
from support.overlay_command import Shell
from support.promtool import promtool
from support.scrapes import Scrape, read, scrape

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "observability"
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
RULES = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
FIRED = yaml.safe_load((FOLDER / "alerts_test.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Scrape:
    """A scrape of brokers with links, channels and disks, and of a gateway: all that there is."""
    (port,) = free_ports(1)
    folder = str(tmp_path_factory.mktemp("kept"))
    configuration = overlay(
        line(2, 2),
        Algorithm.TNR,
        metrics=Metrics(port=port),
        durability=Durability(folder),
        tracing=SpanOptions("http://127.0.0.1:1"),
    )
    with in_a_thread(configuration):
        brokers = scrape(f"http://127.0.0.1:{port}/metrics")
    gateway = read(generate_latest(registry_of(Counts(), lambda: 0)).decode())
    of_gateway = [each for each in gateway.text.splitlines() if "octopis_gateway" in each]
    text = brokers.text.removesuffix("# EOF\n") + "\n".join((*of_gateway, "# EOF\n"))
    return Scrape({**gateway.samples, **brokers.samples}, {**gateway.types, **brokers.types}, text)


def metrics_in(text: str) -> set[str]:
    return set(re.findall(r"\b(?:octopis|process)_[a-z_]+", text))


def known(found: Scrape) -> set[str]:
    """Return the names of all samples, and of histograms and counters themselves."""
    counters = {f"{name}_total" for name, kind in found.types.items() if kind == "counter"}
    gauges = {name for name, kind in found.types.items() if kind != "counter"}
    return found.names | counters | gauges


# Alerts


def test_alerts_say_how_urgent_they_are_and_what_is_wrong():
    assert len(ALERTS) > 10
    names = [rule["alert"] for rule in ALERTS]
    assert len(set(names)) == len(names)
    for rule in ALERTS:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
        assert rule["labels"]["severity"] in {"page", "warn"}
        assert rule["annotations"]["summary"]


def test_alerts_are_rules_that_prometheus_reads():
    done = promtool("check", "rules", FOLDER / "alerts.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_when_it_should_and_else_does_not():
    done = promtool("test", "rules", FOLDER / "alerts_test.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_tried_with_series_as_brokers_have_them(found: Scrape):
    wrong, well = FIRED["tests"]
    names = [rule["alert"] for rule in ALERTS]
    for tried, is_wrong in ((wrong, True), (well, False)):
        assert [each["alertname"] for each in tried["alert_rule_test"]] == names
        assert all(bool(each["exp_alerts"]) is is_wrong for each in tried["alert_rule_test"])
        for each in tried["input_series"]:
            name, _, labels = each["series"].partition("{")
            mine = set(re.findall(r"(\w+)=", labels)) - {"instance"}
            seen = [{label for label, _ in its} for kind, its in found.series if kind == name]
            assert not seen or any(mine <= labels for labels in seen), each["series"]
            assert name == "up" or name in known(found)


def test_alerts_speak_of_metrics_that_there_are(found: Scrape):
    for rule in ALERTS:
        named = metrics_in(rule["expr"])
        assert named or rule["expr"].startswith("up{")
        assert named <= known(found), rule["alert"]


def test_alerts_ask_for_labels_and_reasons_that_there_are(found: Scrape):
    labels = {name for _, its in found.series for name, _ in its} | {"instance", "job"}
    reasons = {value for _, its in found.series for name, value in its if name == "reason"}
    for rule in ALERTS:
        expression = rule["expr"]
        for part in re.findall(r"(?:by|on) \(([^)]*)\)", expression):
            assert set(part.split(", ")) <= labels
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= labels
        for pattern in re.findall(r'reason=~?"([^"]*)"', expression):
            for each in pattern.split("|"):
                assert any(re.fullmatch(each, reason) for reason in reasons), each


def test_every_alert_has_its_place_on_the_page():
    on_page = re.findall(r"^### (\w+)$", PAGE, re.MULTILINE)
    assert on_page == [rule["alert"] for rule in ALERTS]


# The dashboard


def test_dashboard_speaks_of_metrics_that_there_are(found: Scrape):
    assert len(EXPRESSIONS) > 30
    for expression in EXPRESSIONS:
        assert metrics_in(expression)
        assert metrics_in(expression) <= known(found), expression


def test_dashboard_is_as_grafana_provisions_it_and_asks_for_its_data_source():
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in PANELS:
        assert panel["datasource"] == source
        assert all(target["datasource"] == source for target in panel["targets"])
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    used = set(re.findall(r"\$(\w+)", " ".join(EXPRESSIONS)))
    assert used - {"__rate_interval"} <= set(variables)
    provider = yaml.safe_load((FOLDER / "grafana.yml").read_text(encoding="utf-8"))
    assert provider["providers"][0]["type"] == "file"


def test_panels_lie_beside_each_other_and_not_on_top():
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells = {(x, y) for x in columns for y in range(place["y"], place["y"] + place["h"])}
        assert max(columns) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_expressions_of_the_dashboard_are_promql(tmp_path: Path):
    filled = [
        each.replace("$__rate_interval", "1m").replace("$broker", ".*").replace("$job", "octopis")
        for each in EXPRESSIONS
    ]
    assert not any("$" in each for each in filled)
    rules = [{"record": f"panel:{number}", "expr": each} for number, each in enumerate(filled)]
    written = tmp_path / "dashboard.yml"
    document = {"groups": [{"name": "dashboard", "rules": rules}]}
    written.write_text(yaml.safe_dump(document), encoding="utf-8")
    done = promtool("check", "rules", written)
    assert done.returncode == 0, done.stdout + done.stderr


# What Prometheus is told to scrape, and what it then gets


def test_scrape_configuration_reads_the_alerts_and_is_what_the_page_shows():
    configuration = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
    assert configuration["rule_files"] == ["alerts.yml"]
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert yaml.safe_load(shown)["scrape_configs"] == configuration["scrape_configs"]


def test_scrape_configuration_is_read_by_prometheus():
    done = promtool("check", "config", FOLDER / "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_scrape_is_to_the_liking_of_prometheus_own_tool(found: Scrape):
    assert found.text.endswith("# EOF\n")
    done = promtool("check", "metrics", said=found.text.removesuffix("# EOF\n"))
    assert "octopis" not in done.stderr, done.stderr


# The page


def test_page_speaks_of_metrics_that_there_are(found: Scrape):
    assert metrics_in(PAGE) <= known(found)
    assert len(metrics_in(PAGE)) > 30
    reasons = {
        dict(its)["reason"]
        for name, its in found.series
        if name == "octopis_notifications_dropped_total"
    }
    (_, _, after) = PAGE.partition("| reason | what became of it |")
    table = after.partition("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines() if "|" in row]
    listed = {each for cell in cells for each in re.findall(r"`(\w+)`", cell)}
    assert listed == reasons


def test_commands_on_the_page_show_metrics(shell: Shell):
    block, _ = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    port = free_ports(2)[0]
    said: dict[str, Any] = {}
    for line_ in block.replace("9740", str(port)).splitlines():
        words = shlex.split(line_.removeprefix("$ "))
        if words[:2] == ["octopis", "sub"]:
            continue  # test_docs runs it: it goes on in the background
        if words[0] == "octopis":
            more = ["--port", "0"] if words[1:3] == ["overlay", "up"] else []
            done = shell.run(*words[1:], *more)
            said[words[2]] = done.stdout
        else:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            said[words[0]] = done.stdout
        assert done.returncode == 0, f"{line_}: {done.stderr}"
    assert f"http://127.0.0.1:{port}/metrics http://127.0.0.1:{port + 1}/metrics" in said["up"]
    assert "# TYPE octopis_ready gauge" in said["curl"]
    (running,) = json.loads(said["list"])["running"]
    assert running["metrics"] == [f"http://127.0.0.1:{port + n}/metrics" for n in range(2)]


def test_commands_on_the_page_leave_the_spans_that_it_says(shell: Shell):
    _, block = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    table = PAGE.partition("| span | kind |")[2].partition("\n\n")[0]
    described = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert described == {each.value for each in Kind}
    with collecting() as collector:
        commands = block.replace("http://127.0.0.1:4318", collector.endpoint).splitlines()
        for command in commands:
            words = shlex.split(command.removeprefix("$ octopis "))
            more = ["--port", "0"] if words[:2] == ["overlay", "up"] else []
            if "--background" in words:
                assert shell.start(*words, stdin=subprocess.DEVNULL).wait(timeout=30) == 0
                continue
            done = shell.run(*words, *more)
            assert done.returncode == 0, done.stderr
        found = but_resends(collector.spans)
    # Publisher and subscriber are at the first broker: nothing goes anywhere else.
    (place,) = {each.about["broker"] for each in found}
    assert set(tree(found).values()) == {"publisher", f"publish {place}"}
    told = {f"octopis.{name}" for each in found for name in each.about if "messaging" not in name}
    assert told <= set(re.findall(r"`(octopis\.\w+)`", PAGE))
