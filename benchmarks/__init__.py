"""Speed and memory as ratios against something run in the same minute."""
