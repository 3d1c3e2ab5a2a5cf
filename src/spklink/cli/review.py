"""The command that opens a page on which people listen and decide."""

from __future__ import annotations

from typing import Unpack

from spklink.settings import Results, ReviewOptions


def review(out: Results, **options: Unpack[ReviewOptions]) -> None:
    """Listen and decide on a local web page; prints its address and serves until interrupted."""
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
