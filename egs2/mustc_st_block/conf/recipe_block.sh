# shellcheck shell=bash disable=SC2034
# Sourced by run.sh: contextual block models on MuST-C. An option on the command line goes before.
: "${nbpe_src=4000}"
: "${nbpe_tgt=4000}"
[ -n "${average_around_best:-}" ] || : "${average_last=10}"
: "${asr_init=encoder:encoder}"
