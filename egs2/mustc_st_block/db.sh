# shellcheck shell=bash disable=SC2034
# Sourced by run.sh: where the corpora lie. --mustc_dir overrides MUSTC.
MUSTC=${MUSTC:-downloads/mustc}
MINI=downloads/mini
