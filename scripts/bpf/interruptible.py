# Runs a program of Python with SIGINT as from a terminal: a shell without job control starts its background jobs with SIGINT ignored.
import os
import signal
import sys

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
