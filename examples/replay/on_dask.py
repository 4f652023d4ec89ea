"""Price policies on a Dask cluster: `python examples/replay/on_dask.py PATH...`.

Sessions are independent, so any executor will do. This one starts two worker processes on this machine; give `Client`
the address of a scheduler to use a real cluster. Needs `pip install distributed`.
"""

import sys
from pathlib import Path

from distributed import Client, LocalCluster

from cg.replay.batch import replay
from cg.replay.policies import parse
from cg.replay.reporting import table
from cg.replay.reporting.summary import Summary
from cg.replay.sessions import open_all
from cg.replay.settings import Settings


def main(paths: list[Path]) -> None:
    summary = Summary()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        for result in replay(open_all(paths), parse(), Settings(), executor=client.get_executor(), jobs=2):
            summary.take(result)
    print(table.totals(summary))


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
