"""Open stacks of models, and write models and logits: steps that training and unlearning share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.evaluation.views import VIEWS
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, in_library, readable, type_of
from unlearning_audit.store.files import FailedError, Json
from unlearning_audit.training import card
from unlearning_audit.training.engine import forward_one
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack, read_models, writing_in_portions

# One thread per process: more would change the last bits of sums and slow small models down.
torch.set_num_threads(1)


#: How many copies of all models' weights may lie on a card at once, since methods keep teachers,
#: gradients, masks and noise; and the share of the free memory that all copies may take. Training steps get the rest.
COPIES, SHARE = 6, 0.5


@dataclass(frozen=True)
class ModelBatch:
    """The models of one job, which are trained or read together.

    Parameters
    ----------
    data
        The samples.
    membership
        The memberships of all models.
    settings
        The model's name and options, and the recipe.
    place
        "file": the file of the user's own model, or None.
    base
        At most one file, of the model that fresh models start from.
    """

    data: Data
    membership: Membership
    settings: Json
    place: Json
    base: Sequence[str]

    def stacks(
        self, models: str | None = None, numbers: np.ndarray | None = None, finite: bool = True
    ) -> Iterator[tuple[np.ndarray, Membership, ModelStack]]:
        """Yield the models in portions, each a stack of as many models as the card holds (`portions`); on a processor,
        one stack of all.

        With each stack come the positions of its models among ``numbers``, int64 [models], and their memberships.

        Raises FailedError for an architecture that cannot be used, ValueError for data that do not fit the model, and
        NoAnswerError if the file ``models`` says that training or unlearning failed.

        Parameters
        ----------
        models
            The file with the weights of all models of the membership; None for fresh models.
        numbers
            int64 [models]: which models of the membership are opened, by default all.
        finite
            Whether weights must be finite.
        """
        every = np.arange(len(self.membership.seed))
        numbers = every if numbers is None else numbers
        for portion in self.portions(len(numbers)):
            chosen = numbers[portion]
            stack = self.stack(self.membership[chosen], alike=models is not None)
            if models is not None:  # None takes all models of the file, without a copy
                stack.load(models, finite, models=None if np.array_equal(chosen, every) else chosen)
            yield portion, self.membership[chosen], stack

    def portions(self, count: int) -> list[np.ndarray]:
        """Divide ``count`` models into portions that are processed one at a time; return the models of each portion, as
        numbers from 0, int64 [models].

        On a processor, for whose memory the job has asked, there is one portion. On a card, a portion has as many
        models as fit if `COPIES` of their weights may take `SHARE` of the free memory, but at least one. No model
        depends on which other models are in its portion.
        """
        if card.use() == "cpu" or count < 2:
            return [np.arange(count)]
        single = self.stack(self.membership[:1])
        weight_bytes = sum(value.nbytes for value in single.stored().values())
        if single.recipe.record_updates:  # recorded updates, which training adds, are as large as the weights
            weight_bytes *= 2
        free, _ = torch.cuda.mem_get_info()
        most = max(int(SHARE * free / (COPIES * weight_bytes)), 1)
        return np.array_split(np.arange(count), -(-count // most))  # count / most, rounded up

    def stack(self, membership: Membership, alike: bool = False) -> ModelStack:
        """Return a stack (models that are computed at once) of fresh models for some memberships. The stack also gets
        the rows that hold views of each sample, such as paraphrases, and how much other models memorised each sample,
        where that is known.

        Raises FailedError for an architecture that cannot be used, also because of an error in a user's file, and
        ValueError if the data hold tokens that the models do not know, or no tokens where models read them.

        Parameters
        ----------
        alike
            Whether weights are loaded afterwards, so that all models may start with the same ones.
        """
        data, device = self.data, card.use()
        try:
            build, file = builder(data, self.settings, self.place, self.base)
            labels, recipe = membership.trained_labels(data.y), Recipe(**self.settings["recipe"])
            with guard(file):
                stack = ModelStack.create(
                    build, data.x, labels, membership.seed, recipe=recipe, device=device, alike=alike
                )
            if not in_library(file):
                check_model(stack, data.classes, file)
        except PluginError as error:
            raise FailedError("model", str(error)) from error
        check_tokens(stack, data)
        stack.memorised = membership.memorised
        tables = {kind: data.views(kind) for kind in VIEWS}
        stack.views = {kind: torch.from_numpy(table).to(device) for kind, table in tables.items() if table.shape[1]}
        return stack


def builder(data: Data, settings: Json, place: Json, base: Sequence[str] = ()) -> tuple[Callable[[], nn.Module], str]:
    """Return a function that makes a model of the study's architecture for the data, and the architecture's file.

    Models are fresh, unless ``base`` holds one file of models; then all start from the weights of the first model in
    it.

    Parameters
    ----------
    settings
        The model's name and options.
    place
        "file": the file of the user's own model, or None.
    """
    architecture = registry.load("models", settings["model"], place.get("file"))
    options = architecture.Options(**settings["options"])
    weights = {name: value[0] for name, value in read_models(base[0]).items()} if base else None

    def build() -> nn.Module:
        """Return a fresh model of the ``architecture`` for the data, which has the ``weights`` of the first model in
        ``base``, if there is one. A user's model is checked."""
        model: nn.Module = registry.call("models", architecture, "build", options, data.x.shape[1:], data.classes)
        if place.get("file"):
            model = check_built(model, data.classes, architecture.__file__)
        if weights is not None:
            model.load_state_dict(weights)
        return model

    return build, architecture.__file__


def check_built(model: object, classes: int, file: str) -> nn.Module:
    """Return the model that a user's file built, after checking that its final layer has a name.

    The name is ``model.head``. Without ``model.head``, it is the name of the only layer with ``classes`` outputs, and
    this name is then stored in the model. A model that is a single layer is put into a Sequential, where the layer has
    a name. Raises PluginError that says what is missing.
    """
    if not isinstance(model, nn.Module):
        raise PluginError(f"{readable(file)}: build must return a torch.nn.Module, it returned {type_of(model)}")
    head = getattr(model, "head", None)
    if isinstance(head, str):
        if not any(name.startswith(f"{head}.") for name, _ in model.named_parameters()):
            raise PluginError(f"{readable(file)}: model.head is {head!r}, which is not a layer of the model")
        return model
    if not list(model.children()):  # a layer by itself has no name
        model = nn.Sequential(model)
    candidates = []
    for name, layer in model.named_modules():
        outputs = getattr(layer, "out_features", getattr(layer, "out_channels", None))
        if outputs == classes and isinstance(getattr(layer, "weight", None), nn.Parameter):
            candidates.append(name)
    if len(candidates) != 1:
        subject = f"{', '.join(candidates)} each have" if candidates else "no linear or convolutional layer has"
        example = candidates[-1] if candidates else "fc"
        raise PluginError(
            f"{readable(file)}: {subject} {classes} outputs, which does not identify the last layer; set model.head to "
            f"its name, such as model.head = {example!r}"
        )
    # Not ``model.final_layer_name = …``, because torch or the user's class may define how attributes are set.
    object.__setattr__(model, "final_layer_name", candidates[0])
    return model


def check_model(stack: ModelStack, classes: int, file: str) -> None:
    """Check that a user's model maps the first two samples of its stack (or the only one) to logits, float
    [2, classes], which are not probabilities. Raises PluginError that says what is wrong."""
    rows = min(2, len(stack.x))
    kind = str(stack.scaled(stack.x[:1]).dtype).removeprefix("torch.")
    requirement = f"for {kind} {[rows, *stack.x.shape[1:]]} the model must return logits, float [{rows}, {classes}]"
    try:
        with guard(file), torch.no_grad():
            # The first model stands for all, which have the same architecture.
            answer = forward_one(stack.model.eval(), *stack.state(model=0), stack.scaled(stack.x[:rows]))
    except PluginError as error:
        raise PluginError(f"{error} ({requirement})") from None
    if not isinstance(answer, torch.Tensor) or answer.shape != (rows, classes) or not answer.is_floating_point():
        raise PluginError(f"{readable(file)}: {requirement}; it returned {type_of(answer)}")
    tolerance = 8 * torch.finfo(torch.bfloat16).eps  # for rounding in the coarsest type of numbers
    if (answer >= 0).all() and ((answer.double().sum(-1) - 1).abs() < tolerance).all():
        problem = "the model returns probabilities (at least 0, with sum 1) instead of logits"
        raise PluginError(f"{readable(file)}: {problem}; forward must return the input of softmax")


def check_tokens(stack: ModelStack, data: Data) -> None:
    """Raise ValueError if the data hold tokens that the models do not know, or if the models read tokens and the data
    hold none. Models without a ``vocabulary`` read no tokens and pass."""
    vocabulary = getattr(stack.model, "vocabulary", None)
    if vocabulary is None:
        return
    if data.x.dtype.kind != "i":
        raise ValueError(f"model: this model reads tokens, but the data are {data.x.dtype}; choose a source of texts")
    # A token that is read but not scored is stored as ~token.
    largest = int(np.where(data.x < 0, ~data.x, data.x).max())
    if largest >= vocabulary:
        raise ValueError(f"model.vocabulary: the model knows {vocabulary} tokens, but the data hold token {largest}")


def write_outputs(
    stacks: Iterable[tuple[np.ndarray, Membership, ModelStack]],
    data: Data,
    models: str | None,
    logits: str,
    copies: np.ndarray,
    first: np.ndarray | None = None,
    guarded: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Json:
    """Write the weights of models to the file ``models``, unless it is None, and their logits for every sample to the
    file ``logits``; return facts for the job's spec.

    Parameters
    ----------
    stacks
        For each portion of the models: their positions among the models of the job, int64 [models of the portion],
        their memberships, and their stack.
    copies
        int64 [models]: model i of the files is model ``copies[i]`` of the stacks.
    first
        bool [samples]: the samples whose logits lie together in the file, because scoring reads them for every model.
    guarded
        Returns the context in which models are queried.
    """
    facts: dict[str, Any] = {"models": len(copies)}
    logits_of_files = np.empty(0)  # [models of the files, samples, classes], once the first portion tells the shape
    with writing_in_portions(models, len(copies)) if models is not None else nullcontext() as write:
        for portion, _membership, stack in stacks:
            with guarded():
                logits_of_stack = stack.logits()
            # ``members``: the models of the files that are copies of a model in this portion; ``positions``: where that
            # model is in the stack, by binary search, because numbers in ``portion`` are sorted.
            members = np.flatnonzero(np.isin(copies, portion))
            positions = np.searchsorted(portion, copies[members])
            if write is not None:
                in_order = np.array_equal(positions, np.arange(len(stack)))
                write(members, stack if in_order else stack.take(positions))
            if not logits_of_files.size:
                logits_of_files = np.empty((len(copies), *logits_of_stack.shape[1:]), logits_of_stack.dtype)
            logits_of_files[members] = logits_of_stack[positions]
            facts |= {"device": stack.device, "engine": type(stack.engine).__name__.lower()}
            facts |= {"privacy": stack.privacy} if stack.privacy else {}
    Logits(logits=logits_of_files, index=np.arange(len(data.y)), y=data.y).write(logits, first)
    return facts | device_facts(facts["device"])


def device_facts(device: str) -> Json:
    """Return the device for the spec, and the card's facts (`card.describe`) if one was used."""
    return {"device": device} | ({"card": card.describe()} if device == "cuda" else {})
