"""How a number is judged: claims, the evidence for them, rules, verdicts."""
