"""What a gateway says of itself: OpenAPI, its page, and its metrics."""

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus_text

from support.gateway import Gateway, curl, events
from support.overlay_command import wait_until


def test_description_is_openapi_and_names_what_there_is(gateway: Gateway):
    from openapi_spec_validator import validate  # noqa: PLC0415 - slow to load

    found = curl(f"{gateway.url}/openapi.json").json
    validate(found)
    assert found["openapi"].startswith("3.1")
    page = curl(f"{gateway.url}/docs").body
    for path, operations in found["paths"].items():
        assert path in page
        for method in operations:
            if path == "/ws":
                continue
            asked = curl(
                gateway.url + path.replace("{name}", "nobody"),
                "-X",
                method.upper(),
                "--max-time",
                "1",
                data=b"" if method == "post" else None,
            )
            assert asked.status not in {405, 500}, (method, path)
    assert "http://" not in page.replace(gateway.url, "")
    assert "https://" not in page


def test_page_and_its_picture_are_there_and_nothing_outside_the_folder(gateway: Gateway):
    page = curl(f"{gateway.url}/")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert curl(f"{gateway.url}/favicon.ico").headers["content-type"] == "image/svg+xml"
    assert curl(f"{gateway.url}/static/index.html").status == 200
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py"):
        assert curl(f"{gateway.url}{path}", "--path-as-is").status == 404


def test_prometheus_reads_the_metrics(gateway: Gateway):
    gateway.publish({"test": "metrics"})
    plain = {each.name: each for each in prometheus_text(gateway.metrics())}
    accepted = {
        sample.labels["door"]: sample.value
        for sample in plain["octopis_gateway_published"].samples
        if sample.name.endswith("_total")
    }
    assert accepted["json"] >= 1
    asked = curl(f"{gateway.url}/metrics", "-H", "accept: application/openmetrics-text")
    assert asked.headers["content-type"].startswith("application/openmetrics-text")
    families = {each.name for each in open_metrics(asked.body)}
    assert {"octopis_gateway_publish_seconds", "octopis_gateway_streams"} <= families
    assert {"process_resident_memory_bytes", "process_cpu_seconds"} <= families


def test_labels_do_not_grow_with_readers(gateway: Gateway):
    def series() -> int:
        return sum(not line.startswith("#") for line in gateway.metrics().splitlines())

    with events(f"{gateway.url}/notifications", filter="a = 0"):
        before = series()
        with events(f"{gateway.url}/notifications", filter="a = 1"):
            with events(f"{gateway.url}/notifications", filter="a = 2"):
                wait_until(lambda: "streams" in gateway.metrics())
                assert series() == before
