"""Run many jobs that need the same thing loaded: in this process, in several, or on a cluster.

work.py       what a worker does: loaded once, called for each job; and the outcome of a job
processes.py  workers on this machine
cluster.py    workers on a Ray cluster
engines.py    the choice between the two
"""

from textcls.jobs.engines import ENGINES, HERE, Engine
from textcls.jobs.work import Crew, Done, Failed, Outcome, Work

__all__ = ["ENGINES", "HERE", "Crew", "Done", "Engine", "Failed", "Outcome", "Work"]
