"""One night of a search over engines: of a bisect, or of a search for flags."""

from pathlib import Path

from bench.errors import BadRunsError, EngineBuildError, ServerStartError
from flows.show import console


def run_candidate_night(data: Path, suite: Path, target: str, begun: str | None) -> str:
    """Run or resume one night and return its name, also where runs of it are bad or its engine does not start."""
    from flows.end_state import loaded  # noqa: PLC0415
    from flows.nightly import nightly  # noqa: PLC0415
    from infra.storage import store  # noqa: PLC0415

    known = set(store.nights(data))
    try:
        return loaded(nightly(suite=str(suite), target=target, resume=begun)).night
    except BadRunsError as bad:
        return bad.night
    except (EngineBuildError, ServerStartError) as error:
        night = begun or max(set(store.nights(data)) - known, default=None)
        if night is None:
            raise
        console.warn(f"night {night} measured nothing: {error}")
        return night
