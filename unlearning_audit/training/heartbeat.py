"""Print the progress of a training to the job's log, so that a long silence is not mistaken for a halt."""

from time import monotonic

#: Seconds until the first line, and the share of the elapsed time after which the next line comes.
FIRST, SHARE = 60.0, 0.1


class Heartbeat:
    """The progress lines of one training. ``purpose``: what it is for; ``models`` and ``epochs``: how many there
    are."""

    def __init__(self, purpose: str, models: int, epochs: int) -> None:
        self.purpose, self.models, self.epochs = purpose, models, epochs
        self.started = monotonic()
        self.due = self.started + FIRST

    def beat(self, group: list[int], epoch: int, step: int, steps: int) -> None:
        """Print how far a ``group`` of models is, if it is time: in the 0-based ``epoch``, and in the 0-based ``step``
        of its ``steps``. The numbers of the models count from 0."""
        now = monotonic()
        if now < self.due:
            return
        passed = now - self.started
        self.due = now + max(FIRST, SHARE * passed)
        several = f"models {group[0] + 1} to {group[-1] + 1}"
        members = several if len(group) > 1 else f"model {group[0] + 1}"
        place = f"epoch {epoch + 1} of {self.epochs}, step {step + 1} of {steps}"
        print(f"{self.purpose}: {members} of {self.models}, {place}, after {passed / 60:.0f} min", flush=True)
