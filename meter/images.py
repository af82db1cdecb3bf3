"""Random pictures as data URLs: PNG by the standard library, no two alike."""

import base64
import hashlib
import struct
import zlib
from collections.abc import Iterator

from meter.asked import BLOCK_PIXELS, Prompts

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB, EIGHT_BITS = 2, 8
AS_IT_IS, AS_ABOVE = b"\0", b"\2"  # a line's filter: its own bytes, or its difference from the line above


def image_urls(prompts: Prompts, count: int) -> Iterator[list[str]]:
    """Give each of `count` prompts its pictures."""
    seen: set[bytes] = set()
    number = 0
    for _ in range(count):
        urls: list[str] = []
        while len(urls) < prompts.images:
            picture = noise(prompts.width, prompts.height, f"image {prompts.seed} {number}")
            number += 1
            if picture not in seen:
                seen.add(picture)
                urls.append("data:image/png;base64," + base64.b64encode(picture).decode())
        yield urls


def noise(width: int, height: int, seed: str) -> bytes:
    """Draw a PNG of squares in random colours; the same for the same seed."""
    across, down = -(-width // BLOCK_PIXELS), -(-height // BLOCK_PIXELS)
    # Not random: a hash gives the same bytes on every version of Python.
    colours = hashlib.shake_256(seed.encode()).digest(3 * across * down)
    lines = bytearray()
    for block in range(down):
        row = colours[3 * across * block : 3 * across * (block + 1)]
        line = b"".join(row[at : at + 3] * BLOCK_PIXELS for at in range(0, len(row), 3))[: 3 * width]
        repeats = min(BLOCK_PIXELS, height - block * BLOCK_PIXELS) - 1
        lines += AS_IT_IS + line + (AS_ABOVE + bytes(3 * width)) * repeats
    header = struct.pack(">IIBBBBB", width, height, EIGHT_BITS, RGB, 0, 0, 0)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(bytes(lines))) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    """Write one chunk of a PNG: length, kind, content, checksum of the two."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
