"""Bytes that a job with models takes of a card and of main memory: arithmetic from one measured step.

The step runs on tensors that have shapes and no numbers, so that a model of any size is measured on any machine. What
libraries of a card take for themselves cannot be measured here; `CONTEXT` and `MARGIN` allow for it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from unlearning_audit.bank import curvature
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

#: How many times the bytes of a row private training takes, which keeps what norms are computed from: 24 GB for 1,024
#: images in a ResNet-18 with group normalisation, as measured by the same means.
PRIVATE = 5

#: Most models of a job that train at once on a card.
LANES = 4


#: Rows of the two steps that are measured.
ROWS = (32, 64)


@dataclass(frozen=True)
class Footprint:
    """Bytes of one model: its ``weights`` and statistics, what models ``share``, and of a training step what it takes
    beside them, gradients included: ``fixed`` and for each ``row``. ``divisible``: samples do not enter each other."""

    weights: int
    share: int
    fixed: int
    row: int
    divisible: bool


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
    `Draws` gives them. A method counts as one that steps on two batches of its largest size at once."""
    settings, method = node["settings"], node["settings"].get("method")
    recipe, options = settings["recipe"], settings.get("method_options", {})
    answers = sizes["models"] * facts["samples"] * facts["classes"] * 4
    if "signal" in settings:
        return Job(sizes["models"], "sgd", 0, facts["bytes"], answers, curved=settings["signal"] == "squared_norms")
    if method in (None, "retrain"):
        models = sizes["originals" if method is None else "models"]
        private, recorded = recipe["dp"] is not None, recipe["record_updates"] and method is None
        rows = recipe["batch_size"]
        return Job(models, recipe["optimiser"], rows, facts["bytes"], answers, recorded=recorded, private=private)
    rows = 2 * max((value for name, value in options.items() if name.endswith("batch_size") and value), default=0)
    optimiser = options.get("optimiser", "sgd")
    return Job(sizes["models"], optimiser, rows, facts["bytes"], answers, unlearns=True, curved=not rows)


class Peak(TorchDispatchMode):
    """Bytes of all tensors that operations within make, at most at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.peak, self._bound, self._living = 0, 0, {}

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        result = operation(*arguments, **(keywords or {}))
        given = {self._key(tensor) for tensor in tree_leaves((arguments, keywords)) if isinstance(tensor, Tensor)}
        for tensor in (leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)):
            if self._key(tensor) not in given:
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


def footprint(build: Callable[[], nn.Module], shape: tuple[int, ...], tokens: bool, precision: str) -> Footprint:
    """The bytes of a model that ``build`` gives, for samples of that ``shape``."""
    model = build().train()
    named = dict(model.named_parameters())
    state = named | {name: value for name, value in model.state_dict().items() if name not in named}
    peaks = []
    with FakeTensorMode(allow_non_fake_inputs=True):
        tensors = {
            name: torch.empty(v.shape, dtype=v.dtype) for name, v in (named | dict(model.named_buffers())).items()
        }
        for name in named:
            tensors[name].requires_grad_()
        for rows in ROWS:  # so many that a step takes more of them than of the weights
            x = torch.empty((rows, *shape), dtype=torch.int32 if tokens else torch.float32)
            with Peak() as step, torch.autocast("cpu", torch.bfloat16, precision != "float32", cache_enabled=False):
                functional_call(model, tensors, (x,)).float().sum().backward()
            peaks.append(step.peak)
            for name in named:
                tensors[name].grad = None
    row = (peaks[1] - peaks[0]) // (ROWS[1] - ROWS[0])
    shared = sum(value.nbytes for value in getattr(model, "shared", ()))
    normed = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())
    weights = sum(value.nbytes for value in state.values())
    return Footprint(weights, shared, max(peaks[0] - ROWS[0] * row, 0), row, not normed)


def on_card(model: Footprint, job: Job, portion: int, lanes: int, pieces: int) -> float:
    """Bytes of a card: context, data, the module, weights at rest with what a method keeps of them, and each lane with
    its copy of them, their gradients, the optimiser's state, masks and teachers, and a step."""
    rest = COPIES if job.unlearns else 2 if job.recorded else 1
    kept = STATE[job.optimiser] + (2 if job.unlearns else 1 if job.recorded else 0)
    step = model.fixed + model.row * -(-job.rows // pieces) * (PRIVATE if job.private else 1)
    if job.curved:
        step = max(step, 2 * curvature.OTHER * model.weights + model.row * curvature.OTHER)
    lane = model.weights * (1 + kept) + step
    steady = job.data + model.share + model.weights * (1 + rest * portion)
    return CONTEXT + MARGIN * (steady + lanes * lane)


def fitted(model: Footprint, job: Job, card: float) -> Fit | None:
    """How the job fits a card of so many bytes by the engine's own rules; None if it does not."""
    free = card - CONTEXT - MARGIN * (job.data + model.share + model.weights)
    portion = max(1, min(job.models, int(SHARE * free / (COPIES * model.weights))))
    pieces = 1
    while on_card(model, job, portion, 1, pieces) > card:
        if not model.divisible or job.private or pieces >= job.rows:
            return None
        pieces *= 2
    lanes = max(
        k for k in range(1, min(LANES, portion) + 1) if k == 1 or on_card(model, job, portion, k, pieces) <= card
    )
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
    if node["stage"] not in ("train", "unlearn", "readings"):
        return ""
    settings, about = node["settings"], facts[node["after"]["data"][0]]
    parts = [settings["model"], settings["options"], about["shape"], about["classes"], settings["recipe"]["precision"]]
    return json.dumps(parts, sort_keys=True)


def on_host(model: Footprint, job: Job, portion: int) -> float:
    """Bytes of main memory beside a card: the process, data, the weights that models start from and one that is made,
    a portion where it is made and where it is written, and the answers of all models, twice where they are put
    together."""
    return PROCESS + MARGIN * (job.data + model.share + model.weights * (2 + 3 * portion) + 2 * job.answers)


def asked(host: float) -> int:
    """What a study's ``memory`` should be for jobs of so many bytes: the next thousand MB."""
    return int(-(-host // GB)) * 1000
