"""Which sources made a result: a few digits of what they do, the same under every version of Python."""

import hashlib
import io
import tokenize
from collections.abc import Iterable
from pathlib import Path

BLOCKS = {tokenize.NEWLINE: "<end>", tokenize.INDENT: "<in>", tokenize.DEDENT: "<out>"}
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER, tokenize.ENCODING}
# Before 3.12 an f-string is one token, since then many between a start and an end.
OPENING = {getattr(tokenize, name, None) for name in ("FSTRING_START", "TSTRING_START")} - {None}
CLOSING = {getattr(tokenize, name, None) for name in ("FSTRING_END", "TSTRING_END")} - {None}


def fingerprint(files: Iterable[Path]) -> str:
    """Eight digits of SHA-256 over the words of all files, docstrings aside."""
    told = "\n".join(word for path in files for word in spoken(words(path.read_text(encoding="utf-8"))))
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def words(source: str) -> list[str]:
    """The tokens as they are written, with marks for lines and blocks, without comments and layout."""
    lines, found, depth, begin = io.StringIO(source).readlines(), [], 0, (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in OPENING:
            begin, depth = (token.start if depth == 0 else begin), depth + 1
        elif token.type in CLOSING:
            depth -= 1
            if depth == 0:
                found.append(_between(lines, begin, token.end))
        elif depth == 0 and token.type not in SILENT:
            found.append(BLOCKS.get(token.type, token.string))
    return found


def spoken(said: list[str]) -> list[str]:
    """The words without statements that are a string and nothing else: docstrings, which change no result."""
    kept: list[str] = []
    for before, word, after in zip(["<end>", *said], said, [*said[1:], ""], strict=False):
        if not (before in BLOCKS.values() and after == "<end>" and word.lstrip("rRbBuU")[:1] in {'"', "'"}):
            kept.append(word)
    return kept


def _between(lines: list[str], begin: tuple[int, int], end: tuple[int, int]) -> str:
    """The text from (line, column) to (line, column), lines counted from 1."""
    whole = lines[begin[0] - 1 : end[0]]
    whole[-1] = whole[-1][: end[1]]
    whole[0] = whole[0][begin[1] :]
    return "".join(whole)
