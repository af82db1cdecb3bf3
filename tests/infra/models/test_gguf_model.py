"""The generated model as a GGUF file: the names, sizes and weights of its safetensors twin."""

from pathlib import Path

import numpy as np
from gguf import GGUFReader

from infra.models.files import gguf_of
from infra.models.generated import TINY, tensors, weights
from infra.models.gguf_model import gguf_name
from infra.models.models import prepare_model


def test_the_gguf_file_has_the_weights_of_the_seed_with_q_and_k_in_pairs(tmp_path: Path) -> None:
    model = prepare_model("generated:tiny?seed=0&format=gguf", tmp_path, lambda _line: None)

    found = {one.name: one for one in GGUFReader(gguf_of(model.path)).tensors}
    assert set(found) == {gguf_name(name) for name, _dimensions, _std in tensors(TINY)}
    assert (model.vocab_size, model.weights_bytes) == (TINY.vocabulary, gguf_of(model.path).stat().st_size)
    for name, dimensions, std in tensors(TINY):
        raw = np.frombuffer(weights(TINY, 0, name, dimensions, std), dtype="<u2").astype("<u4") << 16
        twin = raw.view("<f4").reshape(dimensions)
        here = found[gguf_name(name)].data
        if "q_proj" in name or "k_proj" in name:
            half = TINY.head_dim // 2
            heads = here.reshape(-1, half, 2, TINY.hidden)  # of llama.cpp: a pair is a row of each half
            here = np.concatenate((heads[:, :, 0], heads[:, :, 1]), axis=1).reshape(dimensions)
        assert here.dtype == (np.float32 if std is None else np.float16)
        np.testing.assert_allclose(here.astype(np.float32), twin, rtol=1e-3, atol=1e-6)
