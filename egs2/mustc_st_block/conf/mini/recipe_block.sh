# shellcheck shell=bash disable=SC2034
# Sourced by run.sh: contextual block models on the mini corpus. An option on the command line goes before.
: "${nbpe_src=300}"
: "${nbpe_tgt=500}"
[ -n "${average_around_best:-}" ] || : "${average_last=2}"
: "${asr_init=encoder:encoder decoder.decoders:decoder.decoders decoder.after_norm:decoder.after_norm}"
