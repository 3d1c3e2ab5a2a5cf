"""Commands about what people hear and decide: review, queue, decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from spklink.review_options import DecisionsOptions, QueueOptions, Reviewed
from spklink.settings import Json, Results, ReviewOptions

if TYPE_CHECKING:
    from spklink.review.progress import Progress


def review(out: Results, **options: Unpack[ReviewOptions]) -> None:
    """Listen and decide, on a page that only this machine can open.

    Prints the address of the page, and serves it until interrupted."""
    from spklink.cli import show
    from spklink.review.server import make_server

    with show.stages_on_stderr() as stages:
        server = make_server(
            out,
            port=options["port"],
            blind=options["blind"],
            reviewer=options["reviewer"] or "",
            order=options["order"],
            workers=options["workers"],
            stages=stages,
        )
    show.text(f"review: {server.address}")
    show.text("only this machine can open it; Ctrl-C ends it, what was decided is stored")
    if options["open"]:
        import webbrowser

        webbrowser.open(server.address)
    server.run()


def queue(out: Results, *, as_json: Json = False, **options: Unpack[QueueOptions]) -> None:
    """What to listen to next, why, and how many listens it takes."""
    from spklink.cli import show
    from spklink.review.desk import Desk
    from spklink.runs.questions import percent

    with show.stages_on_stderr() as stages:
        desk = Desk.open(
            out,
            order=options["order"],
            certainty=options["certainty"],
            seed=options["seed"],
            workers=options["workers"],
            stages=stages,
        )
    found, progress = desk.queue(0, options["count"]), desk.progress()
    if as_json:
        rows = [one.as_json() for one in found]
        show.as_json({"progress": progress.as_json(), "queue": rows})
        return
    _progress(progress, options["certainty"])
    if not found:
        show.text("there is nothing to listen to")
        return
    columns = ("conversation", "sure", "bits", "settles", "question", "why")
    show.table(
        columns,
        [
            (
                one.conversation,
                percent(one.probability),
                show.number(one.bits, 2),
                show.number(one.settles, 1),
                one.question,
                one.reason,
            )
            for one in found
        ],
        right=("sure", "bits", "settles"),
    )
    if (more := desk.queue_length() - len(found)) > 0:
        show.text(f"and {more} more (--count)")


def _progress(progress: Progress, certainty: float) -> None:
    from spklink.cli import show
    from spklink.words import counted

    low, high = progress.listens
    ends = f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"between {low:.1f} and {high:.1f}"
    show.text(
        f"{counted(progress.conversations, 'conversation')}: {progress.decided} decided, "
        f"{progress.settled} settled without listening, {progress.open} open"
    )
    if progress.disagreements:
        show.text(f"people disagree about {counted(progress.disagreements, 'conversation')}")
    if progress.held_back:
        show.text(
            f"{counted(progress.held_back, 'conversation')} to be heard again: the recording has "
            "changed since it was decided"
        )
    if progress.open:
        about = "" if progress.listens_exact else "about "
        sure = show.percent(certainty, 0 if certainty <= 0.99 else 2)
        show.text(f"{about}{ends} listens are expected until each is {sure} sure")


def decisions(
    folder: Reviewed, *, as_json: Json = False, **options: Unpack[DecisionsOptions]
) -> None:
    """What was decided, by whom; checked, and handed over (-o).

    Every entry is held against the hashes of the log."""
    from spklink.cli import show
    from spklink.review.export import export, summary

    if folder.is_file():
        from spklink.decisions.log import read_log
        from spklink.review.export import log_summary

        found: dict[str, Any] = log_summary(read_log(folder), folder)
        files: list[Any] = []
    else:
        with show.stages_on_stderr() as stages:
            if options["out"] is None:
                found, files = summary(folder, workers=options["workers"], stages=stages), []
            else:
                found, files = export(
                    folder,
                    options["out"],
                    claimed=options["claimed"],
                    workers=options["workers"],
                    stages=stages,
                )
    if as_json:
        show.as_json(found | {"files": [str(path) for path in files]})
        return
    _decisions(found)
    for path in files:
        show.text(f"wrote {path}")


def _decisions(found: dict[str, Any]) -> None:
    from spklink.cli import show
    from spklink.words import counted

    show.text(_entries(found["entries"]))
    show.text(f"the log is whole; its last hash is {found['last_hash']}")
    for name, number in found["reviewers"].items():
        show.text(f"{name}: {counted(number, 'decision')}")
    if "progress" in found:
        said = found["progress"]
        show.text(
            f"{said['decided']} of {counted(said['conversations'], 'conversation')} decided, "
            f"{said['settled']} settled without listening, {said['open']} open"
        )
        for name in found["disagreements"]:
            show.text(f"people disagree about {name}: resolve it")
        for one in found["held_back"]:
            show.text(held_back(one["conversation"], one["reviewer"], one["time"]))
        for one in found["unchecked"]:
            show.text(
                f"{one['conversation']}: the recording cannot be read, so it is not known whether "
                f"it is the one that {one['reviewer']} decided on; the decision counts"
            )
    agreement = found.get("agreement") or {}
    if agreement.get("count"):
        low, high = (show.percent(agreement[end], 0) for end in ("low", "high"))
        show.text(
            f"blind: {agreement['same']} of {agreement['count']} heard what the system says "
            f"({show.percent(agreement['rate'], 0)}, between {low} and {high}); "
            f"{agreement['expected']:.1f} were to be expected"
        )


def held_back(conversation: str, reviewer: str, time: str) -> str:
    """What is said of a decision whose recording has changed."""
    when = f"{time[:10]} {time[11:16]} UTC"
    return (
        f"{conversation}: the recording has changed since {reviewer} decided ({when}); that "
        "decision is held back until somebody hears it again"
    )


def _entries(number: int) -> str:
    return f"{number:,} {'entry' if number == 1 else 'entries'} in the log"
