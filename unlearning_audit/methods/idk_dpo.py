"""IdkDPO: prefer "I do not know" to the answer, by direct preference optimisation (Maini et al. 2024, TOFU)."""

from pydantic import Field

from unlearning_audit.methods import ModelStack, Passes, Rows, Stream, _tokens
from unlearning_audit.methods._labels import RandomLabels
from unlearning_audit.methods._preference import over_label, over_view, views

#: What may be tuned, and within which values.
TUNE = _tokens.TUNE | {"beta": [0.05, 0.1, 0.5], "alpha": [1.0, 2.0, 5.0]}


class Options(_tokens.RetainOptions):
    """Loss: −(2/``beta``)·log σ(``beta``·(Δ(refusal) − Δ(answer))) on forget, + ``alpha``·R(retain), with Δ = log p −
    log p_original.

    A language model's log p is the sum over the scored tokens. Its refusals come from the data (question_answer with
    refusals: true). For samples with labels, the refusal is another label, drawn by the model's seed. Defaults as
    configured by OpenUnlearning: β .1, α 1, AdamW 1e-5, weight decay .01, 10 epochs, batches of 32. R (``retain_loss``)
    is the ``nll`` of the observed labels or tokens, or the divergence ``kl``(original ‖ model) of the predictions.
    """

    epochs: Passes = 10
    beta: float = Field(0.1, gt=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train on forget with the loss −(2/β)·log σ(β·(Δ(refusal) − Δ(own answer))), where Δ is the rise of log p since
    the original, plus ``alpha`` times ``retain_loss``, nll or kl, on retain.

    Refusals of texts come from the data. For samples with labels, the refusal is a random other label. Each step takes
    one batch of each set; an epoch is one pass over forget. Raises ValueError for a language model if a
    sample to forget has no refusal in the data.
    """
    if _tokens.reading(stack) is None:
        wrong_labels = RandomLabels(stack, relabel="other", redraw=False)
        # The lambda gets the original's logits too, on which a random label does not depend.
        step: tuple[Stream, ...] = (over_label(stack, forget, lambda batch, _: wrong_labels(batch), options.beta),)
    else:
        missing = "idk_dpo needs a refusal for each sample; set refusals: true under data (question_answer)"
        refusals = views(stack, "refusal", forget, missing=missing)
        step = over_view(stack, forget, refusals[:, :1], options.beta)  # the first refusal of each sample
    _tokens.minimise(stack, step, retain, options)
