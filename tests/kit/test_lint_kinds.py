"""The linter in every kind of manifest: host names, Services, identities, secrets, security levels."""

from __future__ import annotations

from textwrap import dedent

import pytest
from azcp_kit.lint.check import lint_text
from azcp_runtime.contract import UsageError

from tests.kit.lint.samples import findings, line_of, rules, sample

POD = dedent("""\
    restartPolicy: {restart}
    enableServiceLinks: false
    automountServiceAccountToken: false
    containers:
      - name: node
        image: registry.example/node:1
        command: {command}
    """)


def pod(indent: int, command: str = "[/opt/azcp/bin/azcp-launch]", restart: str = "Never") -> str:
    text = POD.format(command=command, restart=restart)
    return "".join(f"{' ' * indent}{line}\n" for line in text.splitlines()).lstrip()


def stateful_set(name: str, spec: str = "", command: str = "[/opt/azcp/bin/azcp-launch]") -> str:
    return (
        f"apiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  name: {name}\nspec:\n  replicas: 12\n"
        f"  serviceName: nodes\n  template:\n    metadata:\n      labels:\n        app: nodes\n    spec:\n"
        f"      {spec}{pod(6, command, 'Always')}"
    )


def with_volume(text: str, path: str, source: str) -> str:
    """The stateful set with a volume at a path of its container."""
    mount = (
        f"          volumeMounts:\n            - name: files\n              mountPath: {path}\n"
        "          command"
    )
    volume = f"      volumes:\n        - name: files\n          {source}\n      containers"
    return text.replace("          command", mount).replace("      containers", volume)


SERVICE = (
    "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: nodes\nspec:\n  clusterIP: None\n"
    "  publishNotReadyAddresses: true\n  selector:\n    app: nodes\n"
)


def test_the_host_name_of_the_last_pod_of_a_stateful_set_is_what_counts() -> None:
    assert rules(stateful_set("n" * 53) + SERVICE) == []
    found = findings(stateful_set("n" * 54) + SERVICE)
    assert list(found) == ["K301e"]
    assert found["K301e"].fix == "shorten the name by 1 character"


def test_the_host_name_of_the_last_worker_is_what_counts() -> None:
    text = sample("launcher.yaml")
    fits = text.replace("name: weights", f"name: {'w' * 47}").replace("replicas: 4", "replicas: 10")
    assert "K301e" not in rules(fits.replace("NODES=4", "NODES=10"))
    eleven = fits.replace("replicas: 10", "replicas: 11").replace("NODES=4", "NODES=11")
    assert findings(eleven)["K301e"].fix == "shorten the name by 1 character"


def test_the_host_names_of_a_job_set_have_both_indexes() -> None:
    text = (
        f"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: {'s' * 46}\nspec:\n"
        "  replicatedJobs:\n    - name: nodes\n      replicas: 1\n      template:\n        spec:\n"
        "          parallelism: 100\n          completions: 100\n"
        "          backoffLimit: 0\n          template:\n"
        f"            spec:\n              {pod(14)}"
    )
    what = findings(text)["K301e"]
    assert "has 57 characters" in what.what
    assert what.line == 4
    assert rules(text.replace("s" * 46, "s" * 45)) == []


def test_a_job_set_that_hides_who_is_not_ready_is_found() -> None:
    text = (
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: set\nspec:\n"
        "  network:\n    publishNotReadyAddresses: false\n  replicatedJobs:\n    - name: nodes\n"
        "      template:\n        spec:\n          backoffLimit: 0\n          template:\n"
        f"            spec:\n              {pod(14)}"
    )
    assert findings(text)["K303w"].line == 7


def test_the_tasks_of_a_volcano_job_are_read() -> None:
    text = (
        f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata:\n  name: {'v' * 50}\nspec:\n  tasks:\n"
        f"    - name: nodes\n      replicas: 4\n      template:\n        spec:\n          {pod(10)}"
    )
    assert "has 58 characters" in findings(text)["K301e"].what


def test_the_templates_of_an_argo_workflow_are_read() -> None:
    text = (
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata:\n  generateName: get-\nspec:\n"
        "  volumes:\n    - name: disk\n      hostPath:\n        path: /mnt/nvme\n"
        "        type: DirectoryOrCreate\n"
        "  templates:\n    - name: fetch\n      container:\n        image: registry.example/node:1\n"
        "        args: [azcopy, copy]\n"
        "    - name: script\n      script:\n        image: registry.example/node:1\n        source: |\n"
        "          chmod 777 /mnt/nvme\n"
    )
    found = findings(text)
    assert sorted(found) == ["K104e", "K501w", "K503w"]
    assert found["K503w"].line == line_of(text, "chmod")


def test_a_manifest_that_argo_makes_is_read_at_its_lines() -> None:
    job = (
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: get\nspec:\n  template:\n    spec:\n      "
        + pod(6, restart="Always")
    )
    indented = "".join(f"          {line}\n" for line in job.splitlines())
    text = (
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata:\n  name: get\nspec:\n  templates:\n"
        f"    - name: job\n      resource:\n        action: create\n        manifest: |\n{indented}"
    )
    assert findings(text)["K905e"].line == line_of(text, "restartPolicy")
    assert rules(text.replace("name: get\n          spec", "name: {{x}: y\n          spec")) == []


def test_the_items_of_a_list_are_read() -> None:
    item = "".join(f"    {line}\n" for line in stateful_set("n" * 60).splitlines()).replace("    ", "  - ", 1)
    assert "K301e" in rules(f"apiVersion: v1\nkind: List\nitems:\n{item}")


def test_json_with_tabs_is_read() -> None:
    head = '{\n\t"apiVersion": "v1", "kind": "Pod",\n'
    text = head + '\t"spec": {"containers": [\n\t\t{"name": "a", "args": ["bash"]}]}\n}\n'
    assert findings(text)["K104e"].line == 4


def test_a_pod_on_the_host_network_needs_the_clusters_names_and_another_port() -> None:
    spec = "hostNetwork: true\n      "
    text = stateful_set("nodes", spec, "[/usr/sbin/sshd, -D]") + SERVICE
    assert sorted(findings(text)) == ["K201w", "K306w", "K307e"]
    good = stateful_set("nodes", f"{spec}dnsPolicy: ClusterFirstWithHostNet\n      ") + SERVICE
    assert rules(good) == []


def test_a_node_name_replaces_long_host_names_on_the_host_network() -> None:
    spec = "hostNetwork: true\n      dnsPolicy: ClusterFirstWithHostNet\n      "
    assert rules(stateful_set("n" * 60, spec) + SERVICE) == []


def test_the_label_that_a_job_gives_its_pods_has_the_jobs_name() -> None:
    text = sample("peers.yaml").replace(
        "  selector:\n    app: mistral\n", "  selector:\n    job-name: mistral\n"
    )
    assert rules(text) == []
    assert rules(text.replace("job-name: mistral", "job-name: mixtral")) == ["K305w"]


def test_a_service_elsewhere_is_a_note_alone() -> None:
    assert rules(stateful_set("nodes")) == []
    assert "K304n" in rules(stateful_set("nodes"), notes=True)


def test_a_service_whose_variables_a_program_reads_is_found() -> None:
    text = stateful_set("nodes").replace("      enableServiceLinks: false\n", "") + SERVICE
    named = text.replace("name: nodes\nspec:\n  clusterIP", "name: vllm\nspec:\n  clusterIP")
    found = findings(named.replace("serviceName: nodes", "serviceName: vllm"))
    assert "'VLLM_PORT'" in found["K605w"].what


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_a_namespace_that_refuses_the_pods_is_found(level: str) -> None:
    namespace = (
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: models\n  labels:\n"
        f"    pod-security.kubernetes.io/enforce: {level}\n---\n"
    )
    assert list(findings(namespace + sample("peers.yaml"))) == ["K602e"]
    assert rules(namespace.replace(level, "privileged") + sample("peers.yaml")) == []


def test_the_level_that_a_restricted_pod_needs_is_restricted() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  securityContext:\n    runAsNonRoot: true\n"
        "    seccompProfile:\n      type: RuntimeDefault\n  containers:\n    - name: a\n      command: [a]\n"
        "      securityContext:\n        allowPrivilegeEscalation: false\n"
        "        capabilities:\n          drop: [ALL]\n"
    )
    assert any(f.what.endswith("level restricted") for f in lint_text(text))


def test_a_user_can_neither_lock_memory_nor_write_to_the_node() -> None:
    text = sample("peers.yaml").replace("runAsUser: 0", "runAsUser: 1000")
    assert sorted(findings(text)) == ["K405e", "K502w"]


def test_the_device_files_alone_cannot_be_opened() -> None:
    text = sample("launcher.yaml").replace("path: /mnt/nvme", "path: /dev/infiniband")
    text = text.replace("                  rdma/ib: 8\n", "")
    assert "K404w" in rules(text)


def test_the_fabric_without_a_device_is_found_at_the_setting() -> None:
    text = sample("launcher.yaml").replace("                  rdma/ib: 8\n", "")
    assert findings(text)["K402w"].line == line_of(text, "UCX_TLS")


def test_sshd_in_an_empty_run_ends_at_once() -> None:
    text = sample("launcher.yaml").replace("                  install -d -m 0755 /run/sshd\n", "")
    assert list(findings(text)) == ["K201w"]
    assert list(findings(text.replace("mountPath: /mnt/nvme", "mountPath: /run"))) == ["K201e"]


def test_sshd_without_capabilities_is_found() -> None:
    text = sample("launcher.yaml").replace(
        "add: [IPC_LOCK]", "add: [IPC_LOCK]\n                  drop: [ALL]"
    )
    assert findings(text)["K203e"].line == line_of(text, "drop: [ALL]")
    added = text.replace("[IPC_LOCK]", "[IPC_LOCK, SYS_CHROOT, SETUID, SETGID]")
    assert rules(added) == []


@pytest.mark.parametrize(
    ("mode", "group", "expected"),
    [("", "", "K202e"), ("defaultMode: 0400", "", "K202w"), ("defaultMode: 0600", "fsGroup: 1", "K202e")],
)
def test_a_key_that_ssh_uses_as_it_is_mounted_is_found(mode: str, group: str, expected: str) -> None:
    text = sample("peers.yaml").replace("mountPath: /etc/azcp/ssh", "mountPath: /root/.ssh")
    text = text.replace("secretName: mistral-ssh", f"secretName: mistral-ssh\n            {mode}")
    text = text.replace(
        "      restartPolicy", f"      securityContext:\n        {group}\n      restartPolicy"
    )
    assert list(findings(text)) == [expected]


def test_a_key_named_by_its_mounted_path_is_found() -> None:
    text = stateful_set("nodes", "", "[ssh, -i, /keys/id, peer]") + SERVICE
    mounted = with_volume(text, "/keys", "secret:\n            secretName: keys")
    assert list(findings(mounted)) == ["K202e"]


def test_full_names_are_found_where_open_mpi_cuts_them() -> None:
    command = "[mpirun, --allow-run-as-root, --host, 'nodes-0.nodes,nodes-1.nodes', program]"
    assert "K308w" in rules(stateful_set("nodes", "", command) + SERVICE)
    keeps = command.replace("program", "-mca, orte_keep_fqdn_hostnames, '1', program")
    assert "K308w" not in rules(stateful_set("nodes", "", keeps) + SERVICE)
    assert "K308w" not in rules(
        stateful_set("nodes", "", command.replace("nodes-0.nodes,nodes-1.nodes", "10.0.0.1:1"))
    )


def test_bare_names_of_pods_are_found_where_they_do_not_resolve() -> None:
    command = "[mpirun, --allow-run-as-root, --host, 'nodes-0,nodes-1', program]"
    assert "K309w" in rules(stateful_set("nodes", "", command) + SERVICE)
    assert "K309w" not in rules(stateful_set("others", "", command) + SERVICE)


def test_a_generated_name_counts_with_what_is_added_to_it() -> None:
    text = stateful_set("n" * 48).replace("  name: nnn", "  generateName: nnn", 1) + SERVICE
    assert rules(text) == []
    assert list(findings(text.replace("n" * 48, "n" * 49))) == ["K301e"]


def test_sshd_with_a_configuration_of_its_own_is_left_alone() -> None:
    text = sample("launcher.yaml").replace("                  ssh-keygen -A\n", "")
    assert rules(text.replace("sshd -De", "sshd -f /etc/own -De")) == []


def test_a_user_reads_a_key_that_others_can_read_but_not_one_of_root_alone() -> None:
    text = sample("peers.yaml").replace("mountPath: /etc/azcp/ssh", "mountPath: /home/u/.ssh")
    as_user = text.replace("runAsUser: 0", "runAsUser: 1000")
    assert "K202n" in rules(as_user, notes=True)
    private = as_user.replace(
        "secretName: mistral-ssh", "secretName: mistral-ssh\n            defaultMode: 0600"
    )
    assert "K202e" in rules(private)


def test_a_job_set_needs_no_restart_policy() -> None:
    text = (
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: set\nspec:\n"
        "  replicatedJobs:\n    - name: nodes\n      template:\n        spec:\n          backoffLimit: 0\n"
        f"          template:\n            spec:\n              {pod(14)}"
    )
    assert rules(text.replace("restartPolicy: Never", "priority: 1")) == []


def test_too_many_objects_are_refused() -> None:
    with pytest.raises(UsageError, match="more than 1000 objects"):
        lint_text("---\napiVersion: v1\nkind: Pod\n" * 1001)


def test_several_ranks_of_azcp_cluster_on_a_node_are_found() -> None:
    command = "[mpirun, --allow-run-as-root, azcp-cluster]"
    assert "K804w" in rules(stateful_set("nodes", "", command) + SERVICE)
    mapped = command.replace("azcp", "--map-by, 'ppr:1:node', azcp")
    assert "K804w" not in rules(stateful_set("nodes", "", mapped) + SERVICE)


def test_a_script_of_a_config_map_is_read_at_its_own_lines() -> None:
    config = (
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: scripts\ndata:\n  start.sh: |\n"
        "    #!/bin/bash\n    chmod 777 /data\n"
    )
    text = stateful_set("nodes", "", "[bash, /scripts/start.sh]") + SERVICE + config
    assert rules(text) == []
    mounted = with_volume(text, "/scripts", "configMap:\n            name: scripts")
    assert findings(mounted)["K503w"].line == line_of(mounted, "chmod")


def test_an_identity_that_nobody_names_is_found() -> None:
    command = "[azcp, copy, 'https://examplemodels.blob.core.windows.net/models/mistral', /data]"
    text = stateful_set("nodes", "", command)
    assert list(findings(text)) == ["K703w"]
    label = "        app: nodes\n        azure.workload.identity/use: 'true'\n"
    labelled = text.replace("        app: nodes\n", label)
    assert list(findings(labelled)) == ["K705e"]
    assert rules(labelled.replace("      containers", "      serviceAccountName: a\n      containers")) == []


def test_an_annotated_service_account_without_the_label_is_found() -> None:
    account = (
        "---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: reader\n  annotations:\n"
        "    azure.workload.identity/client-id: 00000000-0000-0000-0000-000000000000\n"
    )
    text = stateful_set("nodes", "serviceAccountName: reader\n      ") + account
    assert list(findings(text)) == ["K705e"]


def test_the_index_of_a_job_that_has_none_is_found() -> None:
    text = (
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: get\nspec:\n  backoffLimit: 0\n"
        "  template:\n    spec:\n"
        f"      {pod(6, '[bash, -c, echo $JOB_COMPLETION_INDEX]')}"
    )
    assert findings(text)["K902e"].line == line_of(text, "JOB_COMPLETION_INDEX")
    assert rules(text.replace("  backoffLimit", "  completionMode: Indexed\n  backoffLimit")) == []


def test_peers_that_restart_one_by_one_are_found() -> None:
    text = sample("peers.yaml").replace("restartPolicy: Never", "restartPolicy: OnFailure")
    assert rules(text) == []
    by_hand = text.replace("/opt/azcp/bin/azcp-launch", "azcp-cluster")
    assert list(findings(by_hand)) == ["K904w"]


def test_a_set_of_pods_always_restarts() -> None:
    text = stateful_set("nodes").replace("restartPolicy: Always", "restartPolicy: Never")
    assert list(findings(text)) == ["K905e"]


SECRETS = {
    "a signature": "https://example.blob.core.windows.net/c?sv=2024-11-04&sig=Qw3rtzU1opAsDf%3D",
    "an account key": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=Qw3rtzU1opAsDf==",
    "a private key": "-----BEGIN OPENSSH PRIVATE KEY-----Qw3rtzU1opAsDf",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_a_secret_in_a_config_map_is_found_and_not_printed(secret: str) -> None:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n"
    text = f"{head}  settings: |\n    # first\n    {secret}\n"
    (found,) = lint_text(text)
    assert (found.rule, found.line) == ("K701-secret-in-text", 8)
    assert "Qw3rtz" not in repr(found)


def test_a_secret_object_with_a_value_is_found_and_a_placeholder_is_none() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\nstringData:\n  AZCP_SAS: Qw3rtzU1opAsDf\n"
    assert list(findings(text)) == ["K702w"]
    assert "Qw3rtz" not in repr(lint_text(text))
    assert rules(text.replace("Qw3rtzU1opAsDf", "REPLACE_WITH_SAS")) == []


@pytest.mark.parametrize(
    "line",
    ["TOKENIZER: meta/llama-3-8b", "SECRET_NAME: examplemodels-sas",
     "AZURE_FEDERATED_TOKEN_FILE: /var/run/token",
     "HF_TOKEN: $(TOKEN_FROM_SECRET)", "API_KEY: REPLACE_WITH_KEY", "MAX_TOKENS: '1000000000'"],
)  # fmt: skip
def test_what_only_sounds_like_a_secret_is_not_found(line: str) -> None:
    name, value = line.split(": ")
    env = f"          env:\n            - name: {name}\n              value: {value}\n          command"
    assert rules(stateful_set("nodes").replace("          command", env)) == []


def test_a_value_from_a_template_is_left_alone() -> None:
    text = (
        stateful_set('"{{ .Values.name }}-with-a-very-long-name-that-would-be-too-long-by-itself"') + SERVICE
    )
    assert rules(text) == []


def test_a_plain_web_deployment_has_nothing_but_notes() -> None:
    text = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 3\n  template:\n"
        "    metadata:\n      labels:\n        app: web\n    spec:\n      containers:\n        - name: web\n"
        "          image: nginx\n          ports:\n            - containerPort: 80\n---\napiVersion: v1\n"
        "kind: Service\nmetadata:\n  name: web\nspec:\n  selector:\n    app: web\n  ports:\n    - port: 80\n"
    )
    assert rules(text) == []
