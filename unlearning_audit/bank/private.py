"""DP-SGD (Abadi et al. 2016) for every model of a bank; clipping, noise and accounting are Opacus' own.

Ghost clipping (Li et al. 2022) is Opacus' fastest mode for linear layers, and never holds the per-sample gradients
of all layers at once. Batches are gathered by index, which is cheaper than a DataLoader. Importing Opacus takes
seconds, so only a recipe with a privacy budget imports this file.
"""

import copy
import math
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch
from opacus.accountants import RDPAccountant
from opacus.accountants.utils import get_noise_multiplier
from opacus.grad_sample import GradSampleHooksFastGradientClipping
from opacus.optimizers import DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from opacus.validators import ModuleValidator
from torch import Tensor, nn

from unlearning_audit.bank.checkpoints import Checkpoints
from unlearning_audit.bank.heartbeat import Heartbeat
from unlearning_audit.bank.models import Models
from unlearning_audit.bank.recipe import Privacy, Recipe
from unlearning_audit.bank.streams import Rows, crop_and_flip
from unlearning_audit.randomness.keyed import generator, seed_of

#: The label of a row that is no sample, which torch's cross-entropy leaves out.
IGNORED = -100


def train(bank: Models, rows: Rows, recipe: Recipe, checkpoints: Checkpoints | None = None) -> None:
    """Train every model on its ``rows`` within the budget ``recipe.dp``, one model after the other.

    A step draws each of the k samples with probability 1/⌈k/batch_size⌉ (Poisson sampling), clips its
    gradient of the cross-entropy to ``max_grad_norm``, adds noise and divides by the expected batch. Sampling,
    augmentation and noise are keyed by the model's seed. Sets ``bank.privacy``: what the training of each
    model spent (epsilon, delta; Rényi accounting, one sample added or removed) and how (noise_multiplier,
    max_grad_norm, sample_rate, steps). Raises ValueError for a model that Opacus cannot train, such as
    one with batch normalisation, and for a budget that no noise meets. ``checkpoints`` keep models that are trained.
    """
    refuse(bank.model)
    per_epoch = steps_per_epoch(len(rows), recipe.batch_size)
    noise = noise_multiplier(recipe.dp, 1 / per_epoch, per_epoch * recipe.epochs)
    accountant = descend(bank, rows, recipe, noise, checkpoints)
    bank.privacy = {
        "epsilon": float(accountant.get_epsilon(recipe.dp.delta)),
        "delta": recipe.dp.delta,
        "noise_multiplier": noise,
        "max_grad_norm": recipe.dp.max_grad_norm,
        "sample_rate": 1 / per_epoch,
        "steps": per_epoch * recipe.epochs,
    }


def steps_per_epoch(samples: int, batch_size: int) -> int:
    """⌈k/batch_size⌉; the sampling rate is its inverse."""
    return -(-samples // batch_size)


def noise_multiplier(privacy: Privacy, sample_rate: float, steps: int) -> float:
    """Standard deviation of the noise in units of ``max_grad_norm``: spends between 99 % and 100 % of epsilon.

    Raises ValueError if no noise is enough.
    """
    try:
        with warnings.catch_warnings():  # The search starts beyond the accountant's Rényi orders.
            warnings.filterwarnings("ignore", "Optimal order is")
            return get_noise_multiplier(
                target_epsilon=privacy.epsilon, target_delta=privacy.delta, sample_rate=sample_rate, steps=steps,
                accountant="rdp", epsilon_tolerance=0.01 * privacy.epsilon,
            )  # fmt: skip
    except ValueError:
        raise ValueError(
            f"dp.epsilon: {privacy.epsilon} at delta {privacy.delta} is out of reach in {steps} steps; "
            "raise epsilon or delta, or lower epochs"
        ) from None


def refuse(model: nn.Module) -> None:
    """Raise ValueError if samples of a batch interact (batch normalisation), or Opacus cannot handle a layer."""
    if any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in model.modules()):
        raise ValueError(
            "dp: batch normalisation mixes the samples of a batch, so that no sample's gradient can be "
            "clipped on its own; set norm: group in the model's options"
        )
    probe = copy.deepcopy(model).train()
    errors = [*ModuleValidator.validate(probe), *GradSampleHooksFastGradientClipping.validate(probe)]
    if errors:
        raise ValueError(f"dp: Opacus cannot train this model ({errors[0]}); choose another model or no dp")


def descend(
    bank: Models, rows: Rows, recipe: Recipe, noise: float, checkpoints: Checkpoints | None = None
) -> RDPAccountant:
    """Train all models at noise multiplier ``noise``; returns the accountant of one, because all are equal. The last
    model is trained in any case."""
    model = copy.deepcopy(bank.model).train()  # Opacus leaves hooks on the copy only.
    heartbeat = Heartbeat("private training", len(bank), recipe.epochs)
    hooks = GradSampleHooksFastGradientClipping(model, max_grad_norm=recipe.dp.max_grad_norm)
    with warnings.catch_warnings():
        # This warning is about the first layer: gradients with respect to the data are not needed.
        warnings.filterwarnings("ignore", "Full backward hook is firing")
        for m in range(len(bank)):
            if checkpoints is not None and m < len(bank) - 1 and finished(bank, m, checkpoints):
                continue
            bank.fill(model, m)
            if m == 0:
                first_rows = rows.index[m][:2]
                x = bank.scaled(bank.x[torch.from_numpy(first_rows).to(bank.device)])
                confirm(model, hooks, x, bank.labels_of(m, first_rows))
            accountant = _train_one(bank, m, rows.index[m], recipe, noise, model, hooks, heartbeat)
            bank.insert(m, model)
            if checkpoints is not None and checkpoints.due([m]):
                weights, buffers = bank.state(m)
                checkpoints.write([m], recipe.epochs, {"weights": weights, "buffers": buffers})
    return accountant


def finished(bank: Models, m: int, checkpoints: Checkpoints) -> bool:
    """Whether a checkpoint has model ``m`` as its training left it, which the bank takes."""
    checkpoint = checkpoints.read([m])
    if checkpoint is None:
        return False
    try:
        bank.insert(m, {**checkpoint[1].get("weights", {}), **checkpoint[1].get("buffers", {})})
    except ValueError:
        return False
    print(f"private training: model {m + 1} is there already", flush=True)
    return True


def confirm(model: nn.Module, hooks: GradSampleHooksFastGradientClipping, x: Tensor, labels: Tensor) -> None:
    """Raise ValueError unless Opacus clips samples ``x`` [b, …] of ``labels`` int64 [b] by the norms that their
    gradients have, to a hundredth.

    A weight that two layers share, or that a function reads, Opacus sees in part, and a layer that is given one row
    for all samples it sees as one sample: gradients would be larger than what the noise is for. A network whose
    answers are random (dropout) is not asked.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    loss = nn.functional.cross_entropy
    with torch.random.fork_rng(devices=[]):
        hooks.disable_hooks()
        random = not torch.equal(model(x), model(x))
        single = [loss(model(row), label) for row, label in zip(x.split(1), labels.split(1), strict=True)]
        true = [torch.autograd.grad(value, parameters, allow_unused=True) for value in single]
        hooks.enable_hooks()
        if random:
            return
        norms, problem = [math.sqrt(sum(float((g**2).sum()) for g in of if g is not None)) for of in true], ""
        try:
            loss(model(x), labels).backward()
            clipped = hooks.get_norm_sample().tolist()
            if not np.allclose(clipped, norms, rtol=0.01, atol=0):
                problem = f"of a gradient with norm {norms[0]:.4g} it sees {clipped[0]:.4g}"
        except (RuntimeError, AttributeError) as error:  # of a parameter whose layer has no hook
            problem = str(error).splitlines()[0]
    model.zero_grad()
    if problem:
        raise ValueError(
            f"dp: Opacus cannot clip the gradients of this network sample by sample ({problem}), so that no budget "
            "would hold; layers do this that share weights, or read positions without an axis of samples: choose "
            "another model or no dp"
        )


def _train_one(
    bank: Models,
    m: int,
    rows: np.ndarray,
    recipe: Recipe,
    noise: float,
    model: nn.Module,
    hooks: GradSampleHooksFastGradientClipping,
    heartbeat: Heartbeat,
) -> RDPAccountant:
    """All steps of model ``m``, whose weights ``model`` holds; they change in place."""
    parameters = list(model.parameters())
    per_epoch = steps_per_epoch(len(rows), recipe.batch_size)
    optimiser = DPOptimizerFastGradientClipping(
        Steps(recipe, parameters), noise_multiplier=noise, max_grad_norm=recipe.dp.max_grad_norm,
        expected_batch_size=len(rows) // per_epoch,
        generator=torch.Generator(bank.device).manual_seed(seed_of(bank.seeds[m], "train/noise")),
    )  # fmt: skip
    accountant = RDPAccountant()
    optimiser.attach_step_hook(accountant.get_optimizer_hook_fn(1 / per_epoch))
    criterion = DPLossFastGradientClipping(hooks, optimiser, nn.CrossEntropyLoss())
    for step, (x, labels) in enumerate(batches(bank, m, rows, recipe)):
        optimiser.param_groups[0]["lr"] = recipe.rate(step // per_epoch, recipe.epochs, step % per_epoch, per_epoch)
        if len(x):
            criterion(model(x), labels).backward()
        else:  # Poisson sampling may draw no sample: the step is noise only.
            optimiser.zero_grad()
            for parameter in parameters:
                parameter.grad = torch.zeros_like(parameter)
        optimiser.step()
        heartbeat.beat([m], *divmod(step, per_epoch), per_epoch)
    return accountant


def passes(model: nn.Module) -> Callable[[Tensor, Tensor], None]:
    """Both passes of a private step of ``model``, which gets hooks, on samples and labels int64 [b]: for those that
    count what it takes."""
    optimiser = DPOptimizerFastGradientClipping(
        Steps(Recipe(), list(model.parameters())), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=1
    )
    hooks = GradSampleHooksFastGradientClipping(model, max_grad_norm=1.0)
    criterion = DPLossFastGradientClipping(hooks, optimiser, nn.CrossEntropyLoss())
    return lambda x, labels: criterion(model(x), labels).backward()


def size(count: int, batch_size: int) -> int:
    """So many rows has a batch on a card in which ``count`` samples are: the next multiple of an eighth of the
    recipe's. For each number of rows libraries choose their kernels anew, by trying them."""
    unit = -(-batch_size // 8)
    return -(-count // unit) * unit


def pads(device: str) -> bool:
    """Whether rows are added to batches there: on cards alone, where a size costs more than rows."""
    return torch.device(device).type == "cuda"


def batches(bank: Models, m: int, rows: np.ndarray, recipe: Recipe) -> Iterator[tuple[Tensor, Tensor]]:
    """All Poisson batches of model ``m``: samples [b, …] scaled and augmented, labels int64 [b]; b varies.

    On a card rows are added up to `size`, copies of the first whose labels `IGNORED` leave them without loss and
    gradient.
    """
    per_epoch = steps_per_epoch(len(rows), recipe.batch_size)
    sampler = UniformWithReplacementSampler(
        num_samples=len(rows), sample_rate=1 / per_epoch, steps=per_epoch * recipe.epochs,
        generator=torch.Generator().manual_seed(seed_of(bank.seeds[m], "train/sampling")),
    )  # fmt: skip
    shifts = generator(bank.seeds[m], "train/augment")
    index, labels = torch.from_numpy(rows).to(bank.device), bank.labels_of(m, rows)
    for batch in sampler:
        more = size(len(batch), recipe.batch_size) - len(batch) if pads(bank.device) and batch else 0
        sampled = torch.tensor(batch + batch[:1] * more, dtype=torch.int64, device=bank.device)
        x = bank.scaled(bank.x[index[sampled]])
        if recipe.augment == "crop_flip":
            jitter = shifts.integers(0, [9, 9, 2], (1, len(batch), 3), dtype=np.uint8)
            jitter = np.concatenate([jitter, np.repeat(jitter[:, :1], more, axis=1)], 1)
            x = crop_and_flip(x.unsqueeze(0), jitter).squeeze(0)
        targets = labels[sampled]
        targets[len(batch) :] = IGNORED
        yield x, targets


class Steps:
    """The recipe's optimiser with the interface that Opacus wraps: param_groups and zero_grad.

    torch.optim's own classes import torch's compiler, which takes a second or two.
    """

    def __init__(self, recipe: Recipe, parameters: list[nn.Parameter]) -> None:
        self.updates = recipe.build(parameters)
        self.param_groups = self.updates.param_groups
        self.param_groups[0]["params"] = parameters
        self.step = self.updates.step

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients, whatever ``set_to_none`` says."""
        self.updates.zero_grad()
