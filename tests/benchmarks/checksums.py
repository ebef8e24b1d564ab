"""What verifying artifacts takes: ``python tests/benchmarks/checksums.py [--study FILE]``.

Runs a study from nothing in an empty folder, the default one if no other is named, then computes every checksum of that
run once more: of each file where it was written, and where a later job read it. Their processor time over that of all
jobs, by the jobs' own account, is the share. Target: at most 2 % of the tour.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from unlearning_audit.artifacts.files import checksum  # noqa: E402 (found through the line above)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", help="the default one if not given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        study = ["--configfile", str(Path(options.study).resolve())] if options.study else []
        command = [sys.executable, "-m", "snakemake", "-s", ROOT / "Snakefile", "--cores", "2", "--directory", folder]
        subprocess.run([*command, *study], check=True, capture_output=True)
        specs = {path: json.loads(path.read_text()) for path in Path(folder, "results").glob("*/*/spec.json")}
        used = sum(spec["seconds"]["process"] for spec in specs.values())
        outputs = [path.with_name(name) for path, spec in specs.items() for name in spec["checksums"]]
        read = [Path(folder, name) for spec in specs.values() for name in spec["inputs"]]
        files = [path for path in (*outputs, *read) if path.is_file()]
        start = time.process_time()
        for path in files:
            checksum(path)
        took = time.process_time() - start
        size = sum(path.stat().st_size for path in files)
    print(f"{len(files):,} checksums of {size / 2**20:,.0f} MiB: {took:.2f} s of a processor")
    print(f"jobs: {used:.1f} s of a processor; share {took / used:.2%}")


if __name__ == "__main__":
    main()
