"""Many pieces of work that need the same thing loaded: done by this process, by several, or by a cluster.

work.py       what a worker does: loaded once, called for each job; what comes of a job
processes.py  workers on this machine
cluster.py    workers on a cluster of Ray
engines.py    which of the two
"""

from textcls.jobs.engines import ENGINES, HERE, Engine
from textcls.jobs.work import Crew, Done, Failed, Outcome, Work

__all__ = ["ENGINES", "HERE", "Crew", "Done", "Engine", "Failed", "Outcome", "Work"]
