"""Fills the templates in; the one module that imports jinja2."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

_PACKAGE = Path(__file__).parent


def templates_folder() -> Path:
    """Where the templates are: inside the package once installed, at the top of a checkout."""
    installed = _PACKAGE / "templates"
    return installed if installed.is_dir() else _PACKAGE.parents[1] / "templates"


def render(name: str, **values: object) -> str:
    """The template `name`, a path below the templates folder, filled in with `values`; HTML is escaped.

    Everything else is quoted where it is used, by the sink's own function.

    Raises:
        jinja2.UndefinedError: the template uses a value that was not given.
    """
    environment = Environment(
        loader=FileSystemLoader(templates_folder()),
        undefined=StrictUndefined,
        autoescape=select_autoescape(["html.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name).render(**values)
