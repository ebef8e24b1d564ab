"""Files that studies of text read, in the form of the published ones and tiny: checkpoints, corpora, questions."""

from pathlib import Path

import numpy as np

WORDS = [f"{a}{b}{c}" for a in "bdfg" for b in "aeiou" for c in "lmnr"]
TEMPLATE = ["Question", "Answer", ":", "?", "."]


def checkpoint(folder: Path, kind: str) -> None:
    """A folder as ``save_pretrained`` leaves it, with its tokenizer: one layer, 24 wide, random weights."""
    import torch
    import transformers as hf
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate(["<unk>", *TEMPLATE, *WORDS])}
    ends = {"vocab_size": len(vocabulary), "bos_token_id": None, "eos_token_id": None}
    same = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48, **ends}
    torch.manual_seed(0)
    if kind == "gpt2":
        model = hf.GPT2LMHeadModel(hf.GPT2Config(n_positions=32, n_embd=24, n_layer=1, n_head=2, **ends))
    elif kind == "gpt_neox":
        model = hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(max_position_embeddings=32, **same))
    else:
        model = hf.LlamaForCausalLM(hf.LlamaConfig(max_position_embeddings=32, num_key_value_heads=2, **same))
    model.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))


def wikitext(folder: Path, articles: int) -> None:
    """``wiki.train.tokens`` and ``wiki.test.tokens``: articles of five random paragraphs under a title."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for part, count in (("train", articles), ("test", articles // 4)):
        lines = []
        for number in range(count):
            lines.append(f" = {part} {number} = \n \n")
            lines += [" " + " ".join(rng.choice(WORDS, 16)) + " \n \n" for _ in range(5)]
        (folder / f"wiki.{part}.tokens").write_text("".join(lines))


def tofu(folder: Path, questions: int) -> None:
    """Three subsets, saved each to its folder: one with paraphrases, and two others without."""
    from datasets import Dataset, DatasetDict

    rng = np.random.default_rng(2)
    for name, count in (("forget10_perturbed", questions), ("real_authors_perturbed", 6), ("world_facts_perturbed", 5)):
        rows = []
        for _ in range(count):
            question, (first, *answer) = rng.choice(WORDS, 3), rng.choice(WORDS, 5)
            rows.append({
                "question": " ".join(question) + " ?",
                "answer": " ".join([first, *answer, "."]),
                "perturbed_answer": [" ".join([first, *rng.choice(WORDS, 4), "."]) for _ in range(3)],
            })  # fmt: skip
            if name == "forget10_perturbed":
                rows[-1]["paraphrased_answer"] = " ".join([rng.choice(WORDS), *answer, "."])
        DatasetDict({"train": Dataset.from_list(rows)}).save_to_disk(str(folder / name))
