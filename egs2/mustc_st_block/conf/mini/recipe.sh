# shellcheck shell=bash disable=SC2034
# Sourced by run.sh: settings for the mini corpus that all systems share. An option on the command line goes before.
: "${speed_perturb_factors=}"
: "${audio_format=wav}"
: "${max_duration=20}"
