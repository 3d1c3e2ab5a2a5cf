"""Tables as people have them: what programs in several countries write, and what goes wrong."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Made:
    """A file; what is said of its columns; what it is read as, or what the refusal says."""

    name: str
    data: bytes
    columns: str = ""  # to be given; "guess": the one that the refusal prints
    read_as: str = ""
    people: tuple[tuple[str, ...], ...] = ()
    refused: str = ""
    encoding: str | None = None
    audio: str | None = None


ANNA = (("Anna", "Jürgen"), ("Jürgen", "Zoë"))


def text(*rows: str, encoding: str = "utf-8", end: str = "\r\n") -> bytes:
    return (end.join(rows) + end).encode(encoding)


def excel(rows: list[list[object]], sheets: int = 1) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for k in range(sheets - 1):
        book.create_sheet(f"more{k}")
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def parquet(columns: dict[str, list[object]]) -> bytes:
    import pyarrow
    from pyarrow import parquet as format_

    file = io.BytesIO()
    format_.write_table(pyarrow.table(columns), file)
    return file.getvalue()


def lines(*rows: dict[str, object]) -> bytes:
    return text(*(json.dumps(row, ensure_ascii=False) for row in rows), end="\n")


WIDE = "conversation,audio,participants"
GERMAN = ("Datei;Sprecher A;Sprecher B", "1.wav;Anna;Jürgen", "2.wav;Jürgen;Zoë")
NUMBERS = (("4912345678", "4987654321"), ("4987654321", "4911122233"))


def made() -> dict[str, Made]:
    return {
        "ours": Made("t.csv", text(WIDE, "1,1.wav,Anna;Jürgen", "2,2.wav,Jürgen;Zoë"), people=ANNA),
        "ours with a mark": Made(
            "t.csv",
            text(WIDE, "1,1.wav,Anna;Jürgen", "2,2.wav,Jürgen;Zoë", encoding="utf-8-sig"),
            people=ANNA,
        ),
        "ours in capitals": Made(
            "t.csv",
            text("Conversation,Audio,Participants", "1,1.wav,Anna;Jürgen", "2,2.wav,Jürgen;Zoë"),
            people=ANNA,
        ),
        "Excel, German, Windows-1252": Made(
            "t.csv",
            text(*GERMAN, encoding="cp1252"),
            columns="guess",
            read_as="semicolon-separated, Windows-1252",
            people=ANNA,
        ),
        "Excel, Unicode text": Made(
            "t.txt",
            text(
                "Gesprek\tBestand\tSpreker 1\tSpreker 2",
                "1\t1.wav\tAnna\tJürgen",
                "2\t2.wav\tJürgen\tZoë",
                encoding="utf-16",
            ),
            columns="guess",
            read_as="tab-separated, UTF-16",
            people=ANNA,
        ),
        "UTF-16, other end first": Made(
            "t.csv",
            b"\xfe\xff" + text(*GERMAN, encoding="utf-16-be"),
            columns="guess",
            read_as="semicolon-separated, UTF-16",
            people=ANNA,
        ),
        "UTF-16 without a mark": Made(
            "t.csv",
            text("\n".join(GERMAN).replace("ü", "u").replace("ë", "e"), encoding="utf-16-le"),
            columns="guess",
            read_as="semicolon-separated, UTF-16-le",
            people=(("Anna", "Jurgen"), ("Jurgen", "Zoe")),
        ),
        "Excel for Mac": Made(
            "t.csv",
            text(*GERMAN, encoding="mac_roman", end="\r"),
            columns="guess",
            read_as="semicolon-separated, Mac Roman",
            people=ANNA,
        ),
        "MS-DOS": Made(
            "t.csv",
            text(*GERMAN, encoding="cp850"),
            columns="guess",
            read_as="semicolon-separated, DOS (cp850)",
            people=ANNA,
        ),
        "a line for Excel, a title, a gap": Made(
            "t.csv",
            text("sep=;", "Anrufe im März;;", "", *GERMAN),
            columns="guess",
            read_as="semicolon-separated, UTF-8, header in row 4",
            people=ANNA,
        ),
        "French": Made(
            "t.csv",
            text(
                "Appel;Fichier audio;Appelant;Appelé",
                "1;1.wav;Anna;Jürgen",
                "2;2.wav;Jürgen;Zoë",
                encoding="cp1252",
            ),
            columns="guess",
            read_as="semicolon-separated, Windows-1252",
            people=ANNA,
        ),
        "Spanish": Made(
            "t.csv",
            text(
                "Llamada;Grabación;Número origen;Número destino",
                "1;1.wav;4912345678;4987654321",
                "2;2.wav;4987654321;4911122233",
            ),
            columns="guess",
            read_as="semicolon-separated, UTF-8",
            people=NUMBERS,
        ),
        "Dutch, one column": Made(
            "t.csv",
            text('Gesprek;Opname;Deelnemers', '1;1.wav;"Anna;Jürgen"', '2;2.wav;"Jürgen;Zoë"'),
            columns="guess",
            read_as="semicolon-separated, UTF-8",
            people=ANNA,
        ),
        "English, one person a row": Made(
            "t.tsv",
            text(
                "File name\tSpeaker",
                *("1.wav\tAnna", "1.wav\tJürgen", "2.wav\tJürgen", "2.wav\tZoë"),
            ),
            columns="guess",
            read_as="tab-separated, UTF-8",
            people=ANNA,
        ),
        "call records": Made(
            "cdr.csv",
            text(
                "call_id,A-number,B-number,start,duration,recordingfile",
                "1,4912345678,4987654321,2024-03-01 10:00:00,61,1.wav",
                "2,4987654321,4911122233,2024-03-01 11:00:00,7,2.wav",
            ),
            columns="guess",
            people=NUMBERS,
        ),
        "call records of Asterisk, by pattern": Made(
            "cdr.csv",
            text(
                "uniqueid,src,dst,calldate",
                "1,4912345678,4987654321,20240301",
                "2,4987654321,4911122233,20240301",
            ),
            columns="conversation=uniqueid,participants=src;dst",
            audio="{src}_{dst}_{calldate}.wav",
            people=NUMBERS,
        ),
        "call records in German": Made(
            "cdr.csv",
            text(
                "Gesprächs-ID;Rufnummer A;Rufnummer B;Aufnahme",
                "1;4912345678;4987654321;1.wav",
                "2;4987654321;4911122233;2.wav",
                encoding="cp1252",
            ),
            columns="guess",
            read_as="semicolon-separated, Windows-1252",
            people=NUMBERS,
        ),
        "bars": Made(
            "t.txt",
            text("id|file|caller|callee", "1|1.wav|Anna|Jürgen", "2|2.wav|Jürgen|Zoë"),
            columns="guess",
            read_as="bar-separated, UTF-8",
            people=ANNA,
        ),
        "decimal comma": Made(
            "t.csv",
            text("conversation;audio;participants;prior", '1;1.wav;"Anna;Jürgen";0,75',
                 '2;2.wav;"Jürgen;Zoë";0,5'),
            read_as="semicolon-separated, UTF-8, decimal comma",
            people=ANNA,
        ),
        "Excel": Made(
            "t.xlsx",
            excel([["Nr.", "Datei", "Sprecher A", "Sprecher B"], [1, "1.wav", "Anna", "Jürgen"],
                   [2, "2.wav", "Jürgen", "Zoë"]], sheets=2),
            columns="guess",
            read_as="Excel",
            people=ANNA,
        ),
        "Excel with a title and numbers": Made(
            "t.xlsx",
            excel([["Calls of March"], [], ["Call", "File", "Caller", "Callee"],
                   [1, "1.wav", 4912345678, 4987654321.0], [2, "2.wav", 4987654321, 4911122233]]),
            columns="guess",
            read_as="Excel",
            people=NUMBERS,
        ),
        "Parquet": Made(
            "t.parquet",
            parquet({"conversation": [1, 2], "audio": ["1.wav", "2.wav"],
                     "participants": [["Anna", "Jürgen"], ["Jürgen", "Zoë"]]}),
            read_as="Parquet",
            people=ANNA,
        ),
        "JSON Lines": Made(
            "t.jsonl",
            lines({"id": 1, "file": "1.wav", "speakers": ["Anna", "Jürgen"]},
                  {"id": 2, "file": "2.wav", "speakers": ["Jürgen", "Zoë"]}),
            columns="guess",
            read_as="JSON",
            people=ANNA,
        ),
        "a JSON array": Made(
            "t.json",
            text(json.dumps([{"conversation": 1, "audio": "1.wav", "participants": list(ANNA[0])},
                             {"conversation": 2, "audio": "2.wav", "participants": [*ANNA[1]]}])),
            read_as="JSON",
            people=ANNA,
        ),
        "Cyrillic": Made(
            "t.csv",
            text("Файл;Участник 1;Участник 2", "1.wav;Анна;Иван", "2.wav;Иван;Ольга",
                 encoding="cp1251"),
            refused="say what it is: --encoding",
        ),
        "Cyrillic, said": Made(
            "t.csv",
            text("Файл;Участник 1;Участник 2", "1.wav;Анна;Иван", "2.wav;Иван;Ольга",
                 encoding="cp1251"),
            encoding="cp1251",
            columns="guess",
            read_as="semicolon-separated, cp1251",
            people=(("Анна", "Иван"), ("Иван", "Ольга")),
        ),
        "no words that anybody knows": Made(
            "t.csv",
            text("x1;x2;x3", "1.wav;Anna;Jürgen"),
            refused="which columns are these? give --columns 'conversation=…,participants=…'",
        ),
        "no header": Made(
            "t.csv", text("1.wav;Anna;Jürgen", "2.wav;Jürgen;Zoë"), refused="header row missing"
        ),
        "lists without quotes": Made(
            "t.csv",
            text("conversation;audio;participants", "1;1.wav;Anna;Jürgen"),
            refused="row 2: 4 fields where the header has 3; put lists in quotes",
        ),
        "names with commas between": Made(
            "t.csv",
            text("conversation;audio;participants", "1;1.wav;Anna, Jürgen"),
            refused="only one participant ('Anna, Jürgen') for 2 tracks; are these several? write "
            "; between names",
        ),
        "a cell with an error": Made(
            "t.xlsx",
            excel([["conversation", "participants"], ["1", "Anna;Ben"], ["2", "#N/A"]]),
            refused="row 3: a cell with the error #N/A; mend its formula",
        ),
        "old Excel": Made("t.xls", b"\xd0\xcf\x11\xe0\xa1\xb1" + b"\0" * 600,
                          refused="save it as .xlsx or CSV"),
        "OpenDocument": Made("t.ods", archive("mimetype", "content.xml"),
                             refused="an OpenDocument file; save it as .xlsx or CSV"),
        "a PDF": Made("t.pdf", b"%PDF-1.4\n", refused="save the table as CSV or .xlsx"),
        "JSON of something else": Made("t.jsonl", lines({"conversation": {"a": 1}}),
                                       refused="'conversation' is no text, number or list"),
        "numbers that a spreadsheet has spoilt": Made(
            "cdr.csv",
            text("call;file;caller;callee", "1;1.wav;4,91234E+11;4,98765E+11",
                 "2;2.wav;4,91234E+11;4,91112E+11"),
            columns="guess",
            refused="4,91234E+11",
        ),
        "an unknown encoding": Made(
            "t.csv", text(*GERMAN), encoding="klingon", refused="'klingon' is not known"
        ),
    }  # fmt: skip


def archive(*names: str) -> bytes:
    import zipfile

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made_:
        for name in names:
            made_.writestr(name, "x")
    return file.getvalue()
