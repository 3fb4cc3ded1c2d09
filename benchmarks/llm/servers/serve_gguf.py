"""Serves a GGUF with llama.cpp's server, in the environment of xllamacpp, which has it as a wheel.

python serve_gguf.py FILE PORT
"""

import signal
import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[2])
params.n_ctx, params.n_parallel = 16384, 1
params.warmup = False
for threads in (params.cpuparams, params.cpuparams_batch):
    threads.n_threads, threads.poll = 1, 0  # several would wait for each other in busy loops, on a machine in use
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
signal.pause()  # until it is killed
