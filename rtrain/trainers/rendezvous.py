"""Tell each Ray worker the addresses of all, for frameworks whose processes find each other by address."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ray.train._internal.utils import get_address_and_port
from ray.train.backend import Backend, BackendConfig

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


def _free_address() -> str:
    host, port = get_address_and_port()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _remember(addresses: list[str]) -> None:
    os.environ[VARIABLE] = ",".join(addresses)
