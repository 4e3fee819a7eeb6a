#!/bin/sh
# Runs provision.py with a Python that uv fetches: the distribution has none.
set -eu
setup=$(dirname "$0")
export UV_PYTHON_INSTALL_DIR=/opt/shoal/python UV_CACHE_DIR=/opt/shoal/downloads UV_NO_CONFIG=1
export PYTHONDONTWRITEBYTECODE=1
"$setup/uv" run --quiet --no-project --managed-python --python 3.11 "$setup/provision.py" "$@"
rm -rf /opt/shoal/downloads
