"""The form in which every bench hands over its figures: a plain table with the aim beside each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Rows of text under a heading, with remarks on how they were measured."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The table, columns aligned, numbers to the right."""
        lines = (self.columns, *self.rows)
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        body = ["  ".join(_cell(text, w) for text, w in zip(line, widths, strict=True)) for line in lines]
        rule = "  ".join("-" * width for width in widths)
        remarks = [f"  * {remark}" for remark in self.remarks]
        return "\n".join((self.title, body[0].rstrip(), rule, *(b.rstrip() for b in body[1:]), *remarks))


def _cell(text: str, width: int) -> str:
    return text.rjust(width) if text[:1].isdigit() else text.ljust(width)


def at_most(measured: float, aim: float, unit: str = "") -> str:
    """The aim "at most" with its verdict, for the last column of a table."""
    return f"<= {aim:g}{unit}: {'met' if measured <= aim else 'MISSED'}"


def at_least(measured: float, aim: float, unit: str = "") -> str:
    """The aim "at least" with its verdict, for the last column of a table."""
    return f">= {aim:g}{unit}: {'met' if measured >= aim else 'MISSED'}"
