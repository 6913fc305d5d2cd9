# shellcheck shell=bash disable=SC2034
# Sourced by run.sh: where the corpora lie. MUSTC holds en-de/data etc. or the archives MUSTC_*_en-de.tar.gz etc., which
# are unpacked into downloads/mustc; --mustc_dir overrides it.
MUSTC=${MUSTC:-downloads/mustc}
MINI=downloads/mini
