"""What a rehearsal reads from a batch script, and what it exchanges in its copy of one."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from azcp_kit.rehearse.account import Emulator, Source
from azcp_kit.rehearse.request import Kill, RehearseRequest
from azcp_kit.rehearse.slurm.account import expect_fitting, expect_no_real_account, node_number
from azcp_kit.rehearse.slurm.edits import Edits, edited, moved, own_destination, scaled
from azcp_kit.rehearse.slurm.script import BatchScript, is_batch_script, read_script
from azcp_kit.rehearse.slurm.unshown import unshown_anywhere, unshown_on_containers
from azcp_runtime.contract import UsageError

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples" / "slurm"
EMULATOR: Final = Emulator("http://10.1.2.3:10000", "a2V5")
LLAMA: Final = Source("examplemodels", "models", "llama")
FORMS: Final = ("none", "pyxis", "enroot", "apptainer", "pmix")


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.sbatch").read_text(encoding="utf-8")


def copy(script: BatchScript, nodes: int = 2, sas_files: Mapping[str, str] | None = None) -> str:
    edits = Edits(nodes, EMULATOR, f"{script.destination}/own", dict(sas_files or {}), "AZCP_SAS")
    return edited(script, edits)


def short(*lines: str) -> str:
    return "\n".join(["#!/bin/bash", "#SBATCH --nodes=4", *lines, ""])


def launch(*words: str) -> str:
    return " ".join(
        ["srun azcp-launch https://models.blob.core.windows.net/data/llama /mnt/nvme/llama", *words]
    )


@pytest.mark.parametrize("form", FORMS)
def test_every_generated_script_tells_its_nodes_source_and_destination(form: str) -> None:
    script = read_script(example(form))
    assert (script.name, script.nodes, script.tasks_per_node) == ("llama", 16, 1)
    assert script.sources == (LLAMA,)
    assert script.destination == "/mnt/nvme/llama"
    assert script.containers == (() if form in ("none", "pmix") else (form,))


@pytest.mark.parametrize("form", FORMS)
def test_no_number_of_the_copy_is_that_of_the_original(form: str) -> None:
    text = copy(read_script(example(form)))
    changed = [
        line
        for line in text.split("\n")
        if not line.lstrip().startswith("#") and "this script is for" not in line
    ]
    assert not [line for line in changed if line.strip().endswith("16")]
    assert "SLURM_JOB_NUM_NODES:-} != 2 " in text
    assert text.count("--nodes=2\n") == 2
    assert "--nodes\n    2\n" in text
    assert "--nnodes=2\n" in text
    assert "head -c 32 " in text


@pytest.mark.parametrize("form", FORMS)
def test_the_copy_is_a_script_that_leads_to_no_account(form: str) -> None:
    text = copy(read_script(example(form)))
    expect_no_real_account(text)
    assert f"    {EMULATOR.base}/examplemodels/models/llama\n    /mnt/nvme/llama/own\n" in text
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_tasks_stay_as_many_on_each_node() -> None:
    script = read_script(example("mpi"))
    assert (script.nodes, script.tasks_per_node) == (4, 8)
    assert "--ntasks=24\n    --ntasks-per-node=8" in copy(script, nodes=3)


def test_short_options_count_where_they_are_slurms() -> None:
    text = "#SBATCH -N 4\nsrun -N4 -n 8 hostname | sort\nls | head -n 4\n"
    assert scaled(text, 4, 2) == "#SBATCH -N 2\nsrun -N2 -n 4 hostname | sort\nls | head -n 4\n"


def test_numbers_that_are_not_of_nodes_stay() -> None:
    text = "--nodes=6 --nodes=4.5 --ntasks-per-node=4 $(( SLURM_NNODES * 4 )) --nodes=40x"
    assert scaled(text, 4, 2) == text


def test_mounts_keep_the_folder_that_has_to_be_there() -> None:
    text = "--container-mounts=/data:/data,/code:/code /data /data/checkpoint DEST=/data /database a/data"
    assert moved(text, "/data", "/data/own") == (
        "--container-mounts=/data:/data,/code:/code /data/own /data/own/checkpoint DEST=/data/own "
        "/database a/data"
    )


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "/mnt/nvme/llama.own"),
        (["#SBATCH --container-mounts=/mnt/nvme:/mnt/nvme"], "/mnt/nvme/llama.own"),
        (["srun --container-mounts=/x:/x,/mnt/nvme/llama:/mnt/nvme/llama true"], "/mnt/nvme/llama/own"),
        (["apptainer exec --bind /scratch:/mnt/nvme/llama"], "/mnt/nvme/llama/own"),
        (["srun --container-mounts=/mnt/nvme/llama true"], "/mnt/nvme/llama/own"),
    ],
)
def test_the_data_goes_beside_the_destination_or_below_one_that_is_mounted(
    lines: list[str], told: str
) -> None:
    assert own_destination(read_script(short(*lines, launch())), "own") == told


def test_a_file_with_a_signature_is_another() -> None:
    script = read_script(example("none"))
    assert script.sas_files == ("/shared/home/me/models.sas",)
    text = copy(script, sas_files=dict.fromkeys(script.sas_files, "/shared/r/sas"))
    assert "--sas-file\n    /shared/r/sas\n" in text
    assert "models.sas" not in text


@pytest.mark.parametrize(
    "line",
    [
        'export AZCP_SAS="$(cat ~/sas)"',
        "AZCP_SAS=$(cat ~/sas)",
        "export AZCP_SAS='sv=2&sig=mine'",
        "AZCP_SAS=abc",
    ],
)
def test_a_credential_of_the_script_itself_does_not_reach_the_emulator(line: str) -> None:
    text = copy(read_script(short(line, launch())))
    (own,) = (found for found in text.split("\n") if "AZCP_SAS=" in found)
    assert "sig=" in own
    assert not any(secret in own for secret in ("cat", "mine", "abc"))
    value = subprocess.run(
        ["bash", "-c", f'{own}\necho "$AZCP_SAS"'], capture_output=True, text=True, check=True
    )
    assert value.stdout.startswith("sp=rl&")


def test_identity_is_not_asked_for() -> None:
    text = copy(read_script(short(launch("--auth", "identity", "--auth=identity"))))
    assert "--auth auto --auth=auto" in text


def test_enroot_hands_the_credential_on() -> None:
    assert "enroot start --env AZCP_SAS --rc" in copy(read_script(example("enroot")))


def test_variables_with_one_value_are_read() -> None:
    script = read_script(
        short(
            "SRC=https://models.blob.core.windows.net/data/llama",
            "DEST=/mnt/nvme/llama",
            'srun azcp-launch "$SRC" "$DEST"',
        )
    )
    assert (script.source, script.destination) == (
        "https://models.blob.core.windows.net/data/llama",
        "/mnt/nvme/llama",
    )
    text = copy(script)
    assert "DEST=/mnt/nvme/llama/own" in text
    assert f"SRC={EMULATOR.base}/models/data/llama" in text


def test_an_account_that_only_a_run_names_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be exchanged"):
        expect_no_real_account("SOURCE=https://$ACCOUNT.blob.core.windows.net/data")


@pytest.mark.parametrize("line", ["#SBATCH --array=1-4", "#SBATCH hetjob", "#SBATCH -a 3"])
def test_arrays_and_heterogeneous_jobs_are_refused(line: str) -> None:
    with pytest.raises(UsageError, match="not rehearsed"):
        read_script(short(line, launch()))


@pytest.mark.parametrize(
    ("lines", "counts"),
    [
        (["#SBATCH -N 3"], (3, 1)),
        (["#SBATCH --nodes=2-2", "#SBATCH --ntasks-per-node=4"], (2, 4)),
        (["#SBATCH --ntasks=8", "#SBATCH --ntasks-per-node=4"], (2, 4)),
        (["#SBATCH --nodes=2", "#SBATCH --ntasks=8"], (2, 4)),
        (["#SBATCH --job-name=x"], (1, 1)),
    ],
)
def test_nodes_are_counted_as_slurm_counts_them(lines: list[str], counts: tuple[int, int]) -> None:
    script = read_script("\n".join(["#!/bin/bash", *lines, "true"]))
    assert (script.nodes, script.tasks_per_node) == counts


def test_a_range_of_nodes_is_refused() -> None:
    with pytest.raises(UsageError, match="asks for 2-4 nodes"):
        read_script("#!/bin/bash\n#SBATCH --nodes=2-4\ntrue\n")


def test_a_manifest_is_no_batch_script() -> None:
    assert is_batch_script(example("none"))
    assert not is_batch_script("apiVersion: batch/v1\nkind: Job\n")
    assert not is_batch_script("#!/bin/bash\nsrun hostname\n")


@pytest.mark.parametrize(
    ("text", "request_", "is_local", "told"),
    [
        (short(launch()), {}, False, "give --image IMAGE"),
        (short(launch()), {"images": {"a": "b", "c": "d"}}, False, "one --image"),
        (short(launch()), {"kills": (Kill("a", "start", 1.0),)}, True, "pods of a manifest"),
        (short("srun hostname"), {}, True, "in plain words"),
        (short("srun azcp-launch /lustre/llama /mnt/nvme/llama"), {}, True, "on containers alone"),
    ],
)
def test_what_does_not_go_together_is_refused(
    text: str, request_: dict[str, object], is_local: bool, told: str
) -> None:
    request = RehearseRequest(text, **request_)  # type: ignore[arg-type]  # fields by name
    with pytest.raises(UsageError, match=told):
        expect_fitting(read_script(text), request, is_local=is_local)


def test_a_few_nodes_are_enough_unless_more_are_asked_for() -> None:
    script = read_script(example("none"))
    assert node_number(script, RehearseRequest("")) == 3
    assert node_number(script, RehearseRequest("", nodes=5)) == 5


def test_what_containers_cannot_show_is_listed() -> None:
    script = read_script(example("pmix"))
    told = "\n".join(unshown_on_containers(script))
    for part in ("--gpus-per-node", "--mpi=pmix", "--time, --signal, --requeue", "--partition", "fabric"):
        assert part in told
    assert "pyxis: the image of --image" in "\n".join(unshown_on_containers(read_script(example("pyxis"))))
    assert len(unshown_anywhere(script)) == 2
