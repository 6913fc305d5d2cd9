# shellcheck shell=bash
# Sourced by run.sh: activates the environment of this checkout, making it first where it is missing.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=$("${root}/tools/setup.sh") || exit $?
PATH=$(dirname "${python}"):${PATH}
export PATH
export PYTHONPATH=${root}${PYTHONPATH:+:${PYTHONPATH}}
export LC_ALL=C.UTF-8
export PYTHONUNBUFFERED=1
