"""Train on a SLURM cluster: workers as jobs of their own, by dask-jobqueue, which come and go as the queue lets them.

pip install 'tailwise[dask]' dask-jobqueue
python slurm.py --workers 16 --cores 8 --memory 32GB --walltime 04:00:00 -- large.jsonl -o my-model --workdir /nfs/run

What stands behind ``--`` are arguments of ``tailwise train``; --workdir lies on a file system that all nodes share.
When the queue ends it, the same line goes on where it was. ``--show`` prints the job script and ends.
"""

import argparse
import subprocess
import sys

from dask_jobqueue import SLURMCluster


def main() -> int:
    """Start workers, train, end them."""
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    own, behind = given[:at], given[at + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=4, help="jobs; each is one process of --cores threads")
    parser.add_argument("--cores", type=int, default=8)
    parser.add_argument("--memory", default="32GB")
    parser.add_argument("--walltime", default="04:00:00")
    parser.add_argument("--queue", help="the partition")
    parser.add_argument("--account")
    parser.add_argument("--interface", help="the network interface of the nodes, such as ib0")
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args(own)
    cluster = SLURMCluster(
        cores=asked.cores,
        processes=1,  # one process a node, so that its threads share what they map
        memory=asked.memory,
        walltime=asked.walltime,
        queue=asked.queue,
        account=asked.account,
        interface=asked.interface,
        # Leave in time for the pieces that are being computed to be written.
        worker_extra_args=["--lifetime-stagger", "2m"],
        job_script_prologue=["export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1"],
    )
    if asked.show:
        print(cluster.job_script())
        return 0
    cluster.adapt(minimum_jobs=1, maximum_jobs=asked.workers)
    engine = "dask://" + cluster.scheduler_address.partition("://")[2]
    return subprocess.run(["tailwise", "train", *behind, "--engine", engine], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
