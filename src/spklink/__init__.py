"""spklink: who is on which channel of every two-channel call, with probabilities one can trust.

Jobs, as on the command line: link, assign, partition, compare, calibrate, evaluate, consistency,
detect, write_report, export, check, simulate, load. Pieces to build on: tables, links, cliques,
models, posteriors.
The names load on first use, so that importing the package (and `spklink --help`) is instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spklink.compiled import keep_somewhere

__version__ = "0.1.0"
keep_somewhere()

if TYPE_CHECKING:
    from spklink.database.cliques import Cliques as Cliques
    from spklink.database.cliques import find_cliques as find_cliques
    from spklink.database.conversations import Conversations as Conversations
    from spklink.database.conversations import read_conversations as read_conversations
    from spklink.database.labels import Labels as Labels
    from spklink.database.labels import read_key as read_key
    from spklink.database.labels import read_known as read_known
    from spklink.database.links import Links as Links
    from spklink.database.links import find_links as find_links
    from spklink.errors import SpklinkError as SpklinkError
    from spklink.measures.entropy import levels as levels
    from spklink.posterior.answer import Answer as Answer
    from spklink.posterior.likelihood import Weight as Weight
    from spklink.posterior.likelihood import build_model as build_model
    from spklink.posterior.posterior import Options as Options
    from spklink.posterior.posterior import Posterior as Posterior
    from spklink.posterior.posterior import solve as solve
    from spklink.recognizers.recognizer import Recognizer as Recognizer
    from spklink.report.write import write_report as write_report
    from spklink.runs.assign import assign as assign
    from spklink.runs.calibrate import calibrate as calibrate
    from spklink.runs.check import check as check
    from spklink.runs.compare import compare as compare
    from spklink.runs.export import export as export
    from spklink.runs.folder import load as load
    from spklink.runs.init import init as init
    from spklink.runs.link import link as link
    from spklink.runs.measure import consistency as consistency
    from spklink.runs.measure import detect as detect
    from spklink.runs.measure import evaluate as evaluate
    from spklink.runs.partition import partition as partition
    from spklink.runs.partition_measure import evaluate_partition as evaluate_partition
    from spklink.runs.partition_result import Partition as Partition
    from spklink.runs.result import Result as Result
    from spklink.scores.files import read_scores as read_scores
    from spklink.worlds.simulate import simulate as simulate
else:  # where each name is; a test holds this against the lines above
    _HOME = {
        "Cliques": "database.cliques",
        "find_cliques": "database.cliques",
        "Conversations": "database.conversations",
        "read_conversations": "database.conversations",
        "Labels": "database.labels",
        "read_key": "database.labels",
        "read_known": "database.labels",
        "Links": "database.links",
        "find_links": "database.links",
        "SpklinkError": "errors",
        "levels": "measures.entropy",
        "Answer": "posterior.answer",
        "Weight": "posterior.likelihood",
        "build_model": "posterior.likelihood",
        "Options": "posterior.posterior",
        "Posterior": "posterior.posterior",
        "solve": "posterior.posterior",
        "Recognizer": "recognizers.recognizer",
        "write_report": "report.write",
        "assign": "runs.assign",
        "calibrate": "runs.calibrate",
        "check": "runs.check",
        "compare": "runs.compare",
        "export": "runs.export",
        "load": "runs.folder",
        "init": "runs.init",
        "link": "runs.link",
        "consistency": "runs.measure",
        "detect": "runs.measure",
        "evaluate": "runs.measure",
        "partition": "runs.partition",
        "evaluate_partition": "runs.partition_measure",
        "Partition": "runs.partition_result",
        "Result": "runs.result",
        "read_scores": "scores.files",
        "simulate": "worlds.simulate",
    }

    def __getattr__(name):
        from importlib import import_module

        if name not in _HOME:
            raise AttributeError(f"module 'spklink' has no attribute {name!r}")
        return getattr(import_module(f"spklink.{_HOME[name]}"), name)

    def __dir__():
        return __all__


__all__ = [
    "Answer",
    "Cliques",
    "Conversations",
    "Labels",
    "Links",
    "Options",
    "Partition",
    "Posterior",
    "Recognizer",
    "Result",
    "SpklinkError",
    "Weight",
    "__version__",
    "assign",
    "build_model",
    "calibrate",
    "check",
    "compare",
    "consistency",
    "detect",
    "evaluate",
    "evaluate_partition",
    "export",
    "find_cliques",
    "find_links",
    "init",
    "levels",
    "link",
    "load",
    "partition",
    "read_conversations",
    "read_key",
    "read_known",
    "read_scores",
    "simulate",
    "solve",
    "write_report",
]
