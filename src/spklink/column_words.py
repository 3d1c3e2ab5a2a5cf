"""What people call the columns of their tables, and what that would be in ours.

Words are written as `simple` leaves them: small letters without accents, single spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

CONVERSATION, AUDIO, PEOPLE, PERSON, CHANNEL = (
    *("conversation", "audio", "participants", "speaker", "channel"),
)
# English, German, Dutch, French, Spanish, Italian, Portuguese, Swedish and Danish, Polish, Russian.
WORDS = {
    CONVERSATION: "conversation, conversation id, conv, call, call id, callid, call no, call "
    "number, session, session id, dialog, dialogue, record id, uuid, id, gesprach, gespraech, "
    "gesprachs id, gesprachsnummer, anruf, anruf id, telefonat, vorgang, gesprek, gesprek id, "
    "gespreksnummer, oproep, telefoongesprek, appel, id appel, appel id, numero appel, entretien, "
    "communication, conversacion, llamada, id llamada, numero de llamada, conversazione, chiamata, "
    "conversa, chamada, ligacao, samtal, samtale, rozmowa, разговор, звонок",
    AUDIO: "audio, audio file, audiofile, file, filename, file name, file path, filepath, path, "
    "recording, recording file, recordingfile, sound file, wav, wav file, media, datei, dateiname, "
    "dateipfad, pfad, aufnahme, aufzeichnung, tondatei, audiodatei, bestand, bestandsnaam, opname, "
    "geluidsbestand, fichier, nom de fichier, nom du fichier, fichier audio, enregistrement, "
    "chemin, archivo, fichero, nombre de archivo, archivo de audio, grabacion, ruta, nome file, "
    "registrazione, percorso, arquivo, ficheiro, nome do arquivo, gravacao, fil, filnamn, filnavn, "
    "inspelning, optagelse, plik, nazwa pliku, nagranie, файл, имя файла, запись",
    PEOPLE: "participants, speakers, parties, people, persons, names, teilnehmer, beteiligte, "
    "gesprachspartner, gespraechspartner, personen, sprecher, deelnemers, sprekers, "
    "gesprekspartners, locuteurs, interlocuteurs, intervenants, participantes, hablantes, "
    "interlocutores, locutores, partecipanti, parlanti, falantes, deltagare, deltagere, talare, "
    "uczestnicy, rozmowcy, участники, дикторы",
    PERSON: "speaker, participant, person, speaker id, speaker name, name, sprecher, sprecherin, "
    "teilnehmer, spreker, deelnemer, persoon, locuteur, locutrice, intervenant, interlocuteur, "
    "personne, hablante, participante, interlocutor, locutor, persona, parlante, partecipante, "
    "falante, talare, deltagare, deltager, mowca, rozmowca, uczestnik, участник, диктор, говорящий",
    CHANNEL: "channel, channel no, side, track, kanal, spur, seite, kanaal, spoor, kant, canal, "
    "voie, piste, cote, pista, lado, canale, lato, kanal, sida, side, strona, канал",
    "start": "start, begin, start time, anfang, beginn, van, debut, inicio, inizio, poczatek",
    "end": "end, stop, end time, ende, eind, einde, fin, fine, fim, slut, koniec",
}
# Two columns with a person each: who calls, who is called; or the two ends of a line.
PAIRS = tuple(
    tuple(pair.split("/"))
    for pair in (
        "caller/callee",
        "calling/called",
        "calling number/called number",
        "calling party/called party",
        "calling party number/called party number",
        "from/to",
        "from number/to number",
        "source/destination",
        "src/dst",
        "origin/destination",
        "agent/customer",
        "agent/client",
        "agent/caller",
        "agent/patient",
        "anrufer/angerufener",
        "anrufer/angerufene",
        "anrufer/empfanger",
        "anrufende nummer/angerufene nummer",
        "von/an",
        "von/nach",
        "agent/kunde",
        "beller/gebelde",
        "beller/ontvanger",
        "van/naar",
        "agent/klant",
        "appelant/appele",
        "numero appelant/numero appele",
        "emetteur/destinataire",
        "agent/cliente",
        "llamante/llamado",
        "origen/destino",
        "numero origen/numero destino",
        "chiamante/chiamato",
        "chamador/chamado",
        "origem/destino",
        "uppringare/uppringd",
        "dzwoniacy/odbierajacy",
        "звонящий/абонент",
    )
)
ENDS = (("a", "b"), ("1", "2"), ("left", "right"), ("links", "rechts"), ("gauche", "droite"))
LINE = "number, no, nr, nummer, numero, num, party, side, seite, kant, teilnehmer, subscriber, "
LINE += "msisdn, imsi, rufnummer, phone, telephone, telefon, telefoon, telefono, leg, anschluss"
LINES = frozenset(LINE.split(", "))


@cache
def words_for(role: str) -> frozenset[str]:
    """What a column of ours may be called."""
    return frozenset(map(simple, WORDS.get(role, "").split(", ")))


def simple(name: str) -> str:
    """A name of a column with all left out in which people differ: case, accents, marks."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss").casefold())
    letters = "".join(c for c in plain if not unicodedata.combining(c))
    split = re.sub(r"(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z])", " ", letters)
    return " ".join(re.findall(r"[^\W_]+", split))


def people_in(names: Sequence[str]) -> list[str]:
    """The columns with one person each, of a table with several such columns; none where there
    are none."""
    plain = {simple(name): name for name in reversed(names)}
    for pair in PAIRS:
        if all(end in plain for end in pair):
            return [plain[end] for end in pair]
    return _numbered(plain, names)


def _numbered(plain: dict[str, str], names: Sequence[str]) -> list[str]:
    """Columns called alike but for a letter or number: speaker 1, speaker 2, …; A-number, B-number.

    The first two decide; of numbers all that follow belong to them."""
    persons = words_for(PERSON) | words_for(PEOPLE) | LINES | {"caller"}
    for ends in ENDS:
        for word in persons:
            for shape in ("{0} {1}", "{1} {0}"):
                found = [plain.get(shape.format(word, end)) for end in ends]
                if None not in found:
                    more = (plain.get(shape.format(word, k)) for k in range(3, len(names) + 1))
                    further = more if ends[0] == "1" else iter(())
                    return [name for name in (*found, *further) if name is not None]
    return []


def column_for(role: str, names: Sequence[str]) -> str | None:
    """The first column that may be this; words that say more go before `id` and `name`."""
    found = [name for name in names if simple(name) in words_for(role)]
    sure = [name for name in found if simple(name) not in ("id", "name", "uuid")]
    return next(iter(sure or found), None)
