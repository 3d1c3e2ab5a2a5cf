"""Tables written by columns are byte for byte those written row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spklink import assign, simulate, written_columns
from spklink.database.cliques import inseparable
from spklink.measures.evaluation import configurations
from spklink.posterior.answer import STRANGER
from spklink.runs.rows import (
    ASSIGNMENTS,
    CLIQUES,
    PRESENCE,
    assignment_columns,
    clique_columns,
    presence_columns,
)
from spklink.shown import Probability
from spklink.tables import probability_text, write_csv
from spklink.texts import Texts
from spklink.worlds.simulate import write_simulation
from spklink.written_columns import Column, numbers, probabilities, rows_of, write_columns

cells = st.text("ab,;\"\n\r =+-@\t'é", max_size=5) | st.integers(-3, 3) | st.sampled_from(["", "x"])
columns = st.lists(st.lists(cells, min_size=1, max_size=4), min_size=1, max_size=3)


@pytest.fixture(autouse=True)
def _many(monkeypatch):
    """As if any number of rows were many, a few of them at once."""
    monkeypatch.setattr(written_columns, "FEW", -1)
    monkeypatch.setattr(written_columns, "AT_ONCE", 3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns, st.integers(0, 7), st.booleans(), st.data())
def test_the_same_bytes(tmp_path, some, count, safe, data):
    names = ["conversation", "speaker", "probability"][: len(some)]
    which = st.lists(st.integers(0, 0), min_size=count, max_size=count)
    made = []
    for one in some:
        which = st.lists(st.integers(0, len(one) - 1), min_size=count, max_size=count)
        texts = all(isinstance(cell, str) for cell in one)
        number = np.array(data.draw(which), np.int64)
        made.append(Column(Texts.of(one) if texts else one, number))
    rows = list(rows_of(made))
    assert len(rows) == count
    write_csv(tmp_path / "rows.csv", names, rows, safe=safe)
    if len(names) == 1 and any(row == ("",) for row in rows):
        return  # one empty cell alone in its row is quoted
    write_columns(tmp_path / "columns.csv", names, made, safe=safe)
    assert (tmp_path / "columns.csv").read_bytes() == (tmp_path / "rows.csv").read_bytes()


@given(st.lists(st.floats(0.0, 1.0) | st.sampled_from([0.0, -0.0, 1.0, 1.0 - 1e-13, 0.1 + 0.2])))
def test_probabilities_are_written_as_one_by_one(values):
    one, two = probabilities(np.array(values, np.float64), np.array(values[:1], np.float64))
    found = list(one.part(0, len(values)))
    assert found == [probability_text(value) for value in values]
    assert all(isinstance(cell, Probability) for cell in found)
    assert list(two.part(0, 1)) == found[:1]
    [plain] = numbers(np.array(values, np.float64))
    assert list(plain.part(0, len(values))) == [f"{value:.10g}" for value in values]


# --- the tables of results ------------------------------------------------------------------------


def assignments(result):
    """Row by row, lists taken at their word."""
    table, posterior, usable = result.conversations, result.posterior, result.usable
    label, figures = posterior.model.cliques.label, posterior.confidence()
    for m, name in enumerate(table.ids):
        people = table.names(m)[:: -1 if posterior.best[m] else 1]
        settled = posterior.settled()[m]
        resolvable = posterior.model.cliques.resolvable[label[m]]
        decision = "settled" if settled else "open" if resolvable else "unresolvable"
        chance, low, high = (probability_text(one[m]) for one in figures)
        origin = "given" if posterior.bits[m] >= 0 else "inferred"
        for track, who in enumerate(people):
            good = usable is None or usable[2 * m + track]
            yield (
                *(name, track + 1, who if good else "", chance, int(label[m]) + 1, low, high),
                *(posterior.certainty[label[m]], origin, decision if good else "unusable"),
            )


def seats(answer, given, usable):
    table, label = answer.table, answer.cliques.label
    twins = set(table.listing.conversation[inseparable(table)].tolist())
    for side, (m, track) in enumerate(
        zip(table.sides.conversation.tolist(), table.sides.position.tolist(), strict=True)
    ):
        who = answer.speaker()[side]
        if not usable[side]:
            decision = "unusable"
        elif answer.wrong.chance[m] > 0.5:
            decision = "misfit"
        elif answer.settled()[side]:
            decision = "settled"
        else:
            apart = m in twins or not answer.cliques.resolvable[label[m]]
            decision = "unresolvable" if apart else "open"
        ends = (answer.confidence.chance, answer.confidence.low, answer.confidence.high)
        chance, low, high = (probability_text(one[side]) for one in ends)
        name = "*" if who == STRANGER else table.speakers[who]
        yield (
            *(table.ids[m], track + 1, name if usable[side] else "", chance, int(label[m]) + 1),
            *(low, high, answer.certainty[int(label[m])]),
            *("given" if given[m] else "inferred", decision),
        )


def test_results_are_written_as_before(tmp_path):
    made = simulate(shape="network", conversations=40, eer=10.0, seed=3)
    write_simulation(made, tmp_path / "made")
    result = assign(tmp_path / "made" / "conversations.csv", tmp_path / "made" / "scores.csv")
    rows = list(assignments(result))
    assert [tuple(row) for row in result.assignments()] == rows
    folder = result.save(tmp_path / "out")
    write_csv(tmp_path / "a.csv", ASSIGNMENTS, rows)
    assert (folder / "assignments.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    posterior, cliques = result.posterior, result.posterior.model.cliques
    best, relative = posterior.best_probability(), posterior.relative_probability()
    expected = [
        (
            *(k + 1, int(cliques.size[k]), int(cliques.speakers[k])),
            configurations(int(cliques.size[k])),
            "true" if cliques.resolvable[k] else "false",
            f"{(posterior.entropy_low[k] + posterior.entropy_high[k]) / 2.0:.10g}",
            probability_text(float(best[0][k] + best[1][k]) / 2.0),
            probability_text(float(relative[0][k] + relative[1][k]) / 2.0),
            *(posterior.method[k], posterior.certainty[k]),
            "true" if posterior.proved_optimal()[k] else "false",
        )
        for k in range(len(cliques))
    ]
    assert list(rows_of(clique_columns(posterior))) == expected
    write_csv(tmp_path / "c.csv", CLIQUES, expected)
    assert (folder / "cliques.csv").read_bytes() == (tmp_path / "c.csv").read_bytes()


def test_answers_in_full_are_written_as_before(tmp_path):
    rows = [
        {"conversation": f"c{k}", "participants": who}
        for k, who in enumerate(["a;b", "a;?c;?", "b;c", "a;c;*", "d;e", "?b;a;?"])
    ]
    rng = np.random.default_rng(5)
    result = assign(rows, lambda one, two: float(rng.normal()), calibration="none")
    answer = result.answer
    given = rng.random(len(rows)) < 0.5
    usable = rng.random(len(answer.table.sides)) < 0.8
    found = list(rows_of(assignment_columns(answer, given, usable)))
    assert found == list(seats(answer, given, usable))
    table, presence = answer.table, answer.presence
    expected = [
        (
            *(table.ids[m], table.speakers[table.people[e]]),
            "possible" if table.possible[e] else "certain",
            *(probability_text(one[e]) for one in (presence.chance, presence.low, presence.high)),
        )
        for e, m in enumerate(table.listing.conversation.tolist())
    ]
    assert list(rows_of(presence_columns(answer))) == expected
    assert len(PRESENCE) == len(expected[0])
