"""A script that lets a job's pods read the account: by a workload identity, or by the nodes' own."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from azcp_kit.render import render
from azcp_kit.spec.job import JobSpec
from azcp_kit.spec.problems import Problem
from azcp_kit.spec.rules import is_example_id

_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}", re.ASCII)
_CONTAINER: Final = re.compile(r"[a-z0-9](-?[a-z0-9])*|\$root|\$web", re.ASCII)
_AZURE_NAME: Final = re.compile(r"[A-Za-z0-9_(][A-Za-z0-9._()-]{0,89}", re.ASCII)


def identity_script(job: JobSpec) -> str:
    """The script; a workload identity that is not there is made, so that its client id need not be known."""
    account, container = _place(job)
    return render(
        "k8s/identity.sh.j2",
        job=job,
        known_id="" if is_example_id(job.auth.identity) else job.auth.identity,
        account=account,
        container=container,
        service_account=job.auth.service_account or job.name,
        credential=f"{job.auth.cluster}-{job.namespace}-{job.auth.service_account or job.name}".replace(
            ".", "-"
        )[:120],
    )


def identity_problems(job: JobSpec) -> list[Problem]:
    """What the script must know."""
    found = []
    if job.auth.secret:
        found.append(Problem("auth.secret", "is set, and a Secret needs no identity"))
    if not job.auth.kubelet_identity and not job.namespace:
        found.append(Problem("namespace", "is missing: the identity vouches for an account of one namespace"))
    for key, value in (("resource-group", job.auth.resource_group), ("cluster", job.auth.cluster)):
        if not _AZURE_NAME.fullmatch(value):
            what = "is no name of Azure's" if value else "is missing: the script looks the cluster up"
            found.append(Problem(f"auth.{key}", what))
    if not job.auth.kubelet_identity and not _AZURE_NAME.fullmatch(job.auth.identity_name):
        found.append(Problem("auth.identity-name", "is no name of Azure's"))
    account, container = _place(job)
    if not (_ACCOUNT.fullmatch(account) and _CONTAINER.fullmatch(container)):
        found.append(Problem("source", "is no https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX"))
    return found


def _place(job: JobSpec) -> tuple[str, str]:
    """Account and container; nothing where the source is no address of Azure's."""
    parts = urlsplit(job.source)
    account, _, service = (parts.hostname or "").partition(".")
    if parts.scheme != "https" or not service.startswith("blob."):
        return "", ""
    return account, parts.path.strip("/").partition("/")[0]
