#!/usr/bin/env bash
# The tests. Sets up its own environment first (tools/setup.sh).
#
#   tests/run.sh            linters and fast tests
#   tests/run.sh --all      also the slow ones: the whole mini recipe, the checks on its results, a Slurm of one node
#   tests/run.sh -- ARGS    fast tests with pytest's own arguments
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
all=
case "${1:-}" in
    "") ;;
    --all) all=1 ;;
    --) shift ;;
    *)
        echo "tests/run.sh: unknown option $1: use --all, or -- and pytest's arguments" >&2
        exit 2
        ;;
esac
[ -z "${all}" ] || set --
python=$(tools/setup.sh)
PATH=$(dirname "${python}"):${PATH}
export PATH OMP_NUM_THREADS=1 LC_ALL=C.UTF-8 PYTHONPATH=${PWD}${PYTHONPATH:+:${PYTHONPATH}}

echo "== linters"
ruff check .
ruff format --check .
git ls-files '*.sh' .ci/run | xargs shellcheck -x -S warning

echo "== fast tests"
python -m pytest -n 2 -m "not slow" "$@"

if [ -n "${all}" ]; then
    echo "== main job: egs2/mustc_st_block/run.sh --corpus mini"
    time egs2/mustc_st_block/run.sh --corpus mini
    echo "== slow tests"
    tools/setup_peers.sh
    tests/browser.sh
    python -m pytest -n 2 --dist loadfile -m slow --durations 20
fi
