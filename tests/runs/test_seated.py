"""The answer in full, from run to folder and back; claims held against it."""

import pytest

import spklink
from spklink.database.labels import read_claims
from spklink.runs.claims import suspects_of


def rows_of(result):
    return [[str(cell) for cell in row] for row in result.assignments()]


@pytest.mark.parametrize("how", [{"shape": "star", "conversations": 40}, {"shape": "cgn"}])
def test_what_is_loaded_is_what_was_saved(how, tmp_path):
    """Also where nothing is exact: the rate that was estimated gives the same answer again."""
    made = spklink.simulate(**how, eer=10.0, seed=2)
    result = spklink.assign(made.table(), made.scores(), tmp_path, list_errors="auto")
    again = spklink.load(tmp_path)
    assert rows_of(again) == rows_of(result)
    assert again.answer.rate == result.answer.rate
    assert again.misfits == [list(row) for row in result.misfits]


@pytest.fixture(scope="module")
def meetings():
    made = spklink.simulate(
        shape="meetings", conversations=8, people=5, tracks="3-3", eer=2.0, seed=1
    )
    return made, spklink.assign(made.table(), made.scores(), list_errors=0.01)


def test_claims_about_meetings(meetings):
    made, result = meetings
    table, names = result.conversations, made.on_side
    first = table.sides.of(0)
    right = [(table.ids[0], str(k + 1), name) for k, name in enumerate(names[first])]
    exchanged = [(*right[0][:2], right[1][2]), (*right[1][:2], right[0][2])]
    for said, expected in ((right, []), (exchanged, [table.ids[0]])):
        rows = [dict(zip(("conversation", "channel", "speaker"), row, strict=True)) for row in said]
        found = suspects_of(result.answer, read_claims(rows, table))
        assert [row[0] for row in found] == expected
        if expected:
            assert found[0][2].split(";") == [right[1][2], right[0][2], "?"]
            assert found[0][3].split(";") == [name for *_, name in right]


def test_claims_about_wrong_lists_are_the_same_everywhere(tmp_path):
    """What suspects.csv and the page count is one number, by the answer in full."""
    made = spklink.simulate(shape="cgn", eer=3.0, seed=4)
    result = spklink.assign(made.table(), made.scores(), list_errors=0.05)
    claims = read_claims(made.key(), result.conversations)
    found = suspects_of(result.answer, claims)
    wrong, worse = result.answer.against(claims.bits)
    assert len(found) == int(((wrong > 0.5 + 1e-9) & worse).sum())
    assert all(float(row[1]) > 0.5 for row in found)
