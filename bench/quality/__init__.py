"""What the answers of a server are worth: fixed questions, log-probabilities, scores."""
