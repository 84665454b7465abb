"""The batch script of the all-reduce test: its layout, what arrives in the step, and when its job fails."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from azcp_kit.lint.check import lint_text
from azcp_kit.lint.finding import Severity
from azcp_kit.quoting.toml import toml_string
from azcp_kit.spec.problems import SpecError
from azcp_kit.spec.read import parse_job
from azcp_kit.spec.sku import load_skus
from azcp_kit.targets.nccl_test import nccl_test_problems, nccl_test_script
from azcp_kit.targets.slurm.wish import read_wish
from azcp_runtime.contract import UsageError
from hypothesis import given, settings
from hypothesis import strategies as st

SHELLCHECK = Path(sys.prefix, "bin", "shellcheck")
DIGEST = "a" * 64
JOB = f"""\
name = "llama"
image = "registry.example/train@sha256:{DIGEST}"
source = "https://examplemodels.blob.core.windows.net/models/llama"
dest = "/mnt/nvme/llama"
nodes = 4
[storage]
path = "/mnt/nvme"
[slurm]
images = "/shared/images"
"""
A100 = "Standard_ND96asr_v4"
MI300X = "Standard_ND96isr_MI300X_v5"
CONTAINERS = ("pyxis", "apptainer", "none")
# The first srun looks for the paths, the second is the test.
SRUN = """\
#!/bin/bash
[ "$7" = --export=ALL ] || exit 9
case " $* " in
    *" ls -d "*) printf '%s\\0' "$@" >"$SAID/look"; exit "${LACKS:-0}" ;;
    *) printf '%s\\0' "$@" >"$SAID/test"; cat "$SAID/prints"; exit "$(cat "$SAID/code")" ;;
esac
"""


def script(container: str, *settings: str, sku: str = A100) -> str:
    """What is generated for the job with some settings."""
    wish = read_wish(container, "")
    job = parse_job(JOB, "job.toml", [f"sku={sku}", *settings], lambda job: nccl_test_problems(job, wish))
    return nccl_test_script(job, wish)


def tried(container: str, *settings: str) -> tuple[str, set[str]]:
    """The same where it may be refused: then with the keys that are wrong."""
    try:
        return script(container, *settings), set()
    except SpecError as error:
        return "", {problem.key for problem in error.problems}


def ranks(count: int) -> str:
    """How the test lists its ranks."""
    line = "#  Rank {:2} Group  0 Pid   4100 on      hpc-1 device  0 [0x00] NVIDIA A100-SXM4-40GB\n"
    return "".join(line.format(rank) for rank in range(count))


def submitted(
    text: str, prints: str = ranks(32), code: int = 0, env: Mapping[str, str] | None = None
) -> tuple[subprocess.CompletedProcess[str], list[str], list[str]]:
    """Run a script with an srun that notes its words: how it ended, the words of both steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "srun").write_text(SRUN)
        (folder / "srun").chmod(0o755)
        (folder / "prints").write_text(prints)
        (folder / "code").write_text(f"{code}")
        environment = {
            "PATH": f"{folder}:/usr/bin:/bin",
            "SAID": name,
            "SLURM_JOB_NAME": "j",
            "SLURM_JOB_ID": "7",
        }
        ended = subprocess.run(
            ["bash"],
            input=text,
            env={**environment, **(env or {})},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        words = [
            (folder / step).read_bytes().decode().split("\0")[:-1] if (folder / step).exists() else []
            for step in ("look", "test")
        ]
        return ended, words[0], words[1]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("sku", load_skus())
def test_every_script_is_clean(container: str, sku: str) -> None:
    text = script(container, "nccl-test.expected-gbps=100.5", "slurm.constraint='a&b'", sku=sku)
    checked = subprocess.run(
        [SHELLCHECK, "-"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode == 0, checked.stdout
    assert not [each for each in lint_text(text) if each.severity is not Severity.NOTE]


def test_directives_are_together_at_the_head_and_values_are_quoted() -> None:
    lines = script("none", "slurm.partition='gpu'", "slurm.constraint='a&b'").splitlines()
    directives = [line for line in lines if line.startswith("#SBATCH")]
    assert lines[1 : 1 + len(directives)] == directives
    assert {"#SBATCH --partition=gpu", '#SBATCH --constraint="a&b"', "#SBATCH --exclusive"} < set(directives)
    assert {"#SBATCH --ntasks-per-node=8", "#SBATCH --gpus-per-node=8", "#SBATCH --time=30"} < set(directives)


def test_each_gpu_has_a_task_with_its_own_cpus() -> None:
    _, _, words = submitted(script("none", "nccl-test.modules=[]"))
    assert {"--nodes=4", "--ntasks=32", "--ntasks-per-node=8", "--cpus-per-task=12", "--mem=0"} < set(words)
    assert f"--cpu-bind=mask_cpu:{','.join(load_skus()[A100].task_masks)}" in words
    assert {"--mpi=pmix", "--gpus-per-node=8", "--distribution=block"} < set(words)


def test_where_no_masks_are_known_nothing_is_bound() -> None:
    _, _, words = submitted(script("none", "nccl-test.modules=[]", sku=MI300X), ranks(32))
    assert "--cpu-bind=none" in words
    assert words[words.index("-b") - 1] == "/opt/rccl-tests/all_reduce_perf"
    assert not [word for word in words if word.startswith("NCCL_TOPO_FILE")]


def test_variables_are_set_inside_the_step_and_come_over_those_of_the_size() -> None:
    _, _, words = submitted(
        script("none", "nccl-test.modules=[]", "nccl-test.env={NCCL_DEBUG='WARN', X='1'}")
    )
    inside = words[words.index("env") + 1 : words.index("/opt/nccl-tests/build/all_reduce_perf")]
    assert {"NCCL_DEBUG=WARN", "X=1", "NCCL_TOPO_FILE=/opt/microsoft/ndv4-topo.xml"} < set(inside)
    assert len({word.partition("=")[0] for word in inside}) == len(inside)
    assert not [word for word in words if word.startswith("--export=ALL,")]


def test_results_are_compared_where_a_gpu_has_the_memory_for_it() -> None:
    assert " -e 17179869184 -f 2 -g 1 -n 20 -c 0 |" in script("none")
    assert " -e 8589934592 -f 2 -g 1 -n 20 -c 1 |" in script("none", "nccl-test.max-bytes=8GiB")
    assert " -c 1 |" in script("none", sku="Standard_ND96amsr_A100_v4")


def test_pyxis_gets_the_imported_image_the_devices_and_the_topology() -> None:
    _, look, words = submitted(script("pyxis"))
    image, topology = f"/shared/images/train-{DIGEST}.sqsh", "/opt/microsoft/ndv4-topo.xml"
    assert f"--container-image={image}" in words
    assert f"--container-mounts=/dev/infiniband:/dev/infiniband,{topology}:{topology}:ro" in words
    assert "--no-container-entrypoint" in words
    assert look[look.index("--") + 1 :] == [image, "/dev/infiniband", topology]


def test_apptainer_gets_them_too_and_amd_devices_where_they_are() -> None:
    _, _, words = submitted(script("apptainer", "nccl-test.image=/images/my test.sif", sku=MI300X))
    at = words.index("apptainer")
    binds = ["--bind=/dev/infiniband:/dev/infiniband"]
    assert words[at : at + 6] == ["apptainer", "exec", "--rocm", *binds, "/images/my test.sif", "env"]
    assert "--nv" in script("apptainer")


def test_modules_are_loaded_where_there_is_no_container() -> None:
    text = script("none")
    assert text.startswith("#!/bin/bash -l\n")
    assert "\nmodule load mpi/hpcx\n" in text
    assert "module" not in script("pyxis")
    ended, look, words = submitted(text)
    assert (ended.returncode, look, words) == (8, [], [])
    assert "write modules = [] into [nccl-test]" in ended.stderr


def test_what_the_report_must_know_is_in_the_log() -> None:
    ended, _, _ = submitted(script("pyxis", "nccl-test.expected-gbps=200", "nccl-test.threshold=0.8"))
    assert ended.returncode == 0, ended.stderr
    first, *_, last = ended.stdout.splitlines()
    assert first == f"# azcp-kit nccl-test sku={A100} ranks=32 threshold=0.8 expected-gbps=200"
    assert last == "# next: azcp-kit nccl-report j-7.log"


def test_what_the_test_prints_is_passed_on_whole() -> None:
    ended, _, _ = submitted(script("pyxis"), f"{ranks(32)}\ttab $x \\n 100 %s\nno end")
    assert "\ttab $x \\n 100 %s\nno end\n" in ended.stdout


def test_the_job_fails_as_the_test_does() -> None:
    ended, _, _ = submitted(script("pyxis"), ranks(3), code=3)
    assert ended.returncode == 3
    assert ended.stderr == "the test failed: srun ended with 3\n"


@pytest.mark.parametrize("prints", [ranks(1) * 32, ranks(16), ranks(16) * 2, ""])
def test_ranks_that_are_not_in_one_world_fail_the_job(prints: str) -> None:
    ended, _, _ = submitted(script("pyxis"), prints)
    assert ended.returncode == 2
    assert "this was not one test of 32 ranks" in ended.stderr


def test_a_node_that_lacks_something_ends_it_before_the_test() -> None:
    ended, look, words = submitted(script("pyxis"), env={"LACKS": "2"})
    assert (ended.returncode, words) == (8, [])
    assert look
    assert "a node lacks what the test needs" in ended.stderr


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
NASTY = st.sampled_from(
    ["", "a b", "it's", '"$HOME"', "`id`", "a,b:c", "line\nbreak\r", "\\", "é\u2028", "-x", "a=b"]
)


@settings(max_examples=40, deadline=None)
@given(value=TEXTS | NASTY, path=TEXTS | NASTY)
def test_what_is_said_in_the_table_arrives_in_the_step_or_is_refused(value: str, path: str) -> None:
    said = {
        "nccl-test.modules": "[]",
        "nccl-test.env": f"{{ OWN = {toml_string(value)} }}",
        "nccl-test.topology": toml_string(f"/t/{path}"),
        "nccl-test.binary": toml_string(f"/b/{path}"),
    }
    text, refused = tried("none", *(f"{key}={each}" for key, each in said.items()))
    if refused:
        assert refused <= {"nccl-test.topology", "nccl-test.binary"}
        assert any(character < " " or character in "=\x7f" for character in path)
        return
    ended, look, words = submitted(text)
    assert ended.returncode == 0, ended.stderr
    assert {f"OWN={value}", f"NCCL_TOPO_FILE=/t/{path}", f"/b/{path}"} <= set(words)
    assert look[look.index("--") + 1 :] == [f"/b/{path}", f"/t/{path}"]


@settings(max_examples=40, deadline=None)
@given(path=TEXTS | NASTY, container=st.sampled_from(["pyxis", "apptainer"]))
def test_a_mount_arrives_as_it_is_or_is_refused(path: str, container: str) -> None:
    text, refused = tried(container, f"nccl-test.topology={toml_string(f'/t/{path}')}")
    if refused:
        assert refused == {"nccl-test.topology"}
        return
    _, _, words = submitted(text)
    mount = f"/t/{path}:/t/{path}:ro"
    found = [
        word.partition("=")[2].split(",")[-1]
        for word in words
        if word.startswith(("--container-mounts", "--bind"))
    ]
    assert found[-1] == mount
    assert f"NCCL_TOPO_FILE=/t/{path}" in words


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("nccl-test.binary=bin/all_reduce_perf", "is neither an absolute path nor a name"),
        ("nccl-test.binary=/opt/a=b", "has a = in it"),
        ("nccl-test.image=registry.example/x", "is not absolute"),
        ("nccl-test.max-bytes=64GiB", "two buffers of it do not fit the 40 GB of a GPU"),
        ("nccl-test.min-bytes=17GiB", "is nothing, or more than max-bytes"),
        ("nccl-test.threshold=1.5", "1.5 is not from 0.01 to 1"),
        ("nccl-test.expected-gbps=nan", "is not from"),
        ("nccl-test.expected-gbps='fast'", "is a text, not a number"),
        ("nccl-test.modules=['a;b']", "is no name of a module"),
        ("nccl-test.iteration=3", "is not known; did you mean iterations?"),
        ("slurm.images=''", "slurm.images: is missing"),
        ("image=train:1", "is not pinned"),
    ],
)
def test_what_is_wrong_is_told(setting: str, told: str) -> None:
    with pytest.raises(SpecError) as caught:
        script("pyxis", setting)
    assert told in str(caught.value)


def test_it_needs_a_vm_size_and_a_container_that_it_runs_in() -> None:
    with pytest.raises(SpecError, match="sku: is missing"):
        script("none", sku="")
    with pytest.raises(UsageError, match="does not run in enroot"):
        script("enroot")
