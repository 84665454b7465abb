"""Rehearses a batch script where it can be: on the Slurm that is here, or on containers."""

from __future__ import annotations

from azcp_kit.rehearse.conduct import Report
from azcp_kit.rehearse.outcome import Outcome
from azcp_kit.rehearse.request import RehearseRequest
from azcp_kit.rehearse.slurm.on_containers import rehearse_on_containers
from azcp_kit.rehearse.slurm.on_slurm import rehearse_on_slurm
from azcp_kit.rehearse.slurm.script import read_script
from azcp_kit.rehearse.slurm.site import has_slurm


def rehearse_script(request: RehearseRequest, report: Report) -> Outcome:
    """Run a batch script's own steps here, to their end; an image that is named asks for containers.

    Raises:
        UsageError: the script cannot be rehearsed.
        PreflightError: something that it takes is missing, or fails.
    """
    script = read_script(request.manifest)
    if not request.images and has_slurm():
        return rehearse_on_slurm(script, request, report)
    return rehearse_on_containers(script, request, report)
