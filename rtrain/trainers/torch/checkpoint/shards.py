"""Sharded checkpoints: each rank writes its parts of the tensors, and any number of ranks takes them back.

torch.distributed.checkpoint does the work, in its safetensors format: one file per rank, whose header says where each
part belongs. Nothing in it is executed when it is read.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import Writer, reason_of
from rtrain.trainers.torch.checkpoint.optimizer_state import check_tensor, checked_groups
from rtrain.trainers.torch.checkpoint.state import SHARDS, TRAINING, TrainState

MODEL, OPTIMIZER = "model.", "optimizer."


def snapshot(state: TrainState, group: Any) -> Writer:
    """Copy this rank's parts of all tensors, and return what writes them; every rank calls it, and that.

    Args:
        state: What to write; the first rank writes what is the same on all.
        group: Process group of all ranks, which nothing else uses while they write.
    """
    tensors, scalars = _optimizer_state(state)
    tensors |= model_tensors(state.model)
    groups = [{key: value for key, value in one.items() if key != "params"} for one in state.optimizer.param_groups]
    rest = {"param_groups": groups, "scalars": scalars, **state.rest()}
    parts, rest = state.stager.take(({name: _part(tensor) for name, tensor in tensors.items()}, rest))
    copies = {name: _like(tensor, parts[name]) for name, tensor in tensors.items()}

    def write(folder: Path) -> None:
        _write(copies, folder / SHARDS, group)
        if dist.get_rank(group) == 0:
            torch.save(rest, folder / TRAINING)

    return write


def _part(tensor: Tensor) -> Tensor:
    """Return what this rank has of a tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _like(tensor: Tensor, part: Tensor) -> Tensor:
    """Return a tensor that is shared between ranks as another one is, and of which this rank has ``part``.

    It stays where the part is: one of a mesh of GPUs would be sent back to the GPU.
    """
    if not isinstance(tensor, DTensor):
        return part
    mesh, placements, shape, stride = tensor.device_mesh, tensor.placements, tensor.shape, tensor.stride()
    return DTensor.from_local(
        part, _mesh_on(part.device.type, mesh), placements, run_check=False, shape=shape, stride=stride
    )


def _mesh_on(device_type: str, mesh: DeviceMesh) -> DeviceMesh:
    """Return a mesh of the same ranks on another kind of device, through which nothing is exchanged."""
    if mesh.device_type == device_type:
        return mesh
    return DeviceMesh(device_type, mesh.mesh, mesh_dim_names=mesh.mesh_dim_names, _init_backend=False)


def _write(tensors: dict[str, Tensor], folder: Path, group: Any) -> None:
    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    writer.per_thread_copy_ahead = 0  # nothing has to come from a GPU any more
    try:
        state_dict_saver.save(tensors, storage_writer=writer, process_group=group)
    except CheckpointException as error:
        rank, (cause, _) = min(error.failures.items())
        raise RuntimeError(f"{reason_of(cause, folder)}, on worker {rank}") from cause


def load(state: TrainState, folder: Path, device: torch.device) -> None:
    """Take everything from ``folder``; every rank calls it.

    Raises:
        CheckpointError: Tensors are missing, or belong to another model.
    """
    wanted, there = model_tensors(state.model), _stored(folder)
    _check_names(wanted, _shapes(there), folder)
    parameters = dict(state.model.named_parameters())
    moments = {
        name: _room_for(facts, parameters[_owner(name)], device)
        for name, facts in there.items()
        if name.startswith(OPTIMIZER)
    }
    _read(wanted | moments, folder)
    rest = torch.load(folder / TRAINING, map_location="cpu", weights_only=True)
    groups = checked_groups(state.optimizer, rest["param_groups"])
    for group, taken in zip(state.optimizer.param_groups, groups, strict=True):
        group.update(taken)
    for owner, parameter in parameters.items():
        state.optimizer.state[parameter] = scalars = dict(rest["scalars"].get(owner, {}))
        for name, value in scalars.items():
            check_tensor(state.optimizer, parameter, name, value)
    for name, moment in moments.items():
        check_tensor(state.optimizer, parameters[_owner(name)], name, moment)
        state.optimizer.state[parameters[_owner(name)]][name.split(".", 2)[1]] = moment
    _place_steps(state.optimizer)
    state.take_rest(rest)


def _place_steps(optimizer: Optimizer) -> None:
    """Bring numbers of steps to the device where the optimizer counts there: if it is fused, or can be captured."""
    for group in optimizer.param_groups:
        if not (group.get("fused") or group.get("capturable")):
            continue
        for parameter in group["params"]:
            step = optimizer.state[parameter].get("step")
            if isinstance(step, Tensor):
                optimizer.state[parameter]["step"] = step.to(parameter.device, torch.float32)


def _owner(name: str) -> str:
    """Return the weight that ``optimizer.<key>.<weight>`` belongs to."""
    return name.split(".", 2)[2]


def _room_for(facts: Any, parameter: Tensor, device: torch.device) -> Tensor:
    """Return a tensor to read into: shared between ranks as its weight is, if it has the same shape."""
    dtype = facts.properties.dtype
    if tuple(facts.size) == tuple(parameter.shape):
        return torch.zeros_like(parameter, dtype=dtype, requires_grad=False)
    return torch.zeros(facts.size, dtype=dtype, device=device)


def load_weights(model: nn.Module, folder: Path, *, alone: bool = False) -> None:
    """Fill a model with the weights of a sharded checkpoint.

    Args:
        model: Sharded or not.
        folder: The checkpoint.
        alone: This process alone reads all parts; else every rank calls it.

    Raises:
        CheckpointError: Weights are missing, or belong to another model.
    """
    wanted = model_tensors(model)
    _check_names(wanted, _shapes(_stored(folder)), folder)
    _read(wanted, folder, alone=alone)


def take_parts(model: nn.Module, path: Path) -> None:
    """Fill a sharded model with its parts of the whole weights in a file; every rank calls it.

    Raises:
        CheckpointError: The file can't be read, or holds the weights of another model.
    """
    try:
        whole = load_file(str(path))
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} can't be read: {error}") from error
    wanted = model_tensors(model)
    _check_names(wanted, {MODEL + name: tensor.shape for name, tensor in whole.items()}, path)
    options = StateDictOptions(full_state_dict=True, strict=False)  # a weight with two names comes once
    set_model_state_dict(model, dict(whole), options=options)


def consolidate(folder: Path, out: Path) -> None:
    """Write the whole weights of a sharded checkpoint as one safetensors file.

    Args:
        folder: A checkpoint of ``trainer.strategy`` fsdp, tp or fsdp_tp.
        out: The file to write.

    Raises:
        CheckpointError: The checkpoint has no shards.
    """
    stored = {name: facts for name, facts in _stored(folder).items() if name.startswith(MODEL)}
    whole = {name: torch.empty(facts.size, dtype=facts.properties.dtype) for name, facts in stored.items()}
    _read(whole, folder, alone=True)
    save_file({name.removeprefix(MODEL): tensor for name, tensor in whole.items()}, str(out))


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return what of the model is stored, by name; a weight with two names comes once, buffers come as well."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            # An evaluation may leave weights whole on every rank.
            module.reshard()
    everything = model.state_dict()
    names = [name for name, _ in (*model.named_parameters(), *model.named_buffers()) if name in everything]
    return {MODEL + name: everything[name] for name in names}


def _optimizer_state(state: TrainState) -> tuple[dict[str, Tensor], dict[str, dict[str, Any]]]:
    """Return the optimizer's tensors, by ``optimizer.<key>.<weight>``, and its numbers, by weight and key."""
    model_tensors(state.model)  # the weights are sharded ones from here on, as the optimizer knows them
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, dict[str, Any]] = {}
    for name, parameter in state.model.named_parameters():
        for key, value in state.optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor) and value.ndim > 0:
                tensors[f"{OPTIMIZER}{key}.{name}"] = value
            else:
                scalars.setdefault(name, {})[key] = value
    return tensors, scalars


def _stored(folder: Path) -> dict[str, Any]:
    path = folder / SHARDS
    if not path.is_dir():
        raise CheckpointError(f"{folder} has no shards: it was written by another strategy or trainer.")
    found: dict[str, Any] = HuggingFaceStorageReader(str(path)).read_metadata().state_dict_metadata
    return found


def _shapes(stored: dict[str, Any]) -> dict[str, torch.Size]:
    return {name: facts.size for name, facts in stored.items()}


def _check_names(wanted: dict[str, Tensor], there: dict[str, torch.Size], path: Path) -> None:
    stored = {name for name in there if name.startswith(MODEL)}
    differing = sorted(stored ^ wanted.keys())
    differing += [name for name in sorted(stored & wanted.keys()) if tuple(there[name]) != tuple(wanted[name].shape)]
    if differing:
        some = ", ".join(name.removeprefix(MODEL) for name in differing[:5])
        raise CheckpointError(f"{path} does not contain the weights of this model: {some} differ.")


def _read(tensors: dict[str, Tensor], folder: Path, *, alone: bool = False) -> None:
    with _quiet():
        state_dict_loader.load(tensors, storage_reader=HuggingFaceStorageReader(str(folder / SHARDS)), no_dist=alone)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to itself that torch reads without a process group where there is none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is")
        warnings.filterwarnings("ignore", category=FutureWarning)
        yield
