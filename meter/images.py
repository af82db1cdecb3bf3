"""Random images as data URLs: PNG written with the standard library, all different."""

import base64
import hashlib
import struct
import zlib
from collections.abc import Iterator

from meter.prompt_spec import BLOCK_PIXELS, Prompts

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB, EIGHT_BITS = 2, 8
UNFILTERED, UP = b"\0", b"\2"  # PNG line filters 0 (None) and 2 (Up)


def image_urls(prompts: Prompts, count: int) -> Iterator[list[str]]:
    """Yield the images of each of `count` prompts."""
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
        lines += UNFILTERED + line + (UP + bytes(3 * width)) * repeats
    header = struct.pack(">IIBBBBB", width, height, EIGHT_BITS, RGB, 0, 0, 0)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(bytes(lines))) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    """Write one chunk of a PNG: length, kind, content, checksum of the two."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
