#!/bin/sh
# Chooses the Python interpreter and hands over to install.py. Called by the Makefile.
# PYTHON=/path/to/python chooses by hand; the arguments go to install.py, or after --doctor to
# doctor.py.
set -u
requirements=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
root=$(dirname -- "$requirements")

# Prints the base interpreter behind $1 (a venv's Python leads back to the one it was made from) if it runs
# and is Python 3.10 to 3.12; fails otherwise.
usable() {
    "$1" -I -c '
import sys
if not (3, 10) <= sys.version_info[:2] <= (3, 12):
    raise SystemExit(1)
print(getattr(sys, "_base_executable", None) or sys.executable)
' 2>/dev/null
}

version_of() {
    "$1" -V 2>&1 | head -n 1
}

fail() {
    printf '\nsetup stopped: %s\n' "$1" >&2
    exit 1
}

apt_line='apt-get install -y python3 python3-dev python3-venv'

choose() {
    if [ -n "${PYTHON:-}" ]; then
        usable "$PYTHON" && return 0
        fail "PYTHON=$PYTHON is not usable: Python 3.10, 3.11 or 3.12 is needed, but \`$PYTHON -V\` says: $(version_of "$PYTHON").
  What to do: name another interpreter (make setup PYTHON=python3.11), or leave PYTHON out."
    fi
    # Stay with the interpreter of an environment that already exists.
    if [ -f "$root/.venv/.setup/identity.json" ] && usable "$root/.venv/bin/python"; then
        return 0
    fi
    # A sourced ROS 2 decides: its compiled modules fit the system's Python only.
    if [ "${ROS_DISTRO:-}" = jazzy ] && [ -n "${AMENT_PREFIX_PATH:-}" ] &&
        /usr/bin/python3 -c 'import rclpy' 2>/dev/null && usable /usr/bin/python3; then
        return 0
    fi
    for candidate in python3.11 python3 python3.12 python3.10 /usr/bin/python3 \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[012].*/bin/python; do
        usable "$candidate" && return 0
    done
    return 1
}

python=$(choose) || {
    [ -n "${PYTHON:-}" ] && exit 1 # choose has already said why
    # A fresh machine may have no Python at all.
    if command -v apt-get >/dev/null 2>&1 && ! command -v python3 >/dev/null 2>&1; then
        echo 'no Python on this machine: installing Debian packages python3 python3-dev python3-venv'
        if [ "$(id -u)" = 0 ]; then
            apt-get update -q && DEBIAN_FRONTEND=noninteractive $apt_line
        elif sudo -n true 2>/dev/null; then
            sudo -n apt-get update -q && sudo -n DEBIAN_FRONTEND=noninteractive $apt_line
        else
            fail "Python is missing. Type this line, then run again:
  sudo $apt_line"
        fi || fail "apt-get could not install Python (see above)."
        python=$(choose) || python=
    fi
    if [ -z "$python" ]; then
        fail "no usable Python found: 3.10, 3.11 or 3.12 is needed; the default is $(version_of python3 2>&1).
  What to do: sudo $apt_line
  or point to one: make setup PYTHON=/path/to/python3.11"
    fi
}

program=install
if [ "${1:-}" = --doctor ]; then
    program=doctor
    shift
fi
cd "$requirements" && exec "$python" -E -s -m "installer.$program" "$@"
