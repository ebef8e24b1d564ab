"""Options that protocols share; quick to import."""

from typing import Literal

from unlearning_audit.plugins.settings import Settings


class Candidates(Settings):
    """Only samples of ``classes`` are forgotten or held out (empty = of all classes), as many as the protocol needs or
    as there are. ``memorised``: of these the ``most`` or the ``least`` memorised, by the models of the scenario
    ``select_from``; null = chosen at random.

    Forgotten and held-out samples stay exchangeable, because chance alone divides the chosen samples.
    """

    classes: tuple[int, ...] = ()
    memorised: Literal["most", "least"] | None = None
    select_from: str | None = None
