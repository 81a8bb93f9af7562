#!/bin/sh
# Makes the virtual environment DIR with Python 3.11 or newer: scripts/venv.sh DIR
set -eu
cd "$(dirname "$0")/.."

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

candidates=${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14}
python=
for candidate in $candidates; do
    if new_enough "$candidate"; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "Python 3.11 or newer is needed, and none of these is: $candidates" >&2
    echo "Name one with: make PYTHON=/path/to/python3.11 ..." >&2
    exit 1
fi

# Debian splits ensurepip off Python, and venv fails halfway without it
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    scripts/debian-packages.sh --install "$version-venv"
fi
"$python" -m venv --clear "$1"
