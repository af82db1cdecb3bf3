"""Count the prompt tokens of request bodies with the models' own tokenizers; it runs in the engine's environment.

Each line of its input is `{"model": FOLDER, "body": BODY}`, each line of its output a number.
"""

import base64
import io
import json
import sys
from functools import cache
from typing import Any

from PIL import Image  # type: ignore[import-not-found,unused-ignore]  # of the engine's environment
from transformers import AutoProcessor, AutoTokenizer  # type: ignore[import-not-found,unused-ignore]  # likewise


@cache
def tokenizer_of(folder: str) -> Any:
    """The tokenizer of a model."""
    return AutoTokenizer.from_pretrained(folder)


@cache
def processor_of(folder: str) -> Any:
    """What makes tokens of text with images, of a model that reads them."""
    return AutoProcessor.from_pretrained(folder)


def count(folder: str, body: dict[str, Any]) -> int:
    """The tokens of one prompt: ids, text, or the messages of a chat with tools and images."""
    if "messages" not in body:
        prompt = body["input"] if "input" in body else body["prompt"]
        return len(prompt if isinstance(prompt, list) else tokenizer_of(folder)(prompt).input_ids)
    messages = [{**one, "content": _plain(one["content"])} for one in body["messages"]]
    tools = {"tools": body.get("tools"), "add_generation_prompt": True}
    text = tokenizer_of(folder).apply_chat_template(messages, tokenize=False, **tools)
    pictures = [_picture(part) for one in body["messages"] for part in _parts(one) if part["type"] == "image_url"]
    if pictures:
        return len(processor_of(folder)(text=text, images=pictures, add_special_tokens=False)["input_ids"][0])
    return len(tokenizer_of(folder)(text, add_special_tokens=False).input_ids)


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    return message["content"] if isinstance(message["content"], list) else []


def _plain(content: Any) -> Any:
    """The content as a chat template reads it, where an image has no address."""
    if isinstance(content, str):
        return content
    return [{"type": "image"} if part["type"] == "image_url" else part for part in content]


def _picture(part: dict[str, Any]) -> Any:
    return Image.open(io.BytesIO(base64.b64decode(part["image_url"]["url"].partition(",")[2])))


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        print(count(asked["model"], asked["body"]))
