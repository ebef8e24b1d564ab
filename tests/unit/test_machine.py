"""GPUs are counted by their device files."""

from unlearning.machine import gpus


def test_only_numbered_devices_are_gpus(tmp_path):
    assert gpus(tmp_path) == 0
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    assert gpus(tmp_path) == 2
