"""Secrets where everybody can read them, and identities that are missing; no message holds a value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from azcp_kit.inspect.secret_values import names_a_secret
from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.located import Located
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod
from azcp_kit.lint.settings import MPIRUN, Setting, Way, is_set
from azcp_kit.lint.setup import Setup

SECRET_IN_TEXT: Final = Rule(
    "K701-secret-in-text",
    Severity.ERROR,
    why="who may read the object, the job's record or `ps` on a node has the secret; it also lands in logs",
    fix="put it into a Secret and hand it over by secretKeyRef (AZCP_SAS, AZURE_STORAGE_KEY), or a file of"
    " mode 0600 for --sas-file; then replace the secret, as it is known now",
)
SECRET_OBJECT: Final = Rule(
    "K702-secret-object-with-value",
    Severity.WARNING,
    why="base64 is no protection: the file with the Secret is as good as the secret itself",
    fix="make it with `kubectl create secret` or an external store, and keep no value in the file",
)
NO_IDENTITY: Final = Rule(
    "K703-identity-not-named",
    Severity.WARNING,
    why="where nodes have several identities the metadata service gives the wrong one or none",
    fix="set AZURE_CLIENT_ID to the client id of the identity that has Storage Blob Data Reader"
    " (auth.identity in job.toml)",
)
NOT_HANDED_ON: Final = Rule(
    "K704-credential-not-handed-on",
    Severity.WARNING,
    why="sshd starts the ranks with a bare environment: what the launcher has in its env they do not",
    fix="add -x NAME to mpirun for it; azcp-launch hands its credentials on by itself",
)
WORKLOAD_IDENTITY: Final = Rule(
    "K705-workload-identity-incomplete",
    Severity.ERROR,
    why="the webhook adds the token only to pods with the label, and the token is that of the service"
    " account",
    fix='label the pod template azure.workload.identity/use: "true" and name the annotated'
    " serviceAccountName",
)

_LABEL: Final = "azure.workload.identity/use"
_CLIENT_ID: Final = "azure.workload.identity/client-id"
_CREDENTIALS: Final = ("AZCP_SAS", "AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_CLIENT_ID")
_ASKS_FOR_IDENTITY: Final = ("azcp-cluster", "azcp", "azcopy")
_VALUES: Final = (
    (re.compile(r"[?&;\s\"']?\bsig=(?!REPLACE|<|\$|\{)[\w%+/=-]{10,}"), "a shared access signature"),
    (re.compile(r"\bAccountKey=(?!REPLACE|<|\$|\{)[\w+/=]{10,}"), "an account key"),
    (re.compile(r"\bSharedAccessSignature=(?!REPLACE|<|\$|\{)\w{2,}"), "a shared access signature"),
    (re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"), "a private key"),
    (re.compile(r"\bBearer [A-Za-z0-9._~+/=-]{20,}"), "a bearer token"),
)  # fmt: skip
_PLACEHOLDER: Final = re.compile(
    r"(?i).*(?:REPLACE|CHANGE_?ME|YOUR|EXAMPLE|PLACEHOLDER|TODO|XXX|\.\.\.|<|\{\{|\$).*|[*x.]*", re.DOTALL
)
_NO_SECRET_NAME: Final = re.compile(
    r"(?i).*(?:FILE|PATH|_DIR|_NAME|_ID|_URI|_URL|_ENDPOINT|_HOST|_PORT|_TYPE|_MODE|_METHOD|_KIND|_VAULT.*"
    r"|TOKENI[SZ]ER.*|TOKENS)"
)
_LIKE_A_SECRET: Final = re.compile(r"(?!\d+$)\S{8,}")


def secrets_in_manifest(manifest: Manifest) -> Iterator[Finding]:
    """Values that are secrets by their form, anywhere but in a Secret."""
    for document in manifest.documents:
        kind = document.at("kind").text
        if kind == "Secret":
            yield from _secret_object(document)
            continue
        for key, value in document.scalars():
            if found := _secret_in(value.text):
                offset, what = found
                line = value.block_line + offset if value.block_line else value.line
                yield SECRET_IN_TEXT.at(line, f"{kind} holds {what} under {named(key)}")


def _secret_object(document: Located) -> Iterator[Finding]:
    for part in ("stringData", "data"):
        for key, value in document.at(part).fields.items():
            is_public = key.endswith((".pub", "publickey")) or key == "authorized_keys"
            if value.text and not is_public and not _PLACEHOLDER.fullmatch(value.text.strip()):
                yield SECRET_OBJECT.at(value.line, f"the Secret has a value for {named(key)}")
                return


def _secret_in(text: str) -> tuple[int, str] | None:
    """The line within the text, counted from 0, and what is there."""
    for pattern, what in _VALUES:
        if match := pattern.search(text):
            return text.count("\n", 0, match.start()), what
    return None


def secrets_by_name(setup: Setup) -> Iterator[Finding]:
    """A variable that is called a secret and has a value in the file."""
    for setting in setup.settings:
        if _is_secret(setting) and not _secret_in(setting.value or ""):
            yield SECRET_IN_TEXT.at(setting.line, f"{setup.title} sets {named(setting.name)} to a value")


def secrets_in_script(setup: Setup) -> Iterator[Finding]:
    """The same as for a manifest, in a batch script, once a line."""
    lines = enumerate(setup.script.text.splitlines(), 1) if not setup.is_pod else ()
    for line, text in lines:
        if found := _secret_in(text):
            yield SECRET_IN_TEXT.at(line, f"the script holds {found[1]}")


def _is_secret(setting: Setting) -> bool:
    value = setting.value or ""
    return (
        names_a_secret(setting.name)
        # The rule on --export speaks of those.
        and setting.way is not Way.EXPORT
        # A script's own variables mostly hold the name of a Secret.
        and (setting.way is Way.ENV or setting.name.isupper())
        and not setting.name.startswith("OMPI_MCA_")
        and not _NO_SECRET_NAME.fullmatch(setting.name)
        and _LIKE_A_SECRET.fullmatch(value) is not None
        and not value.startswith("/")
        and not _PLACEHOLDER.fullmatch(value)
    )


def identity(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """A download from an account with no word on who asks."""
    if _LABEL in pod.labels:
        return
    for container in pod.containers:
        first = next((c for c in container.script.commands if c.runs(*_ASKS_FOR_IDENTITY)), None)
        known = is_set(container.settings, *_CREDENTIALS) or container.node.at("envFrom")
        text = f"{container.script.text} {' '.join(setting.value or '' for setting in container.settings)}"
        if first and not known and "blob.core." in text and "sig=" not in text:
            yield NO_IDENTITY.at(first.line, f"container {named(container.name)} has no AZURE_CLIENT_ID")


def handed_on(setup: Setup) -> Iterator[Finding]:
    """Credentials in the env of a container whose mpirun does not export them."""
    env = {s.name for s in setup.settings if s.way is Way.ENV and s.name in _CREDENTIALS}
    exported = {(id(s.command), s.name) for s in setup.settings if s.way is Way.MPIRUN}
    for command in setup.script.commands:
        if command.runs(*MPIRUN) and command.runs(*_ASKS_FOR_IDENTITY):
            for name in sorted(env):
                if (id(command), name) not in exported:
                    yield NOT_HANDED_ON.at(command.line, f"mpirun does not hand {name} on to the ranks")


def workload_identity(pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """The label, the service account and its annotation belong together."""
    label = pod.labels.get(_LABEL)
    account = pod.spec.at("serviceAccountName")
    annotated = {
        a.at("metadata", "name").text
        for a in manifest.of_kind("ServiceAccount")
        if a.at("metadata", "annotations", _CLIENT_ID)
    }
    if label is not None and label.plain and label.is_true:
        yield WORKLOAD_IDENTITY.at(
            label.line, "the label's value is a boolean, which the API server refuses", fix='write "true"'
        )
    elif label is not None and label.is_true and not account:
        yield WORKLOAD_IDENTITY.at(label.line, f"{pod.title} has the label but no serviceAccountName")
    elif label is None and account.text in annotated:
        yield WORKLOAD_IDENTITY.at(account.line, f"{pod.title} has the service account but not the label")
    elif label is None and _LABEL in pod.owner.at("metadata", "labels").fields and pod.kind != "Pod":
        line = pod.owner.at("metadata", "labels", _LABEL).line
        yield WORKLOAD_IDENTITY.at(line, f"the label is on the {pod.kind}, not on its pods")


MANIFEST_RULES: Final = (secrets_in_manifest,)
POD_RULES: Final = (identity, workload_identity)
SETUP_RULES: Final = (secrets_by_name, secrets_in_script, handed_on)
