"""Names of environment variables that hold a credential: recognised by their words, or named in a suite."""

import re

VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CREDENTIAL = re.compile(
    r"\w*(TOKEN|SECRET|PASSWORD|APIKEY)|SECRETS|PASSWORDS|PASSWD|PASSPHRASE|PWD|KEYS?|CREDENTIALS?|CREDS|AUTH|BEARER|JWT"
)
# What is measured about tokens or keys is not secret: VLLM_MULTI_STREAM_GEMM_TOKEN_THRESHOLD.
_MEASURES = frozenset({"THRESHOLD", "SIZE", "LIMIT", "COUNT", "LENGTH", "LEN", "DTYPE", "TIMEOUT", "BUDGET"})


def looks_secret(name: str) -> bool:
    """Whether a variable of this name usually holds a credential; TOKENIZERS_PARALLELISM and PWD do not."""
    words = name.upper().replace("-", "_").split("_")
    if words[-1] in _MEASURES or words in (["PWD"], ["OLDPWD"]):
        return False
    return any(_CREDENTIAL.fullmatch(word) for word in words)


def passable(names: tuple[str, ...]) -> tuple[str, ...]:
    """These names, if they are of variables that a process of a suite may get; ValueError otherwise."""
    for name in names:
        if not VARIABLE.fullmatch(name):
            msg = f"{name!r} is not the name of an environment variable"
            raise ValueError(msg)
        if name.startswith("NIGHTBENCH_"):
            msg = f"{name} is a setting of Nightbench, which no server and no command gets"
            raise ValueError(msg)
    return names
