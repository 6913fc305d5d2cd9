#!/usr/bin/env bash
# A Chromium for the tests of the page (tests/live/test_page.py), installed where there is none (Debian or Ubuntu, as root).
set -euo pipefail
! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null || exit 0
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "browser.sh: no chromium: install it; the tests of the page are skipped without it" >&2
    exit 0
fi
log=$(mktemp)
echo "browser.sh: installing chromium" >&2
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get -o DPkg::Lock::Timeout=300 update &&
    apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends chromium; } >"${log}" 2>&1; then
    cat "${log}" >&2
    echo "browser.sh: chromium cannot be installed here; the tests of the page are skipped" >&2
fi
rm -f "${log}"
