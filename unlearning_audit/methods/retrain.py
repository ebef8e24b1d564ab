"""Retrain: train from scratch on the retain set with the same recipe; the reference that methods approximate."""

from pydantic import Field

from unlearning_audit.methods import ModelStack, Rows, Settings


class Options(Settings):
    """``draw``: a number that distinguishes independent retrained populations; a control uses another number.
    ``same_start``: use the original's initial weights and seed instead of fresh ones (Becker & Liebig 2022).

    With ``same_start``, several copies of one original would all become the same model, because its seed determines
    them. They therefore use seeds of their own, and so do the models of each request of a sequence after the first.
    """

    draw: int = Field(0, ge=0)
    same_start: bool = False


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Reinitialise the models, and train them on retain only, by the recipe of the originals. With ``same_start`` they
    begin with the originals' initial weights and seeds. Without it, they begin with new weights and seeds, which depend
    on ``draw``."""
    stack.reset(purpose=None if options.same_start else f"retrain/{options.draw}")
    stack.train(retain)
