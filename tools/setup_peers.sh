#!/usr/bin/env bash
# Installs the tools that the slow tests compare with into .venv.peers, apart from the project's environment: SimulEval
# pins versions of its dependencies that ESPnet cannot live with, and re-scoring needs none of those.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${root}/.venv.peers
[ -d "${target}" ] && exit 0
python=$("${root}/tools/setup.sh")
echo "setup: installing SimulEval for the tests into ${target}" >&2
rm -rf "${target}.new"
"${python}" -m pip install -q --disable-pip-version-check --no-deps --target "${target}.new" simuleval==1.1.4 textgrid==1.6.1
mv "${target}.new" "${target}"
