# shellcheck shell=bash disable=SC2034
# Sourced by run.sh: the full-context Conformer on MuST-C. An option on the command line goes before.
: "${nbpe_src=5000}"
: "${nbpe_tgt=8000}"
[ -n "${average_last:-}" ] || : "${average_around_best=7}"
: "${asr_init=}"  # none: the paper's CTC on the source text replaces it
