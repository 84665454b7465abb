"""Traps in batch scripts: each is put into a clean sample, and exactly its own rule speaks, at its line."""

from __future__ import annotations

from typing import Final

import pytest

from tests.kit.lint.samples import Trap, check, findings, line_of, rules, sample

STEPS: Final = (
    Trap(
        "a directive after a command",
        "image=/shared/images/d",
        "#SBATCH --exclusive\nimage=/shared/images/d",
        "S101e",
    ),
    Trap("steps without an environment", "--export=ALL \\", "--export=NONE \\", "S102w"),
    Trap("a comma in a value", "--export=ALL \\", "--export=ALL,UCX_NET_DEVICES=a:1,b:1 \\", "S103e"),
    Trap("a secret in the options", "--export=ALL \\", "--export=ALL,AZCP_SAS=abcdefgh \\", "S104e"),
    Trap("killed without a warning", "#SBATCH --signal=B:TERM@120\n", "", "S105n", "--time"),
    Trap("a log that is truncated", "#SBATCH --open-mode=append\n", "", "S106w", "--requeue"),
    Trap("an array", "#SBATCH --requeue\n", "#SBATCH --requeue\n#SBATCH --array=0-3\n", "S107n", "--array"),
    Trap("it goes on after a failure", "set -euo pipefail\n", "", "S108n", "#!/bin/bash"),
    Trap(
        "CPUs that the step does not get",
        "srun --cpus-per-task=24 --export=ALL",
        "srun --export=ALL",
        "S201w",
    ),
    Trap(
        "a variable of the image",
        "image=/shared/images/d",
        "export NCCL_DEBUG=INFO\nimage=/shared/images/d",
        "S301w",
    ),
    Trap(
        "two lists of mounts",
        "    --no-container-entrypoint",
        "    --container-mounts=/a:/a --no-container-entrypoint",
        "S302e",
    ),
    Trap(
        "a mount with a space",
        "    --container-mounts=/mnt/nvme:/mnt/nvme \\\n",
        "    --container-mounts='/my data:/data' \\\n",
        "S303e",
    ),
    Trap(
        "a mount with a colon",
        "    --container-mounts=/mnt/nvme:/mnt/nvme \\\n",
        "    --container-mounts=/a:b:/a:b \\\n",
        "S303e",
    ),
    Trap(
        "a device that may be absent",
        "    --container-mounts=/mnt/nvme:/mnt/nvme \\\n",
        "    --container-mounts=/mnt/nvme:/mnt/nvme,/dev/infiniband:/dev/infiniband \\\n",
        "S304n",
    ),
    Trap(
        "an image imported by each step",
        "image=/shared/images/distribute.sqsh",
        "image=ubuntu#team/distribute:1",
        "S305w",
        '--container-image="$image"',
    ),
    Trap(
        "the entry point of the image",
        "    --no-container-entrypoint \\\n",
        "",
        "S307w",
        "srun --cpus-per-task=24 --export",
    ),
    Trap(
        "an unquoted variable",
        "    --container-mounts=/mnt/nvme:/mnt/nvme \\\n",
        "    --container-mounts=$HOME:/home \\\n",
        "S308n",
    ),
    Trap(
        "a secret in the script",
        "image=/shared/images/d",
        "export AZCP_SAS='sv=2024&sig=abcdefghijkl'\nimage=/shared/images/d",
        "K701e",
    ),
    Trap(
        "a wait without an end",
        "image=/shared/images/d",
        "while ! ping -c 1 peer; do\n  sleep 1\ndone\nimage=/shared/images/d",
        "K107w",
    ),
)

RANKS: Final = (
    Trap("ranks by PMI2", "--mpi=pmix", "--mpi=pmi2", "S202e", "srun"),
    Trap("ranks that do not meet", "--mpi=pmix ", "", "S202e", "srun"),
    Trap(
        "PMIx of the host and of an image",
        "--mpi=pmix",
        "--mpi=pmix --container-image=/a.sqsh --no-container-entrypoint",
        "S203w",
        "srun",
    ),
    Trap("two ranks on a node", "--ntasks-per-node=1", "--ntasks-per-node=2", "S204e", "srun"),
    Trap(
        "a chunk of 2 GiB",
        "/mnt/nvme/mistral\n",
        "/mnt/nvme/mistral --bcast-chunk 2GiB\n",
        "K810e",
        "--bcast-chunk",
    ),
    Trap(
        "devices by number",
        "set -e\n",
        "set -e\nexport OMPI_MCA_pml=ucx UCX_NET_DEVICES=mlx5_0:1\n",
        "K807w",
        "UCX_NET_DEVICES",
    ),
    Trap(
        "mpirun in a container",
        "srun -c 24 --mpi=pmix \\\n",
        "apptainer exec a.sif mpirun -N 1 \\\n",
        "S205w",
        "mpirun",
    ),
)


@pytest.mark.parametrize("trap", STEPS, ids=lambda trap: trap.sentence)
def test_a_trap_in_a_job_of_pyxis_is_found(trap: Trap) -> None:
    check("clean.sbatch", trap)


@pytest.mark.parametrize("trap", RANKS, ids=lambda trap: trap.sentence)
def test_a_trap_in_a_job_of_ranks_is_found(trap: Trap) -> None:
    check("ranks.sbatch", trap)


@pytest.mark.parametrize("name", ["clean.sbatch", "ranks.sbatch"])
def test_nothing_is_found_in_a_clean_script(name: str) -> None:
    assert rules(sample(name), notes=True) == []


def test_a_registry_is_followed_by_a_number_sign() -> None:
    text = sample("clean.sbatch").replace(
        "image=/shared/images/distribute.sqsh", "image=ghcr.io/team/distribute:1"
    )
    assert sorted(findings(text)) == ["S305w", "S306e"]
    assert list(findings(text.replace("ghcr.io/", "ghcr.io#"))) == ["S305w"]


def test_the_uri_of_an_import_has_a_number_sign_too() -> None:
    text = "#!/bin/bash\nenroot import -o a.sqsh docker://ghcr.io/team/distribute:1\n"
    assert findings(text)["S306e"].line == 2
    assert rules(text.replace("ghcr.io/", "ghcr.io#")) == []


def test_a_variable_that_pyxis_is_told_of_reaches_the_container() -> None:
    text = sample("clean.sbatch").replace(
        "image=/shared/images/d", "export NCCL_DEBUG=INFO\nimage=/shared/images/d"
    )
    assert rules(text) == ["S301w"]
    told = text.replace("--container-image", "--container-env=NCCL_DEBUG --container-image")
    assert rules(told) == []


def test_cpus_given_by_the_environment_are_enough() -> None:
    text = sample("clean.sbatch").replace("srun --cpus-per-task=24", "srun")
    assert rules(text) == ["S201w", "S201w"]
    assert (
        rules(text.replace("image=/shared/images/d", "export SRUN_CPUS_PER_TASK=24\nimage=/shared/images/d"))
        == []
    )


def test_an_mpirun_without_the_jobs_variables_is_fine_in_a_container() -> None:
    text = sample("ranks.sbatch").replace("srun -c 24 --mpi=pmix", "apptainer exec a.sif mpirun -mca plm rsh")
    assert "S205w" not in rules(text)


def test_a_secret_in_a_script_is_found_at_its_line_and_not_printed() -> None:
    text = sample("ranks.sbatch").replace("models/mistral ", "'models/mistral?sv=1&sig=Qw3rtzU1opAsDf' ")
    (found,) = findings(text).values()
    assert found.line == line_of(text, "sig=")
    assert "Qw3rtz" not in repr(found)


def test_a_here_document_is_left_alone() -> None:
    text = sample("ranks.sbatch") + "cat <<EOF > notes\nchmod 777 /data\nEOF\nchmod 755 /data\n"
    assert rules(text) == []
    assert rules(text.replace("755", "777")) == ["K503w"]


def test_the_option_of_a_shell_in_the_step_restates_no_cpus() -> None:
    directives = "#!/bin/bash\n#SBATCH --cpus-per-task=24 --ntasks-per-node=1\n"
    text = f"{directives}srun --mpi=pmix sh -c 'azcp-cluster a b'\n"
    assert rules(text) == ["S201w"]
    assert rules(text.replace("srun", "srun -c24")) == []
