"""job.toml: what it means, and everything that can be wrong with it, in one answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_kit.spec.job import Form, JobSpec, Security, StorageKind, Toleration
from azcp_kit.spec.problems import SpecError
from azcp_kit.spec.read import parse_job, read_job
from azcp_runtime.contract import ExitCode, UsageError

SMALL = """\
name = "llama"
image = "registry.example/app:azcp"
source = "https://acct.blob.core.windows.net/models/llama"
dest = "/mnt/nvme/llama"
nodes = 4

[storage]
path = "/mnt/nvme"
"""

TEN = """\
nmae = "llama"
image = "Not An Image"
source = "https://acct.blob.core.windows.net/c/p?sv=1&sig=hidden"
dest = "/somewhere/else"
nodes = 0
security = "paranoid"

[storage]
path = "/mnt/nvme"
kind = "floppy"

[command]
run = ["serve", 8]
from = "plain"

[limits]
wait = "soon"

[[tolerations]]
key = "sku"
efect = "NoSchedule"
"""


def problems_of(text: str, *settings: str) -> list[str]:
    """The lines of the answer."""
    with pytest.raises(SpecError) as failure:
        parse_job(text, settings=settings)
    assert failure.value.exit_code == ExitCode.USAGE
    return str(failure.value).splitlines()[1:]


def problem_of(text: str, *settings: str) -> str:
    """The only one."""
    (line,) = problems_of(text, *settings)
    return line.strip()


def with_lines(*lines: str) -> str:
    """The small job with further lines at its top."""
    return "".join(f"{line}\n" for line in lines) + SMALL


def test_a_small_job_has_defaults_for_the_rest() -> None:
    job = parse_job(SMALL)
    assert (job.name, job.nodes, job.security, job.rails) == ("llama", 4, Security.PRIVILEGED, None)
    assert (job.storage.kind, job.command.form) == (StorageKind.HOST_PATH, Form.PLAIN)
    assert (job.distribute.memory_bytes, job.limits.wait_s, job.limits.retries) == (4 << 30, 600, 0)
    assert job.is_root


def test_ten_errors_are_told_in_one_answer_each_with_its_line() -> None:
    lines = problems_of(TEN)
    expected = {
        "line 1: nmae: is not known; did you mean name?",
        'line 2: image: "Not An Image" is no image reference: write [HOST/]NAME[:TAG]',
        "line 3: source: has a query, and a SAS would lie open in the manifest; name a Secret in auth.secret",
        "line 4: dest: /somewhere/else is not on the storage; storage.path is /mnt/nvme: put it below that",
        "line 5: nodes: 0 is not from 1 to 10000",
        'line 6: security: "paranoid" is none of privileged, baseline, restricted',
        'line 10: storage.kind: "floppy" is none of host-path, ephemeral, empty-dir',
        "line 13: command.run[1]: is a whole number, not a text; put it in quotes",
        "line 14: command.from: is not known; did you mean form?",
        "line 17: limits.wait: \"soon\" is wrong: 'soon' is not a time such as 90s, 10m, 4h or 1h30m",
        "line 21: tolerations[0].efect: is not known; did you mean effect?",
        "missing: name: is missing",
    }
    assert {line.strip() for line in lines} == expected
    assert "hidden" not in "".join(lines)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('name = "Llama"', "is no DNS label"),
        ('name = "0llama"', "begins with a digit"),
        (f'name = "{"a" * 64}"', "64 characters, 1 more than a DNS label may"),
        ('namespace = "a.b"', "is no DNS label"),
        ("host-network = 1", "is a whole number, not true or false"),
        ("user = true", "is true or false, not a whole number"),
        ('queue = "Team A"', "is no Kubernetes name"),
        ('sku = "Standard_ND96isr_H100_v4"', "is no VM size that is known here"),
        ("rails = 0", "0 is not from 1 to 64"),
        ('rails = "all"', 'is neither "auto" nor a whole number'),
        ('rails = "auto"', "what memory that takes is not known"),
        ('sku = "nd96isr_h100_v5"\nrails = 9', "9 are more than the 8 HCAs of Standard_ND96isr"),
        ('distribute = { options = ["--rail-devices", "a,b"] }', "their number is not said"),
        ('distribute = { options = ["--rails=2"] }', "--rails is set from rails"),
        ('labels = { "bad key" = "x" }', "the name is no label"),
        ('labels = { team = "a b" }', "is no label"),
        ('labels = { "app.kubernetes.io/instance" = "x" }', "is set by azcp-kit itself"),
        ('resources = { memory = "1Gi" }', "are needed to distribute"),
        ('resources = { memory = "lots" }', "is no Kubernetes quantity"),
        ('resources = { gpu-resource = "gpu" }', "is no resource name"),
        ('command = { env = { "a-b" = "x" } }', "is no name of a variable"),
        ('command = { form = "mpi" }', "is missing"),
        ('command = { form = "torchrun", run = ["torchrun", "x.py"] }', "begins with torchrun"),
        ('command = { run = ["a\\u0000b"] }', "NUL"),
        ('distribute = { options = ["--expect-ranks=3"] }', "--expect-ranks is set from nodes"),
        ('distribute = { options = ["--"] }', "is no option of azcp-distribute"),
        ("distribute = { concurrency = 301 }", "301 is not from 1 to 300"),
        ('auth = { identity = "me" }', "is no client id"),
        ('auth = { secret = "s", anonymous = true }', "has secret and anonymous"),
        ('auth = { service-account = "s" }', "only a workload identity"),
        ('security = "restricted"', "host-path is not allowed at security restricted"),
        ('sku = "nd96isr_h100_v5"\nresources = { gpus = 16 }', "16 are more than the 8 of Standard_ND96isr"),
        ('sku = "nd96isr_h100_v5"\nresources = { memory = "4000Gi" }', "leaves to a pod"),
        ('limits = { deadline = "0s" }', "is no time that a cluster can wait"),
        (f'queue = "{"a" * 64}"', "a label's value has at most 63"),
        ('distribute = { options = ["--verfy"] }', "is no option of azcp-distribute; did you mean --verify?"),
        ('distribute = { options = ["stray"] }', "is no option of azcp-distribute"),
        ('distribute = { options = ["--block-size"] }', "--block-size needs a value"),
        ('distribute = { options = ["--dry-run"] }', "leaves the data incomplete"),
        ('command = { env = { AZCP_SAS = "x" } }', "is a secret"),
        ('command = { run = ["curl", "https://a/b?sv=1&sig=hidden"] }', "looks like a secret"),
        ('auth = { secret = "sv=1&sig=hidden" }', "what it says is no Kubernetes name"),
        ('image = "a:b:c"', "is no image reference"),
        ('image = "host/x@sha256:zz"', "is no image reference"),
        ('source = "https://acct.blob.core.windows.net"', "is no address of a folder"),
        ('source = "https://acct:99999/c/p"', "is no address of a folder"),
        ('source = "http://host:10000/account"', "is no address of a folder"),
        ('source = "models/llama"', "is neither a Blob URL nor an absolute path"),
        ('dest = "/opt/azcp/x"', "would hide what the container needs there"),
        ('dest = "/dev/shm/x"', "would hide what the container needs there"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused_with_the_reason(line: str, told: str) -> None:
    key = line.partition(" ")[0]
    text = line + "\n" + "".join(f"{each}\n" for each in SMALL.splitlines() if not each.startswith(f"{key} "))
    problem = problem_of(text)
    assert told in problem
    assert "hidden" not in problem


def test_a_wrong_key_does_not_bring_further_errors_with_it() -> None:
    assert "storage.path" in problem_of(SMALL.replace('"/mnt/nvme"', '"mnt"'))


def test_the_command_line_comes_over_the_file() -> None:
    job = parse_job(SMALL, settings=("nodes=8", "image=other:1", 'labels={team="a"}', "limits.retries=3"))
    assert (job.nodes, job.image, job.labels, job.limits.retries) == (8, "other:1", {"team": "a"}, 3)
    assert problem_of(SMALL, "nodes=none").startswith("--set: nodes: is a text")
    selected = parse_job(SMALL, settings=('node-selector."kubernetes.io/os"=linux', "queue="))
    assert (selected.node_selector, selected.queue) == ({"kubernetes.io/os": "linux"}, "")


def test_what_cannot_be_set_does_not_hide_what_else_is_wrong() -> None:
    settings = ("nodes", "=3", "name.x=1", "x=" + "[" * 3000, "user=" + "9" * 5000)
    lines = problems_of(SMALL.replace('"registry', '"?'), *settings)
    assert [line.split(":")[0].strip() for line in lines] == ["--set"] * 5 + ["line 2"]


def test_a_table_that_is_an_array_is_told_on_its_line() -> None:
    assert problem_of(SMALL + "\n[[auth]]\nsecret = 'x'\n").startswith(
        "line 10: auth: is a list, not a table"
    )


def test_a_flood_of_unknown_keys_is_cut() -> None:
    lines = problems_of("".join(f"k{number} = 1\n" for number in range(500)) + SMALL)
    assert (len(lines), lines[-1].strip()) == (101, "and 400 more")


def test_what_no_parser_can_hold_is_one_error() -> None:
    for text in (f"user = {'9' * 5000}\n{SMALL}", f"x = {'[' * 3000}\n{SMALL}"):
        with pytest.raises(UsageError, match="is no TOML"):
            parse_job(text)
    assert "is no Kubernetes quantity" in problem_of(with_lines(f'resources = {{ memory = "{"9" * 400}" }}'))


def test_lists_and_tables_are_read() -> None:
    text = with_lines("node-selector = { pool = 'gpu' }") + (
        '[[tolerations]]\nkey = "sku"\nvalue = "gpu"\neffect = "NoSchedule"\n'
        '[[tolerations]]\noperator = "Exists"\n'
    )
    job = parse_job(text)
    assert job.node_selector == {"pool": "gpu"}
    assert job.tolerations == (
        Toleration("sku", "Equal", "gpu", "NoSchedule"),
        Toleration("", "Exists", "", ""),
    )


def test_the_vm_size_gives_what_is_not_said() -> None:
    job = parse_job(with_lines('sku = "nd96isr_h100_v5"'))
    assert job.sku is not None
    assert (job.sku.name, job.resources.gpus) == ("Standard_ND96isr_H100_v5", 8)
    assert parse_job(with_lines('sku = "nd96isr_h100_v5"', "resources = { gpus = 4 }")).resources.gpus == 4


def test_a_restricted_job_runs_as_somebody() -> None:
    job: JobSpec = parse_job(
        with_lines('security = "restricted"') + 'kind = "ephemeral"\nsize = "2TiB"\n',
    )
    assert (job.user, job.is_root) == (1000, False)


def test_what_is_no_toml_is_one_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"job\.toml is no TOML: .*line 2"):
        parse_job("name = 'a'\nnodes = = 3\n")
    with pytest.raises(UsageError, match="azcp-kit init"):
        read_job(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be read"):
        read_job(tmp_path / "binary.toml")
