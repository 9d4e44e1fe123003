"""Speed as ratios: sendonce against named peers, in one run, on one machine."""
