"""Letters that pass for Latin ones, after compatibility decomposition (which undoes full-width, mathematical and circled ones).

From the shapes themselves, for the scripts and extensions whose letters are mistaken in common typefaces; Unicode's
Technical Standard 39 has the idea and a longer list. Accents are not look-alikes: they are seen.
"""

# ruff: noqa: RUF001 - look-alike letters are what this file is made of

from __future__ import annotations

import unicodedata

_SHAPES = {
    # Cyrillic
    "a": "аӑӓ", "b": "ЬьҌҍ", "c": "с", "d": "ԁ", "e": "еѐёҽ", "f": "ғ", "g": "ԍ", "h": "һҺ", "i": "іӀӏї", "j": "ј",
    "k": "кқҡҝ", "l": "ⅼ", "m": "м", "n": "ո", "o": "оӧөѳ", "p": "рҏ", "q": "ԛ", "r": "гᴦ", "s": "ѕ", "t": "т",
    "u": "ս", "v": "ѵѷ", "w": "ԝѡ", "x": "хҳ", "y": "уүұӯӱӳ", "z": "ᴢ",
    "A": "АӐӒ", "B": "ВБ", "C": "С", "D": "Ꭰ", "E": "ЕЀЁ", "H": "НҢ", "I": "ІЇ", "J": "Ј", "K": "КҚ", "M": "М",
    "O": "ОӦѲ", "P": "РҎ", "Q": "Ԛ", "S": "Ѕ", "T": "Т", "V": "Ѵ", "W": "Ԝ", "X": "ХҲ", "Y": "УҮҰ",
}  # fmt: skip
_MORE_SHAPES = {
    # Greek, Armenian, Cherokee, phonetic and other extensions of Latin
    "a": "αɑᴀ⍺", "b": "Ƅʙ", "c": "ϲⲥᴄ", "d": "ɗɖᴅ", "e": "єεɛɘᴇ℮", "f": "ϝꜰƒ", "g": "ɡɢց", "h": "հɦʜ", "i": "ιıɩɪꙇᎥ",
    "j": "ϳᴊ", "k": "κᴋ", "l": "ʟɭ", "m": "ᴍ", "n": "ηɳɴռ", "o": "οօσɵᴏⲟ", "p": "ρᴘ", "q": "զ", "r": "ɹʀ", "s": "ʂꜱƽ",
    "t": "τᴛ", "u": "υʋսᴜ", "v": "νʌᴠ", "w": "ωɯᴡա", "x": "χ", "y": "γʏყ", "z": "ʐ",
    "A": "ΑᎪ", "B": "ΒᏴ", "C": "ϹᏟ", "E": "ΕᎬ", "G": "Ꮐ", "H": "ΗᎻ", "I": "ΙⲒ", "J": "Ꭻ", "K": "ΚᏦ", "L": "Ꮮ", "M": "ΜᎷ",
    "N": "Ν", "O": "ΟՕ", "P": "ΡᏢ", "R": "Ꭱ", "S": "ՏᏚ", "T": "ΤᎢ", "V": "Ꮩ", "W": "Ꮃ", "X": "Χ", "Y": "Υ", "Z": "ΖᏃ",
}  # fmt: skip

LATIN: dict[int, str] = {
    ord(odd): letter for table in (_SHAPES, _MORE_SHAPES) for letter, odds in table.items() for odd in odds
}

# Digits and pairs that stand in for letters in names.
_STAND_INS = str.maketrans("01345$@|", "oleassal")
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def skeleton(name: str) -> str:
    """Return the form in which names that look the same are the same: no case, no separators, no stand-ins."""
    if not name.isascii():
        name = unicodedata.normalize("NFKD", name).translate(LATIN)
        name = "".join(c for c in name if unicodedata.category(c) not in ("Mn", "Cf", "Cc"))
    shape = name.lower().translate(_STAND_INS).replace("i", "l")
    if not shape.isalnum():
        shape = "".join(c for c in shape if c.isalnum())
    for pair, letter in _PAIRS:
        shape = shape.replace(pair, letter)
    return shape
