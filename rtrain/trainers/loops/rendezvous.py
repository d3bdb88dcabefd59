"""Tell each Ray worker the addresses of all, for frameworks whose processes find each other by address.

Those of a ``RendezvousConfig`` are as old as the processes; ``fresh_addresses`` are new ones for each run.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import Any

from ray.train._internal.utils import get_address_and_port
from ray.train.backend import Backend, BackendConfig

from rtrain.cluster import key_value_store

VARIABLE = "RTRAIN_WORKER_ADDRESSES"


@dataclass
class RendezvousConfig(BackendConfig):
    """A backend that only spreads addresses; joining is up to the train loop."""

    @property
    def backend_cls(self) -> type[Backend]:
        """Return what Ray calls before the train loop."""
        return _Rendezvous


class _Rendezvous(Backend):
    def on_start(self, worker_group: Any, backend_config: BackendConfig) -> None:
        """Ask each worker for a free port, and tell all of them all addresses, by rank."""
        worker_group.execute(_remember, worker_group.execute(_free_address))


def worker_addresses() -> list[str]:
    """Return ``host:port`` of each worker, by rank; on a worker."""
    return os.environ[VARIABLE].split(",")


def fresh_addresses(rank: int, size: int) -> list[str]:
    """Return a free ``host:port`` of each worker, by rank; every one of them has to call it, and gets the same."""
    from ray.train.collective import barrier, broadcast_from_rank_zero

    name = broadcast_from_rank_zero(f"rtrain-addresses-{secrets.token_hex(8)}")
    key_value_store.put(f"{name}/{rank}", _free_address())
    barrier()
    found = [str(key_value_store.text(f"{name}/{one}")) for one in range(size)]
    barrier()
    key_value_store.remove(f"{name}/{rank}".encode())
    return found


def _free_address() -> str:
    host, port = get_address_and_port()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _remember(addresses: list[str]) -> None:
    os.environ[VARIABLE] = ",".join(addresses)
