"""AltPO: prefer alternate answers to the forgotten answer, by preference optimisation (Mekala et al. 2025)."""

from pydantic import Field

from unlearning_audit.methods import Batch, ModelStack, Passes, Rows, Stream, Tensor, _tokens, cross_entropy, torch
from unlearning_audit.methods._preference import over_label, over_view, views

#: What may be tuned, and within which values.
TUNE = _tokens.TUNE | {"beta": [0.05, 0.1, 0.5], "alpha": [1.0, 2.0, 5.0]}


class Options(_tokens.RetainOptions):
    """Loss: the mean over a sample's alternates of −(2/``beta``)·log σ(``beta``·(Δ(alternate) − Δ(answer))) on forget,
    + ``alpha``·R(retain), with Δ = log p − log p_original.

    A language model's log p is the sum over the scored tokens. Its alternates come from the column ``alternate`` of the
    data (question_answer); the paper samples five from the original model at temperature 1. For samples with labels,
    the alternate is the other label that is most probable under the original. Defaults as configured by OpenUnlearning:
    β .1, α 1, AdamW 1e-5, weight decay .01, 2 epochs, batches of 32. R (``retain_loss``) is the ``nll`` of the observed
    labels or tokens, or the divergence ``kl``(original ‖ model) of the predictions.
    """

    epochs: Passes = 2
    beta: float = Field(0.1, gt=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train on forget with the loss −(2/β)·log σ(β·(Δ(alternate) − Δ(own answer))), where Δ is the rise of log p since
    the original, as a mean over a sample's alternates, plus ``alpha`` times ``retain_loss``, nll or kl, on retain.

    Each step takes one batch of each set; an epoch is one pass over forget with all its alternates. Alternates of texts
    come from the data. For samples with labels, the alternate is the likeliest other label. Raises ValueError for a
    language model if a sample to forget has no alternate in the data.
    """
    if _tokens.reading(stack) is None:
        step: tuple[Stream, ...] = (over_label(stack, forget, nll_of_likeliest_other, options.beta),)
    else:
        need = "an alternate answer for each sample to forget; give the data (question_answer) a column alternate"
        alternates = views(stack, "alternate", forget, missing=f"altpo needs {need}")
        step = over_view(stack, forget, without_gaps(alternates), options.beta)
    _tokens.minimise(stack, step, retain, options)


def nll_of_likeliest_other(batch: Batch, reference: Tensor) -> Tensor:
    """Return the NLL by the batch's logits, [n, b], of another label than the sample's own: of the one that is most
    probable by the logits ``reference`` [n, b, classes]."""
    other_logits = reference.scatter(-1, batch.labels.unsqueeze(-1), -torch.inf)
    return cross_entropy(batch.logits, other_logits.argmax(-1))


def without_gaps(table: Tensor) -> Tensor:
    """Return ``table``, the rows of each sample's views int64 [samples, most], with each −1 replaced by another view of
    the same sample: views 5, 7, −1 become 5, 7, 5. A sample without views keeps −1."""
    counts = (table >= 0).sum(1, keepdim=True).clamp(min=1)  # of each sample's views, which come first in its row
    columns = torch.arange(table.shape[1], device=table.device) % counts
    return table.gather(1, columns)
