"""Print the progress of a training to the job's log, so that a long silence is not mistaken for a halt."""

from time import monotonic

#: Seconds until the first line, and the share of the elapsed time after which the next line comes.
FIRST, SHARE = 60.0, 0.1


class Heartbeat:
    """The progress lines of one training.

    Parameters
    ----------
    purpose
        What the training is for.
    models, epochs
        The numbers of models and of epochs.
    due
        The time of the next line.
    """

    def __init__(self, purpose: str, models: int, epochs: int) -> None:
        """Start the clock. The first line is due `FIRST` seconds later."""
        self.purpose, self.models, self.epochs = purpose, models, epochs
        self.started = monotonic()
        self.due = self.started + FIRST

    def beat(self, group: list[int], epoch: int, step: int, steps: int) -> None:
        """Print how far the training of a ``group`` of models is, if a line is due: it has done the 0-based ``step`` of
        the ``steps`` of the 0-based ``epoch``. The printed numbers count from 1. A group of one model may name it twice
        (`Stacked.groups`)."""
        now = monotonic()
        if now < self.due:
            return
        passed = now - self.started
        self.due = now + max(FIRST, SHARE * passed)
        members = f"models {group[0] + 1} to {group[-1] + 1}" if len(set(group)) > 1 else f"model {group[0] + 1}"
        progress = f"epoch {epoch + 1} of {self.epochs}, step {step + 1} of {steps}"
        print(f"{self.purpose}: {members} of {self.models}, {progress}, after {passed / 60:.0f} min", flush=True)
