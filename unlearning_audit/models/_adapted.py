"""Low-rank adapters (LoRA, Hu et al. 2022): only small factors beside a model's weights are trained, unlearned and
stored."""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from transformers.pytorch_utils import Conv1D

from unlearning_audit.models._text import Adapter


class Adapted(nn.Module):
    """A model with frozen weights W whose linear layers compute with W + (``alpha``/``rank``)·B·A.

    A [rank, in] is drawn like a layer's weights and B [out, rank] starts at 0, so that every model starts as the frozen
    one. The frozen weights are not part of the state: models share their memory, and files hold A and B only.
    ``turned``: key of a layer in ``a`` and ``b`` → whether its weights are stored as [in, out]. Raises ValueError if no
    linear layer has a name that ends with one of ``targets``.
    """

    def __init__(self, model: Any, adapter: Adapter) -> None:
        super().__init__()
        self.readings, self.vocabulary, self.layers = model.readings, model.vocabulary, model.layers
        self.head = None  # no final layer can be trained alone, because all of the model's own weights are frozen
        self.scale = adapter.alpha / adapter.rank
        # Buffers outside state_dict, such as the frequencies of positions, must move to another device, too.
        tensors = model.state_dict() | dict(model.named_buffers())
        # A tuple hides the model from torch: state_dict and parameters do not contain it.
        self._frozen: tuple[nn.Module, dict[str, Tensor]] = model, {name: tensors[name].detach() for name in tensors}
        # Key of an adapted layer → its matrix A, its matrix B, and whether its weights are stored as [in, out].
        self.a, self.b, self.turned = nn.ParameterDict(), nn.ParameterDict(), {}
        for name, layer in model.trunk.named_modules():  # as peft does, without the layer that puts out tokens
            targeted = adapter.targets is None or name.endswith(adapter.targets)
            if not isinstance(layer, (nn.Linear, Conv1D)) or not targeted:
                continue
            key = f"trunk.{name}.weight".replace(".", "/")  # a ParameterDict refuses dots
            self.turned[key] = isinstance(layer, Conv1D)  # a Linear stores [out, in]
            rows, columns = layer.weight.shape[::-1] if self.turned[key] else layer.weight.shape
            self.a[key] = nn.Parameter(torch.empty(adapter.rank, columns))
            self.b[key] = nn.Parameter(torch.zeros(rows, adapter.rank))
            nn.init.kaiming_uniform_(self.a[key], a=math.sqrt(5))
        if not self.turned:
            # Without targets this needs a model that has no linear layer at all.
            ends = ", ".join(adapter.targets or ())
            raise ValueError(f"adapter.targets: no linear layer has a name that ends with {ends}")

    @property
    def shared(self) -> list[Tensor]:
        """The frozen weights, which all models have in common."""
        return list(self._frozen[1].values())  # ``_frozen``: the model, and its weights by name

    def _apply(self, change: Callable[[Tensor], Tensor], recurse: bool = True) -> "Adapted":
        """Apply ``change``, by which torch moves a tensor to another device or precision, to the trained factors and to
        the frozen weights, which torch does not find by itself."""
        super()._apply(change, recurse)  # type: ignore[no-untyped-call] # of torch
        model, frozen = self._frozen
        self._frozen = model, {name: change(tensor) for name, tensor in frozen.items()}
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Adapted":
        """Return a copy that shares the frozen weights, so that a copy takes memory for A and B only.

        ``memo``: the copies that are made already, by the identity of what was copied.
        """
        memo[id(self._frozen)] = self._frozen
        clone = type(self).__new__(type(self))
        memo[id(self)] = clone
        clone.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        return clone

    def merged(self) -> dict[str, Tensor]:
        """Return the weights with which the model computes: name in the frozen model → tensor.

        A layer with frozen weights W and the trained matrices A and B has W + (``alpha``/``rank``)·B·A.
        """
        weights = dict(self._frozen[1])  # ``_frozen``: the model, and its weights by name
        for key, turned in self.turned.items():
            change = self.scale * (self.b[key] @ self.a[key])
            name = key.replace("/", ".")
            weights[name] = weights[name] + (change.mT if turned else change)
        return weights

    def plain(self) -> nn.Module:
        """Return a model without adapters that computes the same outputs and has its own copy of the weights."""
        # To the device and precision of the frozen weights, which the first of them shows.
        model = copy.deepcopy(self._frozen[0]).to(self.shared[0])
        model.load_state_dict(self.merged(), strict=False)  # frequencies of positions are in no state_dict
        return model

    def forward(self, x: Tensor, reading: str | None = None) -> Tensor:
        """Return the output of the frozen model for ``x``, computed with the merged weights: the two logits, or the
        output ``reading``."""
        # The frozen model, whose own weights are replaced by the merged ones in this call.
        logits: Tensor = functional_call(self._frozen[0], self.merged(), (x,), {"reading": reading})
        return logits
