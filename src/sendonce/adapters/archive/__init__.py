"""Where old records go before their rows are removed."""
