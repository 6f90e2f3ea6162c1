"""Programs to look at, complete with the shapes of their inputs: they are planned without data.

>>> list(PROGRAMS)
['matrix product', 'two layers', 'attention', 'nearest neighbours', 'LLaMA block']
"""

from __future__ import annotations

from einsummable.models import llama

_BLOCK = llama.Config(layers=1, seq=2048)

#: Text by name.
PROGRAMS = {
    "matrix product": """\
input A[i=4096, j=4096] f32
input B[j=4096, k=4096] f32
C[i,k] = A[i,j] * B[j,k]
""",
    "two layers": """\
input X[b=8192, d=1024] f32
input W[d=1024, h=4096] f32
input V[h=4096, o=1024] f32
H[b,h] = relu(sum[d] X[b,d] * W[d,h])
Y[b,o] = H[b,h] * V[h,o]
""",
    "attention": """\
input X[t=2048, m=1024] f32
input WQ[m=1024, h=16, d=64] f32
input WK[m=1024, h=16, d=64] f32
input WV[m=1024, h=16, d=64] f32
Q[t,h,d] = X[t,m] * WQ[m,h,d]
K[t,h,d] = X[t,m] * WK[m,h,d]
V[t,h,d] = X[t,m] * WV[m,h,d]
S[h,q,k] = where(k <= q, sum[d] Q[q,h,d] * K[k,h,d] / sqrt(extent(d)), -inf)
P[h,q,k] = softmax[k](S[h,q,k])
O[q,(h d)] = P[h,q,k] * V[k,h,d]
""",
    "nearest neighbours": """\
input X[i=20000, k=784] f32
input T[j=60000, k=784] f32
D[i,j] = sum[k] (X[i,k] - T[j,k])**2
near[i] = min[j] D[i,j]
""",
    "LLaMA block": llama.text(_BLOCK),
}
