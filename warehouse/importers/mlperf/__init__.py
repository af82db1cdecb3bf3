"""Result summaries of MLPerf Inference."""
