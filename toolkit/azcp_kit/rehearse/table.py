"""A rehearsal's outcome for a person: what failed first, then each pod, the data, and what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from azcp_kit.rehearse.outcome import ContainerEnd, Line, Outcome, PodEnd, Verdict
from azcp_kit.shown import shown
from azcp_kit.units import format_seconds, format_size

_LONGEST: Final = 1000
_STYLES: Final = {Verdict.OK: "green", Verdict.FAILED: "bold red", Verdict.NOT_STARTED: "yellow"}


def print_outcome(outcome: Outcome, console: Console) -> None:
    """Print it."""
    for line in _head(outcome):
        console.print(line)
    console.print(_pods(outcome))
    for pod in outcome.pods:
        for container in _worth_telling(pod):
            for line in _said(pod, container):
                console.print(line)
    for line in (*_data(outcome), *_rest(outcome)):
        console.print(line)


def _head(outcome: Outcome) -> Iterator[Text]:
    fewer = f" of the manifest's {outcome.manifest_nodes}" if outcome.nodes != outcome.manifest_nodes else ""
    yield Text(f"rehearsed with {outcome.nodes} nodes{fewer} in {format_seconds(outcome.took_s)}")
    for workload in outcome.workloads:
        line = Text(f"{workload.verdict.value}  ", style=_STYLES[workload.verdict])
        line.append(workload.title, style="bold")
        line.append(f": {workload.reason}" if workload.reason else "")
        line.append(f" (made anew {workload.restarts} times)" if workload.restarts else "")
        yield line
        yield from (Text(f"  {notice}", style="dim") for notice in workload.notices)


def _pods(outcome: Outcome) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("", "pod", "node", "made", "ready", "ended", "how"):
        table.add_column(name, overflow="fold")
    for pod in outcome.pods:
        table.add_row(
            Text(pod.verdict.value, style=_STYLES[pod.verdict]),
            Text(pod.name),
            Text(pod.node),
            *(Text(_time(moment)) for moment in (pod.made_s, pod.ready_s, pod.ended_s)),
            Text(_how(pod)),
        )
    return table


def _time(moment_s: float | None) -> str:
    return "-" if moment_s is None else format_seconds(moment_s)


def _how(pod: PodEnd) -> str:
    again = f"; made {pod.pods} times" if pod.pods > 1 else ""
    reason = f": {pod.reason}" if pod.reason else ""
    names = dict.fromkeys(end.name for end in pod.containers)
    if pod.made_s is None:
        return reason.removeprefix(": ")
    ends = ", ".join(f"{name} {_codes(pod, name)}" for name in names)
    return f"{pod.phase}{reason}{again}{f' [{ends}]' if ends else ''}"


def _codes(pod: PodEnd, name: str) -> str:
    """How each start of a container ended, in their order."""
    codes = [
        "was running" if end.code is None else str(end.code) for end in pod.containers if end.name == name
    ]
    return ", then ".join(codes)


def _worth_telling(pod: PodEnd) -> Iterator[ContainerEnd]:
    """Of each container the last start, and the first and the last that failed: the others are alike."""
    for name in dict.fromkeys(end.name for end in pod.containers):
        ends = [end for end in pod.containers if end.name == name]
        failed = [end for end in ends if end.has_failed]
        chosen = (*failed[:1], *failed[-1:], ends[-1])
        yield from (end for end in ends if any(end is one for one in chosen))


def _said(pod: PodEnd, container: ContainerEnd) -> Iterator[Text]:
    if not container.tail and not container.summary:
        return
    again = "" if container.start == 1 else f", start {container.start}"
    again += "" if container.pod == 1 else f" of pod {container.pod}"
    failed = f" failed with {container.code}" if container.has_failed else ""
    yield Text(f"{pod.name}, {container.name}{again}{failed}:", style="bold")
    if not container.has_failed:
        yield from _lines(container.summary, "")
    yield from _lines(container.tail, "red" if container.has_failed else "dim")


def _lines(lines: Iterable[Line], style: str) -> Iterator[Text]:
    return (Text(f"  {format_seconds(line.at_s):>7}  {line.text}", style=style) for line in lines)


def _data(outcome: Outcome) -> Iterator[Text]:
    if outcome.cut_short:
        yield Text(f"no data: phase 1 did not finish ({', '.join(outcome.cut_short)})", style="yellow")
    data_set = f"{outcome.files} files, {format_size(outcome.size_bytes)}"
    if not outcome.is_compared:
        if not outcome.cut_short:
            yield Text(f"{_uncompared(outcome)}: nothing was compared", style="yellow")
        return
    same = len(outcome.data) - len(outcome.different)
    if not outcome.different:
        yield Text(f"data identical on {same} nodes ({data_set}, every byte compared)", style="green")
        return
    yield Text(f"data identical on {same} of {len(outcome.data)} nodes ({data_set})", style="bold red")
    for entry in outcome.different:
        yield Text(f"  {entry.pod} {entry.path}: {'; '.join(entry.differences)}")


def _uncompared(outcome: Outcome) -> str:
    if not outcome.destinations:
        return "no command tells where the data goes"
    return f"no pod that ran has a volume at {', '.join(outcome.destinations)}"


def _rest(outcome: Outcome) -> Iterator[Text]:
    for title, lines in (
        ("made up here, for the manifest has it not", outcome.made_up),
        ("cannot be shown here", outcome.unshown),
        ("not rehearsed", outcome.skipped),
    ):
        if lines:
            yield Text(f"{title}:", style="bold")
            yield from (Text(f"  {shown(line, _LONGEST)}", style="dim") for line in lines)
