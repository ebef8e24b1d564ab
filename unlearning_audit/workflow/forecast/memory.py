"""Bytes that a job with models takes of a card and of main memory: arithmetic from one measured step.

The step runs on tensors that have shapes and no numbers, so that a model of any size is measured on any machine. What
libraries of a card take for themselves cannot be measured here; `CONTEXT` and `MARGIN` allow for it.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from unlearning_audit.bank import curvature
from unlearning_audit.bank.engine import aliases, linear_layers
from unlearning_audit.plugins import registry
from unlearning_audit.workflow.forecast import arithmetic
from unlearning_audit.workflow.open_bank import COPIES, SHARE

GB = 10**9

#: Memory of the cards that are named in the forecast, in GB.
CARDS = (24, 40, 80)

#: Allowances in bytes: CUDA's context with the workspaces of its libraries; a process that has imported torch and CUDA.
CONTEXT, PROCESS = 1.5 * GB, 3.5 * GB

#: By how much memory in pieces exceeds its sum, for gaps between blocks.
MARGIN = 1.1

#: Tensors of the size of the weights that an optimiser keeps.
STATE = {"sgd": 1, "adam": 2, "adamw": 2, "rmsprop": 2}

#: Tensors of the size of the weights that private training keeps beside: summed gradients and noise. Their sum is the
#: gradient, which a step counts.
PRIVATE = 2

#: Groups of models of a job that train at once on a card, and models of a group that is stacked, at most.
LANES, WIDTH = 4, 128

#: Bytes of a number of a batch as it is read: of images a byte and what becomes of it; of tokens two whole numbers.
READ = {False: 5, True: 12}

#: Rows of the two steps that are measured.
ROWS = (32, 64)


@dataclass(frozen=True)
class Footprint:
    """Bytes of one model: its ``weights`` and statistics, what models ``share``, and of a training step what it takes
    beside them, gradients included: ``fixed`` and for each ``row``. ``divisible``: samples do not enter each other;
    ``stacked``: all models step together on a card. ``largest``: bytes of the largest tensor of the weights."""

    weights: int
    share: int
    fixed: int
    row: int
    divisible: bool
    stacked: bool = False
    largest: int = 0


@dataclass(frozen=True)
class Job:
    """A job with models in numbers: how many, optimiser, ``rows`` of all batches of a step, bytes of its ``data`` and
    of the ``answers`` of all models; whether a method ``unlearns``, whether updates are ``recorded``, whether squared
    gradients are taken of single samples (``curved``), and whether training is ``private``."""

    models: int
    optimiser: str
    rows: int
    data: int
    answers: int
    unlearns: bool = False
    recorded: bool = False
    curved: bool = False
    private: bool = False


@dataclass(frozen=True)
class Fit:
    """How a job fits a card: models that lie there at once, how many of them train at once, pieces of a batch, and
    the bytes that this takes."""

    portion: int
    lanes: int
    pieces: int
    bytes: float


def job(node: dict, facts: dict, sizes: dict) -> Job:
    """A node with models (of `forecast.nodes`) in numbers; ``facts`` of its data and ``sizes`` of its memberships as
    `Draws` gives them. A method counts as one that steps on two batches of its largest size at once; whether it takes
    squared gradients of single samples, its file says with ``SQUARED_GRADIENTS = True``."""
    settings, method = node["settings"], node["settings"].get("method")
    recipe, options = settings["recipe"], settings.get("method_options", {})
    answers = sizes["models"] * facts["samples"] * facts["classes"] * 4
    if "signal" in settings:
        return Job(sizes["models"], "sgd", 0, facts["bytes"], answers, curved=settings["signal"] == "squared_norms")
    if method in (None, "retrain"):
        models = sizes["originals" if method is None else "models"]
        rows, recorded = recipe["batch_size"], recipe["record_updates"] and method is None
        if private(node):  # which draws more now and then, and fills batches up to an eighth
            rows += -(-rows // 8)
        return Job(models, recipe["optimiser"], rows, facts["bytes"], answers, recorded=recorded, private=private(node))
    batches, optimisers = zip(*_steps(options), strict=True)
    heaviest = max(optimisers, key=lambda name: STATE[name])
    squared = registry.constant("methods", method, node["place"].get("method_file"), "SQUARED_GRADIENTS") is True
    return Job(sizes["models"], heaviest, 2 * max(batches), facts["bytes"], answers, unlearns=True, curved=squared)


def _steps(options: dict) -> Iterator[tuple[int, str]]:
    """Batch size and optimiser of every kind of step that a method's options name, 0 where there is none."""
    sizes = [value or 0 for name, value in options.items() if name.endswith("batch_size")]
    yield max(sizes, default=0), options.get("optimiser", "sgd")
    for part in options.values():
        if isinstance(part, dict):
            yield from _steps(part)


def private(node: dict) -> bool:
    """Whether a job with models trains within a budget of privacy."""
    settings = node["settings"]
    trains = settings.get("method") in (None, "retrain") and "signal" not in settings
    return trains and settings["recipe"]["dp"] is not None


def tensors(values: object) -> list[Tensor]:
    """All tensors in the arguments or results of an operation, nested in sequences and mappings (torch's own function,
    which knows other containers, takes longer than most operations)."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, (tuple, list)):
        return []
    return [tensor for value in values for tensor in tensors(value)]


class Peak(TorchDispatchMode):
    """Bytes of all tensors that operations within make, at most at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.peak, self._bound, self._living = 0, 0, {}

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        result = operation(*arguments, **(keywords or {}))
        input_keys = {self._key(tensor) for tensor in tensors((arguments, keywords))}
        for tensor in tensors(result):
            if self._key(tensor) not in input_keys:
                storage = tensor.untyped_storage()
                self._living[self._key(tensor)] = StorageWeakRef(storage), storage.nbytes()
                self._bound += storage.nbytes()
        if self._bound > self.peak:  # what has gone meanwhile is counted only where it may matter
            self._living = {key: entry for key, entry in self._living.items() if not entry[0].expired()}
            self._bound = sum(size for _, size in self._living.values())
            self.peak = max(self.peak, self._bound)
        return result

    @staticmethod
    def _key(tensor: Tensor) -> int:
        return tensor.untyped_storage()._cdata


def footprint(
    build: Callable[[], nn.Module], shape: tuple[int, ...], tokens: bool, precision: str, private: bool = False
) -> Footprint:
    """The bytes of a model that ``build`` gives, for samples of that ``shape``; of ``private`` training as Opacus does
    it."""
    model = build().train()
    parameters = dict(model.named_parameters())
    again = aliases(model)
    weights = sum(value.nbytes for name, value in (parameters | model.state_dict()).items() if name not in again)
    shared = sum(value.nbytes for value in getattr(model, "shared", ()))
    normed = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())
    stacked, peaks = linear_layers(model) is not None, []
    with FakeTensorMode(allow_non_fake_inputs=True):
        without_numbers(model)
        step = _private(model) if private else _ordinary(model, precision)
        for rows in ROWS:  # so many that a step takes more of them than of the weights
            x = torch.empty((rows, *shape), dtype=torch.int32 if tokens else torch.float32)
            with Peak() as within:
                step(x)
            peaks.append(within.peak)
            model.zero_grad()
    row = (peaks[1] - peaks[0]) // (ROWS[1] - ROWS[0])
    fixed, read = max(peaks[0] - ROWS[0] * row, 0), READ[tokens] * math.prod(shape)
    largest = max(value.nbytes for value in parameters.values())
    return Footprint(weights, shared, fixed, row + read, not normed, stacked and not private, largest)


def without_numbers(model: nn.Module) -> None:
    """Put tensors that are made now, within a mode without numbers, in place of the weights and statistics."""
    substitutes: dict[int, Tensor] = {}
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, value in tensors.items():
                if value is not None and id(value) not in substitutes:
                    empty = torch.empty(value.shape, dtype=value.dtype)
                    substitutes[id(value)] = (
                        nn.Parameter(empty, value.requires_grad) if isinstance(value, nn.Parameter) else empty
                    )
                if value is not None:
                    tensors[name] = substitutes[id(value)]


def _ordinary(model: nn.Module, precision: str) -> Callable[[Tensor], None]:
    """Both passes of a step of training."""

    def step(x: Tensor) -> None:
        with torch.autocast("cpu", torch.bfloat16, precision != "float32", cache_enabled=False):
            model(x).float().sum().backward()

    return step


def _private(model: nn.Module) -> Callable[[Tensor], None]:
    """Those of private training."""
    from unlearning_audit.bank.private import passes  # imports Opacus

    both = passes(model)
    return lambda x: both(x, torch.zeros(len(x), dtype=torch.int64))


def on_card(model: Footprint, job: Job, portion: int, lanes: int, pieces: int, again: bool = True) -> float:
    """Bytes of a card: context, data, the module, weights at rest with what a method keeps of them, and each lane with
    its copy of them, their gradients, the optimiser's state, masks and teachers, and a step. Where steps are recorded,
    what a recording takes stays, and the first step of another size, if one comes ``again``, takes its own beside it.
    Logits and mean gradients make do with what is left."""
    rest = COPIES if job.unlearns else 2 if job.recorded else 1
    extra_copies = STATE[job.optimiser] + (2 if job.unlearns else 1 if job.recorded else PRIVATE if job.private else 0)
    step = model.fixed + model.row * -(-job.rows // pieces)
    if job.curved:
        # Weights and gradients for each sample, and those of one layer once more on the way into its kernel and out.
        rows = curvature.rows_at_once(model.weights, "cuda")
        step = max(step, rows * (2 * (model.weights + model.largest) + model.row))
    group = min(portion, WIDTH) if model.stacked else 1
    steady = job.data + model.share + model.weights * (1 + rest * portion)
    if again and not (job.private or job.curved):
        steady += group * step
    return CONTEXT + MARGIN * (steady + lanes * group * (model.weights * (1 + extra_copies) + step))


def fitted(model: Footprint, job: Job, card: float) -> Fit | None:
    """How the job fits a card of so many bytes by the engine's own rules; None if it does not."""
    free = card - CONTEXT - MARGIN * (job.data + model.share + model.weights)
    portion = max(1, min(job.models, int(SHARE * free / (COPIES * model.weights))))
    pieces = 1
    while on_card(model, job, portion, 1, pieces) > card:
        if not model.divisible or job.private or pieces >= job.rows:
            return None
        pieces *= 2
    groups = 1 if job.private else min(LANES, -(-portion // WIDTH) if model.stacked else portion)
    lanes = max(k for k in range(1, groups + 1) if k == 1 or on_card(model, job, portion, k, pieces) <= card)
    return Fit(portion, lanes, pieces, on_card(model, job, portion, lanes, pieces))


def rows(nodes: list[dict], facts: dict[str, dict], sizes: dict[str, dict], models: dict[str, Footprint]) -> list[dict]:
    """What the jobs of each stage and model take at most: stage, model, models of a job, the bytes of ``host``, and for
    each of `CARDS` the job's `Fit`, or None. ``models``: footprints by `kind`; ``facts`` and ``sizes`` by node."""
    table: dict[tuple[str, str], dict] = {}
    for node in (node for node in nodes if kind(node, facts) in models):
        model = models[kind(node, facts)]
        numbers = job(node, facts[node["after"]["data"][0]], sizes[node["after"]["splits"][0]])
        fits = {card: fitted(model, numbers, card * GB) for card in CARDS}
        host = max(on_host(model, numbers, fit.portion) for fit in fits.values() if fit) if any(fits.values()) else 0.0
        entry = {"stage": node["stage"], "model": node["settings"]["model"], "models": numbers.models, "host": host}
        before = table.setdefault((node["stage"], kind(node, facts)), {**entry, "fits": fits})
        before["host"], before["models"] = max(before["host"], host), max(before["models"], numbers.models)
        for card, fit in fits.items():
            if fit is None or before["fits"][card] is None or fit.bytes > before["fits"][card].bytes:
                before["fits"][card] = fit if before["fits"][card] else None
    return list(table.values())


def kind(node: dict, facts: dict[str, dict]) -> str:
    """What the footprint of a node's models depends on, as JSON; empty for a node without models or splits."""
    if not arithmetic.modelled(node):
        return ""
    settings, about = node["settings"], facts[node["after"]["data"][0]]
    parts = [settings["model"], settings["options"], about["shape"], about["classes"], settings["recipe"]["precision"]]
    parts.append(private(node))
    return json.dumps(parts, sort_keys=True)


def on_host(model: Footprint, job: Job, portion: int) -> float:
    """Bytes of main memory beside a card: the process, data, the weights that models start from and one that is made,
    a portion where it is made and where it is written, and the answers of all models, twice where they are put
    together."""
    return PROCESS + MARGIN * (job.data + model.share + model.weights * (2 + 3 * portion) + 2 * job.answers)


def setting(host: float) -> int:
    """What a study's ``memory`` should be for jobs of so many bytes: the next thousand MB."""
    return int(-(-host // GB)) * 1000
