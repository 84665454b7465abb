"""The words of a shell script with their lines; quotes, arrays, redirections and here-documents known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_ARRAY: Final = re.compile(r"([A-Za-z_]\w*)\+?=")
_ARRAY_USE: Final = re.compile(r"\$\{([A-Za-z_]\w*)\[[@*]\]\}")
_CLOSING: Final = {"(": ")", "{": "}"}
_NAME_OR_SIGN: Final = re.compile(r"\$(?:[A-Za-z_]\w*|.)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Word:
    """A word without its quotes."""

    text: str
    line: int
    is_dynamic: bool = False
    """It holds something that the shell expands."""
    is_split: bool = False
    """It holds something that the shell expands outside all quotes."""


class Scanner:
    """Reads a script from left to right."""

    def __init__(self, text: str, first_line: int, *, one_line: bool) -> None:
        self._text = text
        self._at = 0
        self._first_line = first_line
        self._one_line = one_line
        self._newlines = 0
        self._counted = 0
        self._heredocs: list[str] = []
        self._arrays: dict[str, list[Word]] = {}

    def with_arrays(self, words: list[Word]) -> Iterator[Word]:
        """The words, each `"${ARRAY[@]}"` replaced by what the array holds."""
        for word in words:
            match = _ARRAY_USE.fullmatch(word.text)
            yield from self._arrays.get(match[1], [word]) if match else [word]

    def commands(self) -> Iterator[list[Word]]:
        """The words of each command, in order."""
        words: list[Word] = []
        array: str | None = None
        while self._at < len(self._text):
            char = self._text[self._at]
            if self._skip_blank(char):
                continue
            if char in "<>":
                self._redirection(words)
            elif char == "(" and words and self._opens_array(words[-1]):
                array, words = words.pop().text.rstrip("+="), []
                self._at += 1
            elif char == ")" and array is not None:
                self._arrays[array], words, array = words, [], None
                self._at += 1
            elif char in "\n;&|()":
                if words and array is None:
                    yield words
                words = words if array is not None else []
                self._separator(char)
            else:
                words.append(self._word())
        if words:
            yield words

    def _skip_blank(self, char: str) -> bool:
        """Go on behind white space, a continued line or a comment, if there is one."""
        if char in " \t\r":
            self._at += 1
        elif self._text.startswith("\\\n", self._at):
            self._at += 2
        elif char == "#":
            self._at = self._end_of_line()
        else:
            return False
        return True

    def _line(self) -> int:
        if self._one_line:
            return self._first_line
        self._newlines += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._first_line + self._newlines

    def _end_of_line(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _opens_array(self, word: Word) -> bool:
        return self._text[self._at - 1] == "=" and _ARRAY.fullmatch(word.text) is not None

    def _separator(self, char: str) -> None:
        if self._text.startswith("((", self._at):
            # Arithmetic: a shift in it is no here-document.
            self._at = self._after_closing(self._at, "(")
            return
        self._at += 1
        if char == "\n":
            self._skip_heredocs()

    def _redirection(self, words: list[Word]) -> None:
        """Leave out the operator, the number before it and the word after it."""
        number_before = self._at and self._text[self._at - 1].isdigit()
        if number_before and words and words[-1].text.isdigit():
            words.pop()
        start = self._at
        while self._at < len(self._text) and self._text[self._at] in "<>&|-":
            self._at += 1
        operator = self._text[start : self._at]
        while self._text[self._at : self._at + 1] in {" ", "\t"}:
            self._at += 1
        if self._text[self._at : self._at + 1] not in {"", "\n", "(", ";", ")"}:
            target = self._word()
            if operator in {"<<", "<<-"}:
                self._heredocs.append(target.text)

    def _skip_heredocs(self) -> None:
        for delimiter in self._heredocs:
            while self._at < len(self._text):
                end = self._end_of_line()
                line, self._at = self._text[self._at : end], end + 1
                if line.strip() == delimiter:
                    break
        self._heredocs.clear()

    def _word(self) -> Word:
        line = self._line()
        parts: list[str] = []
        is_dynamic = is_split = False
        while self._at < len(self._text) and self._text[self._at] not in " \t\r\n;&|()<>":
            char = self._text[self._at]
            if char in "'\"":
                text = self._quoted(char)
                is_dynamic |= char == '"' and ("$" in text or "`" in text)
            elif char == "\\":
                text = self._text[self._at + 1 : self._at + 2].replace("\n", "")
                self._at += 2
            elif char in "$`":
                text = self._expansion()
                is_dynamic = is_split = True
            else:
                text = char
                self._at += 1
            parts.append(text)
        return Word("".join(parts), line, is_dynamic, is_split)

    def _quoted(self, quote: str) -> str:
        start = self._at + 1
        place = start
        while place < len(self._text) and self._text[place] != quote:
            place += 2 if quote == '"' and self._text[place] == "\\" else 1
        self._at = place + 1
        text = self._text[start:place]
        return text.replace('\\"', '"').replace("\\\n", "") if quote == '"' else text

    def _expansion(self) -> str:
        """`$NAME`, `${...}`, `$(...)`, `$((...))` or what stands between backquotes, as it is written."""
        start = self._at
        after = self._text[start + 1 : start + 2]
        if self._text[start] == "`":
            end = self._text.find("`", start + 1)
            self._at = len(self._text) if end < 0 else end + 1
        elif after in _CLOSING and after:
            self._at = self._after_closing(start + 1, after)
        else:
            match = _NAME_OR_SIGN.match(self._text, start)
            self._at = match.end() if match else start + 1
        return self._text[start : self._at]

    def _after_closing(self, start: int, opening: str) -> int:
        """Where the bracket that opens at `start` has closed; quotes inside hide brackets."""
        depth, place, quote = 0, start, ""
        while place < len(self._text):
            char = self._text[place]
            if char == "\\":
                place += 1
            elif quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char == opening:
                depth += 1
            elif char == _CLOSING[opening]:
                depth -= 1
                if depth == 0:
                    return place + 1
            place += 1
        return len(self._text)
