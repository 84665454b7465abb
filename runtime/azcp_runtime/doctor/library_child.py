"""Run as a process of its own: what the RDMA libraries find on this node, as one line of JSON.

They run the code of drivers. Where it crashes, it ends this process and not the doctor. Needs the
standard library alone, so that it can be started by its path.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Final

_FEATURES_FIELD: Final = 1 << 0
"""UCP_PARAM_FIELD_FEATURES; ucp_params_t and ucp_worker_params_t begin with the mask of what is set."""

_FEATURE_TAG: Final = 1 << 0
_PARAMETERS_WORDS: Final = 64
"""Room for either structure of any version."""

Answer = dict[str, str | list[str]]


def ask_ucx(library: str) -> Answer:
    """The transports that UCX would choose from, and whether it can open them.

    ucp_context_print_info is what Open MPI's own pml/ucx reads to decide whether it is of use.
    """
    ucp = ctypes.CDLL(library)
    ucp.ucs_status_string.restype = ctypes.c_char_p
    config, context, worker = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    parameters = (ctypes.c_uint64 * _PARAMETERS_WORDS)(_FEATURES_FIELD, _FEATURE_TAG)
    nothing = (ctypes.c_uint64 * _PARAMETERS_WORDS)()
    major, minor, release = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    ucp.ucp_get_version(*map(ctypes.byref, (major, minor, release)))
    status = ucp.ucp_config_read(None, None, ctypes.byref(config))
    status = status or ucp.ucp_init_version(
        major, minor, ctypes.byref(parameters), config, ctypes.byref(context)
    )
    if status:
        return {"error": _status_text(ucp, status)}
    text = _printed(ucp, context)
    # Queues are registered only here: a limit on locked memory shows now.
    status = ucp.ucp_worker_create(context, ctypes.byref(nothing), ctypes.byref(worker))
    return {
        "version": f"{major.value}.{minor.value}.{release.value}",
        "context": text,
        "error": _status_text(ucp, status) if status else "",
    }


def ask_verbs(modules: list[str]) -> Answer:
    """The devices for which libibverbs has a provider, and from where the libraries come.

    Args:
        modules: UCX's ib and mlx5 modules, as far as there are such: loaded first, they find their
            libraries the way a run does.
    """
    errors = [error for module in modules if (error := _load(module))]
    verbs = ctypes.CDLL("libibverbs.so.1")
    verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    verbs.ibv_get_device_name.restype = ctypes.c_char_p
    verbs.ibv_get_device_name.argtypes = [ctypes.c_void_p]
    count = ctypes.c_int()
    devices = verbs.ibv_get_device_list(ctypes.byref(count))
    names = [os.fsdecode(verbs.ibv_get_device_name(devices[index])) for index in range(count.value)]
    return {"devices": names, "libraries": _mapped(), "errors": errors}


def main(arguments: list[str]) -> None:
    """Ask, and print the answer; other lines before it are the libraries' own."""
    try:
        answer = ask_ucx(arguments[1]) if arguments[0] == "ucx" else ask_verbs(arguments[1:])
    except (OSError, AttributeError) as error:  # no such library, or one without the function
        answer = {"error": str(error)}
    print(f"\n{json.dumps(answer)}", flush=True)
    # Their own clean-up has nothing to add.
    os._exit(0)


def _load(library: str) -> str:
    try:
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        return str(error)
    return ""


def _mapped() -> list[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="backslashreplace") as maps:
        files = {line.split(maxsplit=5)[-1].strip() for line in maps if "/" in line}
    return sorted(file for file in files if os.path.basename(file).startswith(("libibverbs.", "libmlx5")))


def _printed(ucp: ctypes.CDLL, context: ctypes.c_void_p) -> str:
    libc = ctypes.CDLL(None)
    libc.open_memstream.restype = ctypes.c_void_p
    buffer, size = ctypes.c_char_p(), ctypes.c_size_t()
    stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(buffer), ctypes.byref(size)))
    ucp.ucp_context_print_info(context, stream)
    libc.fclose(stream)
    return (buffer.value or b"").decode("utf-8", "backslashreplace")


def _status_text(ucp: ctypes.CDLL, status: int) -> str:
    return os.fsdecode(ucp.ucs_status_string(ctypes.c_int8(status)))


if __name__ == "__main__":
    main(sys.argv[1:])
