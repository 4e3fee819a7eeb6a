#!/bin/sh
# Installs the engine in Shoal's own Linux. A line that begins with % says how far it is.
set -eu
setup=$(dirname "$0")
python=/opt/shoal/engine/bin/python
export UV_PYTHON_INSTALL_DIR=/opt/shoal/python UV_CACHE_DIR=/opt/shoal/downloads
export UV_NO_CONFIG=1 UV_NO_PROGRESS=1 UV_HTTP_RETRIES=10 UV_HTTP_TIMEOUT=60
uv() { "$setup/uv" "$@"; }

echo "% 2 Fetching Python for the engine"
uv venv --quiet --clear --managed-python --python 3.11 /opt/shoal/engine
echo "% 10 Fetching what the engine needs"
uv pip install --python "$python" --no-deps --require-hashes \
  --build-constraints "$setup/engine.txt" --requirement "$setup/engine.txt"
kind=$(cd "$setup" && "$python" -c "from installers.setup_steps import torch_build as t; print(t.for_this_machine().kind)")
echo "% 35 Fetching PyTorch ($kind)"
torch=$(sed -n 's/^\(torch==[^ ;]*\).*/\1/p' "$setup/torch.txt")
if [ "$kind" = cuda ] || ! uv pip install --python "$python" --no-deps \
  --index-url https://download.pytorch.org/whl/cpu "$torch"; then
  uv pip install --python "$python" --no-deps --require-hashes --requirement "$setup/torch.txt"
fi
echo "% 95 Installing Shoal"
uv pip install --python "$python" --no-deps --no-index --reinstall-package shoal "$setup"/shoal-*.whl
/opt/shoal/engine/bin/shoal --version > /dev/null
rm -rf /opt/shoal/downloads
echo "% 100 The engine is installed"
