"""The command line: parse, call one flow, format. Nouns first, then verbs."""
