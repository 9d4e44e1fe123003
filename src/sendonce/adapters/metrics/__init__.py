"""What is counted and shown to Prometheus."""

from sendonce.adapters.metrics.counters import Metrics, NullMetrics
from sendonce.adapters.metrics.server import MetricsServer, serve_metrics

__all__ = ["Metrics", "MetricsServer", "NullMetrics", "serve_metrics"]
