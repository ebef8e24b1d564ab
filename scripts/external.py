"""Check a user's own logits and memberships, and write them in the one layout that every later stage reads."""

from pathlib import Path

from job import script
from unlearning.artifacts.external import read
from unlearning.plugins import source


@script
def external(data: str, membership: str, logits: str, settings: dict, place: dict) -> dict:
    """``place`` says where the files lie; the settings say what they held when the run was planned."""
    files = place["files"]
    for name, content in settings["content"].items():
        if source.fingerprint(Path(files[name])) != content:
            raise ValueError(f"{files[name]}: this file has changed since the run began; start the run again")
    samples, members, answers = read(files, settings["population"])
    samples.write(data)
    members.write(membership)
    answers.write(logits)
    return {"models": len(members.seed), "samples": len(samples.y), "forget": int(members.forget[0].sum())}
