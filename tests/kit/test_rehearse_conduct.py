"""Pods run, wait, fail and are made anew as the kubelet and their controllers would have it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from azcp_kit.rehearse.conduct import Conductor
from azcp_kit.rehearse.fate import Phase
from azcp_kit.rehearse.group_course import Slot, State
from azcp_kit.rehearse.request import Kill, RehearseRequest, Until

from tests.kit.fake_runtime import FakeRuntime
from tests.kit.rehearsed import MAIN, plan

PROBED = {**MAIN, "readinessProbe": {"tcpSocket": {"port": 2222}}}
SOURCE = "https://exampleacct.blob.core.windows.net/models/llama"


@dataclass
class Scene:
    """A conductor whose time a test makes pass."""

    runtime: FakeRuntime
    now: float = 0.0
    told: list[tuple[str, str]] = field(default_factory=list)

    def begin(self, *documents: dict[str, Any], **request: Any) -> Conductor:  # noqa: ANN401 - of the request
        """The conductor of a manifest."""
        self.conductor = Conductor(
            plan(*documents),
            RehearseRequest("", **request),
            self.runtime,
            lambda _at, pod, what: self.told.append((pod, what)),
            lambda _fate: None,
            lambda: self.now,
        )
        return self.conductor

    def pass_until(self, condition: Callable[[], bool], most_s: float = 60.0) -> float:
        """Let time pass in steps of a quarter of a second; when the condition held."""
        while not condition():
            assert self.now < most_s, self.told
            self.conductor.tick()
            self.now += 0.25
        return self.now

    def pass_for(self, seconds: float) -> None:
        """Let that much time pass."""
        end = self.now + seconds
        self.pass_until(lambda: self.now >= end, end + 1)

    @property
    def state(self) -> State:
        """Of the first workload."""
        return self.conductor.courses[0].state

    def slot(self, title: str) -> Slot:
        """A pod's place."""
        slots = [slot for course in self.conductor.courses for slot in course.slots]
        return next(slot for slot in slots if slot.pod.identity.title == title)


@pytest.fixture
def scene() -> Scene:
    """Nothing runs yet."""
    return Scene(FakeRuntime())


def job(spec: dict[str, Any] | None = None, count: int = 2, **own: Any) -> dict[str, Any]:  # noqa: ANN401 - of the Job
    pod = {"restartPolicy": "Never", "containers": [MAIN], **(spec or {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "template": {"spec": pod},
            **own,
        },
    }


def stateful_set(container: dict[str, Any] = PROBED, **own: Any) -> dict[str, Any]:  # noqa: ANN401 - of the set
    template = {"metadata": {"labels": {"app": "s"}}, "spec": {"containers": [container]}}
    spec = {"serviceName": "s", "replicas": 2, "template": template, **own}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec}


def mpijob(worker: dict[str, Any] | None = None, /, **own: Any) -> dict[str, Any]:  # noqa: ANN401 - of the MPIJob
    launcher = {"restartPolicy": "Never", "template": {"spec": {"containers": [MAIN]}}}
    workers = {"replicas": 2, "template": {"spec": {"containers": [PROBED]}}, **(worker or {})}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "m"},
        "spec": {"mpiReplicaSpecs": {"Launcher": launcher, "Worker": workers}, **own},
    }


def test_init_containers_run_one_after_the_other_and_then_the_main_ones(scene: Scene) -> None:
    init = [{**MAIN, "name": "one"}, {**MAIN, "name": "two"}]
    scene.begin(job({"initContainers": init, "containers": [MAIN, {**MAIN, "name": "other"}]}, count=1))
    scene.pass_for(1)
    assert scene.runtime.started == ["j-0/one/1"]
    scene.runtime.codes["j-0/one/1"] = 0
    scene.pass_for(1)
    assert scene.runtime.started == ["j-0/one/1", "j-0/two/1"]
    scene.runtime.codes["j-0/two/1"] = 0
    scene.pass_for(1)
    assert scene.runtime.started[2:] == ["j-0/main/1", "j-0/other/1"]
    scene.runtime.codes |= {"j-0/main/1": 0, "j-0/other/1": 0}
    scene.pass_until(lambda: scene.state is State.DONE)
    assert scene.slot("j-0").phase is Phase.SUCCEEDED


def test_a_failed_init_container_fails_the_pod_where_nothing_is_restarted(scene: Scene) -> None:
    scene.begin(job({"initContainers": [{**MAIN, "name": "one"}]}, backoffLimit=0))
    scene.runtime.codes["j-0/one/1"] = 3
    scene.pass_until(lambda: scene.state is State.FAILED)
    fate = scene.slot("j-0").fate
    assert fate is not None
    assert fate.reason == "init container one ended with 3"
    assert scene.conductor.courses[0].reason == (
        "BackoffLimitExceeded: 1 failed, 0 may; j-0: init container one ended with 3"
    )
    assert scene.slot("j-1").phase is Phase.STOPPED
    assert ("j-1/one/1", "SIGTERM") in scene.runtime.signals


def test_a_job_makes_failed_pods_anew_as_often_as_its_limit_says(scene: Scene) -> None:
    scene.begin(job(count=1, backoffLimit=1))
    scene.runtime.codes["j-0/main/1"] = 1
    scene.pass_until(lambda: len(scene.runtime.opened) == 2)
    assert scene.now >= 1
    scene.runtime.codes["j-0/main/2"] = 0
    scene.pass_until(lambda: scene.state is State.DONE)
    assert len(scene.slot("j-0").fates) == 2


def test_restarts_in_place_count_against_the_limit_too(scene: Scene) -> None:
    scene.begin(job({"restartPolicy": "OnFailure"}, count=1, backoffLimit=1))
    scene.runtime.codes |= {f"j-0/main/{start}": 1 for start in range(1, 9)}
    scene.pass_until(lambda: scene.state is State.FAILED)
    assert scene.runtime.opened == ["j-0"]
    assert len(scene.runtime.started) == 3


def test_a_limit_per_index_is_each_pods_own(scene: Scene) -> None:
    scene.begin(job(backoffLimitPerIndex=1))
    scene.runtime.codes |= {"j-0/main/1": 1, "j-1/main/1": 1, "j-0/main/2": 0, "j-1/main/2": 0}
    scene.pass_until(lambda: scene.state is State.DONE)


def test_a_job_that_takes_longer_than_its_deadline_fails(scene: Scene) -> None:
    scene.begin(job(activeDeadlineSeconds=5))
    assert 5 <= scene.pass_until(lambda: scene.state is State.FAILED) < 7
    assert "DeadlineExceeded" in scene.conductor.courses[0].reason


def test_a_job_runs_no_more_pods_beside_each_other_than_its_parallelism(scene: Scene) -> None:
    scene.begin(job(count=3, parallelism=2))
    scene.pass_for(1)
    assert scene.runtime.opened == ["j-0", "j-1"]
    scene.runtime.codes["j-0/main/1"] = 0
    scene.pass_for(1)
    assert scene.runtime.opened == ["j-0", "j-1", "j-2"]


def test_a_container_that_the_kubelet_would_not_make_fails_its_pod_with_the_reason(scene: Scene) -> None:
    scene.runtime.unmade.add("j-0/main")
    scene.begin(job(count=1, backoffLimit=0))
    scene.pass_until(lambda: scene.state is State.FAILED)
    fate = scene.slot("j-0").fate
    assert fate is not None
    assert fate.reason == 'CreateContainerConfigError: secret "keys" not found'


def test_a_container_that_cannot_be_started_has_ended_with_128(scene: Scene) -> None:
    scene.runtime.broken.add("j-0/main")
    scene.begin(job(count=1, backoffLimit=0))
    scene.pass_until(lambda: scene.state is State.FAILED)
    fate = scene.slot("j-0").fate
    assert fate is not None
    assert "main ended with 128" in fate.reason
    assert "no such file" in fate.reason


def test_a_sidecar_starts_before_what_follows_it_and_ends_after_it(scene: Scene) -> None:
    sidecar = {**MAIN, "name": "side", "restartPolicy": "Always"}
    scene.begin(job({"initContainers": [sidecar]}, count=1))
    scene.pass_until(lambda: len(scene.runtime.started) == 2)
    assert scene.runtime.started == ["j-0/side/1", "j-0/main/1"]
    scene.runtime.codes["j-0/main/1"] = 0
    scene.pass_until(lambda: scene.state is State.DONE)
    assert scene.runtime.signals == [("j-0/side/1", "SIGTERM")]


def test_a_launcher_waits_for_workers_that_are_ready(scene: Scene) -> None:
    scene.runtime.unready.add("m-worker-1/main")
    scene.begin(mpijob(launcherCreationPolicy="WaitForWorkersReady"))
    scene.pass_for(5)
    assert scene.runtime.opened == ["m-worker-0", "m-worker-1"]
    scene.runtime.unready.clear()
    scene.pass_until(lambda: "m-launcher" in scene.runtime.opened)
    scene.runtime.codes["m-launcher/main/1"] = 0
    scene.pass_until(lambda: scene.state is State.DONE)
    assert scene.slot("m-worker-0").phase is Phase.STOPPED
    assert ("m-worker-0/main/1", "SIGTERM") in scene.runtime.signals


def test_a_launcher_that_fails_too_often_fails_the_job(scene: Scene) -> None:
    scene.begin(mpijob(runPolicy={"backoffLimit": 0}))
    scene.runtime.codes["m-launcher/main/1"] = 8
    scene.pass_until(lambda: scene.state is State.FAILED)
    assert scene.slot("m-worker-1").phase is Phase.STOPPED


def test_names_appear_with_readiness_where_the_service_does_not_publish_others(scene: Scene) -> None:
    scene.begin(mpijob(launcherCreationPolicy="WaitForWorkersReady"))
    scene.pass_until(lambda: "m-launcher" in scene.runtime.opened)
    assert scene.runtime.names["m-worker-0"] == ()
    found = scene.runtime.resolved["m-launcher"]
    assert "m-worker-0.m.default.svc" in found["172.20.0.2"]
    assert "m-worker-1" in found["172.20.0.3"]
    scene.runtime.codes["m-worker-0/main/1"] = 137
    scene.pass_until(lambda: "172.20.0.2" not in scene.runtime.resolved["m-launcher"])


def test_a_stateful_set_comes_up_in_order_unless_it_is_parallel(scene: Scene) -> None:
    scene.runtime.unready.add("s-0/main")
    scene.begin(stateful_set())
    scene.pass_for(3)
    assert scene.runtime.opened == ["s-0"]
    scene.runtime.unready.clear()
    scene.pass_until(lambda: scene.state is State.DONE)
    assert scene.runtime.opened == ["s-0", "s-1"]


def test_parallel_pods_come_up_at_once_and_must_stay_for_a_moment(scene: Scene) -> None:
    scene.begin(stateful_set(podManagementPolicy="Parallel"))
    scene.conductor.tick()
    assert scene.runtime.opened == ["s-0", "s-1"]
    assert scene.pass_until(lambda: scene.state is State.DONE) >= 2


def test_a_pod_that_is_restarted_again_and_again_has_failed(scene: Scene) -> None:
    scene.runtime.codes |= {f"s-0/main/{start}": 1 for start in range(1, 20)}
    scene.begin(stateful_set(MAIN))
    scene.pass_until(lambda: scene.state is State.FAILED)
    reason = scene.conductor.courses[0].reason
    assert reason == "s-0: CrashLoopBackOff: restarted 3 times, main ended with 1"
    assert scene.now < 9


def test_a_jobset_is_made_anew_as_often_as_its_policy_says(scene: Scene) -> None:
    replicated = {"name": "n", "template": {"spec": job(count=1, backoffLimit=0)["spec"]}}
    spec = {"failurePolicy": {"maxRestarts": 1}, "replicatedJobs": [replicated]}
    scene.begin(
        {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "j"}, "spec": spec}
    )
    scene.runtime.codes |= {"j-n-0-0/main/1": 1, "j-n-0-0/main/2": 0}
    scene.pass_until(lambda: scene.state is State.DONE)
    assert scene.conductor.courses[0].restarts == 1
    assert [fate.phase for fate in scene.slot("j-n-0-0").past] == [Phase.FAILED]


def test_a_late_pod_is_made_late(scene: Scene) -> None:
    scene.begin(job(), late={"j-1": 4.0})
    scene.pass_for(3)
    assert scene.runtime.opened == ["j-0"]
    assert 4 <= scene.pass_until(lambda: len(scene.runtime.opened) == 2) < 5


def test_a_pod_is_killed_once_when_its_time_has_come(scene: Scene) -> None:
    scene.begin(job({"restartPolicy": "OnFailure"}), kills=(Kill("j-1", "start", 2.0),))
    scene.pass_until(lambda: bool(scene.runtime.signals))
    assert scene.runtime.signals == [("j-1/main/1", "SIGKILL")]
    scene.pass_until(lambda: "j-1/main/2" in scene.runtime.started)
    scene.pass_for(5)
    assert len(scene.runtime.signals) == 1


def test_a_pod_is_killed_in_phase_1_after_somebody_has_said_that_it_began(scene: Scene) -> None:
    scene.begin(job(), kills=(Kill("j-1", "phase1", 1.0),))
    scene.pass_for(3)
    assert not scene.runtime.signals
    scene.runtime.logs["j-0/main/1"] = "azcp-launch: x\n[list] 3 files, 4 bytes T=0.1s\n"
    scene.pass_until(lambda: bool(scene.runtime.signals))
    assert scene.now >= 4


def test_a_rehearsal_until_the_data_is_there_ends_when_the_leader_says_so(scene: Scene) -> None:
    words = ["/opt/azcp/bin/azcp-launch", SOURCE, "/d", "--every-node", "--", "train"]
    scene.begin(job({"containers": [{**MAIN, "command": words}]}), until=Until.DISTRIBUTED)
    scene.pass_for(3)
    assert scene.state is State.RUNNING
    scene.runtime.logs["j-0/main/1"] = "[bcast] 1\n[total] T=1.00s\n"
    scene.pass_until(lambda: scene.state is State.DONE)
    assert scene.slot("j-1").phase is Phase.STOPPED


def test_a_rehearsal_until_the_data_is_there_ends_after_the_init_containers(scene: Scene) -> None:
    init = {**MAIN, "name": "get", "command": ["azcp-launch", SOURCE, "/d"]}
    scene.begin(job({"initContainers": [init]}), until=Until.DISTRIBUTED)
    scene.runtime.codes |= {"j-0/get/1": 0}
    scene.pass_for(3)
    assert scene.state is State.RUNNING
    scene.runtime.codes |= {"j-1/get/1": 0}
    scene.pass_until(lambda: scene.state is State.DONE)
    assert scene.runtime.started == ["j-0/get/1", "j-1/get/1"]


def test_what_takes_too_long_is_given_up_and_named(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azcp_kit.rehearse.conduct.TICK_S", 0.001)
    conductor = scene.begin(job(), timeout_s=0.4)
    scene.runtime.codes["j-0/main/1"] = 0

    def later() -> float:
        scene.now += 0.01
        return scene.now

    monkeypatch.setattr(conductor, "_clock", later)
    conductor.run()
    assert scene.state is State.FAILED
    assert conductor.courses[0].reason == "not done after 0 s: j-1"


def failing(runtime: FakeRuntime, stem: str, words: str, starts: int = 20) -> None:
    """Have every start of a container fail with these last words."""
    runtime.codes |= {f"{stem}/{start}": 1 for start in range(1, starts)}
    runtime.logs |= {f"{stem}/{start}": f"before\n{words}\n\n" for start in range(1, starts)}


def test_every_crash_is_told_at_once_with_its_code_and_last_line(scene: Scene) -> None:
    scene.begin(stateful_set(MAIN))
    failing(scene.runtime, "s-0/main", "no such model")
    scene.pass_until(lambda: scene.state is State.FAILED)
    told = [what for pod, what in scene.told if pod == "s-0" and "ended with 1 after" in what]
    assert len(told) == 4
    assert all(what.endswith(": no such model") for what in told)


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_workers_that_never_come_up_fail_an_mpijob_whose_launcher_still_waits(
    scene: Scene, policy: str
) -> None:
    scene.begin(mpijob({"restartPolicy": policy}, launcherCreationPolicy="WaitForWorkersReady"))
    scene.runtime.unready |= {"m-worker-0/main", "m-worker-1/main"}
    failing(scene.runtime, "m-worker-1/main", "no host key")
    scene.pass_until(lambda: scene.state is State.FAILED)
    reason = scene.conductor.courses[0].reason
    assert reason.startswith("m-worker-1: ")
    assert reason.endswith("main ended with 1: no host key")
    assert ("CrashLoopBackOff" in reason) is (policy == "OnFailure")
    assert scene.now < 9
    assert scene.slot("m-launcher").fate is None


def test_a_worker_without_a_probe_that_has_ended_for_good_is_not_waited_for(scene: Scene) -> None:
    scene.begin(mpijob({"template": {"spec": {"containers": [MAIN]}}}))
    scene.pass_for(2)
    failing(scene.runtime, "m-worker-1/main", "no port")
    scene.pass_until(lambda: scene.state is State.FAILED)
    assert scene.conductor.courses[0].reason == "m-worker-1: main ended with 1: no port"


def test_a_worker_that_comes_back_after_a_crash_is_no_failure(scene: Scene) -> None:
    scene.begin(mpijob({"restartPolicy": "OnFailure"}))
    failing(scene.runtime, "m-worker-1/main", "lost", starts=4)
    scene.pass_for(20)
    assert scene.state is State.RUNNING
    scene.runtime.codes["m-launcher/main/1"] = 0
    scene.pass_until(lambda: scene.state is State.DONE)


def test_a_crash_after_its_probe_succeeded_begins_the_count_anew(scene: Scene) -> None:
    scene.begin(mpijob({"restartPolicy": "OnFailure"}))
    failing(scene.runtime, "m-worker-1/main", "lost", starts=3)
    scene.pass_until(lambda: "m-worker-1/main/3" in scene.runtime.started)
    scene.pass_for(2)
    scene.runtime.codes["m-worker-1/main/3"] = 137
    scene.pass_until(lambda: "m-worker-1/main/4" in scene.runtime.started)
    scene.pass_for(5)
    assert scene.state is State.RUNNING


def test_pods_are_not_given_up_while_another_is_still_held_back(scene: Scene) -> None:
    scene.begin(stateful_set(MAIN, podManagementPolicy="Parallel"), late={"s-1": 30.0})
    failing(scene.runtime, "s-0/main", "no peer", starts=6)
    scene.pass_for(29)
    assert scene.state is State.RUNNING


def test_a_sidecar_that_never_starts_up_fails_its_job(scene: Scene) -> None:
    probe = {"tcpSocket": {"port": 1}}
    sidecar = {**MAIN, "name": "side", "restartPolicy": "Always", "startupProbe": probe}
    scene.begin(job({"initContainers": [sidecar]}, count=1))
    scene.runtime.unready.add("j-0/side")
    failing(scene.runtime, "j-0/side", "bad flag")
    scene.pass_until(lambda: scene.state is State.FAILED)
    assert scene.conductor.courses[0].reason == (
        "j-0: CrashLoopBackOff: restarted 3 times, side ended with 1: bad flag"
    )


def test_a_sidecar_that_crashes_again_and_again_keeps_a_set_from_coming_up(scene: Scene) -> None:
    sidecar = {**MAIN, "name": "side", "restartPolicy": "Always"}
    own = stateful_set(MAIN)
    own["spec"]["template"]["spec"]["initContainers"] = [sidecar]
    scene.begin(own)
    failing(scene.runtime, "s-0/side", "bad flag")
    scene.pass_until(lambda: scene.state is State.FAILED)
    assert scene.conductor.courses[0].reason.endswith("side ended with 1: bad flag")


def test_a_launcher_is_tried_as_often_as_its_limit_says_however_it_fails(scene: Scene) -> None:
    scene.begin(mpijob(runPolicy={"backoffLimit": 5}))
    failing(scene.runtime, "m-launcher/main", "not yet", starts=6)
    scene.runtime.codes["m-launcher/main/6"] = 0
    scene.pass_until(lambda: scene.state is State.DONE)
    assert len(scene.slot("m-launcher").fates) == 6


def jobset_with_a_server(limit: int) -> dict[str, Any]:
    sets = [
        {"name": name, "template": {"spec": job(count=1, backoffLimit=limit)["spec"]}} for name in ("a", "b")
    ]
    policy = {"operator": "All", "targetReplicatedJobs": ["a"]}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "s"},
        "spec": {"successPolicy": policy, "replicatedJobs": sets},
    }


def test_a_job_that_does_not_decide_is_tried_again_within_its_own_limit(scene: Scene) -> None:
    scene.begin(jobset_with_a_server(1))
    failing(scene.runtime, "s-b-0-0/main", "not yet", starts=2)
    scene.pass_until(lambda: "s-b-0-0/main/2" in scene.runtime.started)
    scene.runtime.codes["s-a-0-0/main/1"] = 0
    scene.pass_until(lambda: scene.state is State.DONE)


def test_a_job_that_does_not_decide_fails_its_set_beyond_its_limit(scene: Scene) -> None:
    scene.begin(jobset_with_a_server(0))
    failing(scene.runtime, "s-b-0-0/main", "no model")
    scene.pass_until(lambda: scene.state is State.FAILED)
    assert scene.conductor.courses[0].reason == (
        "BackoffLimitExceeded: 1 failed, 0 may; s-b-0-0: main ended with 1: no model"
    )
