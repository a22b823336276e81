"""A cluster of Ray on this machine, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="clusters need Ray: pip install 'textcls[ray]'")
# Ray leaves sockets and files to be closed by the end of the process.
LEFT_OPEN = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@contextmanager
def cluster_of(cpus: int) -> Iterator[Any]:
    """Run a node without a CPU, where the driver is, and two with so many each."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes.add_node(num_cpus=cpus)
    nodes.add_node(num_cpus=cpus)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    try:
        yield nodes
    finally:
        ray.shutdown()
        nodes.shutdown()
