"""The kinds that lint judges, and the keys that stand in the places it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from azcp_kit.lint.located import Located

_ARGO: Final = ("argoproj.io/v1alpha1",)

API_VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "ClusterWorkflowTemplate": _ARGO,
    "ConfigMap": ("v1",),
    "CronJob": ("batch/v1",),
    "CronWorkflow": _ARGO,
    "DaemonSet": ("apps/v1",),
    "Deployment": ("apps/v1",),
    "Job": ("batch/v1", "batch.volcano.sh/v1alpha1"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2",),
    "List": ("v1",),
    "MPIJob": ("kubeflow.org/v2beta1", "kubeflow.org/v1"),
    "Namespace": ("v1",),
    "Pod": ("v1",),
    "ReplicaSet": ("apps/v1",),
    "Secret": ("v1",),
    "Service": ("v1",),
    "ServiceAccount": ("v1",),
    "StatefulSet": ("apps/v1",),
    "Workflow": _ARGO,
    "WorkflowTemplate": _ARGO,
}
"""The kinds, each with the versions that clusters serve."""


def is_known(document: Located) -> bool:
    """Whether it is of a kind and a version that lint judges."""
    return document.at("apiVersion").text in API_VERSIONS.get(document.at("kind").text, ())


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


OBJECT: Final = _keys("apiVersion kind metadata spec status")
TEMPLATE: Final = _keys("apiVersion kind metadata spec")
JOB_SPEC: Final = _keys(
    "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy"
    " manualSelector maxFailedIndexes parallelism podFailurePolicy podReplacementPolicy selector"
    " successPolicy suspend template ttlSecondsAfterFinished"
)
OWNER_SPECS: Final[Mapping[str, frozenset[str]]] = {
    "CronJob": _keys(
        "concurrencyPolicy failedJobsHistoryLimit jobTemplate schedule startingDeadlineSeconds"
        " successfulJobsHistoryLimit suspend timeZone"
    ),
    "DaemonSet": _keys("minReadySeconds revisionHistoryLimit selector template updateStrategy"),
    "Deployment": _keys(
        "minReadySeconds paused progressDeadlineSeconds replicas revisionHistoryLimit selector strategy"
        " template"
    ),
    "Job": JOB_SPEC,
    "JobSet": _keys(
        "coordinator failurePolicy managedBy network replicatedJobs startupPolicy successPolicy suspend"
        " ttlSecondsAfterFinished volumeClaimPolicies"
    ),
    "MPIJob": _keys(
        "activeDeadlineSeconds backoffLimit cleanPodPolicy launcherCreationPolicy mainContainer"
        " mpiImplementation mpiReplicaSpecs runLauncherAsWorker runPolicy slotsPerWorker sshAuthMountPath"
        " ttlSecondsAfterFinished"
    ),
    "ReplicaSet": _keys("minReadySeconds replicas selector template"),
    "StatefulSet": _keys(
        "minReadySeconds ordinals persistentVolumeClaimRetentionPolicy podManagementPolicy replicas"
        " revisionHistoryLimit selector serviceName template updateStrategy volumeClaimTemplates"
    ),
    "VolcanoJob": _keys(
        "maxRetry minAvailable minSuccess networkTopology plugins policies priorityClassName queue"
        " runningEstimate schedulerName tasks ttlSecondsAfterFinished volumes"
    ),
}
RUN_POLICY: Final = _keys(
    "activeDeadlineSeconds backoffLimit cleanPodPolicy managedBy schedulingPolicy suspend"
    " ttlSecondsAfterFinished"
)
PARTS: Final[Mapping[str, frozenset[str]]] = {
    "JobSet": _keys("dependsOn groupName name replicas template"),
    "MPIJob": _keys("replicas restartPolicy template"),
    "VolcanoJob": _keys(
        "dependsOn maxRetry minAvailable name partitionPolicy policies replicas template topologyPolicy"
    ),
}
SERVICE_SPEC: Final = _keys(
    "allocateLoadBalancerNodePorts clusterIP clusterIPs externalIPs externalName externalTrafficPolicy"
    " healthCheckNodePort internalTrafficPolicy ipFamilies ipFamilyPolicy loadBalancerClass loadBalancerIP"
    " loadBalancerSourceRanges ports publishNotReadyAddresses selector sessionAffinity"
    " sessionAffinityConfig trafficDistribution type"
)
POD_SPEC: Final = _keys(
    "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy"
    " enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname"
    " hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy"
    " priority priorityClassName readinessGates resourceClaims resources restartPolicy runtimeClassName"
    " schedulerName schedulingGates securityContext serviceAccount serviceAccountName"
    " setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations"
    " topologySpreadConstraints volumes workloadRef"
)
CONTAINER: Final = _keys(
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe"
    " resizePolicy resources restartPolicy restartPolicyRules securityContext source startupProbe stdin"
    " stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
    # Argo's own.
    " dependencies mirrorVolumeMounts"
)
SECURITY_CONTEXT: Final = _keys(
    "allowPrivilegeEscalation appArmorProfile capabilities privileged procMount readOnlyRootFilesystem"
    " runAsGroup runAsNonRoot runAsUser seLinuxOptions seccompProfile windowsOptions"
)
RESOURCES: Final = _keys("claims limits requests")
VOLUME_MOUNT: Final = _keys("mountPath mountPropagation name readOnly recursiveReadOnly subPath subPathExpr")
ENV: Final = _keys("name value valueFrom")
HOST_PATH: Final = _keys("path type")
EMPTY_DIR: Final = _keys("medium sizeLimit")

OTHER_WORDS: Final[Mapping[str, str]] = {
    "argument": "args", "arguments": "args", "cmd": "command", "entrypoint": "command",
    "environment": "env", "mounts": "volumeMounts",
}  # fmt: skip
"""What the key is called elsewhere."""
