"""Write docs/glossary.md: the words of the report, for those who read the site; a test fails when
the two disagree.

python docs/make_glossary.py
"""

from __future__ import annotations

from pathlib import Path

from spklink.report.glossary import GLOSSARY

PAGE = Path(__file__).parent / "glossary.md"
HEAD = """# Glossary

Plain words first, with those of the paper and of the files beside them. The report ends with
the same list.
"""


def glossary() -> str:
    """The page: a row a word, in alphabetical order."""
    rows = [f"| {word} | {said} |" for word, said in sorted(GLOSSARY.items(), key=_alphabetical)]
    return "\n".join([HEAD, "| word | what it means |", "|---|---|", *rows, ""])


def _alphabetical(entry: tuple[str, str]) -> str:
    return entry[0].lower()


if __name__ == "__main__":
    PAGE.write_text(glossary(), encoding="utf-8")
    print(PAGE)
