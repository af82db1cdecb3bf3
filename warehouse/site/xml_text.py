"""XML of our own files: elements with their texts, of which XML 1.0 has no form for some control characters."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def element(
    parent: ET.Element | None, tag: str, text: str = "", attributes: Mapping[str, str] | None = None
) -> ET.Element:
    """An element below its parent; what XML cannot hold becomes U+FFFD."""
    told = {name: _clean(value) for name, value in (attributes or {}).items()}
    made = ET.Element(tag, told) if parent is None else ET.SubElement(parent, tag, told)
    made.text = _clean(text) or None
    return made


def xml_text(root: ET.Element) -> str:
    """The document as text, with a line for each element."""
    ET.indent(root, space=" ")
    return f"{ET.tostring(root, encoding='unicode')}\n"


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
