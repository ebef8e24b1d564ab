"""All numbers of a study in one tidy table, and a row for each method that changed no logits."""

import zipfile

from unlearning.artifacts import tables
from unlearning.artifacts.files import checked


def rows(study: str, cases: list[dict]) -> list[dict]:
    """Rows with ``tables.UNION_COLUMNS``, in the order of ``cases`` (see `workflow.parameters.collect`).

    A case's axis setting stands before the row's own. A method whose logits equal those before unlearning gets
    a row "unchanged": the share of batches for which this is so, among n.
    """
    found = []
    for case in cases:
        who = {"study": study, **{name: case[name] for name in ("scenario", "protocol", "method")}}
        own = [*tables.read_rows(case["metrics"]), *_unchanged(case)]
        found += [{**row, **who, "setting": _join(case["setting"], row["setting"])} for row in own]
    return found


def digest(path: str) -> dict[str, tuple[int, int]]:
    """Checksum and size of the logits in a file, from the zip's directory."""

    def read() -> dict[str, tuple[int, int]]:
        with zipfile.ZipFile(path) as archive:
            # The file also names its own node, which says nothing about the logits.
            return {m.filename: (m.CRC, m.file_size) for m in archive.infolist() if m.filename != "node.npy"}

    return checked(path, read)


def _unchanged(case: dict) -> list[dict]:
    # External models may lack those before unlearning.
    if case["plugin"] == "none" or len(case["originals"]) != len(case["unlearned"]):
        return []
    pairs = [(digest(a), digest(b)) for a, b in zip(case["originals"], case["unlearned"], strict=True)]
    same = [before == after and "logits.npy" in after for before, after in pairs]
    if not any(same):
        return []
    note = f"logits of {sum(same)} of {len(same)} batches are identical to those before unlearning"
    empty = {"attack": "", "setting": "", "ci_low": float("nan"), "ci_high": float("nan")}
    return [{**empty, "metric": "unchanged", "value": sum(same) / len(same), "n": len(same), "note": note}]


def _join(*settings: str) -> str:
    return ";".join(filter(None, settings))
