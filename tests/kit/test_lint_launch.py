"""The linter on the arguments of azcp-launch: its options, its nodes, its hosts, its folder."""

from __future__ import annotations

import re

import pytest
from azcp_kit.lint.check import lint_text
from azcp_kit.lint.host_ranges import hosts_in
from azcp_kit.lint.launch_line import LAUNCH_OPTIONS
from azcp_runtime.contract.options import DISTRIBUTE_OPTIONS
from azcp_runtime.launch.options import parse_launch

from tests.kit.lint.samples import Trap, check, findings, line_of, rules, sample

JOB_SET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: llama}
spec:
  replicatedJobs:
    - name: node
      replicas: 2
      template:
        spec:
          parallelism: 2
          completions: 2
          backoffLimit: 0
          template:
            spec:
              enableServiceLinks: false
              containers:
                - name: a
                  command: [azcp-launch, --every-node, --hosts, "HOSTS"]
"""
VOLCANO = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: llama}
spec:
  tasks:
    - name: node
      replicas: 4
      template:
        spec:
          enableServiceLinks: false
          containers:
            - name: a
              command: [azcp-launch, --every-node, --hosts, "HOSTS"]
"""
STATEFUL_SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: llama}
spec:
  serviceName: llama-nodes
  replicas: 4
  template:
    spec:
      enableServiceLinks: false
      containers:
        - name: a
          command: [azcp-launch, --every-node, --hosts, "HOSTS"]
"""
TRAPS = (
    Trap(
        "an option that is none",
        "- --memory\n",
        "- --compair\n            - size\n            - --memory\n",
        "K115e",
    ),
    Trap("an option with one hyphen", "- --every-node", "- -every-node", "K115e"),
    Trap("an option with its value", "- --every-node", "- --every_nodes=1", "K115e"),
    Trap(
        "another number of nodes",
        "- --every-node",
        '- --every-node\n            - --nodes\n            - "3"',
        "K116e",
        '- "3"',
    ),
    Trap("fewer hosts than pods", "mistral-[0-15].mistral", "mistral-[0-7].mistral", "K117e"),
    Trap("hosts of another stem", "mistral-[0-15].mistral", "mixtral-[0-15].mistral", "K117e"),
    Trap("hosts that count from one", "mistral-[0-15].mistral", "mistral-[1-16].mistral", "K117e"),
    Trap("hosts of another Service", "mistral-[0-15].mistral", "mistral-[0-15].mistral-nodes", "K117e"),
    Trap("hosts of no Service", "mistral-[0-15].mistral", "mistral-[0-15]", "K117e"),
    Trap("a folder on no volume", "- /mnt/nvme/mistral\n", "- /data/mistral\n", "K505e"),
    Trap("a folder beside a volume", "- /mnt/nvme/mistral\n", "- /mnt/nvme2/mistral\n", "K505e"),
)  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.sentence)
def test_a_trap_in_the_arguments_is_found(trap: Trap) -> None:
    check("peers.yaml", trap)


def test_an_option_that_is_nearly_one_is_told_which() -> None:
    text = sample("peers.yaml").replace("- --memory", "- --memroy")
    assert findings(text)["K115e"].fix == "did you mean --memory?"
    script = "#!/bin/bash\nsrun azcp-distribute https://example.com/a /data --compair size\n"
    assert findings(script)["K115e"].fix == "did you mean --compare?"
    assert findings(script)["K115e"].line == 2


def test_the_commands_own_options_are_not_those_of_azcp_launch() -> None:
    script = "#!/bin/bash\nazcp-launch https://example.com/a /data $MORE -- torchrun --nnodes 4\n"
    assert "K115e" not in rules(script)


@pytest.mark.parametrize(
    "hosts",
    ["mistral-[00-15].mistral", "10.0.0.[1-16]", "$(HOSTS)", "mistral-[0-9].mistral,mistral-[10-15].mistral",
     "mistral-[0-15].mistral.models.svc.cluster.local"],
)  # fmt: skip
def test_hosts_are_compared_one_by_one(hosts: str) -> None:
    text = sample("peers.yaml").replace("mistral-[0-15].mistral", hosts)
    assert rules(text) == (["K117e"] if "[00" in hosts else [])


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (JOB_SET, "llama-node-0-[0-1].llama,llama-node-1-[0-1].llama"),
        (VOLCANO, "llama-node-[0-3].llama"),
        (STATEFUL_SET, "llama-[0-3].llama-nodes"),
    ],
)
def test_each_kind_names_its_pods_in_its_own_way(text: str, right: str) -> None:
    assert "K117e" not in rules(text.replace("HOSTS", right))
    found = findings(text.replace("HOSTS", "llama-[0-8].llama"))["K117e"]
    assert found.fix == f"give --hosts '{right}'"
    assert found.line == line_of(text, "HOSTS")


def test_pods_without_a_service_have_no_names_to_give() -> None:
    text = STATEFUL_SET.replace("  serviceName: llama-nodes\n", "").replace("HOSTS", "llama-[0-3].llama")
    assert "has no serviceName" in findings(text)["K117e"].what


def launched(arguments: str) -> str:
    """The launcher with azcp-launch as its last command."""
    return sample("launcher.yaml").replace(
        "NODES=4\n", f"NODES=4\n                  azcp-launch {arguments}\n"
    )


def test_a_launcher_fills_the_volumes_of_its_workers() -> None:
    assert rules(launched("https://example.com/a /mnt/nvme/a --nodes $NODES")) == []
    found = findings(launched("https://example.com/a /data --nodes 3"))
    assert sorted(found) == ["K116e", "K505e"]
    assert found["K505e"].what == "DEST '/data' lies on no volume mount of MPIJob Worker"
    assert found["K116e"].fix == "give --nodes 4"


def test_a_plan_alone_needs_no_volume() -> None:
    assert rules(launched("https://example.com/a /data --dry-run")) == []


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a[08-10].b,c", ("a08.b", "a09.b", "a10.b", "c")),
        ("a[1,3].b", ("a1.b", "a3.b")),
        ("a[0-99999999]", None),
        ("a[x]", None),
        ("a[1][2]", None),
        ("", None),
    ],
)
def test_ranges_are_read_as_azcp_launch_reads_them(text: str, hosts: tuple[str, ...] | None) -> None:
    assert hosts_in(text) == hosts


def test_the_options_are_those_of_azcp_launch(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_launch(["--help"], {})
    listed = re.findall(r"^  (?:-h, )?(--[a-z-]+)(?: ([A-Z{]))?", capsys.readouterr().out, re.MULTILINE)
    assert {name: bool(value) for name, value in listed if name != "--help"} == LAUNCH_OPTIONS
    assert not LAUNCH_OPTIONS.keys() & DISTRIBUTE_OPTIONS.keys()


def test_notes_name_the_key_of_job_toml_and_the_field_of_the_kind() -> None:
    job = sample("peers.yaml").replace("  activeDeadlineSeconds: 7200\n", "")
    mpi = sample("launcher.yaml").replace("    activeDeadlineSeconds: 7200\n", "")
    fixes = [f.fix for text in (job, mpi) for f in lint_text(text) if f.rule.startswith("K906")]
    assert fixes == [
        "set spec.activeDeadlineSeconds (limits.deadline in job.toml)",
        "set spec.runPolicy.activeDeadlineSeconds (limits.deadline in job.toml)",
    ]


def test_a_pod_that_every_level_takes_is_told_so() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  securityContext:\n    runAsNonRoot: true\n"
        "    seccompProfile: {type: RuntimeDefault}\n  containers:\n    - name: a\n      command: [a]\n"
        "      securityContext:\n        allowPrivilegeEscalation: false\n"
        "        capabilities: {drop: [ALL]}\n"
    )
    (level,) = [finding for finding in lint_text(text) if finding.rule.startswith("K601")]
    assert level.fix == "none is needed: every namespace takes it"
