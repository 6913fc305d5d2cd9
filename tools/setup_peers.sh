#!/usr/bin/env bash
# Installs the tools that the slow tests compare with into .venv.peers, apart from the project's environment: they
# pin versions of their dependencies that ESPnet cannot live with, and re-scoring needs none of those.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${root}/.venv.peers
packages=(simuleval==1.1.4 textgrid==1.6.1 simulstream==1.0.0 websockets==17.4)
[ "$(cat "${target}/installed" 2>/dev/null)" != "${packages[*]}" ] || exit 0
python=$("${root}/tools/setup.sh")
echo "setup: installing ${packages[*]} for the tests into ${target}" >&2
rm -rf "${target}.new"
"${python}" -m pip install -q --disable-pip-version-check --no-deps --target "${target}.new" "${packages[@]}"
echo "${packages[*]}" >"${target}.new/installed"
rm -rf "${target}"
mv "${target}.new" "${target}"
