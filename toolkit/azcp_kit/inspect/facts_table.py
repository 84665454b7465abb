"""The facts of an image as tables for a person; nothing that an image says can drive the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from azcp_kit.inspect.facts import Config, ImageFacts, LibcKind, Mpi, MpiKind, PackageKind, Python
from azcp_kit.shown import shown
from azcp_kit.units import format_size


def print_facts(facts: ImageFacts, plan: Iterable[str] = ()) -> None:
    """Print the facts, and the plan that follows from them, on standard output."""
    Console(highlight=False).print(facts_tables(facts, plan))


def facts_tables(facts: ImageFacts, plan: Iterable[str] = ()) -> Group:
    """What the image is, how it starts, what is in it and what would leak from it."""
    parts: list[RenderableType] = [
        Text(shown(facts.identity.reference), style="bold"),
        _rows((*_image_rows(facts), *_config_rows(facts), *_content_rows(facts))),
    ]
    if facts.mpis:
        parts += [Text("\nMPI", style="bold"), _rows(_mpi_row(mpi) for mpi in facts.mpis)]
    if facts.leaks:
        parts += [Text("\nENV that leaks into another MPI or Python", style="bold"), _leaks(facts)]
    if lines := [Text(shown(line, 1000)) for line in plan]:
        parts += [Text("\nPlan", style="bold"), *lines]
    return Group(*parts)


def _rows(rows: Iterable[tuple[str, str]]) -> Table:
    table = _table()
    for name, value in rows:
        # As Text, a label like [bold] is text and no markup.
        table.add_row(Text(shown(name)), Text(value))
    return table


def _image_rows(facts: ImageFacts) -> Iterator[tuple[str, str]]:
    identity, system, libc = facts.identity, facts.system, facts.libc
    yield "id", shown(identity.id)
    yield "size", f"{format_size(identity.size_bytes)} in {len(identity.layers)} layers"
    yield "system", shown(system.name or system.id) or "no os-release"
    variant = f"/{identity.variant}" if identity.variant else ""
    yield (
        "architecture",
        f"{shown(f'{identity.os}/{identity.arch}{variant}')}, programs for {libc.arch or '?'}",
    )
    yield "C library", f"{libc.kind} {libc.version}".strip() if libc.kind is not LibcKind.NONE else "no glibc"
    yield "packages", _packages(facts)


def _config_rows(facts: ImageFacts) -> Iterator[tuple[str, str]]:
    config: Config = facts.config
    yield "user", _user(facts)
    yield "workdir", shown(config.workdir) or "/"
    for name, words in (
        ("entrypoint", config.entrypoint),
        ("command", config.cmd),
        ("healthcheck", config.healthcheck),
        ("build triggers", config.onbuild),
        ("volumes", config.volumes),
        ("ports", config.ports),
    ):
        if words:
            yield name, _words(words)
    yield "environment", f"{len(config.env)} variables"


def _content_rows(facts: ImageFacts) -> Iterator[tuple[str, str]]:
    ssh, verbs, gpu = facts.ssh, facts.verbs, facts.gpu
    yield "shell", ", ".join(facts.shells) or "none"
    yield "Python", "\n".join(map(_python, facts.pythons)) or "none"
    yield "ssh server", f"{shown(ssh.server)} {ssh.version}".strip() or "none"
    yield "verbs", _verbs(facts) if verbs.library else "none"
    versions = (("CUDA", gpu.cuda), ("ROCm", gpu.rocm), ("NCCL", gpu.nccl))
    yield "GPU", shown(", ".join(f"{name} {version}" for name, version in versions if version)) or "none"
    if facts.is_injected:
        yield "azcp", "injected already"
    if not facts.mpis:
        yield "MPI", "none"


def _packages(facts: ImageFacts) -> str:
    packages = facts.packages
    if packages.kind is PackageKind.NONE:
        return "no package manager"
    lists = ", lists present" if packages.has_lists else ""
    return f"{packages.kind} with {len(packages.sources)} files of sources{lists}"


def _user(facts: ImageFacts) -> str:
    account, user = facts.account, facts.config.user
    if account.uid is None:
        return f"{shown(user)}, which the image's passwd does not have"
    entry = f"{account.name}, home {account.home}" if account.name else "no passwd entry"
    return shown(f"{user or 'not set'}: uid {account.uid}, {entry}")


def _python(python: Python) -> str:
    notes = (("venv", python.is_venv), ("first on PATH", python.is_first_on_path))
    said = [python.version or "?", *(note for note, holds in notes if holds)]
    return f"{shown(python.path)} ({', '.join(said)})"


def _verbs(facts: ImageFacts) -> str:
    verbs = facts.verbs
    parts = [
        f"rdma-core {verbs.version}" if verbs.version else verbs.library,
        f"providers {' '.join(verbs.providers)}" if verbs.providers else "no provider",
        "librdmacm" if verbs.rdmacm else "no librdmacm",
        verbs.mofed and f"OFED {verbs.mofed}",
    ]
    return shown(", ".join(filter(None, parts)))


def _mpi_row(mpi: Mpi) -> tuple[str, str]:
    of_open_mpi = "Open MPI " if mpi.kind is MpiKind.HPC_X else ""
    launcher = f", started by {mpi.launcher}" if mpi.launcher else ""
    text = f"{mpi.prefix}{launcher}, found by {'; '.join(mpi.found_by)}"
    return f"{mpi.kind} {of_open_mpi}{mpi.version}".strip(), shown(text, 400)


def _leaks(facts: ImageFacts) -> Table:
    table = _table()
    for leak in facts.leaks:
        table.add_row(Text(shown(leak.name, 40)), Text(f"{shown(leak.value)}\n{leak.effect}"))
    return table


def _table() -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    # A name cut short by the width would be of no use to whoever copies it.
    table.add_column(overflow="fold")
    return table


def _words(words: tuple[str, ...]) -> str:
    return shown(" ".join(words))
