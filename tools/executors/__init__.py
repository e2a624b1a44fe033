"""Executors: they carry out tasks in this process, in processes of this host, or elsewhere.

A task names a function and its arguments, as text. So whoever outgrows one machine names another
executor, and changes nothing else:

    with executor_of("local:2") as executor:
        for result in executor.run(Task("MODULE:FUNCTION", arguments) for arguments in all):
            ...

`task.py` has tasks and results, `executor.py` the protocol, `carry_out.py` what every worker does
with a task, and `named.py` the table of executors by the beginning of their names. A new executor,
such as one on a cluster, is a class with the protocol and a line in that table. It sends the text
of `message_for` to a worker, which calls `set_limits` before its first task, and `carried_out` for
each; `result_of` reads the text that comes back, and refuses a worker of another version.

A job that runs for a time takes its seconds as an argument, and calls `tell` with its progress,
which `run` hands to `on_progress`. `tell` may raise KeyboardInterrupt, as Ctrl-C does: a job that
catches it returns what it has so far.
"""
