#!/bin/sh
# Installs the Debian packages whose commands are missing:
#     scripts/debian-packages.sh COMMAND=PACKAGE...
# or packages whatever commands there are:
#     scripts/debian-packages.sh --install PACKAGE...
set -eu

missing=
if [ "${1-}" = --install ]; then
    shift
    missing=$*
else
    for pair; do
        command -v "${pair%%=*}" >/dev/null || missing="$missing ${pair#*=}"
    done
fi
[ -n "$missing" ] || exit 0

sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
for needed in apt-get $sudo; do
    if ! command -v "$needed" >/dev/null; then
        echo "Install these yourself, as there is no $needed here: $missing" >&2
        exit 1
    fi
done

# Without it apt would start Prometheus and Redis as services, which hold the ports for good
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap '$sudo rm -f "$policy"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
    $sudo chmod 755 "$policy"
fi

echo "Installing from Debian: $missing"
$sudo apt-get -qq update
# shellcheck disable=SC2086  # one word for each package
$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends \
    -o DPkg::Lock::Timeout=300 $missing
