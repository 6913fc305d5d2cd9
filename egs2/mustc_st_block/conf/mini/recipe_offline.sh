# shellcheck shell=bash disable=SC2034
# Sourced by run.sh: the full-context Conformer on the mini corpus. An option on the command line goes before.
: "${nbpe_src=300}"
: "${nbpe_tgt=500}"
[ -n "${average_last:-}" ] || : "${average_around_best=3}"
: "${asr_init=encoder:encoder decoder.decoders:decoder.decoders decoder.after_norm:decoder.after_norm}"
