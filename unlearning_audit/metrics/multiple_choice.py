"""Multiple choice: how often the right answer is likelier than every wrong one (as in WMDP, Li et al. 2024)."""

import numpy as np

from unlearning_audit.evaluation.cohort import views_logp
from unlearning_audit.metrics import DecisionRule, Effect, Estimate, Evaluation, Membership, Quantity, Row, _text, row

NEEDS = ("fair_draw",)

QUANTITIES = (
    Quantity(
        "choice_accuracy", "choice accuracy",
        reading="Share of questions whose right answer is the likeliest of all choices; see choice_chance for what "
        "guessing gives.",
    ),
    Quantity("choice_chance", "choice accuracy by chance", reading="One over the number of choices, the mean."),
    _text.above_retraining("choice_gap", "choice accuracy", "Choice accuracy", "choice gap", 38),
)  # fmt: skip


#: The metric, and the field ``rule`` of its rows, which is empty.
NAME = ("choice_accuracy", "")


def rows(evaluation: Evaluation) -> list[Row]:
    """Return rows "choice_accuracy" and "choice_chance" of every role (field ``role``), and with retrained models
    "choice_gap".

    "choice_accuracy" is the share of samples whose mean log p of a token exceeds that of each of their perturbed
    answers. Where k choices are equally likely, a right one counts 1/k. "choice_chance" is the mean of 1/choices, the
    accuracy of guessing. "choice_gap" is the accuracy minus that of retrained models. Rows are given for all target
    models, then for each swapped pair (field ``pair``) if there are several. A role of which some model has no sample
    with wrong answers has none. Raises ValueError for data without wrong answers.
    """
    wrong = evaluation.data.views("perturbed")
    if not wrong.shape[1]:
        raise ValueError("multiple_choice needs wrong answers; choose question_answer data that have choices")
    files = _text.compared_files(evaluation)
    audited = {NAME: right(evaluation.unlearned[evaluation.target], wrong)}
    retrained = None if files is None else {NAME: right(evaluation.outputs(files).logits[evaluation.target], wrong)}
    chance = 1 / (1 + (wrong >= 0).sum(1))  # of each sample; ``wrong`` is −1 where a sample has fewer wrong answers

    def of_guessing(_models: np.ndarray, member: Membership) -> list[Row]:
        """Return the rows "choice_chance" of the models with the memberships ``member``, one for each role in which
        every model has questions: samples with an answer in ``wrong``. ``chance`` is the accuracy of guessing each
        sample. A guess does not depend on the model, so ``_models``, which `rows_by_pair` passes, is not used."""
        table = []
        for role, mask in _text.roles(evaluation.data.part == 1, member).items():
            questions = mask & (wrong >= 0).any(1)
            if questions.any(1).all():
                # The mean of each model first, as "choice_accuracy" takes it.
                mean = float(((questions * chance).sum(1) / questions.sum(1)).mean())
                estimate = Estimate(mean, low=mean, high=mean, n=int(questions.any(0).sum()))  # exact, so no interval
                table.append(row(metric="choice_chance", role=role, estimate=estimate))
        return table

    accuracies = _text.rows_of_shares(evaluation, audited, retrained, gaps={"choice_accuracy": "choice_gap"})
    return accuracies + _text.rows_by_pair(evaluation, of_guessing)


#: How often a model chooses well on unseen questions is known from retrained models only.
DECIDES = {"choice_accuracy": DecisionRule(1, "accuracy", lowest=0.0, highest=1.0)}


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return "choice_accuracy" → each target model's accuracy on its forgotten samples that have wrong answers. {} if a
    model has no such sample."""
    correct = right(evaluation.unlearned[evaluation.target], evaluation.data.views("perturbed"))
    return _text.effect_on_forgotten(evaluation, DECIDES, correct)


def right(logits: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return 1 where the answer of a sample is likelier than each of its ``wrong`` answers, 1/k where it is one of the
    k equally likely best, else 0: float64 [models, samples]. NaN for samples without wrong answers.

    Parameters
    ----------
    logits
        [models, rows, 2]: (φ, 0) of each text; rows are samples and their other answers.
    wrong
        int64 [samples, most]: the rows of the wrong answers of each sample, filled with −1.
    """
    # The choices of each sample are the sample itself, then its wrong answers.
    return right_by_logp(views_logp(logits, np.concatenate([np.arange(len(wrong))[:, None], wrong], axis=1)))


def right_by_logp(logp: np.ndarray) -> np.ndarray:
    """Return 1 where the first choice is the likeliest, 1/k where it is one of k equally likely best, else 0: float64
    [...]. NaN without wrong answers.

    ``logp`` [..., choices]: log p of the right answer first, then of the wrong ones, NaN where a question has fewer.
    """
    best = np.fmax.reduce(logp, axis=-1)  # ignores NaN
    likeliest = (logp == best[..., None]).sum(-1)
    return np.where(np.isnan(logp[..., 1:]).all(-1), np.nan, (logp[..., 0] == best) / likeliest)
