"""``rtrain up``: a process that has imported what a run needs, and a cluster that has started, wait for ``rtrain fit``.

``server`` is the process that stays; ``__main__`` starts it. It forks a ``seat``, which starts a cluster and waits.
``client`` hands the seat a command, with the variables and the streams it was given in; the seat runs it as if it had
been started there, and ends with it. The server forks the next one. Nothing of a run is left for the next run.
"""
