import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import infra.models.models
from bench.errors import ModelError, NoSpaceError
from bench.manifest import MANIFEST
from infra.models.generated import TINY
from infra.models.models import PreparedModel, prepare_model
from tests.infra.models.tiny import copy_tiny_model

TINY_SOURCE = "generated:tiny?seed=0"


def _silent(_line: str) -> None:
    return None


def _prepare(models_dir: Path) -> PreparedModel:
    return prepare_model(TINY_SOURCE, models_dir, _silent)


def test_a_generated_model_has_its_facts_and_path(tmp_path: Path) -> None:
    model = _prepare(tmp_path)

    manifest = (model.path / MANIFEST).read_bytes()
    assert model.name == "tiny"
    assert model.sha256 == hashlib.sha256(manifest).hexdigest()
    assert model.revision == f"seed-0-{model.sha256[:16]}"
    assert model.vocab_size == TINY.vocabulary
    assert model.weights_bytes == (model.path / "model.safetensors").stat().st_size
    assert model.bytes == sum(file.stat().st_size for file in model.path.iterdir()) - len(manifest)


def test_a_model_on_disk_is_verified_and_not_generated_again(tmp_path: Path) -> None:
    first = _prepare(tmp_path)
    made_at = (first.path / "model.safetensors").stat().st_mtime_ns
    said: list[str] = []

    second = prepare_model(TINY_SOURCE, tmp_path, said.append)

    assert second == first
    assert (first.path / "model.safetensors").stat().st_mtime_ns == made_at
    assert said == []


def test_a_corrupt_file_is_reported_with_both_hashes(tmp_path: Path) -> None:
    weights = _prepare(tmp_path).path / "model.safetensors"
    whole = hashlib.sha256(weights.read_bytes()).hexdigest()
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)

    with pytest.raises(ModelError) as caught:
        _prepare(tmp_path)

    message = str(caught.value)
    assert str(weights) in message
    assert whole in message
    assert hashlib.sha256(content).hexdigest() in message
    assert f"delete the folder {weights.parent}" in message


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    tokenizer = _prepare(tmp_path).path / "tokenizer.json"
    tokenizer.unlink()

    with pytest.raises(ModelError, match=r"tokenizer\.json: .*found no file"):
        _prepare(tmp_path)


def test_a_file_that_is_not_in_the_manifest_is_refused(tmp_path: Path) -> None:
    (_prepare(tmp_path).path / "added_tokens.json").write_text("{}", "utf-8")

    with pytest.raises(ModelError, match=r"added_tokens\.json: .*lists no such file"):
        _prepare(tmp_path)


def test_a_generated_model_without_a_manifest_is_refused(tmp_path: Path) -> None:
    (_prepare(tmp_path).path / MANIFEST).unlink()

    with pytest.raises(ModelError, match=r"MANIFEST\.sha256 is missing"):
        _prepare(tmp_path)


def test_a_manifest_that_is_no_list_of_hashes_is_refused(tmp_path: Path) -> None:
    (_prepare(tmp_path).path / MANIFEST).write_text("no hash here\n", "utf-8")

    with pytest.raises(ModelError, match=r"line 1 is not a SHA-256 and a file name"):
        _prepare(tmp_path)


DIES_HALF_WAY = """
import os, signal, sys
from pathlib import Path
import infra.models.models

whole = infra.models.models.write_small_model

def half(folder, seed, shape):
    whole(folder, seed, shape)
    os.truncate(folder / "model.safetensors", 1000)
    os.kill(os.getpid(), signal.SIGKILL)

infra.models.models.write_small_model = half
infra.models.models.prepare_model("generated:tiny?seed=0", Path(sys.argv[1]), print)
"""


def test_a_killed_run_leaves_no_model_and_the_next_one_generates_it(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", DIES_HALF_WAY, str(tmp_path)], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / ".tiny-seed-0.unfinished" / "model.safetensors").stat().st_size == 1000
    assert not (tmp_path / "tiny-seed-0").exists()

    model = _prepare(tmp_path)

    assert model.weights_bytes > 2_000_000
    assert not (tmp_path / ".tiny-seed-0.unfinished").exists()


def test_a_full_disk_is_reported_before_the_model_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(infra.models.models, "SPARE_BYTES", 1 << 62)

    with pytest.raises(NoSpaceError, match=str(tmp_path)):
        _prepare(tmp_path)

    assert not (tmp_path / "tiny-seed-0").exists()


def test_a_users_own_folder_is_hashed_as_it_is(tmp_path: Path) -> None:
    copy_tiny_model(tmp_path / "theirs")

    model = prepare_model(f"path:{tmp_path / 'theirs'}", tmp_path / "models", _silent)

    assert model.name == "theirs"
    assert model.revision == f"path-{model.sha256[:16]}"
    assert not (tmp_path / "theirs" / MANIFEST).exists()
    assert model.sha256 == _prepare(tmp_path).sha256


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("hf:name-without-its-owner", "unknown model source"),
        ("generated:huge?seed=0", "use one of small, tiny"),
        ("generated:small", "unknown model source"),
        ("path:", "unknown model source"),
        ("path:/nowhere/at/all", "no config.json"),
    ],
)
def test_an_unknown_source_is_refused_with_the_reason(tmp_path: Path, source: str, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        prepare_model(source, tmp_path, _silent)


@pytest.mark.parametrize("config", ["{}", "not json", '{"text_config": null}'])
def test_a_config_without_a_vocabulary_size_is_refused(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.json").write_text(config, "utf-8")

    with pytest.raises(ModelError, match="vocab_size"):
        prepare_model(f"path:{tmp_path}", tmp_path, _silent)
