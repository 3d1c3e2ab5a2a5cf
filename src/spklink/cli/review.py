"""The command that opens a page on which people listen and decide."""

from __future__ import annotations

from typing import Unpack

from spklink.settings import Results, ReviewOptions


def review(out: Results, **options: Unpack[ReviewOptions]) -> None:
    """Listen and decide, on a page that only this machine can open.

    Prints the address of the page, and serves it until interrupted."""
    from spklink.cli import show
    from spklink.review.server import serve

    def tell(address: str) -> None:
        show.text(f"review: {address}")
        show.text("only this machine can open it; Ctrl-C ends it, what was decided is stored")
        if options["open"]:
            import webbrowser

            webbrowser.open(address)

    with show.stages_on_stderr() as stages:
        serving = serve(
            out,
            port=options["port"],
            blind=options["blind"],
            reviewer=options["reviewer"] or "",
            order=options["order"],
            workers=options["workers"],
            stages=stages,
        )
    serving(tell)
