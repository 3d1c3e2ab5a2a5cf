"""The names of the corpora that are known, and where the reader of each is."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from spklink.corpora.corpus import Corpus
from spklink.errors import SpklinkError

CORPORA = {  # name → what it is
    "cgn": "Corpus Gesproken Nederlands, telephone components c and d",
    "kaldi": "a Kaldi data folder: wav.scp, utt2spk, segments, reco2file_and_channel",
    "lhotse": "Lhotse manifests: recordings and supervisions as .jsonl or .jsonl.gz",
    "nist": "NIST SRE: segments with trial keys or lists of models",
    "switchboard": "Switchboard-1: sw02001.sph and tables/call_con_tab.csv",
    "fisher": "Fisher English: fe_03_00001.sph and fe_03_p1_calldata.tbl",
    "harpervalley": "Gridspace-Stanford Harper Valley: audio, metadata, transcript",
}


def read_corpus(named: str, component: str | None = None) -> Corpus:
    """The tables of a corpus, given as `name:PATH`."""
    name, mark, path = named.partition(":")
    if not mark or not path or name.lower() not in CORPORA:
        raise SpklinkError(
            f"--corpus {named!r} is not NAME:PATH; the names are {', '.join(CORPORA)}"
        )
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise SpklinkError(f"{folder}: not a folder; --corpus {name} wants that of the corpus")
    found: Corpus = import_module(f"spklink.corpora.{name.lower()}").read(folder, component)
    if not found.calls:
        raise SpklinkError(f"{folder}: no conversation with a recording in it; is it {name}?")
    return found


def refuse_component(component: str | None, name: str) -> None:
    """For corpora that have none."""
    if component is not None:
        raise SpklinkError(f"--component {component!r}: {name} has no components")
