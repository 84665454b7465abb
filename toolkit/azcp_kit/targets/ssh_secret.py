"""A script that makes a job's ssh key pair and puts it into a Secret; no key is ever in a manifest."""

from __future__ import annotations

from azcp_kit.render import render
from azcp_kit.spec.job import JobSpec
from azcp_kit.spec.problems import Problem
from azcp_kit.targets.every_node import ssh_secret_name


def ssh_secret_script(job: JobSpec) -> str:
    """The script."""
    return render("k8s/ssh-secret.sh.j2", secret=ssh_secret_name(job), job=job)


def ssh_secret_problems(_: JobSpec) -> list[Problem]:
    """Every job can have one."""
    return []
