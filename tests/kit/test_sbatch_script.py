"""The batch script: clean, true to job.toml whatever it says, and right about how its steps have ended."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from azcp_kit.quoting.toml import toml_string
from azcp_kit.spec.problems import SpecError
from azcp_kit.spec.read import parse_job
from azcp_kit.targets.slurm.import_image import import_script
from azcp_kit.targets.slurm.problems import import_problems, sbatch_problems
from azcp_kit.targets.slurm.sbatch import sbatch_script
from azcp_kit.targets.slurm.wish import Container, Launch, Wish
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.batch_run import RECORD, run_batch
from tests.lab.slurm_tools import apptainer, enroot, pyxis

SHELLCHECK = Path(sys.prefix, "bin", "shellcheck")
DIGEST = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4
HEAD = f"""\
name = "llama"
image = "registry.example:5000/team/train:azcp@sha256:{DIGEST}"
source = "https://acct.blob.core.windows.net/models/llama"
dest = "/mnt/nvme/llama"
nodes = 4
"""
STORAGE = '[storage]\npath = "/mnt/nvme"\n'
COMMAND = '[command]\nrun = ["train", "--data", "/mnt/nvme/llama"]\nenv = { NCCL_DEBUG = "WARN" }\n'
RETRIES = "[limits]\nretries = 2\n"
CONTAINED = [each for each in Container if each is not Container.NONE]


def script(wish: Wish, *tables: str, head: str = HEAD, images: str = "/shared/images") -> str:
    """What `azcp-kit generate sbatch` prints."""
    slurm = "" if wish.container is Container.NONE else f"images = {toml_string(images)}\n"
    text = "".join([head, STORAGE, *tables])
    text = text.replace("[slurm]\n", f"[slurm]\n{slurm}") if "[slurm]" in text else f"{text}[slurm]\n{slurm}"
    return sbatch_script(parse_job(text, more=lambda job: sbatch_problems(job, wish)), wish)


@pytest.mark.parametrize("launch", Launch)
@pytest.mark.parametrize("container", Container)
@pytest.mark.parametrize("form", ["plain", "torchrun", "mpi", ""])
def test_every_form_is_clean_shell_and_its_directives_stand_together(
    container: Container, launch: Launch, form: str, tmp_path: Path
) -> None:
    command = COMMAND + f'form = "{form}"\n' if form else ""
    more = 'grace = "90s"\npartition = "gpu"\nconstraint = "a100&[rack1|rack2]"\nsas-file = "/home/me/sas"\n'
    stage = "" if container is Container.NONE else "stage = true\n"
    auth = '[auth]\nkubelet-identity = "00000000-1111-2222-3333-444444444444"\n'
    text = script(Wish(container, launch), command, auth, RETRIES, f"[slurm]\n{more}{stage}")
    lines = text.splitlines()
    marked = [at for at, line in enumerate(lines) if line.startswith("#SBATCH")]
    assert marked == list(range(1, len(marked) + 1))
    assert '#SBATCH --constraint="a100&[rack1|rack2]"' in lines
    assert "#SBATCH --signal=B:USR1@90" in lines
    assert "#SBATCH --requeue" in lines
    file = tmp_path / "job.sbatch"
    file.write_text(text, encoding="utf-8")
    for argv in ([str(SHELLCHECK), str(file)], ["bash", "-n", str(file)]):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("container", CONTAINED)
def test_an_import_is_clean_shell(container: Container, tmp_path: Path) -> None:
    wish = Wish(container)
    text = HEAD + STORAGE + '[slurm]\nimages = "/shared/it\'s $HERE"\n'
    if container is Container.ENROOT:
        text = text.replace("it's", "its")
    job = parse_job(text, more=lambda job: import_problems(job, wish))
    file = tmp_path / "import.sh"
    file.write_text(import_script(job, wish), encoding="utf-8")
    done = subprocess.run([SHELLCHECK, file], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
WORDS = TEXT | st.sampled_from(
    [
        "a b",
        "$HOME",
        "'\"\\",
        "a,b",
        "x:y",
        "1\n#SBATCH --nodes=9\n2",
        "\r\n",
        "",
        "--",
        "`id`",
        "é\u2028",
        "{{ x }}",
    ]
)
NAMES = st.text(st.sampled_from("ab /.,:'\"\\$#`\n\té*+=-"), min_size=1, max_size=12).map(
    lambda text: f"/{text}"
)


@settings(deadline=None, max_examples=25)
@given(words=st.lists(WORDS, min_size=1, max_size=4), value=WORDS, option=WORDS)
def test_any_word_of_job_toml_reaches_its_step_as_it_was(words: list[str], value: str, option: str) -> None:
    run = ", ".join(map(toml_string, ["/bin/x", *words]))
    command = f"[command]\nrun = [{run}]\nenv = {{ A = {toml_string(value)} }}\n"
    distribute = f"[distribute]\noptions = [{toml_string(f'--report=x{option}')}]\n"
    text = script(Wish(Container.NONE), command, distribute)
    assert "\r" not in text
    with tempfile.TemporaryDirectory() as folder:
        ran = run_batch(text, Path(folder))
    assert ran.code == 0, ran.stderr
    first, second = ran.steps
    at = second.index("/opt/azcp/bin/azcp-rank")
    assert second[at + 1 :] == ["25007", f"A={value}", "--", "/bin/x", *words]
    start = first.index("/opt/azcp/bin/azcp-launch")
    inside = first[start:]
    assert f"--report=x{option}" in inside
    assert inside[-4:] == ["--key-seed", "-", "--port", "20007"]
    # Nothing of it is an option of srun.
    assert all(word.startswith("--") for word in first[:start])
    assert "--export=ALL" in first[:start]


def seen_mounts(container: Container, step: list[str]) -> list[tuple[str, str, list[str]]]:
    """The mounts of a step, as the tool reads them."""
    if container is Container.PYXIS:
        options = pyxis.parse([word for word in step if "-container-" in word])
        found = [pyxis.read_mount(entry) for entry in options["mounts"].split(",")]
    else:
        at = step.index("enroot" if container is Container.ENROOT else "apptainer")
        name = "--mount" if container is Container.ENROOT else "--bind"
        values = [value for word, value in zip(step[at:], step[at + 1 :], strict=False) if word == name]
        read = enroot.read_mount if container is Container.ENROOT else None
        found = [read(value) for value in values] if read else []
        found = found or [bind for value in values for bind in apptainer.read_binds(value)]
    return [(bind.source, bind.target, list(bind.flags)) for bind in found]


@settings(deadline=None, max_examples=60)
@given(source=NAMES, target=NAMES, container=st.sampled_from(CONTAINED))
def test_a_mount_arrives_as_it_was_or_is_refused_with_the_reason(
    source: str, target: str, container: Container
) -> None:
    table = (
        f"[[slurm.mounts]]\nsource = {toml_string(source)}\ntarget = {toml_string(target)}\nflags = ['ro']\n"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = folder / "images, here" if container is not Container.ENROOT else folder / "images"
        images.mkdir()
        suffix = "sif" if container is Container.APPTAINER else "sqsh"
        (images / f"train-{DIGEST}.{suffix}").write_text("image")
        wish = Wish(container)
        told = ""
        try:
            text = script(wish, COMMAND, f"[slurm]\n{table}", images=str(images))
        except SpecError as error:
            told = str(error)
        if told:
            assert "slurm.mounts[0]" in told
            reasons = ("which no mount of", "control character", "holds ..")
            assert any(reason in told for reason in reasons)
            return
        ran = run_batch(text, folder)
    assert ran.code == 0, ran.stderr
    for step in ran.steps:
        (found,) = [each for each in seen_mounts(container, list(step)) if each[0] == source]
        assert found[1] == target
        assert "ro" in found[2]


def test_the_image_has_no_entry_point_in_phase_one_and_its_own_in_phase_two(tmp_path: Path) -> None:
    (tmp_path / f"train-{DIGEST}.sqsh").write_text("image")
    ran = run_batch(script(Wish(Container.PYXIS), COMMAND, images=str(tmp_path)), tmp_path)
    first, second = ran.steps
    assert "--no-container-entrypoint" in first
    assert "--container-env=AZCP_STATE_DIR" in first
    assert "--container-entrypoint" in second
    assert "--container-writable" in second


@pytest.mark.parametrize("stage", [True, False])
@pytest.mark.parametrize("container", CONTAINED)
def test_the_command_may_have_an_image_of_its_own_without_anything_of_the_kit(
    tmp_path: Path, container: Container, stage: bool
) -> None:
    suffix = Wish(container).suffix
    files = [f"train-{DIGEST}{suffix}", f"own-{OTHER}{suffix}"]
    for name in files:
        (tmp_path / name).write_text("image")
    command = COMMAND + f'image = "registry.example/team/own@sha256:{OTHER}"\n'
    text = script(Wish(container), command, f"[slurm]\nstage = {str(stage).lower()}\n", images=str(tmp_path))
    file = tmp_path / "job.sbatch"
    file.write_text(text, encoding="utf-8")
    clean = subprocess.run([SHELLCHECK, file], capture_output=True, text=True, timeout=60, check=False)
    assert clean.returncode == 0, clean.stdout
    ran = run_batch(text, tmp_path)
    assert (ran.code, len(ran.steps)) == (0, 4 if stage else 2), ran.stderr
    folder = "/mnt/nvme/.azcp-images" if stage else str(tmp_path)
    for step, name in zip(ran.steps[-2:], files, strict=True):
        assert [each for each in files if any(word.endswith(f"{folder}/{each}") for word in step)] == [name]
    first, second = ran.steps[-2:]
    assert "/opt/azcp/bin/azcp-launch" in first
    assert not any("/opt/azcp" in word for word in second)
    at = second.index("NCCL_DEBUG=WARN")
    assert second[at + 1] == "MASTER_ADDR=n0"
    assert list(second[second.index("--", at) + 1 :]) == ["train", "--data", "/mnt/nvme/llama"]


def test_without_a_container_the_command_has_no_image_of_its_own() -> None:
    command = COMMAND + f'image = "registry.example/team/own@sha256:{OTHER}"\n'
    with pytest.raises(SpecError, match="command.image: is another image, but without a container"):
        script(Wish(Container.NONE), command)


@pytest.mark.parametrize("container", CONTAINED)
def test_both_images_are_imported_by_one_script(container: Container) -> None:
    wish = Wish(container)
    command = COMMAND + f'image = "registry.example/team/own@sha256:{OTHER}"\n'
    text = HEAD + STORAGE + command + '[slurm]\nimages = "/shared/images"\n'
    made = import_script(parse_job(text, more=lambda job: import_problems(job, wish)), wish)
    assert f"/shared/images/train-{DIGEST}{wish.suffix}" in made
    assert f"/shared/images/own-{OTHER}{wish.suffix}" in made
    assert made.count("docker://") == 2


def test_resources_are_said_again_for_each_step(tmp_path: Path) -> None:
    table = "[slurm]\ntasks-per-node = 4\ncpus-per-task = 24\ngpus = 8\n"
    resources = '[resources]\nmemory = "100Gi"\n'
    text = script(Wish(Container.NONE), COMMAND + 'form = "mpi"\n', resources, table)
    assert {"#SBATCH --mem=102400M", "#SBATCH --cpus-per-task=24"} < set(text.splitlines())
    _, launch, command = run_batch(text, tmp_path).steps
    assert {"--ntasks=4", "--cpus-per-task=96", "--gpus-per-node=8", "--mem=102400M"} < set(launch)
    assert {"--ntasks=16", "--cpus-per-task=24", "--gpus-per-node=8", "--mem=102400M"} < set(command)


def test_rails_are_tasks_of_srun_only_where_it_makes_the_world(tmp_path: Path) -> None:
    text = script(Wish(Container.NONE, Launch.PMIX), COMMAND, head=f"rails = 2\n{HEAD}")
    probe, ranks, _ = run_batch(text, tmp_path).steps
    for step in (probe, ranks):
        assert {"--ntasks=8", "--ntasks-per-node=2", "--mpi=pmix", "--rails"} < set(step)
        assert step[step.index("--expect-ranks") + 1] == "8"


def test_azcp_launch_starts_the_rails_itself(tmp_path: Path) -> None:
    launch, _ = run_batch(script(Wish(Container.NONE), COMMAND, head=f"rails = 2\n{HEAD}"), tmp_path).steps
    assert {"--ntasks=4", "--ntasks-per-node=1"} < set(launch)
    assert launch[launch.index("--rails") + 1] == "2"


@pytest.mark.parametrize(
    ("codes", "code", "requeued"),
    [("5", 5, False), ("6", 6, True), ("75", 75, True), ("0 3", 3, False), ("0 75", 75, False)],
)
def test_only_what_another_run_mends_is_queued_again(
    tmp_path: Path, codes: str, code: int, requeued: bool
) -> None:
    ran = run_batch(script(Wish(Container.NONE), COMMAND, RETRIES), tmp_path, codes=codes)
    assert ran.code == code
    assert ran.said == ("requeue 7\n" if requeued else "")


def test_a_job_is_not_queued_again_more_often_than_it_may(tmp_path: Path) -> None:
    record = RECORD.replace("Restarts=0", "Restarts=2")
    ran = run_batch(script(Wish(Container.NONE), RETRIES), tmp_path, codes="75", record=record)
    assert (ran.code, ran.said) == (75, "")


def test_no_step_begins_once_the_time_limit_is_near(tmp_path: Path) -> None:
    text = script(Wish(Container.NONE, Launch.PMIX), COMMAND, RETRIES)
    ran = run_batch(text, tmp_path, AT_LIMIT="1")
    assert (ran.code, len(ran.steps), ran.said) == (75, 1, "requeue 7\n")
    assert "the time limit is near" in ran.stderr


@pytest.mark.parametrize(
    ("codes", "unstarted", "steps", "told"),
    [
        ("0 0", "", 2, "azcp: 4 there; 3 here\nazcp: phase 1 is launched by srun --mpi=pmix\n"),
        ("1 0", "", 2, "azcp: 4 there; 3 here\nazcp: srun --mpi=pmix does not work here: "),
        ("1 0 0", "1", 3, "cannot be found out\nazcp: srun --mpi=pmix does not work here: "),
    ],
)
def test_both_pmix_and_the_way_that_was_taken_are_said(
    tmp_path: Path, codes: str, unstarted: str, steps: int, told: str
) -> None:
    ran = run_batch(script(Wish(Container.NONE, Launch.PMIX)), tmp_path, codes=codes, UNSTARTED=unstarted)
    assert (ran.code, len(ran.steps)) == (0, steps)
    assert ran.stderr.startswith("azcp: srun --mpi=list on ")
    assert "pmix pmix_v4" in ran.stderr.partition("\n")[0]
    assert told in ran.stderr
    assert ("azcp: phase 1 is launched by azcp-launch instead" in ran.stderr) == codes.startswith("1")
    if unstarted:
        assert "--mpi=none" in ran.steps[1]
        assert ran.steps[1][-2:] == ["--stage", "pmix"]


def test_a_file_with_a_sas_is_named_to_phase_one_and_mounted(tmp_path: Path) -> None:
    (tmp_path / f"train-{DIGEST}.sqsh").write_text("image")
    text = script(Wish(Container.PYXIS), '[slurm]\nsas-file = "/home/me/sas"\n', images=str(tmp_path))
    (step,) = run_batch(text, tmp_path).steps
    assert step[step.index("--sas-file") + 1] == "/home/me/sas"
    assert ("/home/me/sas", "/home/me/sas", ["ro"]) in seen_mounts(Container.PYXIS, list(step))


@pytest.mark.parametrize("part", ["ArrayJobId=7 ArrayTaskId=1", "HetJobId=7 HetJobOffset=0"])
def test_arrays_and_heterogeneous_jobs_are_refused(tmp_path: Path, part: str) -> None:
    ran = run_batch(script(Wish(Container.NONE)), tmp_path, record=f"JobId=7 {part} JobName=llama Restarts=0")
    assert (ran.code, ran.steps) == (2, [])
    assert ran.stderr.count("\n") == 1


def test_what_another_allocation_has_left_is_no_option_of_srun(tmp_path: Path) -> None:
    text = script(Wish(Container.NONE), COMMAND)
    body = text.replace("set -euo pipefail", "set -euo pipefail\nexec 3>&1", 1)
    shown = body.replace("step=\nreason=", 'compgen -v SLURM_ >"$SAID"\nstep=\nreason=', 1)
    ran = run_batch(shown, tmp_path, SLURM_MEM_PER_CPU="1", SLURM_CPUS_PER_TASK="3", SLURM_CONF="/etc/x")
    assert ran.said.split() == ["SLURM_CONF", "SLURM_JOB_ID", "SLURM_JOB_NODELIST"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('queue = "team-a"', "queue: is Kueue's; write slurm.partition or slurm.qos"),
        ('auth = { secret = "sas" }', "write slurm.sas-file"),
        ('node-selector = { a = "b" }', "write slurm.constraint"),
        ('limits = { deadline = "1m" }', "slurm.grace: is not shorter than limits.deadline"),
        ('command = { run = ["x"], image = "y" }', "command.image: y is not pinned"),
        (f'command = {{ image = "y@sha256:{DIGEST}" }}', "command.image: is set, but there is no command"),
        ('slurm = { tasks-per-node = 2, images = "/i" }', "is for an MPI program"),
        ('slurm = { partitoin = "x", images = "/i" }', "did you mean partition?"),
        ('slurm = { partition = "a b", images = "/i" }', "is no name that Slurm has"),
        ('slurm = { images = "images" }', "is not absolute"),
    ],
)
def test_what_slurm_does_not_know_is_told_and_what_to_write_instead(line: str, told: str) -> None:
    wish = Wish(Container.PYXIS)
    with pytest.raises(SpecError) as caught:
        parse_job(f"{line}\n{HEAD}{STORAGE}", more=lambda job: sbatch_problems(job, wish))
    assert told in str(caught.value)


def test_an_image_without_a_digest_is_refused_in_a_container_and_does_not_matter_without() -> None:
    head = HEAD.replace(f"@sha256:{DIGEST}", "")
    with pytest.raises(SpecError, match="is not pinned"):
        script(Wish(Container.ENROOT), head=head)
    assert "image=" not in script(Wish(Container.NONE), head=head)
