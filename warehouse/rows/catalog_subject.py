"""Look up the GPU, the model and the precision of a claim in the catalogue."""

from functools import cache

from bench.audit.claim import Claim
from bench.audit.evidence.evidence import Subject
from catalog.read import find_gpu, find_model, precision_of, read_names


def subject_of(claim: Claim) -> Subject:
    """The catalogue's rows; None where a name is unknown or ambiguous."""
    asked = claim.asked
    return _subject(asked.gpu, asked.model, asked.precision, asked.kv_precision)


@cache  # ten thousand claims name a dozen of them
def _subject(gpu: str | None, model: str | None, precision: str | None, kv_precision: str | None) -> Subject:
    gpus = () if gpu is None else read_names().gpus_called(gpu)
    accelerator = None if gpu is None or gpus else read_names().accelerator(gpu)
    return Subject(
        gpu=None if gpu is None else find_gpu(gpu),
        gpus=gpus,
        accelerator=accelerator,
        near_gpus=() if gpu is None or gpus or accelerator else read_names().nearest("gpu", gpu),
        model=None if model is None else find_model(model),
        precision=_precision(precision, model),
        precisions=() if precision is None else read_names().precisions_called(precision),
        kv_precision=None if kv_precision is None else precision_of(kv_precision),
    )


def _precision(precision: str | None, model: str | None) -> str | None:
    """The stated precision, else the one in the checkpoint's name."""
    if precision is not None:
        return precision_of(precision)
    return None if model is None else read_names().precision_in(model)
