"""`azcp-kit lint`: what it prints, how it ends, and that nothing in a file makes it fall over."""

from __future__ import annotations

import contextlib
import io
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from azcp_kit.lint.check import lint_text
from azcp_kit.lint.command import LintCommand, run_lint
from azcp_kit.lint.sbatch import read_batch
from azcp_runtime.contract import ExitCode, UsageError
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.lint.samples import FOLDER, sample

CLEAN = str(FOLDER / "clean.sbatch")
ERRORS = str(FOLDER / "era-apptainer.sbatch")


def test_nothing_found_ends_with_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_lint(LintCommand(CLEAN)) is ExitCode.DONE
    assert capsys.readouterr().out == f"{CLEAN}: nothing found\n"


def test_an_error_is_printed_with_its_line_the_reason_and_the_fix(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_lint(LintCommand(ERRORS)) is ExitCode.USAGE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{ERRORS}:5: error S101-directive-ignored: '--time' stands after the first command"
    assert lines[1].startswith("    why: ")
    assert lines[2].startswith("    fix: ")
    assert lines[-1] == f"{ERRORS}: 4 errors, 4 warnings"


def test_warnings_alone_end_with_done_unless_strict(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(sample("peers.yaml").replace("type: Directory", "type: DirectoryOrCreate"))
    assert run_lint(LintCommand(str(file))) is ExitCode.DONE
    assert run_lint(LintCommand(str(file), strict=True)) is ExitCode.USAGE


def test_notes_alone_end_with_done_even_if_strict() -> None:
    assert run_lint(LintCommand(str(FOLDER / "peers.yaml"), strict=True)) is ExitCode.DONE


def test_json_is_a_list_of_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    run_lint(LintCommand(ERRORS, as_json=True))
    found = json.loads(capsys.readouterr().out)
    assert set(found[0]) == {"rule", "severity", "line", "what", "why", "fix"}
    assert (found[0]["rule"], found[0]["severity"], found[0]["line"]) == (
        "S101-directive-ignored",
        "error",
        5,
    )


def test_a_dash_is_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = sample("clean.sbatch").replace("\n", "\r\n").encode()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert run_lint(LintCommand("-")) is ExitCode.DONE
    assert capsys.readouterr().out == "stdin: nothing found\n"


def test_control_characters_of_a_file_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.yaml"
    text = sample("peers.yaml").replace("- name: serve\n", '- name: "a\\e[31m\\u202e"\n')
    file.write_text(text.replace("command: [serve", "args: [serve"))
    run_lint(LintCommand(str(file)))
    out = capsys.readouterr().out
    assert "K104" in out
    assert out.replace("\n", "").isprintable()


HOSTILE = {
    "binary": (b"\x7fELF\xff\xfe" * 100, "is no text in UTF-8"),
    "a NUL": (b"kind: Pod\0", "it holds a NUL"),
    "10 MB": (b"a: b\n" * 2_000_000, "is larger than 4 MiB"),
    "deep nesting": (b"[" * 100_000, "nesting depth"),
    "deep nesting in JSON": (b'{"a":' * 100_000, "more than 64 levels"),
    "an alias bomb": (
        b"a0: &a0 [x]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b"*a%d," % (n - 1) * 9) for n in range(1, 30)),
        "more than 100000 values",
    ),
    "no object": (b"just text\n", "no object of Kubernetes and no batch script"),
    "nothing": (b"", "is empty"),
    "blank lines": (b"\n \r\n", "is empty"),
    "syntax": (b"kind: [\nb: }", "line 2: this is not YAML"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_gets_one_clear_error(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        run_lint(LintCommand(str(file)))
    assert message in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="nowhere.yaml cannot be read"):
        run_lint(LintCommand("/nowhere.yaml"))


def test_a_long_script_takes_time_by_its_length_alone() -> None:
    line = "X=\"$X$(a\" srun --container-image=$X --export=ALL,$X bash -c 'until nc a; do sleep 1; done'\n"
    start = time.process_time()
    lint_text("#!/bin/bash\n" + line * (2**18 // len(line)))
    assert time.process_time() - start < 10


KINDS = st.sampled_from(
    [
        "Pod",
        "Job",
        "StatefulSet",
        "MPIJob",
        "JobSet",
        "Workflow",
        "Service",
        "Secret",
        "List",
        "CronJob",
        "ConfigMap",
    ]
)
KEYS = st.sampled_from(
    [
        "metadata",
        "name",
        "spec",
        "template",
        "containers",
        "initContainers",
        "env",
        "value",
        "command",
        "args",
        "volumes",
        "hostPath",
        "type",
        "emptyDir",
        "medium",
        "sizeLimit",
        "resources",
        "limits",
        "requests",
        "memory",
        "rdma/ib",
        "securityContext",
        "capabilities",
        "add",
        "runAsUser",
        "labels",
        "selector",
        "clusterIP",
        "data",
        "items",
        "mpiReplicaSpecs",
        "Launcher",
        "Worker",
        "replicas",
        "parallelism",
        "completions",
        "tasks",
        "replicatedJobs",
        "templates",
        "script",
        "source",
        "resource",
        "manifest",
        "volumeMounts",
        "mountPath",
        "secret",
        "ports",
    ]
)
STRINGS = st.sampled_from(
    ["sshd", "mpirun -np 4 azcp-cluster", "bash", "-c", "IPC_LOCK", "64Gi", "1e9999", "None", "Memory",
     "until ssh x; do sleep 1; done", "apiVersion: v1\nkind: Pod\n"]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=30), st.dates(), STRINGS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=40,
)


@given(KINDS, st.sampled_from(["v1", "batch.volcano.sh/v1alpha1"]), st.dictionaries(KEYS, VALUES, max_size=6))
def test_no_manifest_makes_it_fall_over(kind: str, api: str, fields: dict[str, object]) -> None:
    pod = "apiVersion: v1\nkind: Pod\n---\n"
    text = pod + yaml.safe_dump({"apiVersion": api, "kind": kind, **fields}, allow_unicode=True)
    lines = text.count("\n") + 1
    assert all(1 <= finding.line <= lines for finding in lint_text(text))


@given(st.text(max_size=300))
def test_any_text_is_linted_or_refused(text: str) -> None:
    # A usage error is the one exception that the command line knows.
    with contextlib.suppress(UsageError):
        lint_text(text)


@given(st.text(alphabet="#SBATCH--nodes=1 \n$'\"srunazcp-luter:,(){}", max_size=300))
def test_any_batch_script_is_read(body: str) -> None:
    lint_text(f"#!/bin/bash\n{body}")
    assert read_batch(body).setup.is_pod is False
