"""Batch scripts are rehearsed on containers: the generated ones as they are, by stand-ins for Slurm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from azcp_kit.azurite import find_azurite
from azcp_kit.rehearse.orphans import LABEL
from azcp_kit.rehearse.outcome import Outcome
from azcp_kit.rehearse.request import RehearseRequest, Until
from azcp_kit.rehearse.slurm.on_containers import rehearse_on_containers
from azcp_kit.rehearse.slurm.script import read_script
from azcp_runtime.contract import ExitCode, PreflightError
from docker import DockerClient

from tests.lab.bases import Bases, cache_folder
from tests.lab.injected import Injected
from tests.lab.requirements import missing
from tests.lab.stand_ins import with_stand_ins

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples" / "slurm"
SIZE_BYTES: Final = 4 << 20
DEADLINE_S: Final = 240.0
FORMS: Final = ("none", "pyxis", "enroot", "apptainer")
FROM_DIRECTORY: Final = """\
#!/bin/bash
#SBATCH --nodes=2
srun --nodes=2 --ntasks-per-node=1 /opt/azcp/bin/azcp-launch /lustre/llama /data --nodes 2 --every-node \\
    --key-seed - < <(head -c 32 /dev/urandom)
"""


@dataclass(frozen=True)
class Stage:
    """Where rehearsals take place."""

    docker: DockerClient
    image: str
    bare: str
    told: list[str]

    def rehearse(self, text: str, **request: object) -> Outcome:
        """On two nodes."""
        asked = RehearseRequest(
            text, nodes=2, images={"": self.image}, size_bytes=SIZE_BYTES, timeout_s=DEADLINE_S
        )
        self.told.clear()
        asked = replace(asked, **request)  # type: ignore[arg-type]  # fields by name
        return rehearse_on_containers(
            read_script(text), asked, lambda _at, _who, what: self.told.append(what)
        )

    def leftovers(self) -> list[str]:
        """What of any rehearsal is in the engine."""
        api, chosen = self.docker.api, {"label": LABEL}
        found = [container["Id"] for container in api.containers(all=True, filters=chosen)]
        found += [network["Name"] for network in api.networks(filters=chosen)]
        return [*found, *(volume["Name"] for volume in api.volumes(filters=chosen)["Volumes"] or [])]


@pytest.fixture(scope="module")
def stage(docker: DockerClient, bases: Bases) -> Iterator[Stage]:
    """The injected image, which does not outlive the module."""
    if find_azurite() is None:
        missing("azurite", "Azurite is not installed: put Node.js with npm on PATH, then `make clean venv`")
    images = Injected(docker, bases, cache_folder())
    injected = with_stand_ins(docker, images("debian12"), "batch")
    yield Stage(docker, injected, bases("debian12"), [])
    docker.images.remove(injected, force=True)
    images.remove()


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.sbatch").read_text(encoding="utf-8")


def said(outcome: Outcome) -> list[str]:
    """The lines that were kept."""
    ends = [end for pod in outcome.pods for end in pod.containers]
    return [line.text for end in ends for line in (*end.summary, *end.tail)]


@pytest.mark.parametrize("form", FORMS)
def test_a_generated_script_distributes_runs_its_command_and_leaves_nothing(stage: Stage, form: str) -> None:
    outcome = stage.rehearse(example(form))
    assert outcome.exit_code is ExitCode.DONE, outcome.to_json()
    assert (outcome.nodes, outcome.manifest_nodes) == (2, 16)
    assert [entry.differences for entry in outcome.data] == [(), ()]
    assert sorted(line for line in said(outcome) if line.startswith("phase 2")) == [
        "phase 2 on 0 of 2",
        "phase 2 on 1 of 2",
    ]
    assert any(line.startswith("[total] T=") for line in stage.told)
    assert stage.leftovers() == []


def test_without_pmix_the_other_launch_is_taken_and_told(stage: Stage) -> None:
    outcome = stage.rehearse(example("pmix"), until=Until.DISTRIBUTED)
    assert outcome.exit_code is ExitCode.DONE, outcome.to_json()
    assert any("srun --mpi=pmix does not work here" in line for line in said(outcome))
    assert any("--mpi=pmix" in line for line in outcome.unshown)


def test_a_rehearsal_until_the_data_is_there_leaves_the_command_out(stage: Stage) -> None:
    text = example("none").replace("    torchrun\n", "    false\n")
    assert stage.rehearse(text, until=Until.DISTRIBUTED).exit_code is ExitCode.DONE
    outcome = stage.rehearse(text)
    assert outcome.exit_code is ExitCode.PREFLIGHT
    assert "azcp: the command has ended with 1" in outcome.workloads[0].reason
    assert [entry.differences for entry in outcome.data] == [(), ()]


def test_a_folder_as_the_source_has_the_data_set(stage: Stage) -> None:
    outcome = stage.rehearse(FROM_DIRECTORY)
    assert outcome.exit_code is ExitCode.DONE, outcome.to_json()
    assert [entry.differences for entry in outcome.data] == [(), ()]


def test_what_is_not_done_in_time_is_given_up(stage: Stage) -> None:
    outcome = stage.rehearse(
        example("none").replace("    torchrun\n", "    sh\n    -c\n    'exec sleep 1000'\n"), timeout_s=25.0
    )
    assert outcome.exit_code is ExitCode.PREFLIGHT
    assert stage.leftovers() == []


def test_an_image_that_was_not_built_here_is_told_before_anything_starts(stage: Stage) -> None:
    with pytest.raises(PreflightError, match="holds no /opt/azcp"):
        stage.rehearse(example("none"), images={"": stage.bare})
    assert stage.leftovers() == []
