"""The one gate: everything that a config calls, opens or sets is checked here, after resolving, against one list.

The checked plain data is also the data that is used: resolving a reference again could give another value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtrain.config.did_you_mean import to_try
from rtrain.config.targets.allow_list import is_framework, matches
from rtrain.config.targets.builder import Builder
from rtrain.config.targets.servers import is_foreign_store, is_own_cluster
from rtrain.errors import TargetError

_SETTINGS = """
OMP_NUM_THREADS OMP_PROC_BIND OMP_PLACES OMP_SCHEDULE OMP_DYNAMIC OMP_WAIT_POLICY MKL_NUM_THREADS MKL_DYNAMIC
MKL_THREADING_LAYER OPENBLAS_NUM_THREADS NUMEXPR_NUM_THREADS NUMEXPR_MAX_THREADS KMP_AFFINITY KMP_BLOCKTIME
CUDA_VISIBLE_DEVICES CUDA_LAUNCH_BLOCKING CUDA_DEVICE_ORDER CUDA_DEVICE_MAX_CONNECTIONS CUDA_MODULE_LOADING
CUBLAS_WORKSPACE_CONFIG NVIDIA_TF32_OVERRIDE HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GLOO_SOCKET_IFNAME
TP_SOCKET_IFNAME TORCH_DISTRIBUTED_DEBUG TORCH_CPP_LOG_LEVEL TORCH_SHOW_CPP_STACKTRACES TORCHDYNAMO_DISABLE
PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF PYTORCH_ENABLE_MPS_FALLBACK TF_CPP_MIN_LOG_LEVEL TF_DETERMINISTIC_OPS
TF_FORCE_GPU_ALLOW_GROWTH TF_CUDNN_DETERMINISTIC TF_ENABLE_ONEDNN_OPTS TF_NUM_INTRAOP_THREADS TF_NUM_INTEROP_THREADS
TF_GPU_THREAD_MODE XLA_PYTHON_CLIENT_PREALLOCATE XLA_PYTHON_CLIENT_MEM_FRACTION XLA_PYTHON_CLIENT_ALLOCATOR
JAX_ENABLE_X64 JAX_DEBUG_NANS JAX_DISABLE_JIT JAX_PLATFORMS JAX_DEFAULT_MATMUL_PRECISION TOKENIZERS_PARALLELISM
HF_HUB_OFFLINE HF_DATASETS_OFFLINE HF_HUB_DISABLE_PROGRESS_BARS HF_HUB_DISABLE_TELEMETRY TRANSFORMERS_OFFLINE
TRANSFORMERS_VERBOSITY WANDB_MODE WANDB_DISABLED WANDB_SILENT WANDB_PROJECT WANDB_NAME WANDB_RUN_GROUP WANDB_JOB_TYPE
WANDB_TAGS PYTHONHASHSEED PYTHONUNBUFFERED PYTHONFAULTHANDLER
"""
SETTINGS = frozenset(_SETTINGS.split())
"""Environment variables that lead to no code, to no file and to no server."""
HYDRAS_CALLBACKS = ("hydra.experimental.callbacks.LogJobReturnCallback",)
PLUGINS = ("hydra_plugins.", "hydra._internal.core_plugins.")
"""Where a launcher or a sweeper comes from; Hydra takes registered classes only."""
_LOCAL_PLUGINS = (*(f"hydra_plugins.hydra_{name}_launcher." for name in ("submitit", "joblib")), PLUGINS[1])
"""Those that ask no server whose address is a setting of theirs."""
COMMANDS = frozenset({"setup", "python", "srun_args", "additional_parameters"})
"""Settings of launchers that shells run."""
_ROTATING = ("Rotating", "TimedRotating", "Watched")
FILE_HANDLERS = frozenset(f"logging.{kind}FileHandler" for kind in ("", *map("handlers.{}".format, _ROTATING)))
LOGGING = FILE_HANDLERS | frozenset(
    {"logging.StreamHandler", "logging.NullHandler", "logging.handlers.MemoryHandler", "logging.Formatter"}
    | {"logging.Filter", "colorlog.ColoredFormatter", "rich.logging.RichHandler", "sys.stdout", "sys.stderr"}
)
"""What of logging writes to the terminal, to a file of the run, or nowhere."""
FOLDERS = frozenset({"submitit_folder", "temp_folder"})
"""Where launchers write."""
_CALLABLES = frozenset({"()", "class", "queue", "listener"})
_FAMILIES = re.compile(
    r"(NCCL|TORCH_NCCL|RCCL)_(?!.*(PLUGIN|FILE|PATH|CONF|LIB|DIR|ADDR|COMM_ID|HOST|SERVER|NET$))[A-Z0-9_]+"
)
_PLAIN_KEY = re.compile(r"\w+(\.\w+)*")
_WORD = re.compile(r"[\w.,:;=^+\- ]*", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What one config may have called, opened and set.

    ``allow`` names modules and, for what names no module, keys of the config: ``hydra.job.env_set.PATH``.
    """

    allow: tuple[str, ...]
    root: Path
    """The project, whose modules may be named."""
    folder: Path
    """Of the run, or of the sweep: logs may be written there."""
    typed: frozenset[str] = frozenset()
    """Keys that the command line sets itself: a user may do anything."""

    @property
    def _builder(self) -> Builder:
        return Builder(self.allow)

    def check_job(self, data: Mapping[str, Any]) -> None:
        """Check a resolved job by names alone; nothing is imported.

        Raises:
            TargetError: A ``_target_`` is not allowed, or the workers' environment, or a server that is asked.
        """
        for section in ("trainer", "dataset", "datasets"):
            self._builder.check_names(data.get(section), section, [self.root])
        self._builder.check_names(data.get("run", {}).get("callbacks"), "run.callbacks", [self.root])
        self._check_servers(data)
        env = data["cluster"]["runtime_env"]
        self.check_variables(env.get("env_vars"), "cluster.runtime_env.env_vars")
        for name in env:
            if name != "env_vars" and not self._lies_in_project(name, env[name]):
                self._refuse_unless_permitted(f"cluster.runtime_env.{name}", "decides what code the workers run")

    def _check_servers(self, data: Mapping[str, Any]) -> None:
        address = data["cluster"].get("address")
        if address is not None and not is_own_cluster(str(address)):
            self._refuse_unless_permitted("cluster.address", "is a cluster that code and Ray's token would be sent to")
        for section in ("run", "dataset", "datasets"):
            for key, text in _texts(data.get(section), section):
                if is_foreign_store(text):
                    self._refuse_unless_permitted(key, "names a server that your credentials would be sent to")

    def check_callbacks(self, node: Any) -> None:
        """Check ``hydra.callbacks`` by names alone; nothing is imported."""
        Builder((*self.allow, *HYDRAS_CALLBACKS)).check_names(node, "hydra.callbacks", [self.root])

    def located(self, node: Any, where: str = "hydra.callbacks") -> Any:
        """Return ``node`` with what each ``_target_`` names in place of the name."""
        if isinstance(node, Mapping):
            keys = {key: f"{where}.{key}" for key in node}
            make = {key: self._target if key == "_target_" else self.located for key in node}
            return {key: make[key](value, keys[key]) for key, value in node.items()}
        if isinstance(node, list):
            return [self.located(value, f"{where}.{index}") for index, value in enumerate(node)]
        return node

    def _target(self, path: str, where: str) -> Any:
        own = (path.rpartition(".")[0],) if path in HYDRAS_CALLBACKS else ()
        return Builder((*self.allow, *own)).locate(path, where)

    def check_plugin(self, node: Any, where: str, sweep_dir: Path) -> None:
        """Check ``hydra.launcher`` or ``hydra.sweeper``: a plugin of Hydra's, given plain settings."""
        for key, mapping in _mappings(node, where):
            target = mapping.get("_target_")
            if target is not None and (key != where or not str(target).startswith(PLUGINS)):
                raise TargetError(f"{key}._target_", f"{target} is not one of Hydra's plugins")
            if target is not None and not str(target).startswith(_LOCAL_PLUGINS) and where not in self.typed:
                self._refuse_unless_permitted(f"{where}._target_", "may send jobs to other machines")
            for name, value in mapping.items():
                if (name in COMMANDS and value) or "\n" in str(value):
                    self._refuse_unless_permitted(f"{key}.{name}", "is run by a shell")
                elif name in FOLDERS and value is not None and not _lies_in(value, sweep_dir):
                    self._refuse_unless_permitted(f"{key}.{name}", f"is outside of {sweep_dir}")

    def check_logging(self, node: Any, where: str, *, walk: bool = False) -> None:
        """Check a section in the form of ``logging.config.dictConfig``: what it calls, and where it writes.

        Args:
            node: The section, resolved.
            where: Its key.
            walk: Import what it names, too, and check what that leads to; without, nothing is imported.
        """
        for key, mapping in _mappings(node, where):
            for name, value in mapping.items():
                if name in _CALLABLES and not isinstance(value, Mapping):
                    self._check_logging_name(value, f"{key}.{name}", walk=walk)
                elif name == ".":
                    self._refuse_unless_permitted(f"{key}.{name}", "changes any attribute")
                self._check_protocol(value, f"{key}.{name}", walk=walk)
            if {str(mapping.get(name)) for name in ("()", "class")} & FILE_HANDLERS:
                self._check_log(mapping.get("filename"), f"{key}.filename")

    def check_variables(self, variables: Any, where: str) -> None:
        """Check environment variables: a file sets settings of libraries, and nothing that leads to code."""
        for name, value in variables.items() if isinstance(variables, Mapping) else ():
            known = name in SETTINGS or _FAMILIES.fullmatch(str(name))
            if not known or not _WORD.fullmatch(str(value)):
                self._refuse_unless_permitted(f"{where}.{name}", "may decide what code runs")

    def _check_logging_name(self, value: Any, where: str, *, walk: bool) -> None:
        if value in LOGGING:
            return
        if not isinstance(value, str):
            raise TargetError(where, f"must be a dotted path, not {value!r}")
        framework = is_framework(value)
        if framework and not any(matches(value, one) for one in self.allow):
            raise TargetError(
                where, f"{value} is not allowed: it is not part of logging", "  " + to_try(f"allow=[{value}]")
            )
        self._builder.refuse_unless_allowed(value, where, [self.root])
        if walk:
            self._builder.locate(value, where)

    def _check_protocol(self, value: Any, where: str, *, walk: bool) -> None:
        if isinstance(value, list):
            for index, one in enumerate(value):
                self._check_protocol(one, f"{where}.{index}", walk=walk)
        text = str(value)
        if text.startswith("ext://"):
            self._check_logging_name(text.removeprefix("ext://"), where, walk=walk)
        elif text.startswith("cfg://"):
            raise TargetError(where, f"{text} is not supported", "  write the value itself, or ${...}")

    def _check_log(self, value: Any, where: str) -> None:
        if not _lies_in(value, self.folder) or Path(value).suffix != ".log":
            self._refuse_unless_permitted(where, f"is not a *.log file in {self.folder}")

    def _refuse_unless_permitted(self, key: str, why: str) -> None:
        if key in self.typed or any(matches(key, one) for one in self.allow):
            return
        plain = _PLAIN_KEY.fullmatch(key)
        hint = to_try(f"allow=[{key}]", f"  or type {key}=...") if plain else to_try(f"""'allow=["{key}"]'""")
        raise TargetError(key, f"{why}: a file can set it only if allow names it", f"  {hint}")

    def _lies_in_project(self, name: str, value: Any) -> bool:
        paths = {"working_dir": [value], "py_modules": value}.get(name)
        return isinstance(paths, list) and all(
            isinstance(one, str) and "://" not in one and Path(one).resolve().is_relative_to(self.root.resolve())
            for one in paths
        )


def _lies_in(value: Any, folder: Path) -> bool:
    return isinstance(value, str) and folder.resolve() in Path(value).absolute().resolve().parents


def _texts(node: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield each text at or below ``node`` with its key, that of the list for those in lists."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from _texts(value, f"{where}.{name}")
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value, where)
    elif isinstance(node, str):
        yield where, node


def _mappings(node: Any, where: str) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Yield each mapping at or below ``node`` with its key."""
    if isinstance(node, Mapping):
        yield where, node
        for key, value in node.items():
            yield from _mappings(value, f"{where}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _mappings(value, f"{where}.{index}")


def leaves(key: str, value: Any) -> Collection[str]:
    """Return the keys that an override sets: those of a mapping one by one."""
    if isinstance(value, Mapping) and value:
        return [leaf for name, one in value.items() for leaf in leaves(f"{key}.{name}", one)]
    return [key]
