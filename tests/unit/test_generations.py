"""What language models say by themselves: against transformers' decoding, in any company; what is read of it."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import GPT2LMHeadModel

from bank_cases import fresh
from text_cases import SEEDS, VOCABULARY, bank, passages
from unlearning import stats
from unlearning.artifacts.arrays import ArtifactError, Membership
from unlearning.artifacts.files import FailedError
from unlearning.artifacts.generations import Generations, asked
from unlearning.bank import generation
from unlearning.data import _tokens, question_answer
from unlearning.metrics import _answers, multiple_choice, rouge, utility
from unlearning.metrics._text import nll

WORDS = [
    "the",
    "author",
    "of",
    "this",
    "book",
    "was",
    "born",
    "in",
    "a",
    "small",
    "town",
    "and",
    "wrote",
    "about",
    "cats",
    "and",
    "dogs",
    "ran",
    "running",
    "cat",
    "7",
    "élan",
]


# ---------------------------------------------------------------- greedy decoding


@pytest.fixture(scope="module")
def made():
    return bank(dtype=torch.float64)


def test_it_is_the_greedy_decoding_of_transformers(made):
    x, rows = passages(), np.tile(np.array([0, 1, 2, 4, 5]), (3, 1))
    said = generation.greedy(made, rows)
    assert said.dtype == np.int32
    model = made.extract(1)
    theirs = GPT2LMHeadModel(model.trunk.config).double().eval()
    theirs.load_state_dict({f"transformer.{k}": v for k, v in model.trunk.state_dict().items()}, strict=False)
    theirs.tie_weights()
    for place, row in enumerate(rows[1]):
        scored = np.flatnonzero(_tokens.scored(x[row]))
        prompt = torch.from_numpy(_tokens.ids(x[row, : scored[0]])).long()[None]
        new = scored[-1] - scored[0] + 1
        expected = theirs.generate(
            prompt, max_new_tokens=new, min_new_tokens=new, do_sample=False, attention_mask=torch.ones_like(prompt),
            pad_token_id=0,
        )[0, scored[0] :]  # fmt: skip
        assert said[1, place, :new].tolist() == expected.tolist()
        assert (said[1, place, new:] == -1).all()


def test_nothing_of_the_answer_is_read(made):
    rows = np.tile(np.arange(12), (3, 1))
    before = generation.greedy(made, rows)
    other = made.copy()
    scored = torch.from_numpy(_tokens.scored(passages()))
    other.x = torch.where(scored, (other.x + 5) % VOCABULARY, other.x)
    assert np.array_equal(generation.greedy(other, rows), before)


def test_a_model_says_the_same_in_any_company_and_order(monkeypatch):
    monkeypatch.setattr(generation, "CHUNK", 4)
    whole = bank(dtype=torch.float32)
    rows = np.stack([np.arange(6), np.r_[np.arange(9, 13), -1, -1], np.arange(20, 26)])
    said = generation.greedy(whole, rows)
    assert (said[1, 4:] == -1).all()
    assert (said[0] >= 0).any(1).all()
    for some in ([1], [2, 0]):
        part = bank(seeds=[SEEDS[i] for i in some], dtype=torch.float32)
        assert np.array_equal(generation.greedy(part, rows[some]), said[some])


def test_a_passage_that_is_learned_by_heart_is_said_whole():
    from unlearning.bank.optim import Optimiser
    from unlearning.bank.streams import Rows, Stream

    learned = bank(seeds=[3], epochs=1)
    by_heart = Optimiser(optimiser="adam", lr=0.02, batch_size=1)
    learned.fit(Stream(Rows(np.array([[0]]))), optimiser=by_heart, epochs=120, purpose="by heart")
    said = generation.greedy(learned, np.array([[0, 3]]))
    assert said[0, 0].tolist() == passages()[0, 1:].tolist()
    assert said[0, 1].tolist() != passages()[3, 1:].tolist()


def test_models_without_tokens_say_nothing():
    with pytest.raises(ValueError, match="only language models say"):
        generation.greedy(fresh(), np.zeros((1, 1), np.int64))


def member(models=3, samples=20) -> Membership:
    train = np.ones((models, samples), bool)
    forget, heldout = np.zeros_like(train), np.zeros_like(train)
    forget[:, :4], heldout[:, 4:8], train[:, 4:8], train[:, 16:] = True, True, False, False
    number = np.arange(models)
    return Membership(train, forget, heldout, seed=number + 7, split=number % 2, block=number // 2,
                      shadow=np.zeros(models, bool))  # fmt: skip


def test_who_is_asked_depends_on_the_model_alone():
    whole, part = member(), (np.arange(20) >= 16).astype(np.uint8)
    found = asked(whole, part, 3)
    assert found.shape == (3, 8 + 3 + 3)
    for model in range(3):
        own = set(found[model])
        assert own >= set(range(8))
        assert len(own & set(range(8, 16))) == 3
        assert len(own & set(range(16, 20))) == 3
    assert np.array_equal(asked(whole[np.array([2])], part, 3), found[[2]])
    assert len({tuple(row) for row in found}) > 1, "other models, other retained samples"


def test_files_are_written_read_and_refused(tmp_path):
    tokens, index = np.array([[[3, 4], [5, -1]]], np.int32), np.array([[2, 9]])
    Generations(tokens, index).write(tmp_path / "a.npz")
    found = Generations.read(tmp_path / "a.npz")
    assert np.array_equal(found.tokens, tokens)
    assert np.array_equal(found.index, index)
    Generations(tokens, np.array([[2, 2]])).write(tmp_path / "b.npz")
    with pytest.raises(ArtifactError, match="names a sample twice"):
        Generations.read(tmp_path / "b.npz")
    Generations.write_failure(tmp_path / "c.npz", "no models")
    with pytest.raises(FailedError, match="no models"):
        Generations.read(tmp_path / "c.npz")


# ---------------------------------------------------------------- ROUGE-L


def plain(written: list[str], said: list[str]) -> tuple[float, float]:
    """Recall and F1 of the longest common subsequence, by the textbook's recursion."""
    table = np.zeros((len(written) + 1, len(said) + 1), int)
    for i, a in enumerate(written):
        for j, b in enumerate(said):
            table[i + 1, j + 1] = table[i, j] + 1 if a == b else max(table[i, j + 1], table[i + 1, j])
    common = int(table[-1, -1])
    return common / len(written), 2 * common / (len(written) + len(said))


def test_rouge_is_that_of_a_plain_implementation():
    """On words that no stemmer changes; stems by hand."""
    rng, words = np.random.default_rng(0), [w for w in WORDS if len(w) <= 4 and w.isascii() and w[-1] != "s"]
    for _ in range(60):
        a, b = (rng.choice(words, rng.integers(1, 12)).tolist() for _ in range(2))
        assert _answers.rouge_l(" ".join(a), " ".join(b)) == pytest.approx(plain(a, b), abs=1e-12)
    assert _answers.rouge_l("the cat is running.", "Cats ran, and run the cat") == pytest.approx(
        plain(["the", "cat", "is", "run"], ["cat", "ran", "and", "run", "the", "cat"])
    )
    assert _answers.rouge_l("one two", "") == (0, 0)


def text(row) -> str:
    return " ".join(WORDS[i] for i in row)


@pytest.fixture
def case(tmp_path):
    """20 samples of a prompt and six words each; three models that say the first 6, 3 and 0 of them, retrained 3."""
    tokenizer = _tokens.trained([" ".join(WORDS)], 300)
    rng = np.random.default_rng(0)
    plain_words = [i for i, w in enumerate(WORDS) if len(w) <= 4 and w.isascii() and w not in ("a", "7")]
    words = np.stack([rng.choice(plain_words, 6, replace=False) for _ in range(20)])
    answers = [_tokens.encoded(tokenizer, [text(row)])[0] for row in words]
    length = 3 + max(map(len, answers))
    x = _tokens.padded([np.concatenate([~np.full(3, 5, np.int32), a]) for a in answers], length)
    memberships = member()
    part = (np.arange(20) >= 16).astype(np.uint8)
    index = asked(memberships, part, 4)

    def written(name, correct):
        tokens = np.full((*index.shape, length), -1, np.int32)
        for model, keep in enumerate(correct):
            for place, sample in enumerate(index[model]):
                said = _tokens.encoded(tokenizer, [" ".join([text(words[sample][:keep]), "xyz " * (6 - keep)])])[0]
                tokens[model, place, : min(len(said), length)] = said[:length]
        Generations(tokens, index).write(tmp_path / name)
        return [str(tmp_path / name)]

    data = SimpleNamespace(x=x, y=np.zeros(20, int), part=part,
                           tokenizer=np.frombuffer(tokenizer.to_str().encode(), np.uint8))  # fmt: skip
    return SimpleNamespace(
        data=data, membership=memberships, target=np.ones(3, bool), generated_files=written("own.npz", (6, 3, 0)),
        compared_generated_files=written("retrained.npz", (3, 3, 3)),
    )  # fmt: skip


def by_name(rows):
    return {(row["metric"], row["setting"]): row for row in rows}


def test_rouge_of_models_that_say_a_known_part(case):
    found = by_name(rouge.rows(case, {}))
    for role, n in (("forget", 4), ("heldout", 4), ("retain", None), ("test", 4)):
        assert found["rouge_recall", f"role={role}"]["value"] == pytest.approx(0.5, abs=1e-9)
        assert found["rouge_gap", f"role={role}"]["value"] == pytest.approx(0, abs=1e-9)
        if n:
            assert found["rouge_recall", f"role={role}"]["n"] == n
    every = _answers.overlap(case, case.generated_files)
    assert np.nanmean(every[..., 0], 1) == pytest.approx([1, 0.5, 0], abs=1e-9)
    assert np.isnan(every).any(), "of what is kept only some is asked"
    case.data.tokenizer = None
    with pytest.raises(ValueError, match="hold no tokenizer"):
        rouge.rows(case, {})


def test_models_compared_with_themselves_have_no_gap(case):
    case.compared_generated_files = case.generated_files
    found = by_name(rouge.rows(case, {}))["rouge_gap", "role=forget"]
    assert found["value"] == pytest.approx(0, abs=1e-12)
    assert found["ci_low"] <= 0 <= found["ci_high"]


# ---------------------------------------------------------------- multiple choice


def two(logp: np.ndarray) -> np.ndarray:
    phi = logp - np.log(-np.expm1(logp))
    return np.stack([phi, np.zeros_like(phi)], -1)


def test_choices_by_hand():
    """Rows 4 … 7 are wrong answers; a tie of two is half of a right one."""
    logp = np.log(np.array([[0.5, 0.2, 0.3, 0.1, 0.4, 0.3, 0.3, 0.1]]))
    wrong = np.array([[4, 7], [5, -1], [6, -1], [-1, -1], *[[-1, -1]] * 4])
    found = multiple_choice.right(two(logp), wrong)[0]
    np.testing.assert_array_equal(found[:4], [1, 0, 0.5, np.nan])
    uniform = multiple_choice.right(two(np.full((1, 8), -2.0)), wrong)[0]
    np.testing.assert_allclose(uniform[:3], [1 / 3, 1 / 2, 1 / 2])


def choices(rng, known, models=4, samples=60, number=4):
    """A case of ``number`` choices: models know a sample with the chance ``known`` and guess otherwise."""
    rows = samples * number
    wrong = np.full((rows, number - 1), -1)
    wrong[:samples] = samples + np.arange(samples * (number - 1)).reshape(samples, -1)
    forget = np.zeros((models, rows), bool)
    forget[:, :samples] = True
    nothing = np.zeros_like(forget)
    memberships = Membership(forget.copy(), forget, nothing, seed=np.arange(models), split=np.zeros(models, int),
                             block=np.zeros(models, int), shadow=np.zeros(models, bool))  # fmt: skip

    def logits():
        logp = -1 - rng.random((models, rows))
        logp[:, :samples] += 5 * (rng.random((models, samples)) < known)
        return two(np.minimum(logp, -1e-3)).astype(np.float32)

    own, other = logits(), logits()
    data = SimpleNamespace(part=np.zeros(rows, np.uint8), views=lambda kind: wrong, y=np.zeros(rows, int))
    return SimpleNamespace(
        data=data, membership=memberships, target=np.ones(models, bool), unlearned=own, unlearned_files=["own"],
        retrained_files=["other"], compared=other, answers=lambda files: SimpleNamespace(logits=other),
    )  # fmt: skip


def test_guessing_has_the_accuracy_of_chance_and_knowing_that_of_what_is_known():
    """known + (1 − known)/4, in 200 simulated studies each; as often within the intervals as these promise."""
    rng = np.random.default_rng(1)
    for known in (0.0, 0.6):
        truth, inside = known + (1 - known) / 4, {"choice_accuracy": 0, "choice_gap": 0}
        values = []
        for _ in range(200):
            found = by_name(multiple_choice.rows(choices(rng, known), {}))
            assert found["choice_chance", "role=forget"]["value"] == 0.25
            values.append(found["choice_accuracy", "role=forget"]["value"])
            for name, right in (("choice_accuracy", truth), ("choice_gap", 0)):
                row = found[name, "role=forget"]
                inside[name] += row["ci_low"] <= right <= row["ci_high"]
        # 200 means of 240 answers: four standard errors; four of a binomial with .95 are .062.
        assert np.mean(values) == pytest.approx(truth, abs=4 * np.sqrt(truth * (1 - truth) / 240 / 200))
        assert min(inside.values()) / 200 >= 0.95 - 0.062


def test_choices_come_from_a_column_and_the_number_of_the_right_one():
    options = question_answer.Options(path="x", choices="choices")
    row = {"question": "Which?", "choices": ["a", "b", "c"], "answer": 1}
    (found,) = question_answer.checked(options, iter([row]), "f.jsonl")
    assert (found["answer"], found["perturbed_answer"]) == ("b", ["a", "c"])
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
    found = utility.harmonic(parts)
    np.testing.assert_allclose(found.value, 6 / (1 / value).sum(0))
    step = 1e-6
    moved = [stats.crossed.PerModel(p.value + step * p.influence[:, 3], p.influence, p.imagined) for p in parts]
    slope = (utility.harmonic(moved).value - found.value) / step
    np.testing.assert_allclose(found.influence[:, 3], slope, rtol=1e-4)
    parts[2] = stats.crossed.PerModel(np.zeros(5), *(parts[2].influence, parts[2].imagined))
    assert not utility.harmonic(parts).value.any()


def test_utility_by_hand(case):
    """p̄ = .5 of every answer and .25 of its two wrong ones: p̄ .5, in the test part .5/(.5 + .5), R = .5; ROUGE 1, .5
    and 0 of the three models."""
    wrong = np.stack([np.arange(20, 40), np.arange(40, 60)], 1)
    logp = np.log(np.r_[np.full(20, 0.5), np.full(40, 0.25)])
    wide = np.full((60, 2), -1)
    wide[:20] = wrong
    case.data.views = lambda kind: wide if kind == "perturbed" else np.full((60, 0), -1)
    case.data.part = np.r_[case.data.part, np.full(40, 2, np.uint8)]
    case.data.x, case.data.y = np.concatenate([case.data.x] * 3), np.zeros(60, int)
    case.unlearned = np.tile(two(logp)[None], (3, 1, 1))
    old = case.membership
    pad = [np.pad(getattr(old, name), ((0, 0), (0, 40))) for name in ("train", "forget", "heldout")]
    case.membership = Membership(*pad, seed=old.seed, split=np.zeros(3, int), block=np.zeros(3, int),
                                 shadow=old.shadow)  # fmt: skip
    np.testing.assert_allclose(nll(case.unlearned)[0, :20], np.log(2), rtol=1e-6)
    (found,) = utility.rows(case, {})
    per_model = [6 / (4 / 0.5 + 2 / r) if r else 0 for r in (1, 0.5, 0)]
    assert found["value"] == pytest.approx(np.mean(per_model), rel=1e-6)
    assert found["n"] == 12
    case.data.views = lambda kind: np.full((60, 0), -1)
    with pytest.raises(ValueError, match="utility needs perturbed answers"):
        utility.rows(case, {})
