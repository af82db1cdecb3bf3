"""The fixed questions for every server: one passage to score and four prompts to continue.

The sentences are our own and plain enough for any language model. Numbers of two versions are not comparable: raise
VERSION with every changed letter.
"""

VERSION = "1"

# About 120 tokens of a common English vocabulary: enough that rounding averages out (see bench/quality/answers.py), few
# enough that a laptop reads them in a second.
TEXT = (
    "The keeper of the lighthouse wrote down the weather every evening. On the first page of the book the sea was calm "
    "and the wind came from the west. In the second week a fishing boat lost its way in the fog, and he rang the bell "
    "until the men heard it and turned toward the harbour. They brought him bread and two baskets of apples, and they "
    "stayed until the rain had stopped. He noted the names of the boat and of its captain, the hour of their arrival, "
    "and the height of the tide. Below the last line he added that nobody had been hurt."
)

PROMPTS = (
    "The days of the week, in order, are Monday, Tuesday,",
    "To make a cup of tea, first boil the water, then",
    "def add(first, second):\n    return",
    "The capital of France is Paris, and the capital of Italy is",
)
