"""Labels by whole columns are what they are row by row; so are their errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spklink import whole_columns
from spklink.database import labels
from spklink.database.conversations import make_conversations
from spklink.database.labels import read_claims, read_key, read_known
from spklink.errors import SpklinkError

PLAIN = make_conversations([("1", "a", "b"), ("2", "b", "é"), ("3", "é", "a")])
true = st.sampled_from(["1,1,a", "1,2,b", "2,2,b", "2,1,é", "3,1,é", "3,2, a "])
other = st.sampled_from(["1,1,b", "9,1,a", "1,3,a", "1,1,*", "1,1,x", ",1,a", "2,2,b", "1,1"])


def outcome(read, content, least):
    before, whole_columns.LEAST = whole_columns.LEAST, least
    try:
        found = read(content, PLAIN)
    except SpklinkError as error:
        return str(error)
    finally:
        whole_columns.LEAST = before
    said = found.said
    return (
        *(repr(found.exchanged.tolist()), found.foreign, list(said.names), said.heard),
        *(one.tolist() for one in (said.conversation, said.track, said.person, said.probability)),
        found.speakers(PLAIN).tolist(),
    )


@pytest.mark.parametrize("read", [read_key, read_known, read_claims])
@given(
    rows=st.lists(true | true | other, min_size=1, max_size=6),
    word=st.sampled_from(["channel", "track"]),
)
def test_the_same_labels_and_errors(read, rows, word, tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "k.csv"
    path.write_text("\n".join([f"conversation,{word},speaker", *rows, ""]))
    assert outcome(read, path, 0) == outcome(read, path, 1 << 60)


def test_usual_ones_are_not_read_row_by_row(tmp_path, monkeypatch):
    monkeypatch.setattr(whole_columns, "LEAST", 0)
    monkeypatch.setattr(labels, "open_table", None)
    path = tmp_path / "k.csv"
    path.write_text("conversation,channel,speaker,probability\n1,2,a,\n1,1,b,\n9,1,z,\n2,1,b,\n")
    found = read_key(path, PLAIN)
    assert found.bits.tolist() == [1, 0, -1]
    assert found.foreign == 1
    assert list(found.said.names) == ["a", "b", "b"]
