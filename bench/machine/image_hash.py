"""What a golden image holds, as a hash: the same for every night that would put the same software on its machine."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from bench.suite.engine import Engine

# Raised when what is done to a machine before its image is made changes, so that older images are not found any more.
RECIPE = 1
DIGITS = 12


def content_of(base_image: str, engine: Engine, locks: Mapping[str, str], lm_eval_tasks: Sequence[str] = ()) -> str:
    """Twelve hex digits over the base image, how the engine is installed, and the sha256 of each lock, by its name.

    `lm_eval_tasks` are those whose data is in the image; without any the hash is that of a suite without tasks.

    The model is in none: it would make the image larger than it is worth, and is not what changes with the software.
    """
    how = {"install": engine.install, "image": engine.image, "version": engine.version}
    words: dict[str, object] = {"recipe": RECIPE, "base_image": base_image, "engine": how, "locks": dict(locks)}
    if lm_eval_tasks:
        words["lm_eval_tasks"] = sorted(lm_eval_tasks)
    text = json.dumps(words, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
