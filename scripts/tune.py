"""Try several settings of one method on pairs drawn for tuning, and choose the setting that is audited."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.workflow.campaign import Campaign


def tune(
    data: str,
    splits: list[str],
    trained: list[str],
    originals: list[str],
    retrained: list[str],
    chosen: str,
    trials: str,
    settings: dict[str, Any],
    place: dict[str, Any],
    base: Sequence[str] = (),
) -> dict[str, Any]:
    """Try settings of a method on models that forget, and write the setting that comes nearest to retraining to
    ``chosen``. All trials and their distances are written to ``trials``. Returns facts for the spec.

    A user's own method runs in a separate process.

    Parameters
    ----------
    splits
        One file, the memberships.
    trained
        One file, the models before unlearning.
    originals
        One file, the logits of these models.
    retrained
        One file, the logits of retrained models.
    base
        At most one file, the weights that training starts from.
    """
    # A method may change the working directory.
    chosen, trials, data = (str(Path(path).absolute()) for path in (chosen, trials, data))
    file = settings["method_options"].get("file") or place.get("method_file")

    def run() -> dict[str, Any]:
        """Run the campaign, which writes ``chosen`` and ``trials``, with a temporary folder; return facts for the
        spec."""
        with tempfile.TemporaryDirectory() as folder:
            campaign = Campaign(
                data, splits[0], trained[0], originals[0], retrained[0], settings, place, base, Path(folder)
            )
            return campaign.run(chosen, trials)

    return isolated(run, file, **place.get("terms", {}))
