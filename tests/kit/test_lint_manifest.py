"""Traps in manifests: each is put into a clean sample, and exactly its own rule speaks, at its line."""

from __future__ import annotations

from typing import Final

import pytest

from tests.kit.lint.samples import Trap, check, rules, sample

LAUNCHER: Final = (
    Trap(
        "a launcher's env sets what the operator sets",
        "- name: SOURCE\n",
        "- name: OMPI_MCA_plm_rsh_args\n                  value: -p 2222\n                - name: SOURCE\n",
        "K801e",
        "-p 2222",
    ),
    Trap(
        "mpirun is not allowed to be root",
        "--allow-run-as-root \\",
        "--bind-to none \\",
        "K802w",
        "mpirun \\",
    ),
    Trap("more ranks than slots", "NODES=4", "NODES=5", "K803e", "mpirun \\"),
    Trap("fewer ranks than nodes", '-np "$NODES"', "-np 2", "K803w", "mpirun \\"),
    Trap("UCX is tuned but not chosen", "-mca pml ucx", "-mca osc ucx", "K805w", "UCX_TLS"),
    Trap("hcoll is left on", "-mca coll_hcoll_enable 0 \\", "-mca osc ucx \\", "K812n", "mpirun \\"),
    Trap("devices by number", "-x UCX_TLS", "-x UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 -x UCX_TLS", "K807w"),
    Trap("devices of the HPC image by number", "-x UCX_TLS", "-x NCCL_IB_HCA=mlx5_ib0 -x UCX_TLS", "K807w"),
    Trap("a fixed GID", "-x UCX_TLS", "-x UCX_IB_GID_INDEX=3 -x UCX_TLS", "K808w"),
    Trap(
        "the private libraries for everything",
        "NODES=4\n",
        "NODES=4\n                  export LD_LIBRARY_PATH=/opt/azcp/openmpi/lib:${LD_LIBRARY_PATH:-}\n",
        "K806w",
        "LD_LIBRARY_PATH",
    ),
    Trap(
        "an algorithm of another broadcast",
        "-x UCX_TLS",
        "-mca coll_tuned_bcast_algorithm 1 -x UCX_TLS",
        "K809n",
    ),
    Trap("a chunk of 4 GiB", "--bcast-chunk 256MiB --bcast-pipeline 8", "--bcast-chunk 4GiB", "K810e"),
    Trap(
        "chunks and their pipeline beyond the workers' memory",
        "--bcast-pipeline 8",
        "--bcast-pipeline 64",
        "K408e",
        "memory: 24Gi",
    ),
    Trap("a pinned concurrency", "--bcast-pipeline 8", "--bcast-pipeline 8 --concurrency 32", "K811n"),
    Trap(
        "a credential that ranks do not get", "-x AZURE_CLIENT_ID \\", "--bind-to none \\", "K704w", "mpirun"
    ),
    Trap(
        "a signature in a value",
        "models/mistral/\n",
        "models/mistral?sv=2024&sig=abcdefghijklmnop%3D\n",
        "K701e",
        "value: https",
    ),
    Trap(
        "a key by its variable's name",
        "- name: SOURCE\n",
        "- name: HF_TOKEN\n                  value: c2VjcmV0LXNlY3JldA==\n                - name: SOURCE\n",
        "K701e",
        "c2Vj",
    ),
    Trap(
        "workers without a probe",
        "              readinessProbe:\n                tcpSocket:\n                  port: 2222\n",
        "",
        "K108w",
        "template:",
    ),
    Trap(
        "a launcher that does not wait",
        "launcherCreationPolicy: WaitForWorkersReady",
        "launcherCreationPolicy: AtStartup",
        "K109w",
    ),
    Trap("no backoff limit", "    backoffLimit: 1\n", "", "K903n", "runPolicy"),
    Trap("no deadline", "    activeDeadlineSeconds: 7200\n", "", "K906n", "spec:"),
    Trap("sshd without host keys", "                  ssh-keygen -A\n", "", "K201w", "sshd -De"),
    Trap(
        "a worker without a command",
        "              command: [/bin/bash, -c]\n              args:\n                - |\n"
        "                  set -eu\n"
        "                  install -d -m 0755 /run/sshd\n                  ssh-keygen -A\n"
        "                  exec /usr/sbin/sshd -De -p 2222\n",
        "",
        "K201n",
        "- name: worker",
    ),
    Trap(
        "a group that widens the key's mode",
        "        spec:\n          enableServiceLinks: false\n          automountServiceAccountToken: false\n"
        "          affinity",
        "        spec:\n          securityContext:\n            fsGroup: 1000\n"
        "          enableServiceLinks: false\n"
        "          automountServiceAccountToken: false\n          affinity",
        "K202w",
        "fsGroup",
    ),
    Trap(
        "the key at another place",
        "  slotsPerWorker: 1\n",
        "  slotsPerWorker: 1\n  sshAuthMountPath: /home/mpi/.ssh\n",
        "K202w",
        "sshAuthMountPath",
    ),
    Trap(
        "no right to lock memory",
        "                  add: [IPC_LOCK]\n",
        "                  add: []\n",
        "K401w",
        "rdma/ib: 8",
    ),
    Trap(
        "a device that is only requested",
        "                limits:\n                  memory: 24Gi\n                  rdma/ib: 8\n",
        "                limits:\n                  memory: 24Gi\n",
        "K409e",
        "rdma/ib: 8",
    ),
    Trap(
        "the default shared memory",
        "                - name: shm\n                  mountPath: /dev/shm\n",
        "",
        "K406w",
        "- name: worker",
    ),
    Trap("shared memory without a limit", "                sizeLimit: 16Gi\n", "", "K407w", "emptyDir"),
    Trap("shared memory beyond the limit", "sizeLimit: 16Gi", "sizeLimit: 32Gi", "K408e", "memory: 24Gi"),
    Trap("a host path made on demand", "type: Directory", "type: DirectoryOrCreate", "K501w"),
    Trap(
        "workers that may share a node",
        "topologyKey: kubernetes.io/hostname",
        "topologyKey: topology.kubernetes.io/zone",
        "K504w",
        "- name: nvme",
    ),
    Trap(
        "a folder open to all",
        "NODES=4\n",
        "NODES=4\n                  chmod -R 777 /mnt/nvme\n",
        "K503w",
        "chmod",
    ),
    Trap(
        "a wait without an end",
        "NODES=4\n",
        "NODES=4\n                  until ssh weights-worker-0 true; do\n"
        "                    sleep 2\n                  done\n",
        "K107w",
        "until",
    ),
    Trap(
        "a key that stands twice",
        "  slotsPerWorker: 1\n",
        "  slotsPerWorker: 1\n  slotsPerWorker: 1\n",
        "K101e",
        "slotsPerWorker",
    ),
    Trap(
        "a label that is no text",
        "            app: weights\n        spec",
        "            app: weights\n            azure.workload.identity/use: true\n        spec",
        "K705e",
        "identity/use",
    ),
    Trap(
        "a port of the node",
        "              readinessProbe",
        "              ports:\n                - containerPort: 22\n"
        "                  hostPort: 0\n              readinessProbe",
        "",
        "",
    ),
)

PEERS: Final = (
    Trap(
        "a command given as arguments",
        "          command:\n            - /opt/azcp",
        "          args:\n            - /opt/azcp",
        "K104e",
        "args:",
    ),
    Trap(
        "options for the image's own program",
        "          command: [serve, /mnt/nvme/mistral]\n",
        "          args: [--model, /mnt/nvme/mistral]\n",
        "K104n",
        "args",
    ),
    Trap(
        "a Service of another name",
        "  name: mistral\n  namespace: models\nspec:\n  clusterIP",
        "  name: mistral-ssh\n  namespace: models\nspec:\n  clusterIP",
        "K304e",
        "subdomain",
    ),
    Trap("a Service with an address", "clusterIP: None", "clusterIP: 10.0.0.10", "K304e"),
    Trap("a Service that hides who is not ready", "  publishNotReadyAddresses: true\n", "", "K303w", "spec:"),
    Trap(
        "a selector that matches nothing",
        "  selector:\n    app: mistral\n",
        "  selector:\n    app: mixtral\n",
        "K305w",
        "selector",
    ),
    Trap(
        "a name that is too long",
        "kind: Job\nmetadata:\n  name: mistral\n",
        f"kind: Job\nmetadata:\n  name: m{'o' * 60}\n",
        "K301e",
        "mooo",
    ),
    Trap(
        "a name that is no host name",
        "kind: Job\nmetadata:\n  name: mistral\n",
        "kind: Job\nmetadata:\n  name: mistral_7b\n",
        "K302e",
        "mistral_7b",
    ),
    Trap("buffers beyond the memory limit", "- 4GiB", "- 10GiB", "K408e", "memory: 24Gi"),
    Trap(
        "a host path without a type",
        "            path: /mnt/nvme\n            type: Directory\n",
        "            path: /mnt/nvme\n",
        "K501n",
        "hostPath",
    ),
    Trap(
        "a user that writes to the node",
        "          command: [serve, /mnt/nvme/mistral]\n",
        "          command: [serve, /mnt/nvme/mistral]\n          securityContext:\n"
        "            runAsUser: 1000\n",
        "",
        "",
    ),
    Trap(
        "privileged without need",
        "            runAsUser: 0\n",
        "            runAsUser: 0\n            privileged: true\n",
        "K603w",
        "privileged",
    ),
    Trap("service links", "      enableServiceLinks: false\n", "", "K605n", "spec:"),
    Trap("a token without use", "      automountServiceAccountToken: false\n", "", "K604n", "spec:"),
    Trap(
        "the label of an identity without its account",
        "        app: mistral\n    spec:",
        '        app: mistral\n        azure.workload.identity/use: "true"\n    spec:',
        "K705e",
        "identity/use",
    ),
    Trap("fewer pods at once than there are", "parallelism: 16", "parallelism: 8", "K901e", "completions"),
    Trap("names without indexes", "  completionMode: Indexed\n", "", "K902w", "subdomain"),
    Trap("no backoff limit", "  backoffLimit: 0\n", "", "K903w", "spec:"),
    Trap("a restart policy that no Job has", "restartPolicy: Never", "restartPolicy: Always", "K905e"),
    Trap(
        "the device by its path",
        "            limits:\n              memory: 24Gi\n              rdma/ib: 8\n",
        "            limits:\n              memory: 24Gi\n",
        "K403n",
        "- IPC_LOCK",
    ),
)


@pytest.mark.parametrize("trap", [t for t in LAUNCHER if t.rule], ids=lambda trap: trap.sentence)
def test_a_trap_in_a_launcher_and_its_workers_is_found(trap: Trap) -> None:
    check("launcher.yaml", trap)


@pytest.mark.parametrize("trap", [t for t in PEERS if t.rule], ids=lambda trap: trap.sentence)
def test_a_trap_in_a_job_of_peers_is_found(trap: Trap) -> None:
    check("peers.yaml", trap)


@pytest.mark.parametrize(
    "trap", [t for t in (*LAUNCHER, *PEERS) if not t.rule], ids=lambda trap: trap.sentence
)
def test_what_is_harmless_is_not_found(trap: Trap) -> None:
    name = "launcher.yaml" if trap in LAUNCHER else "peers.yaml"
    assert rules(sample(name).replace(trap.old, trap.new)) == []


@pytest.mark.parametrize("name", ["launcher.yaml", "peers.yaml"])
def test_a_clean_manifest_has_notes_on_its_security_level_alone(name: str) -> None:
    assert set(rules(sample(name), notes=True)) == {"K601n"}
