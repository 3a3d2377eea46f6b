# Configures what is unpacked, compiles Python by hallmark's own rule, and cleans what would differ next time.
# Sourced by the other scripts.

# The postinsts would compile every module first, by rules that hash seeds and orders show through
# (up to Python 3.9); compile.py does it once, afterwards. (Over layers, mounts hide these tools instead.)
if test -n "$BARE"; then
    for tool in /usr/lib/python3.*/py_compile.py /usr/bin/py3compile; do
        test -f "$tool" || continue
        mv "$tool" "$tool.hallmark"
        cp /.hallmark/scripts/nothing "$tool"
        chmod 755 "$tool"
    done
fi

dpkg --configure -a --force-unsafe-io

for tool in /usr/lib/python3.*/py_compile.py /usr/bin/py3compile; do
    test ! -f "$tool.hallmark" || mv "$tool.hallmark" "$tool"
done
rm -f /usr/sbin/policy-rc.d

PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 python3 -S -s /.hallmark/scripts/compile.py \
    /usr/lib /usr/share/python3

# What differs from build to build: inode numbers and times, logs, orders, previous states, locks.
rm -rf /var/cache/ldconfig/aux-cache /var/log/dpkg.log /var/log/alternatives.log /var/log/bootstrap.log \
    /var/log/apt/* /var/lib/dpkg/*-old /var/lib/dpkg/lock /var/lib/dpkg/lock-frontend \
    /var/lib/dpkg/triggers/Lock /var/cache/debconf/*-old \
    /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/subuid- /etc/subgid- /etc/.pwd.lock \
    /var/lib/apt/lists/* /var/lib/apt/extended_states /var/cache/apt/*.bin /var/cache/apt/archives/*.deb
find /run /tmp /var/tmp -mindepth 1 ! -path /run/lock -delete
test ! -e /etc/machine-id || : > /etc/machine-id
if test -f /var/lib/dpkg/triggers/File && ! LC_ALL=C sort -c /var/lib/dpkg/triggers/File 2> /dev/null; then
    LC_ALL=C sort -o /var/lib/dpkg/triggers/File /var/lib/dpkg/triggers/File
fi
