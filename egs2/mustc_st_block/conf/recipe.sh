# shellcheck shell=bash disable=SC2034
# Sourced by run.sh: the paper's settings for MuST-C. An option on the command line goes before.
: "${speed_perturb_factors=0.9 1.0 1.1}"
: "${audio_format=flac}"
: "${max_duration=30}"
: "${nbpe_src=4000}"
: "${nbpe_tgt=4000}"
: "${average_last=10}"
: "${asr_init=encoder:encoder}"
