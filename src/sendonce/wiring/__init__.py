"""Settings in, working parts out: the only place that knows both the flows and the adapters.

Heavy modules are imported where they are needed, so that ``sendonce --help`` needs none of them.
"""
