"""Metrics of language models and of their answers: by hand, on identities, and by simulation of known truth."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.data import _tokens, question_answer
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.signal_files import Generations, Sampled, continued_samples
from unlearning_audit.metrics import (
    _answers,
    fluency,
    leak_at_k,
    memorisation,
    multiple_choice,
    overlap,
    privleak,
    rouge,
    rouge_at_k,
    truth_ratio,
    utility,
)
from unlearning_audit.metrics._text import nll, utilities
from unlearning_audit.stats import levels, separation

import metric_calls as call
from passage_cases import member, two
from stat_cases import at_least, at_most

NO = math.nan


def test_truth_ratio_by_hand():
    """TOFU's own: the geometric mean of the wrong answers' probabilities over that of the paraphrase."""
    logits = two(np.log(np.array([[0.5, 0.4, 0.2, 0.1, 0.3, 0.25]])))
    perturbed = np.array([[3, 4], [5, -1], *[[-1, -1]] * 4])
    right = np.array([[2], *[[-1]] * 5])
    log_ratio, ratio = truth_ratio.log_ratio(logits, perturbed, right)[0], math.sqrt(0.1 * 0.3) / 0.2
    np.testing.assert_allclose(np.exp(log_ratio[:2]), [ratio, 0.25 / 0.4], rtol=1e-6)
    assert np.isnan(log_ratio[2:]).all()
    forms = truth_ratio.by_metric(np.append(log_ratio[:2], np.log(2)))
    np.testing.assert_allclose(forms["truth_ratio"], [min(ratio, 1 / ratio), 0.625, 0.5], rtol=1e-6)
    np.testing.assert_allclose(forms["truth_ratio_utility"], [1 - ratio, 0.375, 0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(forms["truth_ratio_probability"], [1 / (1 + ratio), 1 / 1.625, 1 / 3], rtol=1e-6)


ONE = {"split": np.zeros(1), "block": np.zeros(1)}


def test_a_model_without_a_question_has_no_forget_quality():
    value, mask = np.arange(8.0).reshape(2, 4), np.array([[1, 1, 0, 0], [0, 0, 0, 0]], bool)
    for estimate in truth_ratio.distances(value, value, mask, split=np.arange(2), block=np.zeros(2, int)).values():
        assert math.isnan(estimate.value)
        assert (estimate.n, estimate.note) == (2, "no perturbed answers in the forget set of some model")


def test_forget_quality_is_a_geometric_mean_over_splits():
    """Models of a split repeat each other: p of 1 twice in one split and of ⅓ (three values above three) once."""
    low, high = np.array([1.0, 2, 3]), np.array([4.0, 5, 6])
    unlearned, retrained = np.stack([low, low, low]), np.stack([low, low, high])
    groups = {"split": np.array([0, 0, 1]), "block": np.zeros(3, int)}
    ks, quality = truth_ratio.distances(unlearned, retrained, np.ones((3, 3), bool), **groups).values()
    assert ks.value == 0.5
    assert quality.value == pytest.approx(math.sqrt(0.1))  # of C(6, 3) = 20 orders, two are as far apart
    assert (ks.low + ks.high, quality.high, quality.low < 1e-3) == (pytest.approx(1), 1, True)
    groups["split"] = np.arange(3)
    same = truth_ratio.distances(unlearned, unlearned + 10, np.ones((3, 3), bool), **groups)["truth_ratio_ks"]
    assert (same.value, same.low < 0.9, same.high) == (1, True, 1)  # three samples do not make it certain
    far = np.arange(5000.0)[None]
    assert truth_ratio.distances(far, far + 9000, far >= 0, **ONE)["forget_quality"].value == pytest.approx(1e-300)


def test_distances_of_truth_ratios_cover_where_pairs_share_samples():
    """Eight pairs of models on the same 100 samples, which differ in how much log R has moved. Pairs alone, as if they
    were independent, would cover about half."""
    rng, groups = np.random.default_rng(6), {"split": np.tile([0, 1], 8), "block": np.repeat(np.arange(8), 2)}

    def distance():
        log_r, moved = rng.normal(size=100), 1 + 2 * rng.normal(size=100)
        audited, retrained = log_r + np.array([moved, 0 * moved])[:, None] + 0.5 * rng.normal(size=(2, 16, 100))
        known = np.repeat([rng.permutation(100) < 50 for _ in range(8)], 2, axis=0) ^ (groups["split"][:, None] == 1)
        return truth_ratio.distances(audited, retrained, known, **groups)["truth_ratio_ks"]

    estimates = [distance() for _ in range(60)]
    truth = np.mean([estimate.value for estimate in estimates])
    assert sum(estimate.low <= truth <= estimate.high for estimate in estimates) >= 51  # of 60, less but once in 1,400


# ---------------------------------------------------------------- overlap of the data


def test_overlap_of_runs_by_hand():
    """Of runs of two tokens in what is kept, the first row; ~0 looks like padding, and is none."""
    x = np.int32([[1, 2, 3, 1], [~1, 2, 3, -1], [9, 1, 2, 3], [~0, 1, 7, 7], [5, -1, -1, -1]])
    kept = np.arange(5) == 0
    np.testing.assert_allclose(overlap.share_found(overlap.run_numbers(x, 2), kept), [1, 1, 2 / 3, 0, 0])
    np.testing.assert_allclose(overlap.share_found(overlap.run_numbers(x, 2), np.arange(5) == 3), [0, 0, 0, 1, 0])
    assert overlap.share_found(overlap.run_numbers(x, 5), kept).tolist() == [0.0] * 5


def test_what_forgotten_spans_share_with_held_out_ones_by_hand():
    """Scored tokens alone count, wherever in the sample they stand."""
    x = np.array([
        [~9, 1, 2, 3],    # forgotten: the whole span is held out too
        [~9, 4, 5, -1],   # forgotten: 5 is held out, 4 is not
        [~9, ~9, 7, 7],   # forgotten: nothing is
        [1, 2, 3, ~8],    # held out
        [~4, ~4, ~4, 5],  # held out, but 4 is not scored
    ])  # fmt: skip
    spans = overlap.scored_tokens(x)
    np.testing.assert_array_equal(spans, [[1, 2, 3], [4, 5, -1], [7, 7, -1], [1, 2, 3], [5, -1, -1]])
    heldout = np.arange(5) >= 3
    np.testing.assert_allclose(overlap.share_found(spans, heldout)[:3], [1, 1 / 2, 0])
    np.testing.assert_allclose(overlap.share_found(overlap.text_numbers(spans), heldout)[:3], [1, 0, 0])
    for nothing in (np.full((2, 3), -1), np.array([[3, 4], [-1, -1]])):
        spans = overlap.text_numbers(overlap.scored_tokens(nothing))
        assert overlap.share_found(spans, np.array([False, True])).tolist() == [0, 0]


# ---------------------------------------------------------------- memorisation


def test_memorisation_by_hand():
    rank = np.array([
        [0, 0, 0, 0],    # all right: extracted whole
        [0, 0, 0, 2],    # the last one wrong: nothing can be extracted
        [3, 0, 0, 0],
        [0, 5, 0, NO],   # padded
        [NO, NO, 0, 0],  # only the end is scored
        [1, 1, 1, 1],
    ])[None].astype(float)  # fmt: skip
    scores = memorisation.both(rank)
    np.testing.assert_allclose(scores["exact_memorisation"][0], [1, 0.75, 0.75, 2 / 3, 1, 0])
    np.testing.assert_allclose(scores["extraction_strength"][0], [1, 0, 0.75, 1 / 3, 1, 0])


# ---------------------------------------------------------------- leaks of the best of k answers


def test_leaks_by_hand():
    """Half and half: one answer says .5 of the first, .25 of both; two say .75 and .4375."""
    logp = np.log(np.array([[[0.5, 0.5]]]))
    for answers, share, whole in ((1, 0.375, 0.25), (2, (0.75 + 0.4375) / 2, 0.4375)):
        assert np.ravel(leak_at_k.leaks(logp, answers)) == pytest.approx([share, whole])
    ends = np.array([[[0.0, 0.0, NO], [-np.inf, 0.0, NO], [NO] * 3]])  # certain, impossible, without a scored token
    np.testing.assert_array_equal(leak_at_k.leaks(ends, 128), [[[1, 0, NO]]] * 2)


# ---------------------------------------------------------------- privleak


def simulate(rng, models, samples, shift, noise=0.6):
    """Scores that know forgotten samples by ``shift``: a part of each sample's is the same in all models."""
    forget = np.tile(np.arange(samples) < samples // 2, (models, 1))
    score = np.sqrt(1 - noise**2) * rng.normal(size=(1, samples)) + noise * rng.normal(size=(models, samples))
    return score + shift * forget, forget


def groups(models):
    return {"split": np.zeros(models, int), "block": np.zeros(models, int)}


def test_privleak_ends_where_an_auc_is_one_or_nought():
    rng, forget = np.random.default_rng(6), np.arange(20)[None] < 10
    retrained = rng.normal(size=(1, 20))
    highest = 100 * (1 / (1 - separation.auc(score=retrained, positive=forget * 1.0, negative=~forget * 1.0).value) - 1)
    for way, end in ((1, -100), (-1, highest)):
        score = way * (2.0 * forget + rng.normal(size=(1, 20)))
        estimate = privleak.leak(score, retrained, forget, ~forget, **groups(1))
        assert end in (pytest.approx(estimate.low), pytest.approx(estimate.high))
        assert -100 <= estimate.low <= estimate.value <= estimate.high <= highest + 1e-9
    with pytest.raises(ValueError, match="check the splits"):
        privleak.leak(retrained, 1.0 * forget, forget, ~forget, **groups(1))


@pytest.mark.parametrize("d", [0.5, 0.0])
def test_intervals_of_privleak_cover(d):
    """d between the sides gives an AUC of Φ(d/√2), retrained models .5, so that another retrained population (d = 0)
    reads 0."""
    rng, inside, studies = np.random.default_rng(4), np.zeros(2), 100
    auc = stats.normal_probability(d / math.sqrt(2))
    truth = 100 * ((1 - auc) / 0.5 - 1)
    for _ in range(studies):
        (audited, forget), (retrained, _) = (simulate(rng, 4, 80, shift) for shift in (d, 0.0))
        leak = privleak.leak(audited, retrained, forget, ~forget, **groups(4))
        area = privleak.auc(audited, forget, ~forget, **groups(4))
        inside += [leak.low <= truth <= leak.high, area.low <= auc <= area.high]
    assert (inside / studies >= at_least(0.95, studies)).all()


# ---------------------------------------------------------------- worth


def test_the_worth_of_a_language_model_is_its_loss_on_what_it_keeps_and_on_the_test_part():
    rng = np.random.default_rng(3)
    logits = np.stack([rng.normal(size=(4, 30)), np.zeros((4, 30))], axis=-1)
    test, forget, split = np.arange(30) >= 20, np.zeros((4, 30), bool), np.array([0, 0, 1, 1])
    forget[:2, :5], forget[2:, 5:10] = True, True
    none = np.zeros(4, int)
    member = Membership(np.tile(~test, (4, 1)), forget, np.zeros_like(forget), np.arange(4), split, none, none > 0)
    evaluation = SimpleNamespace(
        unlearned=logits, target=np.ones(4, bool), membership=member, data=SimpleNamespace(part=test.astype(np.uint8))
    )
    parts, loss = utilities(evaluation, forgotten=True), nll(logits)
    assert list(utilities(evaluation)) == ["nll_retain", "nll_test"]
    assert list(parts) == ["nll_retain", "nll_test", "nll_forget"]
    for part, rows in zip(parts.values(), (member.retain, np.tile(test, (4, 1)), forget), strict=True):
        np.testing.assert_allclose(part.value[0], [loss[m, rows[m]].mean() for m in range(4)])
        assert (part.rule.direction, part.rule.deciding) == ((-1, True) if rows is forget else (1, False))
        assert part.influence[0].sum(axis=1) == pytest.approx(0, abs=1e-12)
    assert utilities(SimpleNamespace(unlearned=np.zeros((4, 30, 10)), target=evaluation.target)) == {}


TEXT = "the author of this book was born in a small town and wrote about cats and dogs ran running cat 7 élan"
WORDS = TEXT.split()


# ---------------------------------------------------------------- ROUGE-L


def test_rouge_is_of_stemmed_words_in_their_order():
    assert _answers.rouge_l("the cat is running.", "Cats run") == pytest.approx((2 / 4, 2 * 2 / 6, 0))
    assert _answers.rouge_l("one two three", "three, one and two") == pytest.approx((2 / 3, 4 / 7, 4 / 7))
    assert _answers.rouge_l("one two", "") == (0, 0, 0)


@pytest.fixture
def evaluation(tmp_path):
    """20 samples of a prompt and six words each; three models that say the first 6, 3 and 0 of them, retrained 3."""
    tokenizer, rng = _tokens.trained([" ".join(WORDS)], 300), np.random.default_rng(0)
    plain_words = [w for w in WORDS if len(w) <= 4 and w.isascii() and w not in ("a", "7")]
    words = [rng.choice(plain_words, 6, replace=False).tolist() for _ in range(20)]
    answers = _tokens.encoded(tokenizer, [" ".join(six) for six in words])
    length = 3 + max(map(len, answers))
    part = (np.arange(20) >= 16).astype(np.uint8)
    index = continued_samples(member(), part, 4)

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


def test_rouge_of_models_that_say_a_known_part(evaluation):
    overlaps = _answers.rouge(evaluation, evaluation.generated_files)
    assert np.nanmean(overlaps[..., 0], 1) == pytest.approx([1, 0.5, 0], abs=1e-9)
    assert np.isnan(overlaps).any(), "of what is kept only some is asked"


@pytest.mark.parametrize("metric", [rouge, fluency])
def test_without_a_tokenizer_no_answer_can_be_read(evaluation, metric):
    evaluation.data.tokenizer = None
    with pytest.raises(ValueError, match="hold no tokenizer"):
        call.rows(metric, evaluation, {})


def test_gibberish_repeats_itself_or_has_words_of_no_text(evaluation):
    halves = -(4 / 7 * np.log2(4 / 7) + 3 / 7 * np.log2(3 / 7))
    for said, judged in (
        ("", (0, 0)),
        ("abcdefgh", (0, np.log2(7) / 3 + 2 * np.log2(6) / 3)),  # all pairs and triples differ
        ("abababab", (1, halves / 3 + 2 / 3)),  # two pairs and two triples by turns, 4 + 3 and 3 + 3 times
        ("abxy", (0, np.log2(3) / 3 + 2 / 3)), ("axyz", (1, np.log2(3) / 3 + 2 / 3)),
    ):  # fmt: skip
        assert fluency.judged(list(said), set("abcdefgh"), 0.5) == pytest.approx(judged)
    rows = by_name(call.rows(fluency, evaluation, {}))
    # "xyz" follows the words that a model says: of the first model never, of the third always
    assert rows["gibberish", "forget"].value == rows["gibberish_gap", "forget"].value == pytest.approx(1 / 3)
    assert min(rows["fluency", role].value for role in ("forget", "test")) > 0
    evaluation.membership.heldout[1] = False
    gone = {("fluency", "heldout"), ("gibberish", "heldout"), ("gibberish_gap", "heldout")}
    assert rows.keys() - by_name(call.rows(fluency, evaluation, {})) == gone


def test_the_best_of_sampled_answers_says_most(evaluation, tmp_path):
    """Of three answers, the last is that of the file of likeliest ones; the others say other words."""
    likeliest = Generations.read(evaluation.generated_files[0])
    wrong = np.where(likeliest.tokens < 0, -1, 0)
    Sampled(np.stack([wrong, wrong, likeliest.tokens], axis=2), likeliest.index).write(tmp_path / "sampled.npz")
    Sampled(np.zeros((0, 0, 0, 0), np.int32), np.zeros((0, 0), np.int64)).write(
        tmp_path / "shadows.npz"
    )  # of a batch without a model of the defender
    evaluation.sampled_files = evaluation.compared_sampled_files = [
        str(tmp_path / name) for name in ("shadows.npz", "sampled.npz")
    ]
    alone = np.nan_to_num(_answers.rouge(evaluation, evaluation.generated_files)[..., 0])
    recall = _answers.recalls(evaluation, evaluation.sampled_files)
    np.testing.assert_array_equal(np.nan_to_num(recall[..., 2]), alone)
    settings = {"metrics": {"rouge_at_k": {"samples": 3, "answers": [1, 3], "threshold": 0.9}}}
    rows = {(row.metric, row.role, row.rule): row.value for row in call.rows(rouge_at_k, evaluation, settings)}
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


def test_choices_come_from_a_column_and_the_number_of_the_right_one():
    options = question_answer.Options(path="x", choices="choices")
    row = {"question": "Which?", "choices": ["a", "b", "c"], "answer": 1}
    (checked,) = question_answer.check_rows(options, iter([row]), "f.jsonl")
    assert (checked["answer"], checked["perturbed_answer"]) == ("b", ["a", "c"])
    for change, message in (
        ({"choices": ["a"]}, "f.jsonl: row 1 has no list of two texts or more in the column 'choices'"),
        ({"answer": 3}, "f.jsonl: row 1: the column 'answer' must be a number from 0 to 2"),
        ({"answer": "b"}, "must be a number"),
    ):
        with pytest.raises(ValueError, match=message):
            list(question_answer.check_rows(options, iter([{**row, **change}]), "f.jsonl"))


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
    """Three terms on 60 samples and 6 models; the truth is that of models whose means are the terms'."""
    rng, inside, studies, mean = np.random.default_rng(5), 0, 150, np.array([0.6, 0.4, 0.7])
    truth = 3 / (1 / mean).sum()
    for _ in range(studies):
        shared = rng.uniform(-0.2, 0.2, (3, 1, 60))
        value = mean[:, None, None] + shared + rng.uniform(-0.05, 0.05, (3, 6, 1)) + rng.uniform(-0.1, 0.1, (3, 6, 60))
        parts = [levels.per_model(value=values, weight=np.ones((6, 60))) for values in value]
        interval = levels.mean(utility.harmonic(parts), **groups(6), n=60, bounds=(0, 1))
        inside += interval.low <= truth <= interval.high
    assert at_least(0.95, studies) <= inside / studies <= at_most(0.95, studies)
