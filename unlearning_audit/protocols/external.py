"""External: nothing is drawn or trained; logits and memberships are a user's own, in a folder.

The folder holds one folder for each population of models, each with ``logits.npy`` and who saw what::

    target/           after unlearning: the models that are audited
    original/         the same models before unlearning
    retrain/          models that never saw the forget set; retrain_control/: more of them, independent
    shadow/           the adversary's models, unlearned by the same method
    shadow_original/  the adversary's models as trained

Instead of ``logits.npy``, a folder may hold ``published.npz``: scores and other values of each sample, as result files
of other people publish them (`unlearning_audit.evaluation.published`); then it holds nothing else. Or it holds the
models themselves, state dicts in safetensors or folders of transformers; then the study names ``data`` and ``model``.

Only target/ must be there. Where a study names several methods, each has target/ (and shadow/) in a folder of its own
name. `unlearning_audit.evaluation.external` says what the files hold.
"""

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from unlearning_audit.evaluation import headers
from unlearning_audit.evaluation.published import FILE as PUBLISHED
from unlearning_audit.plugins.suggest import near, unknown
from unlearning_audit.protocols import Data, Membership, Protocol, Settings, _formats

PROTOCOL = Protocol(offers=("forgotten", "imported", "same_samples"), attacked=True, figures=("quality",))

#: Populations that belong to one method, and those that all methods share.
PER_METHOD = ("target", "shadow")
SHARED = ("original", "retrain", "retrain_control", "shadow_original")

#: Methods that a study need not name → the folder that holds their models.
YARDSTICKS = {"none": "original", "retrain": "retrain", "retrain_control": "retrain_control"}

#: Files on samples may lie in any folder above; files on models, in the population that has the same models.
SAMPLE_FILES = ("labels", "test", "weight")
MODEL_FILES = ("train", "forget", "heldout", "split", "block", "pair")
ARRAYS = ("logits", *SAMPLE_FILES, *MODEL_FILES)

#: The end of the name of the index file of a state dict in several parts.
INDEX = ".safetensors.index.json"


class Options(Settings):
    """``path``: the folder, relative to the working directory.

    ``design``: how it was decided which samples are forgotten and which held out. If this was a random draw, by pairs
    of ``swapped`` splits or by coins (``random``), theory predicts that retraining leaves no advantage. If the forget
    set was ``given`` (a class, a person's data), forgotten and held-out samples may differ by themselves, and only
    retrained models on the same samples are a reference. Splits that the files show to be swapped need not be named.

    If checkpoints replace logits, ``data``: name or file of the source of the samples on which the models are
    evaluated, and its options; ``model``: name or file of what builds a model for a state dict, and its options (a
    folder of transformers needs none). Language models also generate answers: for all forgotten and held-out samples,
    and for ``generations`` retained samples and as many of the test part (0: none at all).
    """

    path: str = "logits"
    design: Literal["swapped", "random", "given"] = "given"
    data: dict[str, Any] = Field(default_factory=dict)
    model: dict[str, Any] = Field(default_factory=dict)
    generations: int = Field(200, ge=0)


def blocks(options: Options) -> dict[str, int]:
    """Return {}: there is nothing to draw."""
    return {}


def draw(block: int, population: str, data: Data, options: Options, seed: int) -> Membership:
    """Raise ValueError: memberships come with the logits."""
    raise ValueError("protocol external draws no memberships; these lie beside the logits")


def methods(options: Options, names: list[str]) -> list[str]:
    """Return the methods that a study names, and the reference methods for which the folder has models, in the order
    "none", the named methods, "retrain", "retrain_control".

    Raises ValueError with one sentence for a missing folder, for names that cannot be methods, and for folders of
    models that would be ignored.
    """
    root = Path(options.path)
    if not root.is_dir():
        raise ValueError(f"{root}: there is no such folder; give one relative to the working directory")
    method_names = [name for name in names if name not in YARDSTICKS]
    for name in names:
        target = _home(root, name, method_names) / "target"  # the folder of the audited models
        if name in YARDSTICKS:
            # The root's target/ is an error only if the study names no method whose models it may hold.
            if target.is_dir():
                reason = f"the method {name!r} has the models of {root / YARDSTICKS[name]}"
                raise ValueError(f"{target}: {reason}; give the audited method another name")
            if not _has_models(root / YARDSTICKS[name]):
                raise ValueError(
                    f"{root / YARDSTICKS[name]}: there are neither logits.npy nor models; the method {name!r} needs "
                    "one of the two"
                )
        elif name in (*PER_METHOD, *SHARED):
            raise ValueError(f"{root / name}: {name} is a population, not a method; give the method another name")
        elif not target.is_dir():
            expected = "it must hold logits.npy of the models after unlearning, or these models, and the memberships"
            raise ValueError(f"{target}: there is no such folder; {expected}")
    _refuse_unknown_folders(root, method_names)
    known = {name for name, folder in YARDSTICKS.items() if _has_models(root / folder)}
    return [name for name in ("none", *method_names, "retrain", "retrain_control") if name in {*known, *method_names}]


def _home(root: Path, method: str, method_names: list[str]) -> Path:
    """Return the folder of a method's target/ and shadow/: the folder of its name. It is the root if that has no
    target/ and the study names no other method besides reference methods."""
    own = root / method
    return root if not {*method_names} - {method} and not (own / "target").is_dir() else own


def _refuse_unknown_folders(root: Path, method_names: list[str]) -> None:
    """Raise ValueError for what would be ignored in ``root`` and in the folders of the methods ``method_names``.

    Three things would be ignored: a population that all methods share, in the folder of one method; an array of unknown
    name; and a folder of unknown name if it has models, or if its name is almost a known one. A folder that is itself
    one model does not count as having models, because an adapter may have any name. A folder that has target/ passes,
    because it may be another method of the user's.
    """
    methods = [name for name in method_names if (root / name / "target").is_dir()]
    for folder in (root / method / name for method in methods for name in SHARED):
        if _has_models(folder):
            raise ValueError(f"{folder}: {folder.name} is shared by all methods; move this folder to {root}")
    # Folder → the names that folders in it may have.
    expected = {root: (*PER_METHOD, *SHARED, *method_names)} | {root / name: (*PER_METHOD, *SHARED) for name in methods}
    for folder, names in expected.items():
        _refuse_unknown_arrays(folder, ARRAYS[1:])
        for path in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
            has_models = _has_models(path) and checkpoints(path) != [path]
            known = path.name in names or (path / "target").is_dir()
            if not known and (has_models or near(path.name, list(names))):
                problem = unknown(path.name, names, f"population {path.name!r}")
                raise ValueError(f"{path}: {problem}; rename it or move it away")


def _refuse_unknown_arrays(folder: Path, names: tuple[str, ...]) -> None:
    """Raise ValueError for a file .npy in ``folder`` whose name is not among the ``names`` of arrays."""
    for path in sorted(folder.glob("[!.]*.npy")):
        if path.stem == "logits" and "logits" not in names:
            raise ValueError(f"{path}: logits are read from the folder of their models, such as {folder / 'target'}")
        if path.stem not in names:
            raise ValueError(f"{path}: {unknown(path.stem, names, 'array of this name')}; rename it or move it away")


class ModelFolder(NamedTuple):
    """One folder of models: its population ``kind``, and name → path of its ``files``, some of which may lie in other
    folders."""

    kind: str
    files: dict[str, Path]


def populations(options: Options, method: str, names: list[str]) -> dict[str, ModelFolder]:
    """Return role → folder of models, for the evaluation of one of the `methods`.

    "target" are the audited models. "shadow" and "shadow_original" are the adversary's models. "original", "retrain"
    and "retrain_control" are for comparison. Folders that do not exist are left out. A method that is alone may have
    its folders in the root.

    For a reference method, "target" is the folder of its own models. Retrained models are then compared with the other
    retrained folder alone, whose role is "retrain" whatever its name. For "none", the folder original is both "target"
    and "original", and shadow_original both "shadow" and "shadow_original".

    A folder may lack files. Files on samples, such as labels, are then taken from the folders above it; files on
    models, such as who forgot what, from another folder that has the same models.

    Parameters
    ----------
    method
        The method that is evaluated.
    names
        All methods of the study.

    Raises
    ------
    ValueError
        If a file is missing, unknown or not readable.
    """
    root = Path(options.path)
    method_names = [name for name in names if name not in YARDSTICKS]
    # If several methods are compared, their models differ only by the method, and any method's files on models will do.
    any_method = _home(root, method_names[0], method_names) if method_names else root
    shared = {}
    for kind in SHARED:
        if _has_models(root / kind) or _formats.holds_arrays(root / kind):
            # Other folders that have files on the same models.
            donors = [any_method / "shadow"] if kind == "shadow_original" else [root, any_method, any_method / "target"]
            shared[kind] = ModelFolder(kind, _files_of(kind, root / kind, above=[root], donors=donors))
    if method in YARDSTICKS:
        return _folders_of_reference(YARDSTICKS[method], shared)
    own = _home(root, method, method_names)
    above = list(dict.fromkeys((own, root)))
    folders = {"target": ModelFolder("target", _files_of("target", own / "target", above, donors=above))}
    if (own / "shadow").is_dir():
        folders["shadow"] = ModelFolder("shadow", _files_of("shadow", own / "shadow", above, donors=[]))
    return {**folders, **shared}


def _folders_of_reference(kind: str, shared: dict[str, ModelFolder]) -> dict[str, ModelFolder]:
    """Return role → folder for the evaluation of a reference method, whose audited models are the shared population
    ``kind``.

    ``shared``: population → folder. Retrained models are compared with other retrained models only.
    """
    folders = {"target": shared[kind]}
    retrained = [name for name in ("retrain", "retrain_control") if name in shared and name != kind]
    # There may be fewer retrained populations than roles.
    folders |= {role: shared[name] for role, name in zip(("retrain", "retrain_control"), retrained, strict=False)}
    if "shadow_original" in shared:
        folders["shadow_original"] = shared["shadow_original"]
    if kind == "original":  # these models are unchanged, so they and their shadow models have two roles each
        populations_of_roles = {"original": "original", "shadow": "shadow_original"}
        folders |= {role: shared[name] for role, name in populations_of_roles.items() if name in shared}
    return folders


def _has_models(folder: Path) -> bool:
    """Return whether a folder contains models, or logits or published scores of models."""
    return any((folder / name).is_file() for name in ("logits.npy", PUBLISHED)) or bool(checkpoints(folder))


def checkpoints(folder: Path) -> list[Path]:
    """Return the models in a folder without logits, ordered by name, with numbers ordered by value.

    Models are state dicts in safetensors, folders with a state dict in several parts and their index, and folders of
    transformers or peft. The folder itself may be one. Returns [] if the folder has logits.
    """
    if not folder.is_dir() or (folder / "logits.npy").is_file():
        return []

    def is_model(path: Path) -> bool:
        """Return whether a folder is one model: of transformers, of peft, or a state dict in several parts."""
        named = (path / "config.json").is_file() or (path / "adapter_config.json").is_file()
        return named or any(path.glob(f"*{INDEX}"))

    if is_model(folder):
        return [folder]
    inside = [path for path in folder.iterdir() if path.suffix == ".safetensors" or is_model(path)]

    def order(path: Path) -> tuple[list[str | int], str]:
        """Return a key for sorting: the words and numbers of a name in turn, so that model10 comes after model9."""
        parts = re.split(r"([0-9]+)", path.name)  # every second part is a number
        return [int(part) if place % 2 else part for place, part in enumerate(parts)], path.name

    return sorted(inside, key=order)


def _files_of(kind: str, folder: Path, above: list[Path], donors: list[Path]) -> dict[str, Path]:
    """Return name → file of the population ``kind``, which lies in ``folder``.

    The names are names of arrays and, for models without logits, "checkpoint_0" and so on. If the folder holds
    published values of each sample in place of arrays, the only name is "published".

    Parameters
    ----------
    above
        Folders from which arrays on samples (`SAMPLE_FILES`) are taken that ``folder`` lacks; the first that has one
        counts.
    donors
        Folders with the same models, from which arrays on models (`MODEL_FILES`) are taken that ``folder`` lacks; the
        first that has one counts.

    Raises
    ------
    ValueError
        If a file is missing, unknown or not readable.
    """
    if (folder / PUBLISHED).is_file():
        return {"published": folder / PUBLISHED}
    _refuse_unknown_arrays(folder, ARRAYS)
    models = checkpoints(folder)
    if not models and not (folder / "logits.npy").exists():
        raise ValueError(_formats.instead_of_logits(folder))
    required = {"labels", "forget"} - {"forget" if kind == "shadow_original" else "", "labels" if models else ""}
    places = {"logits": [folder]}  # array → the folders in which it may lie, the first of which counts
    places |= {name: [folder, *above] for name in SAMPLE_FILES}
    places |= {name: [folder, *donors] for name in MODEL_FILES}
    # A missing file of original or retrained models is reported in the folder that all populations share, and not in
    # the first population without it.
    belongs = {name: folders[-1] if kind in SHARED[:3] else folder for name, folders in places.items()}
    files = {f"checkpoint_{number}": path for number, path in enumerate(models)}
    for name, folders in places.items():
        paths = [place / f"{name}.npy" for place in folders]
        path = next((path for path in paths if path.exists() or path.is_symlink()), None)
        if path and not path.is_file():  # ignoring it would change the meaning
            raise ValueError(f"{path}: this is a folder or a broken link, not a file; save the array with numpy.save")
        if path:
            files[name] = path
        elif name != "logits" and (sentence := _formats.other_format(name, folders, also_text=name in required)):
            raise ValueError(sentence)
        elif name in required:
            raise ValueError(f"{belongs[name] / name}.npy: this file is missing; save it with numpy.save")
    # Which samples are retained is read from train or heldout. If every sample is to be forgotten, none is retained.
    forget = files.get("forget")
    if not files.keys() & {"train", "heldout"} and not (forget and headers.open_array("forget", forget).all()):
        raise ValueError(
            f"{belongs['train']}/train.npy: this file is missing, and so is heldout.npy; one of the two must be there"
        )
    return files
