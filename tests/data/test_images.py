"""Image files on disk: torchvision's layouts and folders of the user's own."""

import gzip
import struct

import numpy as np
import pytest
from PIL import Image
from unlearning_audit.data import cifar10, cifar100, fashion_mnist, image_folder, mnist, tinyimagenet


def write_idx(folder, train: int, test: int, pack=lambda blob: blob, ending: str = "") -> None:
    """Images whose top left pixels count from 0 and whose labels are that number mod 10, in the IDX format: two zero
    bytes, 8 (unsigned byte), number of axes, their big-endian sizes, the bytes."""
    folder.mkdir(parents=True)
    for name, n in (("train", train), ("t10k", test)):
        images = np.zeros((n, 28, 28), np.uint8)
        images[:, 0, 0], images[:, 0, 1] = np.arange(n) % 256, np.arange(n) // 256
        images[:, 27, 2] = 9 if name == "train" else 8
        for kind, values in (("images-idx3", images), ("labels-idx1", (np.arange(n) % 10).astype(np.uint8))):
            head = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
            (folder / f"{name}-{kind}-ubyte{ending}").write_bytes(pack(head + values.tobytes()))


@pytest.mark.parametrize(("module", "name"), [(mnist, "MNIST"), (fashion_mnist, "FashionMNIST")])
def test_idx_files_are_read_in_their_order(tmp_path, module, name):
    write_idx(tmp_path / "files" / name / "raw", 60_000, 10_000)
    read = module.load(module.Options(data_dir="files"), tmp_path)
    assert (read.x.shape, read.x.dtype, read.classes) == ((70_000, 1, 28, 28), np.uint8, 10)
    number = np.concatenate([np.arange(60_000), np.arange(10_000)])
    np.testing.assert_array_equal(read.x[:, 0, 0, :2].astype(int) @ [1, 256], number)
    np.testing.assert_array_equal(read.y, number % 10)
    np.testing.assert_array_equal(read.part, np.arange(70_000) >= 60_000)
    np.testing.assert_array_equal(read.x[:, 0, 27, 2], np.where(read.part, 8, 9))


def test_missing_packed_cut_and_few_idx_files_say_what_to_put_where(tmp_path):
    def refused(
        sentence=r"data must hold MNIST/raw/ with train-images-idx3-ubyte.* gunzip.* set download: true or put",
    ):
        with pytest.raises(ValueError, match=f"MNIST: .*/{sentence}"):
            mnist.load(mnist.Options(), tmp_path)

    refused()
    folder = tmp_path / "data" / "MNIST" / "raw"
    write_idx(folder, 30, 10, gzip.compress, ".gz")
    refused()
    for file in list(folder.iterdir()):
        file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
    refused("data holds 30 training and 10 test images instead of 60000 and 10000")
    cut = folder / "t10k-images-idx3-ubyte"
    cut.write_bytes(cut.read_bytes()[:-100])
    refused()


@pytest.mark.parametrize("module", [cifar10, cifar100])
def test_cifar_files_that_are_absent_or_changed_are_never_opened(tmp_path, module):
    def refused():
        sentence = rf"CIFAR10+: {tmp_path}/data must hold cifar-.* with .*set download: true or put them there"
        with pytest.raises(ValueError, match=sentence):
            module.load(module.Options(), tmp_path)

    refused()
    batches = [f"cifar-10-batches-py/{name}" for name in ("test_batch", *(f"data_batch_{i}" for i in range(1, 6)))]
    for name in (
        *batches,
        "cifar-10-batches-py/batches.meta",
        *(f"cifar-100-python/{n}" for n in ("train", "test", "meta")),
    ):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_bytes(b"not what it should be")
    refused()


# ---------------------------------------------------------------- folders


def picture(path, pixels) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels, np.uint8)).save(path)


def test_a_folder_of_images_is_read_in_sorted_order(tmp_path):
    files = ("train/dog/b.png", "train/dog/a.png", "train/cat/deep/z.PNG", "train/ant/x.bmp", "test/dog/q.png")
    for value, name in enumerate(files, 1):
        picture(tmp_path / "pets" / name, np.full((5, 7, 3), np.arange(3) + 10 * value))
    (tmp_path / "pets" / "train" / "cat" / "notes.txt").write_text("not an image")
    (tmp_path / "pets" / "train" / ".cache").mkdir()
    read = image_folder.load(image_folder.Options(path="pets", image_size=4), tmp_path)
    expected = np.array([40, 30, 20, 10, 50])[:, None] + np.arange(3)
    np.testing.assert_array_equal(read.x, np.broadcast_to(expected[..., None, None], (5, 3, 4, 4)))
    assert (read.y.tolist(), read.part.tolist(), read.classes) == ([0, 1, 2, 2, 2], [0, 0, 0, 0, 1], 3)


def test_images_of_the_right_size_keep_every_pixel_and_others_are_averaged(tmp_path):
    exact = np.random.default_rng(0).integers(256, size=(8, 8, 3), dtype=np.uint8)
    picture(tmp_path / "train" / "a" / "exact.png", exact)
    picture(tmp_path / "train" / "b" / "board.png", np.indices((16, 16)).sum(0) % 2 * 255)
    read = image_folder.load(image_folder.Options(path=".", image_size=8), tmp_path)
    assert np.array_equal(read.x[0], exact.transpose(2, 0, 1))
    # A chequered board shrunk with anti-aliasing is grey; without it, it would stay black and white.
    assert abs(read.x[1].astype(int) - 127).max() < 40


def test_broken_folders_are_refused_with_their_name(tmp_path):
    pets = tmp_path / "pets"

    def refuses(message):
        with pytest.raises(ValueError, match=message):
            image_folder.load(image_folder.Options(path="pets", image_size=4), tmp_path)

    refuses(r"pets/train is not a directory")
    picture(pets / "train" / "cat" / "a.png", np.zeros((4, 4)))
    refuses(r"pets/train must hold one folder of images for each class")
    (pets / "train" / "dog").mkdir()
    refuses(r"pets/train/dog holds no image")
    file = pets / "train" / "dog" / "a.png"
    Image.fromarray(np.full((4, 4), 4000, np.uint16)).save(file)
    refuses(r"train/dog/a\.png cannot be read as an 8-bit image .*wider than 8 bits")
    picture(file, np.zeros((4, 4)))
    (pets / "val").mkdir()
    refuses(r"pets/val: images are read from train/ and test/; rename it to test, or move it away")


# ---------------------------------------------------------------- real files


@pytest.mark.slow
def test_real_cifar10_is_the_published_one(real_data, tmp_path):
    read = cifar10.load(cifar10.Options(data_dir=str(real_data)), tmp_path)
    assert read.x.shape == (60_000, 3, 32, 32)
    np.testing.assert_array_equal(np.bincount(10 * read.part + read.y), np.repeat([5000, 1000], 10))
    # The files hold the pixels channel by channel and row by row, as one run of bytes.
    assert read.x[50_000:].tobytes() in (real_data / "cifar-10-batches-py" / "test_batch").read_bytes()
    # Channel means and deviations of the training part as everybody prints them, to their four digits.
    from unlearning_audit.models import CIFAR10_MEAN, CIFAR10_STD

    for channel, mean, std in zip(range(3), CIFAR10_MEAN, CIFAR10_STD, strict=True):
        values = read.x[:50_000, channel] / 255
        assert (values.mean(), values.std()) == pytest.approx((mean, std), abs=6e-5)


def test_real_mnist_is_the_published_one(real_data, tmp_path):
    read = mnist.load(mnist.Options(data_dir=str(real_data)), tmp_path)
    assert read.y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    train = read.x[:60_000] / 255
    assert (train.mean(), train.std()) == pytest.approx((0.1307, 0.3081), abs=5e-5)
    raw = (real_data / "MNIST" / "raw" / "t10k-images-idx3-ubyte.gz").read_bytes()
    assert read.x[60_000:].tobytes() == gzip.decompress(raw)[16:]


# ---------------------------------------------------------------- Tiny-ImageNet


@pytest.fixture
def tiny(tmp_path):
    """Two classes in the published layout; the class that sorts last is the first of wnids.txt."""
    place = tmp_path / "data" / "tiny-imagenet-200"
    for name, value in (("n02", 10), ("n01", 20)):
        for number in (1, 0):
            picture(place / f"train/{name}/images/{name}_{number}.JPEG", np.full((64, 64, 3), value + number))
        (place / f"train/{name}/{name}_boxes.txt").write_text(f"{name}_0.JPEG\t0\t0\t62\t62\n")
    (place / "wnids.txt").write_text("n02\nn01\n")
    for number, value in enumerate((30, 40)):
        picture(place / f"val/images/val_{number}.JPEG", np.full((64, 64), value))
    (place / "val/val_annotations.txt").write_text("val_1.JPEG\tn02\t0\t0\t9\t9\nval_0.JPEG\tn01\t0\nval_2.JPEG\tn03\n")
    return place


def test_tiny_imagenet_is_read_as_it_is_published(tiny, tmp_path):
    read = tinyimagenet.load(tinyimagenet.Options(), tmp_path)
    assert (read.x.shape, read.classes) == ((6, 3, 64, 64), 2)
    assert read.x[:, 0, 0, 0].tolist() == [10, 11, 20, 21, 30, 40]
    assert (read.y.tolist(), read.part.tolist()) == ([0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1])
    assert tinyimagenet.load(tinyimagenet.Options(image_size=8), tmp_path).x.shape == (6, 3, 8, 8)


def test_a_tiny_imagenet_that_is_not_whole_is_refused_with_the_name_of_what_lacks(tiny, tmp_path):
    (tiny / "val/val_annotations.txt").unlink()
    message = r"val_annotations\.txt cannot be read .*data_dir must hold tiny-imagenet-200/ as it is published"
    with pytest.raises(ValueError, match=message):
        tinyimagenet.load(tinyimagenet.Options(), tmp_path)
