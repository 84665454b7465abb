"""How ssh is served and where its keys come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from azcp_kit.lint.containers import Container
from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.located import Located
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod

SSHD_UNPREPARED: Final = Rule(
    "K201-sshd-unprepared",
    Severity.WARNING,
    why="sshd ends at once without the directory /run/sshd or without host keys; keys baked into an image"
    " are the same for everybody who has it",
    fix="before sshd run `install -d -m 0755 /run/sshd` and `ssh-keygen -A`, or run /opt/azcp/bin/azcp-sshd,"
    " which needs neither",
)
KEY_USED_DIRECTLY: Final = Rule(
    "K202-ssh-key-used-as-mounted",
    Severity.WARNING,
    why="a Secret is mounted as 0644 by default, fsGroup makes 0640 of 0600, and ssh refuses a key that"
    " others can read; a 0600 file of root is unreadable for a user",
    fix="mount it elsewhere and copy it to a folder of the running user at start, 0700 and 0600;"
    " /opt/azcp/bin/azcp-launch and azcp-sshd do that with /etc/azcp/ssh",
)
SSHD_CAPABILITIES: Final = Rule(
    "K203-sshd-lacks-capabilities",
    Severity.ERROR,
    why="the base's sshd accepts the connection, then cannot chroot or change its user, and resets it",
    fix="add SYS_CHROOT, SETUID, SETGID and AUDIT_WRITE, or run /opt/azcp/bin/azcp-sshd on a high port,"
    " which needs none",
)

_NEEDED: Final = ("SYS_CHROOT", "SETUID", "SETGID")
_OWN_ONLY_MODES: Final = frozenset({0o400, 0o600})
_SSH_FOLDER: Final = re.compile(r".*/\.ssh(?:/.*)?")


def sshd_unprepared(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """The distribution's sshd, started without what a fresh container lacks."""
    for container in pod.containers:
        line = _sshd_line(container)
        is_default = pod.kind == "MPIJob" and pod.role == "Worker" and not container.has_own_command
        if line is None and is_default and not container.is_init:
            what = f"container {named(container.name)} has no command: the operator runs the image's sshd"
            yield SSHD_UNPREPARED.at(container.line, what, severity=Severity.NOTE)
        missing = [] if line is None or _prepares_itself(container) else _missing(container)
        if line is not None and missing:
            # What an installed package left in /run is hidden by a volume there.
            empty_run = any(mount.path in {"/run", "/var/run"} for mount in container.mounts)
            severity = Severity.ERROR if empty_run and "/run/sshd" in missing[0] else Severity.WARNING
            what = f"container {named(container.name)} starts sshd without {' and '.join(missing)}"
            yield SSHD_UNPREPARED.at(line, what, severity=severity)


def sshd_capabilities(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """The base's sshd as root with all capabilities dropped."""
    for container in pod.containers:
        line = container.dropped_capabilities.get("ALL")
        lacking = [name for name in _NEEDED if name not in container.added_capabilities]
        if _sshd_line(container) is not None and line is not None and lacking:
            yield SSHD_CAPABILITIES.at(line, f"sshd is run without {', '.join(lacking)}")


def key_used_directly(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """A Secret mounted where ssh looks by itself, or given to it by its mounted path."""
    has_group = bool(pod.spec.at("securityContext", "fsGroup"))
    for container in pod.containers:
        for mount in container.mounts:
            secret = pod.volume(mount.volume).at("secret")
            if secret and _is_used(container, mount.path):
                is_root = not pod.user_of(container)
                severity, problem = _verdict(_modes(secret), has_group=has_group, is_root=is_root)
                what = f"ssh uses Secret {named(mount.volume)} {problem}"
                yield KEY_USED_DIRECTLY.at(mount.line, what, severity=severity)


def _verdict(modes: set[int | None], *, has_group: bool, is_root: bool) -> tuple[Severity, str]:
    """How sure it is that the key is refused; ssh looks at the mode of files that belong to its own user."""
    own_only = modes <= _OWN_ONLY_MODES
    if is_root and has_group:
        return Severity.ERROR, "with fsGroup"
    if is_root and not own_only:
        return Severity.ERROR, "with a mode that lets others read it"
    if not is_root and own_only and not has_group:
        return Severity.ERROR, "that only root can read"
    return (Severity.WARNING if is_root else Severity.NOTE), "as it is mounted"


def operator_key_mode(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """The Secret of mpi-operator, whose mode it narrows for /root/.ssh alone."""
    if pod.kind != "MPIJob" or pod.runs("azcp-launch", "azcp-sshd"):
        return
    is_root = not all(pod.user_of(container) for container in pod.containers)
    severity = Severity.WARNING if is_root else Severity.NOTE
    path = pod.owner.at("spec", "sshAuthMountPath")
    if path and path.text.rstrip("/") != "/root/.ssh" and pod.role == "Worker":
        what = f"the operator's key is mounted at {named(path.text)}"
        yield KEY_USED_DIRECTLY.at(path.line, what, severity=severity)
    group = pod.spec.at("securityContext", "fsGroup")
    if group:
        what = "fsGroup widens the mode of the operator's key"
        yield KEY_USED_DIRECTLY.at(group.line, what, severity=severity)


def _prepares_itself(container: Container) -> bool:
    """Whether a file of the image's own says how sshd runs, or its ENTRYPOINT comes before it."""
    own_file = any(command.runs("sshd") and command.option("-f") for command in container.script.commands)
    return own_file or not container.node.at("command")


def _sshd_line(container: Container) -> int | None:
    commands = (command for command in container.script.commands if command.runs("sshd"))
    return next((command.line for command in commands), None)


def _missing(container: Container) -> list[str]:
    text = container.script.text
    mounted = {mount.path for mount in container.mounts}
    has_folder = re.search(r"(?:mkdir|install)\b[^\n;&]{0,200}/sshd", text) or "/run/sshd" in mounted
    has_keys = re.search(r"ssh-keygen|dpkg-reconfigure|HostKey", text) or any(
        path.startswith("/etc/ssh") for path in mounted
    )
    missing = [] if has_folder else ["the directory /run/sshd"]
    return missing if has_keys else [*missing, "host keys"]


def _is_used(container: Container, path: str) -> bool:
    at_home = _SSH_FOLDER.fullmatch(path) is not None
    given = re.search(
        rf"(?:\s-i\s*|IdentityFile[ =]|-oIdentityFile=){re.escape(path)}\b", container.script.text
    )
    return at_home or given is not None


def _modes(secret: Located) -> set[int | None]:
    modes = {item.at("mode").number for item in secret.at("items").items if item.at("mode")}
    return modes or {secret.at("defaultMode").number}


POD_RULES: Final = (sshd_unprepared, sshd_capabilities, key_used_directly, operator_key_mode)
