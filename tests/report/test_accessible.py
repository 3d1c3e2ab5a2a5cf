"""The report for people who do not see it, or not well: axe-core finds nothing."""

from __future__ import annotations

import pytest

from spklink.report.write import write_report
from spklink.runs.assign import assign
from spklink.worlds.simulate import simulate, write_simulation


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("accessible")
    made = simulate(shape="star", conversations=12, world="plda", seed=4)
    write_simulation(made, folder, npz=True)
    assign(folder / "conversations.csv", folder / "scores.npz", folder / "out")
    return write_report(folder / "out", key=folder / "key.csv")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (700, "dark")])
def test_no_violation_of_accessibility(browser, page, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    opened = context.new_page()
    opened.goto(page.resolve().as_uri())
    found = axe.run(opened).response["violations"]
    context.close()
    assert [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]] == []
