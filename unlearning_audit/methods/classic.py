"""Classic: run a published function, ``unlearn(model, retain_loader, forget_loader)``, as it is, model by model."""

from typing import Any, Literal

from pydantic import Field, model_validator

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.training.lazy import Bank
from unlearning_audit.training.streams import Rows

#: A user's file without Options is a function for this method.
ADAPTER = True


class Options(Settings):
    """``file`` of Python with the ``function``, relative to the working directory; "Class.method" makes an object of
    the class and calls its method; either may take what is to be given.

    Parameters are recognised by their names: docs/method.md lists them; ``give`` says which is which where a
    name does not tell, ``options`` are the function's own, by name. ``batch_size`` of loaders, which are reshuffled in
    every pass by the model's own seed; ``batch``: what a batch holds, x being float as the model takes it and y int64.
    The validation loader has the ``validation`` share of what is retained: samples that models never saw stay hidden,
    because attacks are scored on them. ``argv``: what code finds that reads a command line. ``without``: packages that
    are not needed, in place of which the code finds nothing, such as loggers; ``skip``: functions that the file calls
    and that unlearning does without, such as one that evaluates.

    Before each call the generators of torch, NumPy and Python are seeded by the model's seed. The function returns
    the model, another one of the same architecture, a state dict, or none of these if it changed the model in place.
    """

    file: str
    function: str = "unlearn"
    batch_size: int = Field(64, ge=1)
    batch: Literal["x, y", "x, y, y"] = "x, y"
    validation: float = Field(0.1, gt=0, le=1)
    options: dict[str, Any] = Field(default_factory=dict)
    give: dict[str, str] = Field(default_factory=dict)
    argv: list[str] = Field(default_factory=list)
    without: list[str] = Field(default_factory=list)
    skip: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _single(cls, fields: Any) -> Any:
        """``options.lr`` beside ``options``, as a setting of a tuned function has it, takes the place of its ``lr``."""
        single = {name: value for name, value in fields.items() if name.startswith("options.")}
        values = fields.get("options", {})
        if not single or not isinstance(values, dict):
            return fields
        values = {**values, **{name.partition(".")[2]: value for name, value in single.items()}}
        return {**{name: value for name, value in fields.items() if name not in single}, "options": values}


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Call the function for every model and keep the weights that come out. Raises ValueError if it cannot."""
    from unlearning_audit.methods import _call

    _call.unlearn(bank, forget, retain, options)
