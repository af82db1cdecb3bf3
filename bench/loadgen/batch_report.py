"""What a driver reported that ran batches without a server: times of whole batches, and their tokens."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchReport:
    """The measured batches; `elapsed_s` is the time of all of them, `iteration_s` of each where there are several.

    `stated_tok_per_s` is the rate of all tokens, in and out, as the driver printed it; None where it prints none.
    """

    requests: int
    elapsed_s: float
    total_tokens: int
    input_tokens: int
    iteration_s: tuple[float, ...] = ()
    stated_tok_per_s: float | None = None

    @property
    def output_tokens(self) -> int:
        """Tokens that were generated: all that are not of the prompts, whose length is exact."""
        return self.total_tokens - self.input_tokens

    @property
    def output_tok_per_s(self) -> float:
        """Generated tokens over the time of all batches."""
        return self.output_tokens / self.elapsed_s

    @property
    def requests_per_s(self) -> float:
        """Requests over the time of all batches."""
        return self.requests / self.elapsed_s
