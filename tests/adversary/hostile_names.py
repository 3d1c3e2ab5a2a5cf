"""Names that break careless pages: for markup, attributes, scripts, styles, templates, direction.

Every attempt to run something sets `window.hacked`. What a name looks like on a page is said here
once more, without the package: control characters and marks of direction as escapes. (A name with
a NUL byte is refused when the table is read.)
"""

from __future__ import annotations

import unicodedata

import numpy as np

LONGEST = 80  # letters of a name that a page shows at once
RUN = "window.hacked=1"
FIRST = [  # one of every kind: the quick run takes these alone
    "⟨data of the page⟩",
    f'" onpointermove="{RUN}" onclick="{RUN}" data-x="',
    f"</script><script>{RUN}</script>",
    f"\"><img src=x onerror='{RUN}'>",
    "</style><style>*{display:none!important}</style><!--",
    f"{{{{ data() }}}}{{% raw %}}${{{RUN}}}",
    "soh\x01esc\x1b[2J\x9bnext\nline\rreturn\ttab",
    "\u202eturned\u2066 and \u2069out",
    "שלום עולם (3)",
    "__proto__",
    "\u200b\u3164",
    "long" * 2500,
]
MORE = [
    *(f"<script>{RUN}</script>", f"<ScRiPt/x>{RUN}</sCrIpT >", f"<script src=//x.invalid/{RUN}>"),
    *(f"<svg onload={RUN}>", f"<svg><script>{RUN}</script></svg>", f"</svg><body onload={RUN}>"),
    *(f"<iframe srcdoc='<script>parent.{RUN}</script>'>", f"<object data=javascript:{RUN}>"),
    *(f"<details open ontoggle={RUN}>", f"<input autofocus onfocus={RUN}>"),
    *(f"javascript:{RUN}", f"java\tscript:{RUN}//", f"<a href=javascript:{RUN}>here</a>"),
    *(f"' onclick='{RUN}' x='", f"` onclick=`{RUN}` x=`", f"x onclick={RUN} y"),
    *(f'" style="background:url(//x.invalid)" onclick="{RUN}', '" hidden x="', '"/>', "'/>"),
    *("</script>", "</SCRIPT\n>", "</script", "<!--", "-->", "<!--<script>", "]]>", "<![CDATA["),
    *(
        "</title>",
        "</textarea>",
        "</bdi></td></table>",
        "</text></svg>",
        "<plaintext>",
        "<base href=//x>",
    ),
    *("<!-- times -->", "<!-- /times -->", "</html>", "<meta http-equiv=refresh content=0,x>"),
    *("&lt", "&#60script&#62", "&amp", "&quot onclick=x", "&#x22", "&nosuch", "&"),
    *("\\u003cscript\\u003e", "\\x3cscript>", "\\", '\\\\"', '"', "'", '","rows":[[', '\\"'),
    *("{{ 7 * 7 }}", "{% for x in () %}", "{# #}", "{{ self }}", "${7*7}", "#{7*7}", "<%= 7 %>"),
    *("{0.__class__}", "%s%n", "%(x)s", "{}", "{name}", "{task.description}"),
    *(
        "expression(alert(1))",
        "}*{color:red}",
        "@import url(//x.invalid)",
        "url(//x.invalid/x.png)",
    ),
    *(
        "constructor",
        "prototype",
        "toString",
        "hasOwnProperty",
        "valueOf",
        "__defineGetter__",
        "length",
    ),
    *("data", "detail", "search", "hits", "tip", "figure-staircase", "undefined", "null", "NaN"),
    *(
        "\x7f",
        "a\x08\x08b",
        "a\x0bb\x0cc",
        "\x85next",
        "a\u2028b\u2029c",
        "\ufeffbom",
        "\ufffd\uffff",
    ),
    *(
        "\u202a\u202b\u202c\u202d\u202e",
        "\u2066\u2067\u2068\u2069",
        "\u2069\u2069\u202eabc",
        "\u200frtl\u200e",
    ),
    *("مرحبا، كيف الحال", "עברית and English 123", "١٢٣", "\u061cمع"),
    *(
        "e\u0301\u0301\u0301",
        "Z" + "\u0335\u0322" * 30,
        "\u0301alone",
        "👩‍👩‍👧‍👦",
        "🏳️‍🌈🇳🇱",
        "🦊" * 50,
    ),
    *("\u00ad", "\u2060\u200c\u200d", "\u2800", "\u115f\u1160", "\U000e0041\U000e0042"),
    *(
        "=cmd|'/C calc'!A0",
        "../../../../etc/passwd",
        "C:\\nul",
        "-o",
        "--out=x",
        "$(reboot)",
        "`id`",
    ),
    *("x" * 79, "x" * 80, "x" * 81, "<" * 5000, "&" * 300, "\u202e" * 100, "word " * 60 + "end"),
    *("ſ", "İ", "ß", "ﬁ", "Ａ", "𝕳𝖆𝖈𝖐", "ǅ"),
]


def hostile_names(count: int, seed: int = 0) -> list[str]:
    """So many different names: one of every kind, then others, then pieces put together."""
    rng = np.random.default_rng(seed)
    found = dict.fromkeys(name.replace(";", ",").strip() for name in (*FIRST, *MORE))
    pieces = [name[:60] for name in found]
    while len(found) < count:
        parts = rng.choice(len(pieces), size=int(rng.integers(2, 6)))
        found.setdefault("".join(pieces[k] for k in parts).strip())
    return [name for name in found if name][:count]


def seen(name: str) -> str:
    """The name as a page has to show it, uncut."""
    shown = "".join(map(_letter, name))
    return shown if any(map(_leaves_ink, shown)) else name.encode("unicode_escape").decode()


def cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[:longest] + "…"


def _letter(letter: str) -> str:
    turns = unicodedata.bidirectional(letter) in TURNING
    hidden = turns or unicodedata.category(letter) in ("Cc", "Zl", "Zp")
    return letter.encode("unicode_escape").decode() if hidden else letter


def _leaves_ink(letter: str) -> bool:
    blank = unicodedata.category(letter) in ("Cc", "Cf", "Zs") or "FILLER" in NAME(letter, "")
    return not blank and letter != "\u2800"


TURNING = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
NAME = unicodedata.name
