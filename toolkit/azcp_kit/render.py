"""Fills the templates in; the one module that imports jinja2."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from azcp_kit.quoting.bash import bash_word
from azcp_kit.quoting.comment import one_line
from azcp_kit.quoting.shell import shell_word
from azcp_kit.quoting.toml import toml_string

_PACKAGE = Path(__file__).parent


def templates_folder() -> Path:
    """Where the templates are: inside the package once installed, at the top of a checkout."""
    installed = _PACKAGE / "templates"
    return installed if installed.is_dir() else _PACKAGE.parents[1] / "templates"


def render(name: str, /, **values: object) -> str:
    """The template `name`, a path below the templates folder, filled in with `values`; HTML is escaped.

    Everything else is quoted where it is used, by the filter of its sink: shell_word, bash_word,
    toml_string, one_line.

    Raises:
        jinja2.UndefinedError: the template uses a value that was not given.
        UsageError: a value cannot be said where it is used.
    """
    environment = Environment(
        loader=FileSystemLoader(templates_folder()),
        undefined=StrictUndefined,
        autoescape=select_autoescape(["html.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "bash_word": bash_word,
        "one_line": one_line,
        "shell_word": shell_word,
        "toml_string": toml_string,
    }
    return environment.get_template(name).render(**values)
