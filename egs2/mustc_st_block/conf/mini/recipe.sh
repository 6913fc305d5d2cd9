# shellcheck shell=bash disable=SC2034
# Sourced by run.sh: settings for the mini corpus. An option on the command line goes before.
: "${speed_perturb_factors=}"
: "${audio_format=wav}"
: "${max_duration=20}"
: "${nbpe_src=300}"
: "${nbpe_tgt=500}"
: "${average_last=3}"
: "${asr_init=encoder:encoder decoder.decoders:decoder.decoders decoder.after_norm:decoder.after_norm}"
