#!/usr/bin/env bash
# A real Slurm of one node on this machine, for tests: munged, slurmctld and slurmd, without accounting, cgroups or systemd.
#
#   tests/slurm.sh start DIR   installs what is missing (Debian or Ubuntu, as root), starts it, waits until a job runs
#   tests/slurm.sh stop DIR    cancels all jobs and ends the three daemons
#
# Everything lies in DIR; clients find it by SLURM_CONF=DIR/slurm.conf. Settings from the environment: SLURM_PORT (and
# the next one) [16817], SLURM_CPUS, which may exceed the real ones [4], SLURM_GPUS pretended ones [2], SLURM_AGE,
# seconds for which the controller remembers an ended job [300].
set -uo pipefail
PATH=${PATH}:/usr/sbin:/sbin
port=${SLURM_PORT:-16817}

say() { echo "slurm.sh: $*" >&2; }

usage() {
    say "usage: $0 start|stop DIR"
    exit 2
}

# Usage: is_running NAME; by its pid file, and not a zombie.
is_running() {
    local pid
    pid=$(cat "${dir}/run/$1.pid" 2>/dev/null) && [ "$(cat "/proc/${pid}/comm" 2>/dev/null)" = "$1" ] &&
        ! grep -q '^State:[[:space:]]*Z' "/proc/${pid}/status"
}

# Usage: end_daemon NAME
end_daemon() {
    local pid tries=0
    is_running "$1" || return 0
    pid=$(cat "${dir}/run/$1.pid")
    kill "${pid}"
    while is_running "$1" && ((++tries < 100)); do sleep 0.1; done
    ! is_running "$1" || kill -KILL "${pid}"
}

install_packages() {
    local program missing=
    for program in munged slurmctld slurmd sbatch; do
        command -v "${program}" >/dev/null || missing+=" ${program}"
    done
    [ -n "${missing}" ] || return 0
    if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
        say "not installed:${missing}; install slurmctld, slurmd, slurm-client and munge"
        return 1
    fi
    say "installing (missing:${missing}); log in ${dir}/apt.log"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o DPkg::Lock::Timeout=300 update >"${dir}/apt.log" 2>&1
    apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends slurmctld slurmd slurm-client munge \
        >>"${dir}/apt.log" 2>&1 || { say "installing failed, see ${dir}/apt.log" && return 1; }
}

configure() {
    local host memory gpus=${SLURM_GPUS:-2} gres=
    host=$(hostname -s)
    memory=$(slurmd -C | sed -n 's/.*RealMemory=\([0-9]*\).*/\1/p')
    (umask 077 && head -c 128 /dev/urandom >"${dir}/munge.key")
    if ((gpus > 0)); then # each needs a character device
        gres="Gres=gpu:${gpus}"
        echo "NodeName=${host} Name=gpu File=/dev/tty[0-$((gpus - 1))]" >"${dir}/gres.conf"
    fi
    cat >"${dir}/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=${host}(127.0.0.1)
SlurmctldPort=${port}
SlurmdPort=$((port + 1))
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=${dir}/run/munge.socket,cred_expire=5
StateSaveLocation=${dir}/state
SlurmdSpoolDir=${dir}/spool
SlurmctldPidFile=${dir}/run/slurmctld.pid
SlurmdPidFile=${dir}/run/slurmd.pid
SlurmctldLogFile=${dir}/slurmctld.log
SlurmdLogFile=${dir}/slurmd.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
EnforcePartLimits=ALL
KillWait=2
CompleteWait=0
MinJobAge=${SLURM_AGE:-300}
ReturnToService=2
SlurmdParameters=config_overrides
${gres:+GresTypes=gpu}
NodeName=${host} NodeAddr=127.0.0.1 NodeHostname=${host} CPUs=${SLURM_CPUS:-4} RealMemory=${memory} ${gres} State=UNKNOWN
PartitionName=test Nodes=${host} Default=YES MaxTime=INFINITE State=UP
CONF
}

start() {
    local said tries=0
    mkdir -p "${dir}"/{run,state,spool} && chmod 755 "${dir}" "${dir}"/{run,state,spool} || return
    install_packages || return
    [ -s "${dir}/slurm.conf" ] || configure || return
    is_running munged || munged --force --socket="${dir}/run/munge.socket" --key-file="${dir}/munge.key" \
        --pid-file="${dir}/run/munged.pid" --log-file="${dir}/munged.log" --seed-file="${dir}/state/munged.seed" || return
    is_running slurmctld || slurmctld -f "${SLURM_CONF}" || return
    is_running slurmd || slurmd -f "${SLURM_CONF}" || return
    while ((++tries < 100)); do # sinfo may call a node idle that starts nothing
        said=$(timeout 10 srun --quiet --immediate=2 --time=1 echo ready 2>&1)
        [ "${said}" != ready ] || [ "$(sinfo --noheader --format=%T)" = completing ] || return 0
        sleep 0.2
    done
    say "no job runs: ${said}; logs in ${dir}"
    return 1
}

stop() {
    local tries=0
    if is_running slurmctld; then
        scancel --user="$(id -un)" --quiet
        while [ -n "$(squeue --noheader)" ] && ((++tries < 100)); do sleep 0.1; done
    fi
    end_daemon slurmd
    end_daemon slurmctld
    end_daemon munged
}

[ $# = 2 ] || usage
mkdir -p "$2" && dir=$(cd "$2" && pwd) || exit 1
export SLURM_CONF=${dir}/slurm.conf
case "$1" in
    start) start ;;
    stop) stop ;;
    *) usage ;;
esac
