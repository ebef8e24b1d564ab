"""Classic: run a published function, ``unlearn(model, retain_loader, forget_loader)``, unchanged, model by model."""

from typing import Any, Literal

from pydantic import Field, model_validator

from unlearning_audit.methods import ModelStack, Rows, Settings

#: A user's file without ``Options`` is run by this method.
ADAPTER = True


class Options(Settings):
    """``file``: a Python file, relative to the working directory; ``function``: its unlearning function. "Class.method"
    makes an object of the class and calls its method; both can take the arguments below.

    Parameters are recognised by their names, which docs/method.md lists. ``give`` assigns them where a name is
    ambiguous; ``options`` are the function's own options, by name. ``batch_size`` is that of loaders, which are
    reshuffled in every pass by the model's seed. ``batch``: the contents of a batch, x a float tensor as the model
    reads it and y int64. The validation loader has a ``validation`` share of retain: samples that models never saw are
    not given, because attacks are scored on them. ``argv``: the command line that the code reads. ``without``: packages
    that are not needed, such as loggers, and are replaced by stand-ins. ``skip``: functions of the file that are
    replaced by nothing, such as one that evaluates.

    Before each call the generators of torch, NumPy and Python are seeded by the model's seed. The function returns the
    model, another model of the same architecture or a state dict, or nothing if it changed the model in place.
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
        """Move fields such as "options.lr", which tuning sets, into the mapping ``options``, where they replace the
        value of ``lr``. Return ``fields`` unchanged if no field has such a name, or if ``options`` is not a mapping."""
        single = {name.removeprefix("options."): value for name, value in fields.items() if name.startswith("options.")}
        values = fields.get("options", {})
        if not single or not isinstance(values, dict):
            return fields
        others = {name: value for name, value in fields.items() if not name.startswith("options.")}
        return {**others, "options": {**values, **single}}


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Call the published function for every model and store the weights that it returns.

    Raises ValueError or PluginError if the function does not exist, cannot be called or does not return weights.
    """
    from unlearning_audit.methods import _call

    _call.unlearn(stack, forget, retain, options)
