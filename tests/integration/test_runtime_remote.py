"""Actors on two nodes of a Ray cluster: the channel between them, and whole graphs over it.

The cluster is made on one machine, in a process of its own, so that the Ray of the other tests stays as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.channels import PATIENCE_S, ROOT

CLUSTER = """
import atexit, os, shutil, tempfile
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0", RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0")
import ray
ray._private.ray_constants.ENABLE_RAY_CLUSTER = False           # stay on loopback
from ray.cluster_utils import Cluster
folder = tempfile.mkdtemp(prefix="wf")
atexit.register(shutil.rmtree, folder, True)
cluster = Cluster(initialize_head=True, connect=False, head_node_args={
    "num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 << 20, "node_ip_address": "127.0.0.1",
    "temp_dir": folder})
cluster.add_node(num_cpus=2, object_store_memory=80 << 20, node_ip_address="127.0.0.1")
ray.init(address=cluster.address, log_to_driver=False, _node_ip_address="127.0.0.1")
assert len([node for node in ray.nodes() if node["Alive"]]) == 2
"""

GRAPHS = """
from functools import partial
from runtime.actors import run_on_ray
from runtime.errors import NodeError
from runtime.topology import farm, graph, node
from tests.nodes import *
from tests.integration.test_runtime_remote import gathered, homes

def totals(batches):
    return [int(batch.columns["c0"].sum()) for batch in numbers(batches, 1024)]

closed = graph(farm(node("emitter", partial(InTurn, 2)),
                    [node(f"worker-{i}", partial(Summing, True)) for i in range(2)],
                    node("collector", Forward), feedback=True, multicast="shared"))
found, stats = gathered(closed, numbers(300, 1024))
assert sorted(found) == totals(300), len(found)
assert {row.name: row.batches_in for row in stats}["collector"] == 300, stats
assert all(row.state == "done" for row in stats), stats

chunks = graph(farm(node("emitter", partial(ChunkEmitter, 2, 3, 9000), arena_bytes=64 << 10),
                    [node(f"worker-{i}", partial(Summing, True)) for i in range(2)], feedback=True))
found, _ = gathered(chunks, numbers(100, 1024))
expected = totals(100)
assert sorted(found) == sorted(one for start in range(98) for one in expected[start:start + 3])

assert len(homes(closed)) == 2

for how in ("raise", "SIGKILL"):
    broken = graph(farm(node("emitter", partial(InTurn, 2)), [node("worker-0", Forward),
                        node("worker-1", partial(FailAt, 5, how))], node("collector", Forward)))
    try:
        run_on_ray(broken, numbers(100000, 1024), lambda message: None)
        raise SystemExit("no error")
    except NodeError as error:
        assert error.node == "worker-1", error
"""

CONTRACT = """
import pytest
assert pytest.main(["-q", "-p", "no:cacheprovider", "tests/contract/test_channels.py", "-k",
                    "test_channel and remote_pair"]) == 0
"""

END = """
print("all right", flush=True)
os.environ["RAY_IGNORE_UNHANDLED_ERRORS"] = "1"
ray.shutdown()
cluster.shutdown()
"""


def gathered(closed, source):  # type: ignore[no-untyped-def]
    """What `closed` makes of `source`, and the nodes' figures."""
    from runtime.actors import run_on_ray
    found: list[int] = []
    stats, _, _ = run_on_ray(closed, source, lambda message: found.extend(message.columns["sum"].tolist()))
    return found, stats


def homes(closed):  # type: ignore[no-untyped-def]
    """The machines on which the hosts of `closed` are put."""
    import ray
    from runtime.actors.keeper import machines_of
    cores = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes()}
    return set(machines_of(list(closed.hosts()), cores, ray.get_runtime_context().get_node_id()).values())


def test_two_nodes_run_graphs_and_pass_the_contract_of_channels() -> None:
    done = subprocess.run([sys.executable, "-c", CLUSTER + GRAPHS + CONTRACT + END], cwd=ROOT, capture_output=True,
                          text=True, timeout=4 * PATIENCE_S,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "WINDOWFARM_REMOTE_PAIR": "ray"})
    assert "all right" in done.stdout, done.stdout + done.stderr
