"""Whether the vectors that a server answers with can be used as embeddings."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

EMBEDDING_RULES: tuple[Rule, ...] = (
    Rule(
        code="embeddings_unusable",
        column=ev.ODD_VECTOR_SHARE,
        family="asked-found",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:.1%} of the vectors are all zero, not finite, or have another number of dimensions than most",
        driver="meter",
        is_required=False,
        only_where="embedding_dimensions",
        origin="definition: embeddings are compared by their direction, in one space",
    ),
)
