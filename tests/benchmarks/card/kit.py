"""Studies for a quarter of an hour of a card, on a machine that nothing can be downloaded to.

At home, once: ``kit.py wheels .card`` (what that machine lacks), ``kit.py pack cifar10 .card`` (pictures in pieces).
There, in the clone, with ``.card`` taken along, one piece of the pictures with each call if all are too large together:

    python tests/benchmarks/card/kit.py run swap_retraining .card --out $OUT --minutes 9

It installs the wheels, asks for missing pieces, runs the study, and stops it in time; the next call goes on. Tables,
numbers and figures come back below ``--out``. If the study is not done, what its jobs made (models, logits, metrics)
comes back in pieces, too, which ``.card`` takes along to another machine. ``--tiny`` tries all of it at home in some
minutes: few pictures, one epoch, few models.
"""

import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
#: In this order, with the data that they read.
STUDIES = {
    "swap_retraining": "cifar10", "ruli_airbench": "cifar10", "ruli_cifar100": "cifar100",
    "competition_images": "cifar10", "swap_seeds": "cifar10",
}  # fmt: skip
#: What a machine with PyTorch has not: the workflow, and what it imports.
WHEELS = (
    "snakemake", "snakemake-interface-common", "snakemake-interface-executor-plugins",
    "snakemake-interface-logger-plugins", "snakemake-interface-report-plugins",
    "snakemake-interface-scheduler-plugins", "snakemake-interface-storage-plugins", "argparse-dataclass",
    "conda-inject", "configargparse", "connection-pool", "dpath", "docutils", "gitpython", "gitdb", "smmap",
    "humanfriendly", "immutables", "jsonschema", "jsonschema-specifications", "referencing", "rpds-py", "nbformat",
    "fastjsonschema", "jupyter-core", "traitlets", "pulp", "sqlalchemy", "greenlet", "sqlmodel", "annotated-types",
    "typing-inspection", "platformdirs", "smart-open", "tenacity", "throttler", "yte", "pydantic", "pydantic-core",
    "opacus", "datasets", "dill", "multiprocess", "adversarial-robustness-toolbox", "rouge-score", "nltk",
)  # fmt: skip
#: What `--tiny` changes of a study.
TINY = {
    "recipe": {"epochs": 1, "batch_size": 64, "schedule": "constant", "milestones": [], "precision": "float32"},
    "swap": {"models_per_split": 2, "pairs": 2}, "random_splits": {"models_per_split": 2, "pairs": 2},
    "interclass_confusion": {"models": 2}, "competition": {"models_per_block": 8}, "lira_selection": {"pairs": 4},
    "ruli": {"target_size": 24, "attack_size": 150, "shadow_blocks": 3},
}  # fmt: skip

app = typer.Typer(add_completion=False)


@app.command()
def wheels(folder: Path, python: str = "3.12") -> None:
    """Download the wheels of WHEELS in the versions of this environment, and nothing that they need."""
    from importlib.metadata import version

    platforms = [f"--platform=manylinux_2_{minor}_x86_64" for minor in (28, 27, 17, 12, 5)]
    of = ["--implementation=cp", f"--python-version={python}", "--platform=manylinux2014_x86_64", *platforms]
    pip = ["uv", "run", "--with", "pip", "python", "-m", "pip"]
    for name in WHEELS:
        last = ["--quiet", "--no-deps", f"{name}=={version(name)}"]
        try:
            subprocess.run([*pip, "download", "--only-binary=:all:", *of, "-d", folder / "wheels", *last], check=True)
        except subprocess.CalledProcessError:  # there are sources alone
            subprocess.run([*pip, "wheel", "-w", folder / "wheels", *last], check=True)


@app.command()
def pack(data: str, folder: Path, root: Path = Path()) -> None:
    """Write the pictures of a data set below ``root``/data, without loss, in pieces of 30 MiB: of a file of arrays that
    has its name, else as the library reads it."""
    from PIL import Image
    from unlearning_audit.data import arrays
    from unlearning_audit.plugins import registry

    module = registry.load("data", data)
    options = arrays.Options(path=f"data/{data}.npz")
    source = arrays.load(options, root) if (root / options.path).exists() else module.load(module.Options(), root)
    lengths, blob = [], io.BytesIO()
    for picture in source.x:
        start = blob.tell()
        Image.fromarray(picture.transpose(1, 2, 0)).save(blob, "WEBP", lossless=True)
        lengths.append(blob.tell() - start)
    whole = io.BytesIO()
    np.savez(whole, webp=np.frombuffer(blob.getbuffer(), np.uint8), length=lengths, y=source.y, part=source.part)
    folder.mkdir(parents=True, exist_ok=True)
    cut(whole, folder, data, 30)


def cut(whole: io.BytesIO, folder: Path, name: str, most: int) -> None:
    """Write files "name.1of4" and so on, of at most so many MiB."""
    content, step = whole.getbuffer(), most << 20
    count = -(-len(content) // step)
    for number in range(count):
        (folder / f"{name}.{number + 1}of{count}").write_bytes(content[number * step : (number + 1) * step])
    typer.echo(f"{name}: {count} pieces, {len(content) / 2**20:.0f} MiB below {folder}")


def joined(folder: Path, name: str) -> io.BytesIO | None:
    """What `cut` wrote, or None where pieces are missing."""
    pieces = sorted(folder.glob(f"{name}.*of*"))
    whole = pieces and len(pieces) == int(pieces[0].name.rpartition("of")[2])
    return io.BytesIO(b"".join(piece.read_bytes() for piece in pieces)) if whole else None


def unpacked(data: str, pieces: Path) -> Path | None:
    """The file of arrays of these pictures, or None where pieces are missing."""
    from PIL import Image

    path = pieces / f"{data}.npz"
    if path.exists():
        return path
    packed = joined(pieces, data)
    if packed is None:
        return None
    whole = np.load(packed)
    webp, ends = whole["webp"].tobytes(), np.cumsum(whole["length"]).tolist()
    pictures = (Image.open(io.BytesIO(webp[a:b])).convert("RGB") for a, b in zip([0, *ends], ends, strict=False))
    x = np.stack([np.asarray(picture).transpose(2, 0, 1) for picture in pictures])
    np.savez(path.with_suffix(".part.npz"), x=x, y=whole["y"], part=whole["part"])
    return path.with_suffix(".part.npz").rename(path)


def edited(name: str, pictures: Path, tiny: bool) -> dict:
    """The study, on these pictures; small if it is to be tried."""
    own = HERE / f"{name}.yaml"
    study = yaml.safe_load((own if own.exists() else ROOT / "studies" / f"{name}.yaml").read_text())
    study["defaults"]["data"] = {"name": "arrays", "path": str(pictures)}
    if tiny:
        study |= {"bootstrap": 100}
        study["defaults"]["recipe"] |= TINY["recipe"]
        for part in (study["defaults"], *study["scenarios"].values()):
            kind = part.get("protocol", {}).get("name") or study["defaults"].get("protocol", {}).get("name")
            part["protocol"] = part.get("protocol", {}) | TINY.get(kind, {})
            if "vulnerability" in part.get("metrics", {}):
                part["metrics"]["vulnerability"]["fpr"] = 0.1
    return study


def tried(pictures: Path) -> Path:
    """A few of these pictures, of all classes."""
    path = pictures.with_name(f"few_{pictures.name}")
    whole = np.load(pictures)
    rows = (np.flatnonzero(whole["part"] == part) for part in (0, 1))
    few = np.concatenate([of[:: len(of) // many][:many] for of, many in zip(rows, (800, 200), strict=True)])
    np.savez(path, **{key: whole[key][few] for key in ("x", "y", "part")})
    return path


@app.command()
def run(
    study: str,
    carried: Path,
    out: Annotated[Path, typer.Option()],
    minutes: Annotated[float, typer.Option()] = 9.0,
    work: Annotated[Path, typer.Option()] = Path("/tmp/card"),
    tiny: Annotated[bool, typer.Option()] = False,
) -> None:
    """Run a study as far as the time allows; exit 3 where pictures are missing still, 4 where time is up."""
    began = time.monotonic()
    folder = work / study
    folder.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    for piece in carried.glob(f"{STUDIES[study]}.*of*"):
        shutil.copy(piece, work)
    environment = dict(os.environ, UNLEARNING_COMPILE="1", UNLEARNING_IN_FLIGHT="8")
    site = work / "site"
    if (carried / "wheels").is_dir() and not site.exists():
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", site,
                        *(carried / "wheels").glob("*.whl")], check=True)  # fmt: skip
    if site.exists():  # a later call takes no wheels along
        environment["PYTHONPATH"] = os.pathsep.join([str(site), str(ROOT), environment.get("PYTHONPATH", "")])
    pictures = unpacked(STUDIES[study], work)
    if pictures is None:
        typer.echo("pieces of the pictures are missing; take the next along")
        raise typer.Exit(3)
    text = yaml.safe_dump(edited(study, tried(pictures) if tiny else pictures, tiny), sort_keys=False)
    (folder / "study.yaml").write_text(text)
    words = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--cores", "all", "--resources", "gpu=8",
             "--configfile", "study.yaml", "--keep-going"]  # fmt: skip
    made = joined(carried, "made")
    if made and not (folder / "results").exists():
        subprocess.run([*words, "--until", "splits"], cwd=folder, env=environment, check=True)
        # Newer than what it was made of, so that it is not made again.
        now = partial(tarfile.TarInfo.replace, mtime=time.time())
        with tarfile.open(fileobj=made) as archive:
            archive.extractall(folder, filter=lambda member, path: now(tarfile.data_filter(member, path)))
    process = subprocess.Popen(words, cwd=folder, env=environment, start_new_session=True)
    try:
        code = process.wait(timeout=max(60 * minutes - (time.monotonic() - began), 1))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(folder / ".snakemake" / "locks", ignore_errors=True)
        code = 4
    bring(folder, out, finished=code == 0)
    raise typer.Exit(code)


def bring(folder: Path, out: Path, finished: bool) -> None:
    """Tables, numbers and figures of the study, and what another machine needs to go on, if there is more to do."""
    with tarfile.open(out / "tables.tar.gz", "w:gz") as archive:
        for path in sorted((folder / "results").glob("*/*")):
            if path.name in ("tables", "figures", "metrics.csv", "cost.csv"):
                archive.add(path, path.relative_to(folder))
    if finished:
        return
    stages = ("train", "unlearn", "metrics", "comparisons")
    made = [of.parent for stage in stages for of in sorted((folder / "results" / stage).glob("*/spec.json"))]
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for of in made:
            archive.add(of, of.relative_to(folder))
    cut(whole, out, "made", 15)


if __name__ == "__main__":
    app()
