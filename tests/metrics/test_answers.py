"""Metrics of answers: ROUGE-L against a plain implementation, multiple choice and model utility by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.data import _tokens, question_answer
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.generations import Generations, Sampled, queried
from unlearning_audit.metrics import _answers, fluency, multiple_choice, rouge, rouge_at_k, utility
from unlearning_audit.stats import levels

import metric_calls as call
from passage_cases import member, two

TEXT = "the author of this book was born in a small town and wrote about cats and dogs ran running cat 7 élan"
WORDS = TEXT.split()


# ---------------------------------------------------------------- ROUGE-L


def test_rouge_is_of_stemmed_words_in_their_order():
    assert _answers.rouge_l("the cat is running.", "Cats run") == pytest.approx((2 / 4, 2 * 2 / 6, 0))
    assert _answers.rouge_l("one two three", "three, one and two") == pytest.approx((2 / 3, 4 / 7, 4 / 7))
    assert _answers.rouge_l("one two", "") == (0, 0, 0)


@pytest.fixture
def case(tmp_path):
    """20 samples of a prompt and six words each; three models that say the first 6, 3 and 0 of them, retrained 3."""
    tokenizer, rng = _tokens.trained([" ".join(WORDS)], 300), np.random.default_rng(0)
    plain_words = [w for w in WORDS if len(w) <= 4 and w.isascii() and w not in ("a", "7")]
    words = [rng.choice(plain_words, 6, replace=False).tolist() for _ in range(20)]
    answers = _tokens.encoded(tokenizer, [" ".join(six) for six in words])
    length = 3 + max(map(len, answers))
    part = (np.arange(20) >= 16).astype(np.uint8)
    index = queried(member(), part, 4)

    def written(name, correct):
        tokens = np.full((*index.shape, length), -1, np.int32)
        for (model, place), sample in np.ndenumerate(index):
            keep = correct[model]
            (answer,) = _tokens.encoded(tokenizer, [" ".join([*words[sample][:keep], "xyz " * (6 - keep)])])
            tokens[model, place, : min(len(answer), length)] = answer[:length]
        Generations(tokens, index).write(tmp_path / name)
        return [str(tmp_path / name)]

    data = SimpleNamespace(
        x=_tokens.padded([np.concatenate([~np.full(3, 5, np.int32), a]) for a in answers], length),
        y=np.zeros(20, int), part=part, group=None, tokenizer=np.frombuffer(tokenizer.to_str().encode(), np.uint8),
    )  # fmt: skip
    files = {"generated_files": written("own", (6, 3, 0)), "compared_generated_files": written("retrained", (3, 3, 3))}
    populations = Evaluation("", [], [], [], **files)
    vars(populations).update(data=data, membership=member(), target=np.ones(3, bool))
    return populations


def by_name(rows):
    return {(row.metric, row.role): row for row in rows}


def test_rouge_of_models_that_say_a_known_part(case):
    overlaps = _answers.overlap(case, case.generated_files)
    assert np.nanmean(overlaps[..., 0], 1) == pytest.approx([1, 0.5, 0], abs=1e-9)
    assert np.isnan(overlaps).any(), "of what is kept only some is asked"


@pytest.mark.parametrize("metric", [rouge, fluency])
def test_without_a_tokenizer_no_answer_can_be_read(case, metric):
    case.data.tokenizer = None
    with pytest.raises(ValueError, match="hold no tokenizer"):
        call.rows(metric, case, {})


def test_gibberish_repeats_itself_or_has_words_of_no_text(case):
    halves = -(4 / 7 * np.log2(4 / 7) + 3 / 7 * np.log2(3 / 7))
    for said, judged in (
        ("", (0, 0)),
        ("abcdefgh", (0, np.log2(7) / 3 + 2 * np.log2(6) / 3)),  # all pairs and triples differ
        ("abababab", (1, halves / 3 + 2 / 3)),  # two pairs and two triples by turns, 4 + 3 and 3 + 3 times
        ("abxy", (0, np.log2(3) / 3 + 2 / 3)), ("axyz", (1, np.log2(3) / 3 + 2 / 3)),
    ):  # fmt: skip
        assert fluency.judged(list(said), set("abcdefgh"), 0.5) == pytest.approx(judged)
    rows = by_name(call.rows(fluency, case, {}))
    # "xyz" follows the words that a model says: of the first model never, of the third always
    assert rows["gibberish", "forget"].value == rows["gibberish_gap", "forget"].value == pytest.approx(1 / 3)
    assert rows["fluency", "forget"].value > 0
    case.membership.heldout[1] = False
    assert rows.keys() - by_name(call.rows(fluency, case, {})) == {("fluency", "heldout"), ("gibberish", "heldout"),
                                                                   ("gibberish_gap", "heldout")}  # fmt: skip


def test_the_best_of_sampled_answers_says_most(case, tmp_path):
    """Of three answers, the last is that of the file of likeliest ones; the others say other words."""
    likeliest = Generations.read(case.generated_files[0])
    wrong = np.where(likeliest.tokens < 0, -1, 0)
    Sampled(np.stack([wrong, wrong, likeliest.tokens], axis=2), likeliest.index).write(tmp_path / "sampled.npz")
    Sampled.empty().write(tmp_path / "shadows.npz")  # of a batch without a model of the defender
    case.sampled_files = case.compared_sampled_files = [str(tmp_path / name) for name in ("shadows.npz", "sampled.npz")]
    alone = np.nan_to_num(_answers.overlap(case, case.generated_files)[..., 0])
    recall = _answers.recalls(case, case.sampled_files)
    np.testing.assert_array_equal(np.nan_to_num(recall[..., 2]), alone)
    settings = {"metrics": {"rouge_at_k": {"samples": 3, "answers": [1, 3], "threshold": 0.9}}}
    rows = {(row.metric, row.role, row.rule): row.value for row in call.rows(rouge_at_k, case, settings)}
    assert rows["rouge_at_k", "forget", "3 answers"] == pytest.approx(0.5, abs=1e-9)
    assert rows["leaked_at_k", "forget", "3 answers"] == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="answers: the best of 32 needs samples: 32 at least"):
        rouge_at_k.Options(samples=8)


# ---------------------------------------------------------------- multiple choice


def test_choices_by_hand():
    """Rows 4 … 7 are wrong answers; a tie of two is half of a right one."""
    logp = np.log(np.array([[0.5, 0.2, 0.3, 0.1, 0.4, 0.3, 0.3, 0.1]]))
    wrong = np.array([[4, 7], [5, -1], [6, -1], [-1, -1], *[[-1, -1]] * 4])
    right = multiple_choice.right(two(logp), wrong)[0]
    np.testing.assert_array_equal(right[:4], [1, 0, 0.5, np.nan])
    uniform = multiple_choice.right(two(np.full((1, 8), -2.0)), wrong)[0]
    np.testing.assert_allclose(uniform[:3], [1 / 3, 1 / 2, 1 / 2])


def choices(rng, chance, models=4, samples=60, number=4):
    """A case of ``number`` choices: models know a sample with the chance ``chance`` and guess otherwise."""
    rows = samples * number
    wrong = np.full((rows, number - 1), -1)
    wrong[:samples] = np.arange(samples, rows).reshape(samples, -1)
    forget, zeros = np.tile(np.arange(rows) < samples, (models, 1)), np.zeros(models, int)
    memberships = Membership(forget, forget, forget & False, zeros, split=zeros, block=zeros, shadow=zeros > 0)

    def logits():
        logp = -1 - rng.random((models, rows))
        logp[:, :samples] += 5 * (rng.random((models, samples)) < chance)
        return two(np.minimum(logp, -1e-3)).astype(np.float32)

    unlearned, compared = logits(), logits()
    data = SimpleNamespace(part=np.zeros(rows, np.uint8), views=lambda kind: wrong, y=np.zeros(rows, int))
    return SimpleNamespace(
        data=data, membership=memberships, target=zeros == 0, unlearned=unlearned, unlearned_files=["own"],
        compared_files=["other"], answers=lambda files: SimpleNamespace(logits=compared),
    )  # fmt: skip


@pytest.mark.parametrize("chance", [0.0, 0.6])
def test_guessing_has_the_accuracy_of_chance_and_knowing_that_of_what_is_known(chance):
    """chance + (1 − chance)/4, in 200 simulated studies; as often within the intervals as these promise."""
    rng, studies, truth = np.random.default_rng(1), 200, chance + (1 - chance) / 4
    tables = [by_name(call.rows(multiple_choice, choices(rng, chance), {})) for _ in range(studies)]
    assert {rows["choice_chance", "forget"].value for rows in tables} == {0.25}
    for name, right in (("choice_accuracy", truth), ("choice_gap", 0)):
        found = [rows[name, "forget"] for rows in tables]
        # Four standard errors of a binomial with .95 are .062.
        assert np.mean([row.ci_low <= right <= row.ci_high for row in found]) >= 0.95 - 0.062
    values = [rows["choice_accuracy", "forget"].value for rows in tables]  # means of 240 answers
    assert np.mean(values) == pytest.approx(truth, abs=4 * np.sqrt(truth * (1 - truth) / 240 / studies))


def test_choices_come_from_a_column_and_the_number_of_the_right_one():
    options = question_answer.Options(path="x", choices="choices")
    row = {"question": "Which?", "choices": ["a", "b", "c"], "answer": 1}
    (checked,) = question_answer.checked(options, iter([row]), "f.jsonl")
    assert (checked["answer"], checked["perturbed_answer"]) == ("b", ["a", "c"])
    for change, message in (
        ({"choices": ["a"]}, "f.jsonl: row 1 has no list of two texts or more in the column 'choices'"),
        ({"answer": 3}, "f.jsonl: row 1: the column 'answer' must be a number from 0 to 2"),
        ({"answer": "b"}, "must be a number"),
    ):
        with pytest.raises(ValueError, match=message):
            list(question_answer.checked(options, iter([{**row, **change}]), "f.jsonl"))


# ---------------------------------------------------------------- utility


def test_the_harmonic_mean_and_its_derivative():
    rng = np.random.default_rng(2)
    value = rng.uniform(0.1, 1, (6, 5))
    parts = [stats.crossed.PerModel(v, rng.normal(size=(5, 8)), np.zeros((5, 2))) for v in value]
    mean = utility.harmonic(parts)
    np.testing.assert_allclose(mean.value, 6 / (1 / value).sum(0))
    step = 1e-6
    moved = [stats.crossed.PerModel(p.value + step * p.influence[:, 3], p.influence, p.imagined) for p in parts]
    slope = (utility.harmonic(moved).value - mean.value) / step
    np.testing.assert_allclose(mean.influence[:, 3], slope, rtol=1e-4)
    parts[2] = stats.crossed.PerModel(np.zeros(5), *(parts[2].influence, parts[2].imagined))
    assert not utility.harmonic(parts).value.any()


def test_the_interval_of_a_harmonic_mean_covers_when_samples_and_models_vary():
    """Three terms on 60 samples and 6 models, 400 studies; the truth is that of models whose means are the terms'."""
    rng, inside, studies, mean = np.random.default_rng(5), 0, 400, np.array([0.6, 0.4, 0.7])
    truth = 3 / (1 / mean).sum()
    groups = {"split": np.zeros(6, int), "block": np.zeros(6, int)}
    for _ in range(studies):
        shared = rng.uniform(-0.2, 0.2, (3, 1, 60))
        value = mean[:, None, None] + shared + rng.uniform(-0.05, 0.05, (3, 6, 1)) + rng.uniform(-0.1, 0.1, (3, 6, 60))
        parts = [levels.per_model(value=values, weight=np.ones((6, 60))) for values in value]
        interval = levels.of(utility.harmonic(parts), **groups, n=60, bounds=(0, 1))
        inside += interval.low <= truth <= interval.high
    # Binomial with .95: four standard errors are .044.
    assert 0.95 - 0.044 <= inside / studies <= 0.95 + 0.044
