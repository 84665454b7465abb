"""The Docker engine; the one module that imports docker."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import docker
from azcp_runtime.contract import PreflightError, UsageError
from docker.context import ContextAPI
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.utils import parse_repository_tag
from requests.exceptions import RequestException

from azcp_kit.inspect.container_files import ContainerFiles
from azcp_kit.inspect.stored import StoredImage, read_stored
from azcp_kit.shown import shown

TIMEOUT_S: Final = 120
"""Of one answer; storage drivers without layers copy the image before they answer a create."""

PROBE_LABEL: Final = "io.azcp.probe"
_NEVER_STARTED: Final = "/azcp-probe"
_APPEARS_S: Final = 3.0
_BAD_REQUEST: Final = 400

log = logging.getLogger(__name__)


class Engine:
    """An engine that has answered."""

    def __init__(self, client: docker.DockerClient) -> None:
        self.client = client

    def image(self, reference: str, *, pull: bool = False, arch: str = "") -> StoredImage:
        """The image of that name, pulled first where it is absent and `pull` says so.

        Raises:
            UsageError: there is no such image, or no image can have that name.
            PreflightError: the engine failed, or the image cannot be pulled.
        """
        if not reference.strip() or not reference.isprintable():
            raise UsageError(f"no image can be called '{shown(reference)}'")
        with errors_told(f"cannot look up {shown(reference)}"):
            try:
                return read_stored(reference, self.client.images.get(reference).attrs)
            except ImageNotFound:
                if not pull:
                    raise _absent(reference) from None
            except APIError as error:
                if error.status_code == _BAD_REQUEST:
                    raise UsageError(f"no image can be called {shown(reference)}") from error
                raise
        self._pull(reference, arch)
        return self.image(reference)

    def steps(self, image: StoredImage) -> tuple[tuple[str, int], ...]:
        """The steps that made the image, newest first: the instruction, and the bytes of its layer."""
        with errors_told("the engine does not tell the image's history"):
            history = self.client.api.history(image.identity.id)  # type: ignore[no-untyped-call]
        return tuple((str(step.get("CreatedBy") or ""), int(step.get("Size") or 0)) for step in history)

    def tag(self, image_id: str, name: str) -> None:
        """Give an image a name.

        Raises:
            PreflightError: the engine refuses.
        """
        repository, tag = parse_repository_tag(name)
        with errors_told(f"{shown(name)} cannot be named"):
            self.client.api.tag(image_id, repository, tag or "latest")

    @contextmanager
    def probe(self, image: StoredImage) -> Iterator[ContainerFiles]:
        """The image's files, through a container that is never started and does not outlive the block."""
        api = self.client.api
        # Named beforehand: a signal between the engine's making it and its answer leaves nothing behind.
        name = f"azcp-probe-{secrets.token_hex(8)}"
        try:
            with errors_told("the image's files cannot be looked at"):
                api.create_container(
                    image.identity.id,
                    name=name,
                    # An image without CMD could not be created otherwise; it need not exist.
                    entrypoint=[_NEVER_STARTED],
                    command=[],
                    labels={PROBE_LABEL: "true"},
                    host_config=api.create_host_config(network_mode="none", tmpfs=_covered(image.volumes)),
                )
                yield ContainerFiles(
                    api, f"{api.base_url}/v{api.api_version}/containers/{name}/archive", TIMEOUT_S
                )
        finally:
            self.remove(name)

    def _pull(self, reference: str, arch: str) -> None:
        repository, tag = parse_repository_tag(reference)
        platform = f"linux/{arch}" if arch else None
        log.info("pulling %s", shown(reference))
        with errors_told(f"{shown(reference)} cannot be pulled"):
            for message in self.client.api.pull(
                repository, tag=tag or "latest", stream=True, decode=True, platform=platform
            ):
                # A pull that fails half-way ends its stream well; only the message tells.
                if "error" in message:
                    raise PreflightError(
                        f"{shown(reference)} cannot be pulled",
                        cause=shown(str(message["error"])),
                        remedy="check the name, the network and `docker login`",
                    )
                log.debug("%s %s", shown(str(message.get("id", ""))), shown(str(message.get("status", ""))))

    def remove(self, name: str) -> None:
        """End and remove a container with its volumes; nothing if there is none of that name.

        A signal may have ended our wait for a create that the engine still carries out: what is not
        there yet is looked for a moment longer.
        """
        try:
            for pause_s in (*[_APPEARS_S / 10] * 10, 0.0):
                try:
                    self.client.api.remove_container(name, v=True, force=True)
                except NotFound:
                    time.sleep(pause_s)
                else:
                    break
        except (DockerException, RequestException) as error:
            # Said and not raised: what ended the block is the reason that counts.
            log.warning("the container %s may be left behind: %s", name, shown(str(error)))


@contextmanager
def connected() -> Iterator[Engine]:
    """The engine of DOCKER_HOST, of the docker command's context, or of the default socket.

    Raises:
        PreflightError: none answers, or it may not be used.
    """
    try:
        client = _client()
    except (DockerException, RequestException) as error:
        raise _unreachable(error) from error
    with closing(client):
        yield Engine(client)


@contextmanager
def errors_told(what: str) -> Iterator[None]:
    """The engine's own failures as one line, with what it said.

    Raises:
        PreflightError: the engine refused, failed or went away.
    """
    try:
        yield
    except APIError as error:
        raise PreflightError(what, cause=shown(str(error.explanation or error))) from error
    except (DockerException, RequestException) as error:
        raise PreflightError(
            what, cause=shown(str(error)), remedy="is the Docker engine still running?"
        ) from error


def _client() -> docker.DockerClient:
    context = None if os.environ.get("DOCKER_HOST") else ContextAPI.get_current_context()
    if context is None or context.Name == "default":
        return docker.from_env(timeout=TIMEOUT_S)
    return docker.DockerClient(base_url=context.Host, tls=context.TLSConfig or False, timeout=TIMEOUT_S)


def _unreachable(error: Exception) -> PreflightError:
    cause = _system_error(error)
    if isinstance(cause, PermissionError):
        return PreflightError(
            "the Docker engine may not be used",
            cause="no permission on its socket",
            remedy="join the group docker, or run as root",
        )
    return PreflightError(
        "no Docker engine answers",
        cause=shown(str(cause or error)),
        remedy="start one, or set DOCKER_HOST to where it listens",
    )


def _system_error(error: BaseException | None) -> OSError | None:
    """What the system said at the bottom of it; requests' own errors count as such too, and say less."""
    while error is not None:
        if isinstance(error, OSError) and not isinstance(error, RequestException):
            return error
        error = error.__cause__ or error.__context__
    return None


def _absent(reference: str) -> UsageError:
    return UsageError(
        f"the engine has no image {shown(reference)}", remedy="give --pull, or run `docker pull` first"
    )


def _covered(volumes: tuple[str, ...]) -> dict[str, str]:
    """A tmpfs over each volume of the image: without it the create copies the volume's content.

    One is mounted at a start only, so the files stay to be seen. /usr/share took 20 ms instead of 2 s.
    """
    return {path: "" for path in volumes if path.strip("/")}
