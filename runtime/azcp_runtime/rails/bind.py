"""Binds this process to its rail, which must be done before MPI starts: afterwards it has no effect."""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping

from azcp_runtime.isolate import ENV_TCP_EXCLUDE
from azcp_runtime.rails.choose import ENV_TCP_INCLUDE, Binding, choose, settings
from azcp_runtime.rails.facts import NodeFacts, read_facts
from azcp_runtime.rails.place import local_place
from azcp_runtime.rails.wish import RailWish, wish_of


def bind_rank(
    said: RailWish, env: MutableMapping[str, str], read: Callable[[], NodeFacts] = read_facts
) -> Binding:
    """Keep to the CPUs of this rank's rail, and tell MPI of its device in the environment.

    What stands against it is told once all ranks have met: one alone would leave the others waiting.

    Args:
        said: the command line.
        env: of this process.
        read: what the node has.

    Raises:
        UsageError: a variable is wrong.
    """
    wish, place = wish_of(said, env), local_place(env)
    if place is None:
        return Binding(0, trouble="the launcher does not say which of its ranks is which")
    binding = choose(read(), wish, place.rail, place.rails)
    if not binding.trouble:
        for name, value in settings(binding).items():
            # What the user has set for the runtime is what he wants, unless he names the devices.
            if wish.devices or name not in env:
                env[name] = value
            if name == ENV_TCP_INCLUDE:  # Open MPI refuses both, and takes a name left out for a prefix
                env.pop(ENV_TCP_EXCLUDE, None)
        if binding.cpus:
            os.sched_setaffinity(0, binding.cpus)
    return binding
