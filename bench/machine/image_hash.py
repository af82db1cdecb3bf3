"""What a golden image holds, as a hash: the same for every night that would put the same software on its machine."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from bench.suite.engine import Engine

# Raised when what is done to a machine before its image is made changes, so that older images are not found any more.
RECIPE = 1
DIGITS = 12


def content_of(
    base_image: str,
    engine: Engine,
    locks: Mapping[str, str],
    lm_eval_tasks: Sequence[str] = (),
    control: Engine | None = None,
) -> str:
    """Twelve hex digits over the base image, how the engine is installed, and the sha256 of each lock, by its name.

    `lm_eval_tasks` are those whose data is in the image, and `control` is the engine of the suite's control; without
    them the hash is that of a suite without tasks and control.

    The model is in none: it would make the image larger than it is worth, and is not what changes with the software.
    """
    words: dict[str, object] = {"recipe": RECIPE, "base_image": base_image, "locks": dict(locks)}
    words["engine"] = _installed(engine)
    if lm_eval_tasks:
        words["lm_eval_tasks"] = sorted(lm_eval_tasks)
    if control is not None:
        words["control"] = _installed(control)
    text = json.dumps(words, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _installed(engine: Engine) -> dict[str, str | None]:
    """How an engine is installed: of one that follows a tag, by the tag and not by the build that it names today.

    Builds of one tag share the layers below the engine's. So an image with an earlier build serves every later one:
    the machine pulls what has changed.
    """
    image = engine.image
    if image is not None and engine.track is not None:
        image = f"{image.partition('@')[0]}:{engine.track}"
    return {"install": engine.install, "image": image, "version": engine.version}
