"""`octopis bench fuzz`: inputs made to break what reads bytes and texts of strangers.

laws       what must hold for each input, and how long it may take
targets    what is fuzzed: a name, a check, and where mutation begins
seeds      real messages and texts
mutation   inputs from inputs, also with msgpack taken apart
child      one process that fuzzes one target, guided by coverage (atheris)
run        starts the processes, looks again at what they have found, and sums up
"""
