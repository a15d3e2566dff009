"""Starts stachio on some ranks, for the scripts beside this."""

import os
import subprocess


def launch(ranks, command, is_local=False, seconds=600, **environment):
    """The process when it has ended, with what it printed; with status 124 after so many seconds. is_local: ranks are threads of one process."""
    settings = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1", **environment)
    if is_local:
        settings["STACHIO_LOCAL_RANKS"] = str(ranks)
    elif ranks > 1:
        command = ["mpirun", "-n", str(ranks), *command]
    # mpirun ends its ranks at a SIGTERM or Control-C; killed, it would leave them behind
    return subprocess.run(["timeout", "--foreground", "-k", "10", str(seconds), *command], env=settings, capture_output=True, text=True)
