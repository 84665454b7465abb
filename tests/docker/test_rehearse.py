"""Manifests of every kind are rehearsed: their own pods, side by side, on images that azcp-kit has made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from azcp_kit.azurite import find_azurite
from azcp_kit.rehearse.orphans import LABEL
from azcp_kit.rehearse.outcome import Outcome, PodEnd, Verdict
from azcp_kit.rehearse.request import Kill, RehearseRequest, Until
from azcp_kit.rehearse.run import rehearse
from azcp_runtime.contract import ExitCode, PreflightError
from docker import DockerClient

from tests.lab.bases import Bases, cache_folder
from tests.lab.injected import Injected
from tests.lab.requirements import missing
from tests.lab.stand_ins import with_stand_ins
from tests.lab.waiting import wait_until

ROOT: Final = Path(__file__).resolve().parents[2]
MANIFESTS: Final = Path("tests/lab/manifests")
EXAMPLES: Final = Path("examples/aks")
SIZE_BYTES: Final = 4 << 20
DEADLINE_S: Final = 240.0
RUN_IT: Final = """
import signal, sys
from azcp_kit.rehearse.request import RehearseRequest
from azcp_kit.rehearse.run import rehearse
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
request = RehearseRequest(open(sys.argv[1]).read(), images={"": sys.argv[2]}, size_bytes=1 << 20)
rehearse(request, lambda at_s, pod, what: print(pod, what, flush=True))
"""


@dataclass(frozen=True)
class Case:
    """A manifest that must go well.

    Args:
        path: of its file, from the root of the project.
        pods: that it is rehearsed with.
        nodes: that have the data afterwards.
        phase_2: how many pods, or lines of a launcher, say that phase 2 ran.
        asked: --nodes.
    """

    path: Path
    pods: int
    nodes: int
    phase_2: int = 0
    asked: int | None = None


CASES: Final = (
    Case(MANIFESTS / "mpijob.yaml", pods=4, nodes=3, phase_2=3),
    Case(MANIFESTS / "job.yaml", pods=3, nodes=3, phase_2=3),
    Case(MANIFESTS / "statefulset.yaml", pods=3, nodes=3, phase_2=3),
    Case(MANIFESTS / "jobset-restricted.yaml", pods=3, nodes=3, phase_2=3),
    Case(MANIFESTS / "volcano.yaml", pods=3, nodes=3, phase_2=3),
    Case(MANIFESTS / "serving.yaml", pods=2, nodes=2),
    Case(MANIFESTS / "warmup.yaml", pods=2, nodes=2),
    Case(MANIFESTS / "daemonset-from-directory.yaml", pods=2, nodes=2, asked=2),
    Case(EXAMPLES / "mpijob.yaml", pods=4, nodes=3, phase_2=3),
    Case(EXAMPLES / "mpijob-restricted.yaml", pods=4, nodes=3, phase_2=3),
    Case(EXAMPLES / "job.yaml", pods=3, nodes=3, phase_2=3),
    Case(EXAMPLES / "job-restricted.yaml", pods=3, nodes=3, phase_2=3),
    Case(EXAMPLES / "statefulset.yaml", pods=3, nodes=3, phase_2=3),
    Case(EXAMPLES / "jobset.yaml", pods=3, nodes=3, phase_2=3),
    Case(EXAMPLES / "volcano.yaml", pods=3, nodes=3, phase_2=3),
    Case(EXAMPLES / "serving.yaml", pods=3, nodes=3, phase_2=3),
    Case(EXAMPLES / "warmup.yaml", pods=3, nodes=3),
    Case(EXAMPLES / "warmup-daemonset.yaml", pods=3, nodes=3),
)


@dataclass(frozen=True)
class Stage:
    """Where rehearsals take place: the engine, and images for the names in the manifests."""

    docker: DockerClient
    images: dict[str, str]
    told: list[tuple[str, str]]

    def rehearse(self, path: Path, **request: object) -> Outcome:
        """A manifest of the project."""
        text = (ROOT / path).read_text(encoding="utf-8")
        # Others' names would be refused; the empty one stands for all.
        images = {name: image for name, image in self.images.items() if name in text}
        asked = RehearseRequest(text, images=images, size_bytes=SIZE_BYTES, timeout_s=DEADLINE_S)
        self.told.clear()
        return rehearse(replace(asked, **request), lambda _at, pod, what: self.told.append((pod, what)))  # type: ignore[arg-type]  # fields by name

    def leftovers(self) -> list[str]:
        """What of any rehearsal is in the engine."""
        api, chosen = self.docker.api, {"label": LABEL}
        found = [container["Id"] for container in api.containers(all=True, filters=chosen)]
        found += [network["Name"] for network in api.networks(filters=chosen)]
        found += [volume["Name"] for volume in api.volumes(filters=chosen)["Volumes"] or []]
        return [*found, *(image["Id"] for image in api.images(filters=chosen))]


@pytest.fixture(scope="module")
def stage(docker: DockerClient, bases: Bases) -> Iterator[Stage]:
    """The injected image, which does not outlive the module, and a base that is left as it is."""
    if find_azurite() is None:
        missing("azurite", "Azurite is not installed: put Node.js with npm on PATH, then `make clean venv`")
    images = Injected(docker, bases, cache_folder())
    consumer = with_stand_ins(docker, bases("debian12"), "consumer")
    injected = with_stand_ins(docker, images("debian12"), "injected")
    yield Stage(docker, {"consumer:1": consumer, "registry.example/finetune:1": consumer, "": injected}, [])
    for image in (consumer, injected):
        docker.images.remove(image, force=True)
    images.remove()


def pod_of(outcome: Outcome, name: str) -> PodEnd:
    return next(pod for pod in outcome.pods if pod.name == name)


def said(outcome: Outcome) -> list[str]:
    """The lines of all pods that were kept."""
    ends = [end for pod in outcome.pods for end in pod.containers]
    return [line.text for end in ends for line in (*end.summary, *end.tail)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.parent.name}-{case.path.stem}")
def test_a_manifest_distributes_runs_its_command_and_leaves_nothing(stage: Stage, case: Case) -> None:
    outcome = stage.rehearse(case.path, nodes=case.asked)
    assert outcome.exit_code is ExitCode.DONE, stage.told
    assert len(outcome.pods) == case.pods
    assert [entry.differences for entry in outcome.data] == [()] * case.nodes
    assert sum(line.startswith("phase 2 on ") for line in said(outcome)) == case.phase_2
    assert stage.leftovers() == []


def test_a_pod_sees_what_the_kubelet_would_have_it_see(stage: Stage) -> None:
    outcome = stage.rehearse(MANIFESTS / "faithful.yaml")
    assert outcome.exit_code is ExitCode.DONE, stage.told
    (pod,) = outcome.pods
    main = next(end for end in pod.containers if end.kind == "main")
    seen = dict(line.text.partition(" ")[::2] for line in main.tail)
    assert seen["id"] == "1000 1001 1001 1002 1003"
    assert seen["host"] == "host-one host-one host-one.peers.default.svc.cluster.local"
    assert seen["mode"] == "440:0:1002"
    assert seen["link"] == "..data/id"
    assert seen["memory"] == "kept tmpfs 8192"
    assert seen["part"] == "part"
    assert seen["file"] == "fast"
    assert seen["caps"] == "0000000000000000"
    assert seen["privileges"] == "1"
    assert "Read-only file system" in seen["root"]
    assert "Read-only file system" in seen["secret"]
    assert seen["routes"] == "0"
    assert seen["variable"] == "fast-$(NOT_THERE) $(VARIABLE) fast"
    assert "hostPath /var/run/docker.sock of the node: not mounted" in outcome.unshown


def test_a_part_of_a_volume_that_leads_out_of_it_is_not_mounted(stage: Stage) -> None:
    outcome = stage.rehearse(MANIFESTS / "hostile.yaml")
    assert outcome.exit_code is ExitCode.PREFLIGHT
    (pod,) = outcome.pods
    assert [end.code for end in pod.containers] == [0, 128]
    assert "subPath part leads through what is no folder" in pod.reason
    assert {
        "privileged: true: not given to a container on this machine",
        "hostNetwork, hostPID: the pod keeps its own",
    } < set(outcome.unshown)


def test_workers_that_come_late_are_waited_for(stage: Stage) -> None:
    outcome = stage.rehearse(MANIFESTS / "mpijob.yaml", late={"llama-worker-2": 30.0})
    assert outcome.exit_code is ExitCode.DONE, stage.told
    launcher = pod_of(outcome, "llama-launcher")
    assert (launcher.made_s or 0) >= 30


def test_a_worker_killed_in_phase_1_is_named_and_the_next_try_keeps_what_is_whole(stage: Stage) -> None:
    kills = (Kill("llama-worker-1", "phase1", 2.0),)
    outcome = stage.rehearse(MANIFESTS / "mpijob-restarting.yaml", kills=kills)
    assert outcome.exit_code is ExitCode.DONE, stage.told
    worker, launcher = (pod_of(outcome, name) for name in ("llama-worker-1", "llama-launcher"))
    assert worker.containers[0].code == 137
    assert [end.code for end in launcher.containers] == [ExitCode.BROADCAST, 0]
    assert any("a node or its connection was lost" in line.text for line in launcher.containers[0].tail)
    (diff,) = [line.text for line in launcher.containers[1].summary if line.text.startswith("[diff]")]
    assert "(0 peer" not in diff
    assert len(outcome.data) == 3


def test_a_command_that_fails_is_told_with_its_last_words(stage: Stage) -> None:
    text = (ROOT / MANIFESTS / "job.yaml").read_text(encoding="utf-8")
    failing = text.replace("test -d /data/llama/checkpoint", "exec nvidia-smi")
    outcome = stage.rehearse(MANIFESTS / "job.yaml", manifest=failing)
    assert outcome.exit_code is ExitCode.PREFLIGHT
    failed = [end for pod in outcome.pods for end in pod.containers if end.has_failed]
    assert failed[0].code == 127
    # Its two streams may be told in either order.
    assert any("nvidia-smi: not found" in line.text for line in failed[0].tail)
    assert outcome.workloads[0].reason.startswith("BackoffLimitExceeded")
    assert outcome.different == ()


def test_workers_that_crash_at_every_start_end_the_rehearsal_at_once(stage: Stage) -> None:
    text = (ROOT / MANIFESTS / "mpijob-restarting.yaml").read_text(encoding="utf-8")
    crashing = text.replace("/opt/azcp/bin/azcp-sshd", "/opt/azcp/bin/azcp-sshd, --no-such-option")
    assert crashing != text
    outcome = stage.rehearse(MANIFESTS / "mpijob-restarting.yaml", manifest=crashing)
    assert outcome.exit_code is ExitCode.PREFLIGHT
    assert "CrashLoopBackOff" in outcome.workloads[0].reason
    assert "no-such-option" in outcome.workloads[0].reason
    assert outcome.took_s < DEADLINE_S / 4
    assert outcome.cut_short == ("MPIJob llama",)
    assert outcome.data == ()


def test_an_image_that_was_not_built_here_is_told_before_anything_starts(stage: Stage) -> None:
    with pytest.raises(PreflightError, match="holds no /opt/azcp") as caught:
        stage.rehearse(MANIFESTS / "mpijob.yaml", images={"": stage.images["consumer:1"]})
    assert "azcp-kit build --base" in str(caught.value)
    assert stage.told == []
    assert stage.leftovers() == []


def test_a_rehearsal_until_the_data_is_there_does_not_wait_for_the_command(stage: Stage) -> None:
    text = (ROOT / MANIFESTS / "mpijob.yaml").read_text(encoding="utf-8")
    outcome = stage.rehearse(
        MANIFESTS / "mpijob.yaml",
        manifest=text.replace("echo phase 2 on $RANK", "sleep 1000"),
        until=Until.DISTRIBUTED,
    )
    assert outcome.exit_code is ExitCode.DONE, stage.told
    assert [entry.differences for entry in outcome.data] == [()] * 3
    assert outcome.took_s < DEADLINE_S / 2


def test_what_is_not_done_in_time_is_given_up(stage: Stage) -> None:
    outcome = stage.rehearse(MANIFESTS / "mpijob.yaml", late={"llama-worker-0": 1000.0}, timeout_s=8.0)
    assert outcome.exit_code is ExitCode.PREFLIGHT
    assert "llama-worker-0" in outcome.workloads[0].reason
    assert pod_of(outcome, "llama-worker-0").verdict is Verdict.NOT_STARTED
    assert stage.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_rehearsal_that_is_ended_leaves_nothing_for_long(stage: Stage, number: signal.Signals) -> None:
    argv = [sys.executable, "-c", RUN_IT, str(ROOT / MANIFESTS / "mpijob.yaml"), stage.images[""]]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as running:
        assert running.stdout is not None
        assert any("started" in line for line in running.stdout)
        running.send_signal(number)
        running.stdout.close()
    wait_until(lambda: running.poll() is not None, 60, "it has ended")
    if number is signal.SIGKILL:
        assert stage.leftovers()
        stage.rehearse(MANIFESTS / "faithful.yaml")
    assert stage.leftovers() == []
