"""Manifests: valid in every version, true to job.toml whatever it says, no more than their level allows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from azcp_kit.quantity import quantity_bytes
from azcp_kit.quoting.toml import toml_string
from azcp_kit.spec.problems import SpecError
from azcp_kit.spec.read import parse_job
from azcp_kit.targets.checks import target_problems
from azcp_kit.targets.command import generate
from azcp_kit.targets.table import TARGETS
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lab.schemas import assert_valid, pod_templates

EXAMPLES = Path(__file__).parents[2] / "examples" / "aks"
COMMAND = 'command = { run = ["serve", "--port", "1"] }\n'
HEAD = """\
name = "llama"
image = "registry.example/app:azcp"
source = "https://acct.blob.core.windows.net/models/llama"
dest = "/mnt/nvme/llama"
nodes = 4
"""
STORAGE = '[storage]\npath = "/mnt/nvme"\n'
EPHEMERAL = '[storage]\nkind = "ephemeral"\npath = "/mnt/nvme"\nsize = "1TiB"\n'
PEERS = ("job", "statefulset", "jobset", "volcano", "argo")


def documents(kind: str, text: str, *given_settings: str) -> list[dict[str, Any]]:
    """What a cluster gets of a kind for a job.toml."""
    job = parse_job(text, settings=given_settings, more=lambda job: target_problems(job, kind))
    return list(yaml.safe_load_all(generate(kind, job)))


def job_text(kind: str, *lines: str, storage: str = STORAGE) -> str:
    """A job that can be of this kind, with further lines at its top."""
    command = COMMAND if TARGETS[kind].needs_command else ""
    return "".join(f"{line}\n" for line in lines) + HEAD + command + storage


def containers(value: object) -> Iterator[dict[str, Any]]:
    """Every container of every pod."""
    for template in pod_templates(value):
        yield from template["spec"].get("initContainers", [])
        yield from template["spec"]["containers"]
    if isinstance(value, dict) and value.get("kind") == "Workflow":
        yield from (each["container"] for each in value["spec"]["templates"] if "container" in each)


def all_containers(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of all documents."""
    return [container for document in found for container in containers(document)]


def expanded(text: str) -> str:
    """What Kubernetes gives to a container for a text without variables of its own."""
    return re.sub(r"\$\$", "$", text)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_is_valid_and_has_no_field_that_a_cluster_does_not_know(path: Path) -> None:
    assert_valid(list(yaml.safe_load_all(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("security", ["privileged", "baseline", "restricted"])
def test_every_kind_is_valid_at_each_level_that_it_can_have(kind: str, security: str) -> None:
    if TARGETS[kind].is_shared and security != "privileged":
        with pytest.raises(SpecError, match=r"use host-path"):
            documents(kind, job_text(kind, f'security = "{security}"', storage=EPHEMERAL))
        return
    storage = STORAGE if security == "privileged" else EPHEMERAL
    found = documents(kind, job_text(kind, f'security = "{security}"', storage=storage))
    assert_valid(found)
    assert all(container["command"] for container in all_containers(found))
    if security != "privileged":
        assert not re.search(r"hostPath|hostNetwork|IPC_LOCK", str(found))
    if security == "restricted":
        assert_restricted(found)


def assert_restricted(found: list[dict[str, Any]]) -> None:
    """What the Pod Security Standard of that name asks for."""
    for template in (template for document in found for template in pod_templates(document)):
        pod = template["spec"]["securityContext"]
        assert (pod["runAsNonRoot"], pod["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
        assert pod["runAsUser"] > 0
    for container in all_containers(found):
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert "runAsUser" not in security


WORDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40
) | st.sampled_from(
    [
        "$(HOME)",
        "$$",
        "$$(A)$",
        "{{x}}",
        "a: b\n- c",
        "'\"",
        "\u2028",
        "x" * 5000,
        "--",
        "# no",
        "%{}",
        "é\r\n",
    ]
)


@settings(deadline=None, max_examples=60)
@given(words=st.lists(WORDS, min_size=1, max_size=4), value=WORDS, kind=st.sampled_from(sorted(TARGETS)))
def test_any_text_of_job_toml_reaches_the_container_as_it_was(
    words: list[str], value: str, kind: str
) -> None:
    run = ", ".join(map(toml_string, ["/bin/x", *words]))
    command = f"[command]\nrun = [{run}]\nenv = {{ A = {toml_string(value)} }}\n"
    text = f"{HEAD}annotations = {{ note = {toml_string(value)} }}\n{STORAGE}{command}"
    if kind == "warmup" or (kind == "argo" and "{{" in "".join([*words, value])):
        with pytest.raises(SpecError, match="runs nothing afterwards|Argo takes for a template of its own"):
            documents(kind, text)
        return
    found = documents(kind, text)
    assert found[-1]["metadata"]["annotations"] == {"note": value}
    (argv,) = [
        list(map(expanded, each["command"])) for each in all_containers(found) if "/bin/x" in each["command"]
    ]
    assert argv[argv.index("/bin/x") :] == ["/bin/x", *words]
    values = [
        entry["value"]
        for each in all_containers(found)
        for entry in each.get("env", [])
        if entry["name"] == "A"
    ]
    assert values
    assert set(map(expanded, values)) == {value}


@pytest.mark.parametrize(
    ("kind", "name", "excess"),
    [
        ("mpijob", "a" * 48, 1),
        ("job", "a" * 56, 2),
        ("jobset", "a" * 50, 3),
        ("volcano", "a" * 51, 2),
        ("statefulset", "a" * 53, 1),
        ("warmup", "a" * 62, 1),
    ],
)
def test_a_name_that_makes_host_names_too_long_is_refused_with_how_much_to_cut(
    kind: str, name: str, excess: int
) -> None:
    text = job_text(kind).replace('"llama"', f'"{name}"')
    with pytest.raises(SpecError, match=rf"line 1: name: is too long: .* make it shorter by {excess}$"):
        documents(kind, text)
    documents(kind, text.replace(name, name[:-excess]))


@pytest.mark.parametrize("kind", PEERS)
def test_the_nodes_of_a_job_know_each_other_by_names_that_resolve_before_they_are_ready(kind: str) -> None:
    found = documents(kind, job_text(kind, COMMAND if not TARGETS[kind].needs_command else ""))
    (launch,) = [each for each in all_containers(found) if each["command"][0].endswith("azcp-launch")]
    argv = launch["command"]
    hosts = argv[argv.index("--hosts") + 1]
    assert "--every-node" in argv
    assert hosts.endswith("-[0-3].llama" if kind == "volcano" else "-[0-3].llama-nodes")
    published = [each["spec"] for each in found if each["kind"] == "Service"]
    published += [found[0]["spec"].get("network", {})]
    svc = found[0]["spec"].get("plugins", {}).get("svc", [])
    assert any(each.get("publishNotReadyAddresses") for each in published) or svc == [
        "--publish-not-ready-addresses=true"
    ]
    assert hosts.replace("[0-3]", "0") in str(all_containers(found)[-1]["env"])  # MASTER_ADDR


def test_the_number_of_nodes_is_said_once_and_stands_wherever_it_is_needed() -> None:
    found = documents("job", job_text("job", COMMAND), "nodes=7")
    text = str(found)
    assert "llama-[0-6].llama-nodes" in text
    assert "'completions': 7, 'parallelism': 7" in text
    assert "{'name': 'NNODES', 'value': '7'}" in text


def test_memory_is_the_buffers_and_what_shared_memory_may_take() -> None:
    lines = ('distribute = { memory = "8GiB" }', 'resources = { shm = "2GiB" }')
    (launch,) = all_containers(documents("job", job_text("job", *lines)))
    limit = quantity_bytes(launch["resources"]["limits"]["memory"])
    assert limit == launch_bytes(8 << 30, 2 << 30)
    assert launch["resources"]["requests"]["memory"] == launch["resources"]["limits"]["memory"]


def launch_bytes(buffers: int, shm: int) -> int:
    """What the runtime takes beside them is half a gibibyte."""
    return buffers + shm + (512 << 20)


def test_rails_are_told_to_the_launcher_and_each_has_its_memory() -> None:
    lines = ('distribute = { memory = "8GiB" }', 'resources = { shm = "2GiB" }', "rails = 4")
    (launch,) = all_containers(documents("job", job_text("job", *lines)))
    said = launch["command"]
    assert said[said.index("--rails") + 1] == "4"
    assert quantity_bytes(launch["resources"]["limits"]["memory"]) == 4 * launch_bytes(8 << 30, 0) + (2 << 30)


def test_as_many_rails_as_there_are_take_memory_for_all_hcas_of_the_size() -> None:
    lines = ('sku = "nd96isr_h100_v5"', 'distribute = { memory = "8GiB" }', 'rails = "auto"')
    (launch,) = all_containers(documents("job", job_text("job", *lines), 'resources.shm="2GiB"'))
    said = launch["command"]
    assert said[said.index("--rails") + 1] == "auto"
    assert quantity_bytes(launch["resources"]["limits"]["memory"]) == 8 * launch_bytes(8 << 30, 0) + (2 << 30)


@pytest.mark.parametrize("kind", ["serving", "warmup"])
def test_a_pod_that_downloads_alone_has_the_memory_of_one_rank(kind: str) -> None:
    lines = ('distribute = { memory = "8GiB" }', "rails = 4")
    containers = all_containers(documents(kind, job_text(kind, *lines), 'resources.shm="2GiB"'))
    (alone,) = [each for each in containers if each["name"] == "distribute"]
    assert "--rails" not in alone["command"]
    assert quantity_bytes(alone["resources"]["limits"]["memory"]) == launch_bytes(8 << 30, 2 << 30)


def test_ipc_lock_is_for_root_alone() -> None:
    lines = ('resources = { rdma = "rdma/ib" }',)
    root = documents("mpijob", job_text("mpijob", *lines))
    assert "IPC_LOCK" in str(root[0]["spec"]["mpiReplicaSpecs"]["Worker"])
    assert "IPC_LOCK" not in str(root[0]["spec"]["mpiReplicaSpecs"]["Launcher"])
    user = parse_job(job_text("mpijob", "user = 1000", *lines))
    text = generate("mpijob", user)
    assert "IPC_LOCK" not in text.replace("# ", "")
    assert "unlimited memlock" in text


def test_no_manifest_holds_a_secret_and_the_account_is_reached_by_reference() -> None:
    found = documents("job", job_text("job", 'auth = { secret = "acct", secret-key = "AZURE_STORAGE_KEY" }'))
    (launch,) = all_containers(found)
    reference = {"secretKeyRef": {"name": "acct", "key": "AZURE_STORAGE_KEY"}}
    assert {"name": "AZURE_STORAGE_KEY", "valueFrom": reference} in launch["env"]
    assert "stringData" not in str(found)


def test_a_workload_identity_is_a_label_and_a_service_account() -> None:
    identity = 'auth = { identity = "00000000-1111-2222-3333-444444444444" }'
    for kind in TARGETS:
        for document in documents(kind, job_text(kind, identity)):
            for template in pod_templates(document):
                assert template["metadata"]["labels"]["azure.workload.identity/use"] == "true"
                assert template["spec"]["serviceAccountName"] == "llama"


def test_a_retry_of_the_job_is_a_retry_of_each_node() -> None:
    spec = documents("job", job_text("job"), "limits.retries=2")[-1]["spec"]
    # The Job fails as soon as its restarts reach the limit.
    assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (2 * 4 + 1, "OnFailure")
    spec = documents("job", job_text("job"))[-1]["spec"]
    assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (0, "Never")


def test_concurrency_is_left_to_the_runtime_unless_it_is_said() -> None:
    assert "--concurrency" not in str(documents("warmup", job_text("warmup")))
    said = all_containers(documents("warmup", job_text("warmup"), "distribute.concurrency=64"))[0]["command"]
    assert said[said.index("--concurrency") + 1] == "64"


@pytest.mark.parametrize(
    ("kind", "line", "told"),
    [
        ("warmup", COMMAND, "command.run: is set, but warmup runs nothing afterwards"),
        ("serving", "", "command.run: is missing, and serving serves nothing without it"),
        (
            "job",
            'command = { form = "mpi", run = ["mpirun"] }',
            "mpi needs a launcher, which job has not; use mpijob",
        ),
        ("mpijob", 'command = { image = "other", run = ["x"] }', "command.image: is another image"),
        ("argo", 'queue = "q"', "queue: is set, but no queue admits argo"),
    ],
)
def test_what_a_kind_cannot_be_is_told_before_anything_is_written(kind: str, line: str, told: str) -> None:
    with pytest.raises(SpecError, match=re.escape(told)):
        documents(kind, f"{line}\n{HEAD}{STORAGE}")


def test_pods_of_another_kind_or_the_launcher_do_not_keep_a_node_from_a_worker() -> None:
    spec = documents("mpijob", job_text("mpijob"))[0]["spec"]["mpiReplicaSpecs"]
    affinity = spec["Worker"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    chosen = term["labelSelector"]["matchLabels"].items()
    assert chosen <= spec["Worker"]["template"]["metadata"]["labels"].items()
    others = [spec["Launcher"]["template"]]
    others += pod_templates(documents("warmup", job_text("warmup"), "warmup=daemonset"))
    others += pod_templates(documents("job", job_text("job")))
    for template in others:
        assert not chosen <= template["metadata"]["labels"].items()


def test_no_name_of_ours_is_one_that_an_operator_makes_for_a_job() -> None:
    named = {
        each["metadata"]["name"]
        for kind in PEERS
        for each in documents(kind, job_text(kind))
        if each["kind"] == "Service"
    }
    assert not named & {"llama", "llama-worker", "llama-ssh", "llama-config"}
    (found,) = {
        volume["secret"]["secretName"]
        for template in pod_templates(documents("job", job_text("job")))
        for volume in template["spec"]["volumes"]
        if "secret" in volume
    }
    assert found == "llama-azcp-ssh"


def test_what_volcano_counts_as_a_retry_is_the_first_start_too() -> None:
    spec = documents("volcano", job_text("volcano"), "limits.retries=2")[0]["spec"]
    assert (spec["maxRetry"], spec["policies"][0]) == (3, {"event": "PodFailed", "action": "RestartJob"})
    spec = documents("volcano", job_text("volcano"))[0]["spec"]
    assert spec["policies"][0] == {"event": "PodFailed", "action": "TerminateJob"}


def test_root_that_is_asked_for_is_root_for_the_users_command_too() -> None:
    for template in pod_templates(documents("job", job_text("job", COMMAND, "user = 0"))):
        assert template["spec"]["securityContext"]["runAsUser"] == 0


@pytest.mark.parametrize("kind", ["statefulset", "serving"])
@pytest.mark.parametrize("key", ["deadline", "ttl"])
def test_a_limit_that_would_be_dropped_is_refused(kind: str, key: str) -> None:
    with pytest.raises(SpecError, match=rf"limits\.{key}: is set, but {kind} never ends by itself"):
        documents(kind, job_text(kind), f"limits.{key}=1h")


def test_argo_hands_the_names_of_the_nodes_to_the_consumers_affinity() -> None:
    workflow = documents("argo", job_text("argo", COMMAND))[-1]["spec"]
    _, distribute, consume = workflow["templates"]
    assert distribute["outputs"]["parameters"] == [{"name": "node", "valueFrom": {"path": "/run/azcp/node"}}]
    patch = consume["podSpecPatch"].replace("{{inputs.parameters.nodes}}", '["n1", "n2"]')
    affinity = yaml.safe_load(patch)["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["n1", "n2"]
