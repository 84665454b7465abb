"""Manifests and scripts in the shapes that azcp-cluster's users have, and azcp-kit's own examples."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from azcp_kit.lint.check import lint_text
from azcp_kit.lint.finding import Severity

from tests.kit.lint.samples import line_of, sample

EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "aks"

# What each line must be told, and nothing else but notes.
FOUND: Final = {
    "era-mpijob.yaml": (
        ("export LD_LIBRARY_PATH", "K806-private-libraries-for-all"),
        ("-x UCX_NET_DEVICES", "K807-fixed-device-names"),
        ("-x UCX_IB_GID_INDEX", "K808-fixed-gid-index"),
        ("-x AZURE_CLIENT_ID azcp-cluster", "K803-number-of-ranks"),
        ("bash -c '", "K803-number-of-ranks"),
        ("      template:\n        metadata", "K108-worker-without-readiness"),
        ("limits: {memory: 6Gi", "K408-memory-limit-too-small"),
        ("DirectoryOrCreate", "K501-host-path-made-on-demand"),
        ("medium: Memory", "K407-memory-volume-without-limit"),
    ),
    "era-indexed-job.yaml": (
        ("spec:\n  clusterIP", "K303-service-hides-unready-pods"),
        ("spec:\n  parallelism", "K903-no-backoff-limit"),
        ("restartPolicy: OnFailure", "K904-restarts-alone"),
        ("- name: disk\n          hostPath", "K504-pods-may-share-a-node"),
        ("DirectoryOrCreate", "K501-host-path-made-on-demand"),
        ("- name: fetch", "K406-small-dev-shm"),
        ("while ! ssh", "K107-wait-without-end"),
        ("mpirun --allow-run-as-root", "K703-identity-not-named"),
        ("--host peers-0", "K308-full-names-are-cut"),
        ("-x UCX_NET_DEVICES", "K807-fixed-device-names"),
        ("chmod -R", "K503-folder-open-to-all"),
        ("args: [python", "K104-args-without-command"),
    ),
    "era-stateful-set.yaml": (
        ("spec:\n  clusterIP", "K303-service-hides-unready-pods"),
        ("/usr/sbin/sshd -D", "K307-port-22-on-host-network"),
        ("until ssh", "K107-wait-without-end"),
        ("mpirun --host", "K802-mpirun-refuses-root"),
        ("-x UCX_TLS", "K805-ucx-not-chosen"),
        ("-x UCX_TLS", "K808-fixed-gid-index"),
        ("--bcast-chunk", "K810-bcast-chunk-too-large"),
        ("hostNetwork", "K306-host-network-without-cluster-dns"),
        ("- name: cache\n", "K406-small-dev-shm"),
        ('value: "https', "K701-secret-in-text"),
        ("limits: {memory: 64Gi", "K401-rdma-without-ipc-lock"),
        ("- name: disk\n", "K504-pods-may-share-a-node"),
    ),
    "era-pyxis.sbatch": (
        ("export NCCL_IB_HCA", "K807-fixed-device-names"),
        ("export NCCL_IB_HCA", "S301-image-environment-wins"),
        ("srun \\\n  --mpi=pmix", "S201-cpus-not-restated"),
        ("srun \\\n  --mpi=pmix", "S203-pmix-of-host-and-image"),
        ("srun \\\n  --mpi=pmix", "S307-entrypoint-not-switched-off"),
        ("export UCX_NET_DEVICES", "K807-fixed-device-names"),
        ("export UCX_IB_GID_INDEX", "K808-fixed-gid-index"),
        ("time srun", "S201-cpus-not-restated"),
        ("nvcr.io", "S305-image-imported-by-each-step"),
        ("nvcr.io", "S306-registry-without-number-sign"),
    ),
    "era-apptainer.sbatch": (
        ("--time", "S101-directive-ignored"),
        ("srun", "K805-ucx-not-chosen"),
        ("srun", "K807-fixed-device-names"),
        ("srun", "S103-export-splits-at-comma"),
        ("srun", "S202-ranks-do-not-meet"),
        ("srun", "S204-not-one-task-per-node"),
        ("UCX_IB_GID_INDEX", "K808-fixed-gid-index"),
        ("mpirun -np", "S205-mpirun-sees-slurm"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_a_file_of_a_published_shape_is_told_its_traps_line_by_line(name: str) -> None:
    text = sample(name)
    spoken = [f for f in lint_text(text) if f.severity is not Severity.NOTE]
    expected = sorted((_line(text, fragment), rule) for fragment, rule in FOUND[name])
    assert [(finding.line, finding.rule) for finding in spoken] == expected


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.*aml")), ids=lambda path: path.name)
def test_a_generated_manifest_has_neither_an_error_nor_a_warning(path: Path) -> None:
    found = lint_text(path.read_text(encoding="utf-8"))
    assert [finding for finding in found if finding.severity is not Severity.NOTE] == []


def _line(text: str, fragment: str) -> int:
    """The line that a fragment of one or several lines begins on."""
    if "\n" not in fragment:
        return line_of(text, fragment)
    assert text.count(fragment) == 1
    return text.count("\n", 0, text.index(fragment)) + 1
