"""What judges a run of our own: the client's times, the server's counters and what the suite requests.

The same columns judge files of other tools where these have what a column needs.
"""

from bench.audit.rules.answers import ANSWER_RULES, SCORE_RULES
from bench.audit.rules.night.adapters import ADAPTER_RULES
from bench.audit.rules.night.answer_form import ANSWER_FORM_RULES
from bench.audit.rules.night.cancelled import CANCEL_RULES
from bench.audit.rules.night.client import CLIENT_RULES, STATISTICS_RULES
from bench.audit.rules.night.disaggregated import DISAGGREGATED_RULES
from bench.audit.rules.night.embeddings import EMBEDDING_RULES
from bench.audit.rules.night.endpoint import ENDPOINT_RULES
from bench.audit.rules.night.host import HOST_RULES
from bench.audit.rules.night.images import IMAGE_RULES
from bench.audit.rules.night.kv_offload import KV_OFFLOAD_RULES
from bench.audit.rules.night.load import LOAD_RULES
from bench.audit.rules.night.numbers import NUMBER_RULES
from bench.audit.rules.night.repetition import REPETITION_RULES
from bench.audit.rules.night.replay import REPLAY_RULES
from bench.audit.rules.night.requested import REQUESTED_RULES
from bench.audit.rules.night.server import SERVER_RULES
from bench.audit.rules.night.speculation import SPECULATION_RULES
from bench.audit.rules.night.start import START_RULES
from bench.audit.rules.rule import Rule

NIGHT_RULES: tuple[Rule, ...] = (
    *NUMBER_RULES,
    *LOAD_RULES,
    *REPLAY_RULES,
    *REQUESTED_RULES,
    *SERVER_RULES,
    *ENDPOINT_RULES,
    *SPECULATION_RULES,
    *REPETITION_RULES,
    *ANSWER_FORM_RULES,
    *CANCEL_RULES,
    *ADAPTER_RULES,
    *IMAGE_RULES,
    *EMBEDDING_RULES,
    *KV_OFFLOAD_RULES,
    *DISAGGREGATED_RULES,
    *START_RULES,
    *STATISTICS_RULES,
    *CLIENT_RULES,
    *HOST_RULES,
    *ANSWER_RULES,
    *SCORE_RULES,
)
