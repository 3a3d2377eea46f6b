# Installs packages into a tree that holds just enough to run dpkg. Runs as root in the tree, offline.
# Arguments: the package files. Environment: SOURCE_DATE_EPOCH, PYTHON (X.Y that must come out).
set -e
umask 022

# No service may start: there is no init, and what it wrote would stay.
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d

# dpkg syncs this journal at every change of a package's state; in memory that costs nothing, and nobody needs
# the tree to survive a crash. (Not the whole database: scripts run from there, and /dev/shm is noexec.)
mv /var/lib/dpkg/updates /dev/shm/updates
ln -s /dev/shm/updates /var/lib/dpkg/updates

dpkg --unpack --force-depends --force-unsafe-io --no-triggers "$@"

. /.hallmark/scripts/configure.sh

rm /var/lib/dpkg/updates
cp -a /dev/shm/updates /var/lib/dpkg/updates

test -z "$(dpkg --audit)" || { dpkg --audit; exit 1; }
found=$(PYTHONDONTWRITEBYTECODE=1 python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
test "$found" = "$PYTHON" || { echo "expected Python $PYTHON, got $found" >&2; exit 1; }
