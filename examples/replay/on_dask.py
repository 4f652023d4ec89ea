"""Price policies on a Dask cluster: `python examples/replay/on_dask.py PATH...`.

Sessions are independent, so any executor will do. This one starts two worker processes on this machine; give `Client`
the address of a scheduler to use a real cluster. Needs `pip install distributed`.
"""

import sys

from distributed import Client, LocalCluster

from cg.replay import report


def main(paths: list[str]) -> None:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        found = report(paths, executor=client.get_executor(), jobs=2)
    for row in found.policies:
        own = row.figures
        print(f"{own.policy:12} {own.lifetime:7} {own.units:14,.0f} units, {own.saved_units:12,.0f} saved")
    if found.advice is not None:
        print(found.advice.head)


if __name__ == "__main__":
    main(sys.argv[1:])
