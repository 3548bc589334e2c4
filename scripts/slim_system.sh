#!/bin/sh
# The file system under the service, in the folder $1: that of the base image without package managers, pip and what only
# they need. Debian's list of packages stays true, because scanners read it. Runs while an image is built.
set -eu
out=$1
packages="adduser apt bash bsdutils debconf debian-archive-keyring diffutils e2fsprogs gpgv init-system-helpers
    libapt-pkg6.0 libapt-pkg7.0 libaudit-common libaudit1 libblkid1 libcap-ng0 libext2fs2 libext2fs2t64 libgcrypt20
    libgnutls30 libgnutls30t64 libgpg-error0 libhogweed6 libhogweed6t64 libidn2-0 liblz4-1 libmount1 libnettle8
    libnettle8t64 libp11-kit0 libpam-modules libpam-modules-bin libpam-runtime libpam0g libseccomp2 libsemanage-common
    libsemanage2 libsepol2 libsmartcols1 libss2 libsystemd0 libtasn1-6 libudev1 libunistring2 libunistring5 libxxhash0
    login login.defs logsave mawk mount ncurses-base ncurses-bin passwd perl-base python3-distutils python3-lib2to3
    python3-pip python3-pip-whl python3-pkg-resources python3-setuptools python3-setuptools-whl python3-venv
    python3-wheel python3.11-venv sqv sysvinit-utils util-linux util-linux-extra"

mkdir -p "$out"
for name in bin etc lib lib64 sbin usr var; do
    if [ -e "/$name" ]; then cp -a "/$name" "$out/"; fi
done
# Engines mount over these, and a read-only root must have them.
mkdir -p "$out/dev" "$out/proc" "$out/run" "$out/sys" "$out/tmp"
chmod 1777 "$out/tmp"

# What another release of Debian calls otherwise is named twice. Packages go without their scripts, which would want Perl and a running system.
rm -f "$out"/var/lib/dpkg/info/*.preinst "$out"/var/lib/dpkg/info/*.postinst "$out"/var/lib/dpkg/info/*.prerm \
    "$out"/var/lib/dpkg/info/*.postrm
# shellcheck disable=SC2086 # a list
dpkg --root="$out" --force-all --no-triggers --purge $packages >/dev/null
dpkg --root="$out" --force-all --no-triggers --purge dpkg >/dev/null

# What is in no package, or only for people at a terminal. Copyright files stay.
find "$out/usr/share/doc" -mindepth 2 -not -type d -not -name copyright -delete
find "$out/usr/share/doc" -type d -empty -delete
for folder in "$out"/usr/lib/python3* "$out"/usr/local/lib/python3*; do
    if [ ! -d "$folder" ]; then continue; fi
    for part in dist-packages/pip* dist-packages/setuptools* dist-packages/wheel* dist-packages/pkg_resources \
        dist-packages/_distutils_hack site-packages/pip* site-packages/setuptools* site-packages/wheel* \
        config-3.* lib-dynload/_tkinter* ensurepip idlelib lib2to3 pydoc_data test tkinter turtledemo; do
        # shellcheck disable=SC2086 # a pattern
        rm -rf "$folder"/$part
    done
done
rm -rf "$out"/usr/local/bin/pip* "$out"/usr/local/bin/idle* "$out"/usr/local/bin/2to3* "$out"/usr/bin/pip* \
    "$out"/usr/lib/*/gconv "$out"/usr/share/zoneinfo/posix "$out"/usr/share/zoneinfo/right "$out"/usr/src \
    "$out"/usr/include "$out"/usr/local/include "$out"/usr/share/python-wheels \
    "$out"/usr/share/locale "$out"/usr/share/man "$out"/usr/share/info "$out"/usr/share/lintian \
    "$out"/usr/share/bash-completion "$out"/usr/share/perl* "$out"/usr/games "$out"/usr/local/share/man \
    "$out"/etc/apt "$out"/etc/machine-id "$out"/etc/resolv.conf "$out"/etc/hosts "$out"/etc/hostname "$out"/etc/mtab \
    "$out"/var/cache "$out"/var/log "$out"/var/lib/apt "$out"/var/lib/dpkg/info "$out"/var/lib/dpkg/triggers \
    "$out"/var/lib/dpkg/updates "$out"/var/lib/dpkg/*-old "$out"/var/lib/dpkg/lock* "$out"/var/lib/dpkg/alternatives \
    "$out"/etc/passwd- "$out"/etc/group- "$out"/etc/shadow- "$out"/etc/gshadow-
mkdir -p "$out/var/cache" "$out/var/log"
find "$out" -xdev -type f -perm /6000 -exec chmod a-s {} +

# The user of the service has no password, no shell and no home. useradd would note the day.
echo 'gateway:x:10001:' >>"$out/etc/group"
echo 'gateway:x:10001:10001::/nonexistent:/usr/sbin/nologin' >>"$out/etc/passwd"
mkdir -p "$out/data/metrics"
chown -R 10001:10001 "$out/data"
chmod -R 0700 "$out/data"

# The root is read-only, so Python could keep no bytecode. Hashes in place of times make the same files each time.
find "$out" -xdev -name __pycache__ -type d -prune -exec rm -r {} +
for folder in "$out"/usr/lib/python3* "$out"/usr/local/lib/python3*; do
    if [ -d "$folder" ]; then
        python -m compileall -q -s "$out" -p / --invalidation-mode unchecked-hash "$folder"
    fi
done
