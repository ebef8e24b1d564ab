"""What lies on the disk, to the letter: other versions and other programs read it."""

from unlearning_audit.store import files


def test_json_is_indented_by_a_space_and_sorted(tmp_path):
    files.write_json(tmp_path / "a.json", {"b": [1], "a": 2})
    assert (tmp_path / "a.json").read_text() == '{\n "a": 2,\n "b": [\n  1\n ]\n}\n'


def test_a_spec_holds_the_checksum_of_itself_without_it(tmp_path):
    files.write_spec(tmp_path / "spec.json", {"b": 1, "a": 2})
    # b2sum -l 160 of the same text without the line of the checksum.
    assert (tmp_path / "spec.json").read_text() == (
        '{\n "a": 2,\n "b": 1,\n "checksum": "50d266a135fcf0f24bf31a6ac3af634d45d083ab"\n}\n'
    )
    assert files.record_of(tmp_path / "a.npz")["b"] == 1
    assert files.record_of(tmp_path / "other" / "a.npz") == {}


def test_a_seal_is_the_checksum_in_a_hidden_file(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    files.seal(tmp_path / "a")
    assert (tmp_path / ".a.blake2b").read_text() == "384264f676f39536840523f284921cdc68b6846b"
