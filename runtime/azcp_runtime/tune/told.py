"""What the probe found, in one line for the user and as figures for the report."""

from __future__ import annotations

import math

from azcp_runtime.contract.units import format_size
from azcp_runtime.plan.budget import Budget
from azcp_runtime.tune.choose import best_rates
from azcp_runtime.tune.stage import Tuned

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def tuned_line(tuned: Tuned) -> str:
    """The choice, what it rests on, and how to have it without a probe."""
    chosen, rates = tuned.chosen, best_rates(tuned.trials)
    size = exact_size(chosen.chunk_bytes)
    kept = " (the default)" if chosen == tuned.default else ""
    parts = []
    if chosen in rates:
        others = ", ".join(
            f"{_setting(each, chosen)} {format_size(rate)}/s"
            for each, rate in rates.items()
            if each != chosen
        )
        parts.append(f"broadcast {format_size(rates[chosen])}/s" + (f" ({others})" if others else ""))
    else:
        parts.append("broadcast too slow to be tuned in so little time")
    if math.isfinite(tuned.write_rate):
        parts.append(f"write {format_size(tuned.write_rate)}/s")
    return (
        f"[tune] chunk {size}, window {chosen.lane_slots}{kept}: {', '.join(parts)}; "
        f"took {tuned.seconds:.1f} s; pin with --bcast-chunk {size} "
        f"--bcast-pipeline {chosen.lane_slots}"
    )


def tuned_figures(tuned: Tuned) -> dict[str, object]:
    """The same for the report; a window is the broadcasts on their way in each lane."""
    return {
        **_figures(tuned.chosen),
        "default": _figures(tuned.default),
        "seconds": round(tuned.seconds, 3),
        "write_bytes_per_s": round(tuned.write_rate) if math.isfinite(tuned.write_rate) else None,
        "trials": [
            {**_figures(each.budget), "bytes": each.moved_bytes, "bytes_per_s": round(each.rate)}
            for each in tuned.trials
        ],
    }


def exact_size(size: int) -> str:
    """A size as the options take it."""
    for factor, unit in _UNITS:
        if size >= factor and not size % factor:
            return f"{size // factor}{unit}"
    return str(size)


def _figures(budget: Budget) -> dict[str, int]:
    return {"chunk_bytes": budget.chunk_bytes, "window": budget.lane_slots}


def _setting(budget: Budget, beside: Budget) -> str:
    same_chunk, same_window = budget.chunk_bytes == beside.chunk_bytes, budget.lane_slots == beside.lane_slots
    words = [] if same_chunk else [f"chunk {exact_size(budget.chunk_bytes)}"]
    return " ".join([*words, *([] if same_window else [f"window {budget.lane_slots}"])]) or "other slots"
