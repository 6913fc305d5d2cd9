# shellcheck shell=bash disable=SC2034
# Sourced by run.sh: settings for MuST-C that all systems share. An option on the command line goes before.
: "${speed_perturb_factors=0.9 1.0 1.1}"
: "${audio_format=flac}"
: "${max_duration=30}"
