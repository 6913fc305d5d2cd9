#!/usr/bin/env bash
# Finds or makes the Python environment of this checkout and prints the path of its python.
#
# An active environment (VIRTUAL_ENV, CONDA_PREFIX) that has the right versions is used as it is; else .venv in the
# checkout, made from tools/requirements.lock. Needs the network only while it makes .venv. Progress goes to stderr.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
lock=${root}/tools/requirements.lock
venv=${root}/.venv
stamp=${venv}/.requirements.sha256

say() { echo "setup: $*" >&2; }

die() {
    say "error: $*"
    exit 2
}

is_ready() {
    [ -x "${venv}/bin/python" ] && [ "$(cat "${stamp}" 2>/dev/null)" = "${digest}" ]
}

# Prints the first candidate that runs, is Python 3.12 or 3.13 and can make environments.
find_python() {
    local candidate test='import ensurepip, sys, venv; sys.exit(not (3, 12) <= sys.version_info[:2] <= (3, 13))'
    for candidate in python3.12 python3.13 python3 "${HOME:-/}"/.pyenv/versions/3.1[23]*/bin/python; do
        if command -v "${candidate}" >/dev/null && "${candidate}" -c "${test}" 2>/dev/null; then
            command -v "${candidate}"
            return
        fi
    done
    if command -v uv >/dev/null; then
        say "no Python 3.12 or 3.13 here; uv installs one"
        uv python install 3.12 >&2 && uv python find 3.12 && return
    fi
    return 1
}


make_venv() {
    local python pip
    if ! "${venv}/bin/python" -c 'import pip' 2>/dev/null; then
        python=$(find_python) || die "no Python 3.12 or 3.13 that can make environments: install one" \
            "(for example with apt install python3.12-venv, pyenv or uv) and run this again"
        say "making ${venv} with ${python}"
        rm -rf "${venv}"
        "${python}" -m venv "${venv}" || die "${python} could not make ${venv}"
    fi
    pip=("${venv}/bin/python" -m pip --disable-pip-version-check --no-input)
    say "installing $(grep -c '==' "${lock}") pinned packages (about 7 GB, minutes); log in ${venv}.log"
    "${pip[@]}" install --progress-bar off --no-deps --require-hashes -r "${lock}" 2>&1 | tee "${venv}.log" |
        awk '/^(Collecting|Installing|ERROR)/ { if (++n % 20 == 1 || !/^Coll/) print "setup: " substr($0, 1, 100) }' >&2 ||
        die "installing failed, see ${venv}.log: network to the Python package index and 7 GB of disk are needed"
    "${pip[@]}" install -q --no-deps --no-build-isolation -e "${root}" >>"${venv}.log" 2>&1 ||
        die "installing the project itself failed, see ${venv}.log"
}

active=${VIRTUAL_ENV:-${CONDA_PREFIX:-}}
if [ -n "${active}" ] && [ "${active}" != "${venv}" ] && [ -x "${active}/bin/python" ]; then
    if problem=$("${active}/bin/python" "${root}/tools/check_environment.py" 2>&1); then
        echo "${active}/bin/python"
        exit
    fi
    say "the active environment ${active} is not used: ${problem##*$'\n'}"
fi

digest=$(sha256sum "${lock}" "${root}/pyproject.toml" | cut -d' ' -f1 | tr -d '\n')
if ! is_ready; then
    exec 9>"${venv}.lock"
    flock -n 9 || {
        say "another set-up is at work here, waiting for it"
        flock 9
    }
    if ! is_ready; then
        begin=${SECONDS}
        make_venv
        echo "${digest}" >"${stamp}.new"
        mv "${stamp}.new" "${stamp}"
        say "done in $((SECONDS - begin)) s"
    fi
    exec 9>&-
fi
echo "${venv}/bin/python"
