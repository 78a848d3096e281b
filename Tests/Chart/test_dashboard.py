"""The Grafana dashboard: it asks for what exists, and the chart hands it on as it is."""

import json

import catalogue
from chart_docs import CHART
from rendering import rendered

TEXT = (CHART / "dashboards" / "martlet.json").read_text(encoding="utf-8")
DASHBOARD = json.loads(TEXT)
PANELS = [each for each in DASHBOARD["panels"] if each["type"] != "row"]


def test_the_panels_ask_for_metrics_that_exist():
    queries = [target["expr"] for panel in PANELS for target in panel["targets"]]
    assert len(queries) > 30
    for query in queries:
        assert catalogue.faults(query) == []
        assert "$job" in query
        assert query.count("(") == query.count(")")


def test_the_panels_have_titles_words_and_places_of_their_own():
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        columns, lines = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        cells = {(column, line) for column in columns for line in lines}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert all(panel["title"] and panel["description"] for panel in PANELS)


def test_every_metric_is_shown():
    shown = "".join(target["expr"] for panel in PANELS for target in panel["targets"])
    missing = {name for name in catalogue.FAMILIES if name not in shown}
    assert not missing


def test_the_chart_hands_the_dashboard_on_as_it_is():
    (made,) = [each for each in rendered("monitors").all("ConfigMap") if "martlet.json" in each["data"]]
    assert json.loads(made["data"]["martlet.json"]) == DASHBOARD
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert made["metadata"]["annotations"] == {"grafana_folder": "Push"}
