"""Write docs/library.md: every public name of the package with the place where it is defined, for
mkdocstrings to fill in; a test fails when the two disagree.

python docs/make_library.py
"""

from __future__ import annotations

from pathlib import Path

import spklink

PAGE = Path(__file__).parent / "library.md"
HEAD = """# The library, name by name

Made from the code. [The library](api.md) has an example for every one of them.
"""


def library() -> str:
    """The page: a line a name, jobs first, then what they are made of."""
    names = [name for name in spklink.__all__ if not name.startswith("_")]
    jobs = [name for name in names if name[0].islower()]
    kinds = [name for name in names if name[0].isupper()]
    parts = [HEAD, "## Functions\n", *map(_entry, jobs), "## Classes\n", *map(_entry, kinds)]
    return "\n".join(parts)


def _entry(name: str) -> str:
    return f"::: {getattr(spklink, name).__module__}.{name}\n"


if __name__ == "__main__":
    PAGE.write_text(library(), encoding="utf-8")
    print(PAGE)
