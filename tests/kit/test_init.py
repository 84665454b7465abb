"""What `azcp-kit init` writes is a job.toml that the other commands take, whoever answers its questions."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from azcp_kit.init.command import InitCommand, run_init
from azcp_kit.init.questions import AUTH_WAYS, QUESTIONS, proposed_name
from azcp_kit.init.terminal import terminal_ask
from azcp_kit.init.text import completed, job_toml, storage_path
from azcp_kit.spec.job import Security, StorageKind
from azcp_kit.spec.problems import SpecError
from azcp_kit.spec.read import parse_job, read_job
from azcp_kit.spec.sku import Sku, load_skus
from azcp_runtime.contract import UsageError
from hypothesis import given
from hypothesis import strategies as st

SAS_NAME = "weights-sas"
CLIENT_ID = "12345678-9abc-def0-1234-56789abcdef0"
SOURCE = "https://weights.blob.core.windows.net/models/llama-3.1/"


class Person:
    """Answers what it is asked, and keeps what it was asked.

    Args:
        answers: in the order of the questions; nothing takes the default.
    """

    def __init__(self, answers: Iterable[str] = ()) -> None:
        self._answers = list(answers)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        """The next answer."""
        self.prompts.append(prompt)
        return f"{self._answers.pop(0)}\n" if self._answers else "\n"


def nobody(prompt: str) -> str:
    """The end of the input."""
    raise EOFError(prompt)


@pytest.fixture
def bare(tmp_path: Path) -> InitCommand:
    """No option at all."""
    return InitCommand(
        output=tmp_path / "job.toml",
        name=None,
        image=None,
        source=None,
        dest=None,
        nodes=None,
        sku=None,
        auth_identity=None,
        auth_secret=None,
        queue=None,
        security=None,
        force=False,
    )


@pytest.fixture
def full(bare: InitCommand) -> InitCommand:
    """Every option."""
    return replace(
        bare,
        name="llama",
        image="reg.example/llama:1",
        source=SOURCE,
        dest="/mnt/nvme/llama",
        nodes=16,
        sku="nd96isr_h200_v5",
        auth_identity=CLIENT_ID,
        queue="team-a",
        security="privileged",
    )


def uncommented(text: str) -> str:
    """The text with its commented keys and tables in force."""
    return re.sub(r'^# (?=\[|[-\w."/]+ = )', "", text, flags=re.MULTILINE)


def test_all_that_was_said_is_in_the_file(full: InitCommand) -> None:
    run_init(full, None)
    job = read_job(full.output)
    assert (job.name, job.image, job.source, job.dest) == (
        "llama",
        "reg.example/llama:1",
        SOURCE,
        "/mnt/nvme/llama",
    )
    assert (job.nodes, job.queue, job.security) == (16, "team-a", Security.PRIVILEGED)
    assert job.sku is load_skus()["Standard_ND96isr_H200_v5"]
    assert job.auth.identity == CLIENT_ID
    assert (job.storage.kind, job.storage.path) == (StorageKind.HOST_PATH, "/mnt/nvme")
    assert (job.resources.rdma, job.resources.rdma_count) == ("rdma/ib", 8)


def test_a_secret_is_named_and_how_to_make_it(full: InitCommand) -> None:
    run_init(replace(full, auth_identity=None, auth_secret=SAS_NAME), None)
    job = read_job(full.output)
    assert (job.auth.identity, job.auth.secret) == ("", SAS_NAME)
    text = full.output.read_text(encoding="utf-8")
    assert f"create secret generic {job.auth.secret} --from-file={job.auth.secret_key}=FILE" in text


def test_without_options_it_is_an_example_that_says_so(
    bare: InitCommand, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run_init(bare, None)
    job = parse_job(bare.output.read_text(encoding="utf-8"))
    assert (job.name, job.nodes, job.dest) == ("job", 2, "/mnt/nvme/job")
    assert "edit source, auth.identity, image before use" in caplog.text
    assert "only examples: source, auth.identity, image" in bare.output.read_text(encoding="utf-8")


def test_nothing_is_called_an_example_that_was_said(
    full: InitCommand, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run_init(full, None)
    assert "EDIT" not in full.output.read_text(encoding="utf-8")
    assert caplog.messages == [f"next: azcp-kit generate mpijob -f {full.output} > job.yaml"]


def test_the_next_command_can_be_pasted(
    full: InitCommand, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run_init(replace(full, output=tmp_path / "my job.toml"), None)
    assert caplog.messages[-1] == f"next: azcp-kit generate mpijob -f '{tmp_path}/my job.toml' > job.yaml"


@pytest.mark.parametrize("security", list(Security))
@pytest.mark.parametrize("way", AUTH_WAYS)
@pytest.mark.parametrize("sku", load_skus().values(), ids=lambda sku: sku.name)
def test_a_commented_key_can_be_uncommented(sku: Sku, way: str, security: Security) -> None:
    said = {"sku": sku.name, "auth": way, "security": security.value}
    text = uncommented(job_toml(completed(said)))
    if security is not Security.PRIVILEGED:
        # Such a pod cannot have it; the file says where it can.
        assert 'rdma = "rdma/ib"' in text
    job = parse_job(text)
    assert job.resources.gpus == sku.gpus
    assert job.command.run == ("train.py", "--data", "/mnt/nvme/job")
    assert job.node_selector == {"node.kubernetes.io/instance-type": sku.name}
    assert len(job.tolerations) == 1
    assert job.limits.deadline_s == 4 * 3600


@pytest.mark.parametrize("security", [Security.BASELINE, Security.RESTRICTED])
def test_a_level_without_folders_of_the_node_has_a_volume(full: InitCommand, security: Security) -> None:
    run_init(replace(full, security=security.value), None)
    job = read_job(full.output)
    assert (job.storage.kind, job.storage.size_bytes) == (StorageKind.EPHEMERAL, 2 << 40)
    assert job.resources.rdma == ""


@pytest.mark.parametrize("sku", load_skus().values(), ids=lambda sku: sku.name)
def test_the_facts_of_the_size_are_in_the_comments(full: InitCommand, sku: Sku) -> None:
    run_init(replace(full, sku=sku.name), None)
    text = full.output.read_text(encoding="utf-8")
    for fact in (
        f"# The VM size: {sku.arch}, {sku.cpus} CPUs, {sku.memory_gib} GiB of memory",
        f"{sku.hcas} HCAs of {sku.hca_gbps} Gb/s",
        f"# gpus = {sku.gpus}\n",
        f'# memory = "{sku.memory_gib - sku.headroom_gib}Gi"\n',
        f'shm = "{sku.shm_gib}GiB"\n',
        *([f"topology file: {sku.topology}"] if sku.topology else []),
    ):
        assert fact in text
    assert ("Pages of 4 or 64 KiB" in text) == (sku.arch == "arm64")


def test_a_person_is_asked_what_no_option_said(bare: InitCommand) -> None:
    person = Person(
        [SOURCE, "4", "", "reg.example/a:1", "/data/llama", "ND96asr_v4", "secret", "sas", "", ""]
    )
    run_init(bare, person)
    job = parse_job(bare.output.read_text(encoding="utf-8"))
    assert (job.name, job.source, job.nodes, job.image) == ("llama-3-1", SOURCE, 4, "reg.example/a:1")
    assert (job.dest, job.storage.path, job.auth.secret) == ("/data/llama", "/data", "sas")
    assert job.sku is load_skus()["Standard_ND96asr_v4"]
    assert len(person.prompts) == len(set(person.prompts)) == 10


def test_a_person_who_takes_every_default_gets_the_example(bare: InitCommand) -> None:
    run_init(bare, Person())
    asked = bare.output.read_text(encoding="utf-8")
    run_init(replace(bare, force=True), None)
    assert asked == bare.output.read_text(encoding="utf-8")


@pytest.mark.parametrize("way", AUTH_WAYS)
def test_a_person_is_asked_only_what_the_way_needs(bare: InitCommand, way: str) -> None:
    person = Person(["", "", "", "", "", "", way])
    run_init(bare, person)
    assert len(person.prompts) == (9 if way == "anonymous" else 10)
    auth = tomllib.loads(bare.output.read_text(encoding="utf-8"))["auth"]
    assert list(auth) == [way]


def test_a_person_is_not_asked_what_an_option_said(full: InitCommand) -> None:
    person = Person()
    run_init(replace(full, queue=None), person)
    assert person.prompts == ["Kueue's LocalQueue, or nothing: "]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (["https://a.blob.core.windows.net/c/p?sv=1&sig=x", SOURCE], "a SAS would lie open"),
        (["models/llama", SOURCE], "neither a Blob URL nor an absolute path"),
        (["", "many"], "'many' is no whole number"),
        (["", "0"], "0 is not from 1 to 10000"),
        (["", "٣"], "'٣' is no whole number"),
        (["", "", "Llama"], '"Llama" is no DNS label'),
        (["", "", 'a"\nb = 1'], "has a control character"),
        (["", "", "", "a b"], "is no image reference"),
        (["", "", "", "", "nvme"], "is not absolute"),
        (["", "", "", "", "/a/../b"], "holds .."),
        (["", "", "", "", "", "ND96isr_H100_v4"], "did you mean Standard_ND96isr_H100_v5"),
        (["", "", "", "", "", "", "magic"], "'magic' is none of identity, kubelet-identity"),
        (["", "", "", "", "", "", "", "1234"], "is no client id"),
        (["", "", "", "", "", "", "", "", "Team A"], "is no Kubernetes name"),
        (["", "", "", "", "", "", "", "", "", "open"], "is none of privileged, baseline, restricted"),
    ],
)
def test_a_wrong_answer_is_asked_again_with_the_reason(
    bare: InitCommand, answers: list[str], reason: str
) -> None:
    person = Person(answers)
    run_init(bare, person)
    (again,) = [at for at, prompt in enumerate(person.prompts) if reason in prompt]
    before = person.prompts[again - 1]
    assert person.prompts[again].endswith(f"\n{before}")
    parse_job(bare.output.read_text(encoding="utf-8"))


def test_an_input_that_ends_names_the_option_instead(full: InitCommand) -> None:
    with pytest.raises(UsageError, match="the input ended before an answer to: On how many nodes") as failure:
        run_init(replace(full, nodes=None), nobody)
    assert failure.value.remedy == "give --nodes"
    assert not full.output.exists()


def test_all_wrong_options_are_told_at_once_by_their_names(bare: InitCommand) -> None:
    command = replace(
        bare,
        name="Bad_",
        image="a b",
        source="https://a.blob.core.windows.net/c?sig=hunter2",
        dest="here",
        nodes=0,
        sku="toaster",
        auth_identity="me",
        auth_secret=SAS_NAME,
        queue="Q!",
        security="open",
    )
    with pytest.raises(UsageError) as failure:
        run_init(command, nobody)
    told = re.findall(r"^  (--[-a-z]+)", str(failure.value), re.MULTILINE)
    flags = [question.flag for question in QUESTIONS if question.flag]
    assert told == [flag for flag in flags if flag != "--auth-kubelet-identity"]
    assert "hunter2" not in str(failure.value)
    assert not bare.output.exists()


def test_two_ways_to_sign_in_are_one_too_many(full: InitCommand) -> None:
    with pytest.raises(UsageError, match="1 option is wrong:\n  --auth-secret is a second way"):
        run_init(replace(full, auth_secret=SAS_NAME), None)


@pytest.mark.parametrize("key", ["name", "image", "source", "dest", "sku", "security", "auth_identity"])
def test_an_option_that_says_nothing_is_wrong(full: InitCommand, key: str) -> None:
    nothing: dict[str, Any] = {key: ""}
    with pytest.raises(UsageError, match="1 option is wrong"):
        run_init(replace(full, **nothing), None)


def test_an_option_that_is_no_text_is_refused(full: InitCommand) -> None:
    with pytest.raises(UsageError, match="--source: .* is not valid UTF-8"):
        run_init(replace(full, source="/data/\udcff"), None)


def test_a_file_that_is_there_is_kept_and_nobody_is_asked(full: InitCommand) -> None:
    full.output.write_text("mine", encoding="utf-8")
    person = Person()
    with pytest.raises(UsageError, match=r"job.toml exists") as failure:
        run_init(replace(full, name=None), person)
    assert "--force" in failure.value.remedy
    assert (person.prompts, full.output.read_text(encoding="utf-8")) == ([], "mine")


def test_a_file_that_comes_while_questions_are_answered_is_kept(full: InitCommand) -> None:
    def slow(prompt: str) -> str:
        full.output.write_text("mine", encoding="utf-8")
        return prompt and "a"

    with pytest.raises(UsageError, match=r"job.toml exists"):
        run_init(replace(full, name=None), slow)
    assert full.output.read_text(encoding="utf-8") == "mine"


def test_a_file_is_replaced_by_force(full: InitCommand) -> None:
    full.output.write_text("mine", encoding="utf-8")
    run_init(replace(full, force=True), None)
    assert read_job(full.output).name == "llama"


def test_a_folder_that_is_not_there_is_told(full: InitCommand, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        run_init(replace(full, output=tmp_path / "none/job.toml"), None)


@given(st.text())
def test_a_proposed_name_is_one_that_is_taken(source: str) -> None:
    name = proposed_name(source)
    text = job_toml(completed({"name": name}))
    assert parse_job(text).name == name


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (SOURCE, "llama-3-1"),
        ("/shared/Data Sets/ImageNet", "imagenet"),
        ("https://a.blob.core.windows.net/c/70B-instruct", "job-70b-instruct"),
        ("https://a.blob.core.windows.net/", "job"),
        ("https://a.blob.core.windows.net/c/llama?sig=x", "llama"),
        (f"/data/{'x' * 39}_y", "x" * 39),
    ],
)
def test_a_name_is_proposed_after_the_folder(source: str, name: str) -> None:
    assert proposed_name(source) == name


@pytest.mark.parametrize(
    ("dest", "path"),
    [
        ("/mnt/nvme/llama", "/mnt/nvme"),
        ("/mnt/nvme/a/b", "/mnt/nvme"),
        ("/mnt/resource_nvme/a/b", "/mnt/resource_nvme"),
        ("/data/a/b", "/data/a"),
        ("/scratch", "/scratch"),
        ("/mnt/nvme", "/mnt"),
    ],
)
def test_the_storage_is_where_the_disks_are_mounted(dest: str, path: str) -> None:
    assert storage_path(dest) == path


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), st.sampled_from(list(Security)))
def test_any_source_that_can_be_written_is_read_back(source: str, security: Security) -> None:
    text = job_toml(completed({"source": source, "name": "a", "security": security.value}))
    assert tomllib.loads(text)["source"] == source


class Console:
    """Stands for standard input.

    Args:
        lines: that are typed.
        is_terminal: whether it is one.
    """

    def __init__(self, lines: list[str], is_terminal: bool = True) -> None:
        self._lines = lines
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        """Whether somebody can answer."""
        return self._is_terminal

    def readline(self) -> str:
        """The next line, or nothing at the end."""
        return self._lines.pop(0) if self._lines else ""


def test_a_terminal_is_asked_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Console(["llama\n"]))
    ask: Callable[[str], str] | None = terminal_ask()
    assert ask is not None
    assert ask("Name: ") == "llama\n"
    with pytest.raises(EOFError):
        ask("Image: ")
    assert capsys.readouterr() == ("", "Name: Image: \n")


def test_nobody_is_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Console([], is_terminal=False))
    assert terminal_ask() is None


def test_nothing_comes_of_an_example_that_nobody_has_edited(bare: InitCommand) -> None:
    run_init(bare, None)
    with pytest.raises(SpecError) as failure:
        read_job(bare.output)
    assert [problem.key for problem in failure.value.problems] == ["source", "auth.identity"]
