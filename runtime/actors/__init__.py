"""The Ray executor: the only part of windowfarm that imports Ray."""

from runtime.actors.executor import run_on_ray
from runtime.actors.metrics import metrics_address
from runtime.actors.session import dashboard_address, ensure_ray, stop_ray

__all__ = ["dashboard_address", "ensure_ray", "metrics_address", "run_on_ray", "stop_ray"]
