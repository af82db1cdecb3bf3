"""DigitalOcean's tags, by pydo."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from bench.errors import CloudDeniedError, CloudLimitError, CloudRefusedError, CloudUnknownError
from bench.machine.names import TagName
from infra.clouds.abilities import Tag
from infra.clouds.digitalocean.client import Calls, page_of


class TagCalls:
    """The part of an account that keeps tags."""

    _client: Any
    _calls: Calls
    prefix: str

    def tags(self) -> list[Tag]:
        """Every tag of ours; what the token may not list, it cannot have created either."""
        try:
            rows = self._calls.pages("tag:read", lambda page: self._client.tags.list(**page_of(page)), "tags")
            # A tag without a count may be in use.
            counts = {str(row["name"]): int((row.get("resources") or {}).get("count", 1)) for row in rows}
            ours = {name: tag for name in counts if (tag := TagName.parse(name, self.prefix)) is not None}
            has_used = any(tag.sort == "used" and counts[name] for name, tag in ours.items())
            outdated = self._outdated() if has_used else Counter[str]()
        except CloudDeniedError as error:
            if not error.is_scope:
                raise
            return []
        return [Tag(name, is_needed=counts[name] > outdated[name]) for name in ours]

    def _outdated(self) -> Counter[str]:
        """How many volumes have each tag with the time of a use, and another one with a later time."""
        rows = self._calls.pages(
            "block_storage:read", lambda page: self._client.volumes.list(**page_of(page)), "volumes"
        )
        found = Counter[str]()
        for row in rows:
            named = {str(tag): TagName.parse(str(tag), self.prefix) for tag in row.get("tags") or ()}
            moments = {tag: name.moment for tag, name in named.items() if name is not None and name.sort == "used"}
            latest = max(filter(None, moments.values()), default=None)
            found.update(tag for tag, moment in moments.items() if moment != latest)
        return found

    def remove_tag(self, name: str) -> None:
        """Send one DELETE."""
        try:
            self._calls.repeat("tag:delete", lambda: self._client.tags.delete(name))
        except CloudUnknownError:
            return


def with_tags(send: Callable[[Sequence[str]], Any], tags: Sequence[str]) -> Any:
    """What a request with these tags returns, or one without tags where the cloud refuses them.

    Names hold the same facts; a request that was refused had no effect.
    """
    try:
        return send(tags)
    except (CloudLimitError, CloudRefusedError) as error:
        if re.search(r"\btags?\b", str(error), re.IGNORECASE) is None:
            raise
        return send(())
