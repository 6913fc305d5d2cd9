# shellcheck shell=bash disable=SC2154
# Sourced by run.sh: sets the variables named in ${option_names} from `--name value` arguments.

die() {
    echo "error: $*" >&2
    exit 2
}

parse_options() {
    while [ $# -gt 0 ]; do
        case "$1" in
            -h | --help)
                echo "${help_message}"
                exit 0
                ;;
            --*)
                local name=${1#--}
                [[ " ${option_names} " == *" ${name} "* ]] || die "unknown option $1 (see --help)"
                [ $# -ge 2 ] || die "option $1 needs a value (see --help)"
                printf -v "${name}" '%s' "$2"
                shift 2
                ;;
            *)
                die "unexpected argument '$1' (see --help; a value of several words needs quotes)"
                ;;
        esac
    done
}

# Usage: need_integer NAME LOWEST HIGHEST
need_integer() {
    local value=${!1}
    [[ "${value}" =~ ^[0-9]{1,9}$ ]] || die "--$1 '${value}' must be a whole number from $2 to $3"
    ((10#${value} >= $2 && 10#${value} <= $3)) || die "--$1 ${value} is out of range: choose $2 to $3"
}
