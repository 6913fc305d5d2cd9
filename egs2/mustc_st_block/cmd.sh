# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by run.sh: where each kind of step runs, `local` (this machine) or `slurm` (a cluster, docs/slurm.md). Edit the
# three words, or give --backend to run.sh for all three.
prep_on=${backend:-local}
train_on=${backend:-local}
decode_on=${backend:-local}

# Usage: job_program local|slurm SLURM_OPTIONS...
job_program() {
    case "$1" in
        local) echo utils/run.py ;;
        slurm) echo "utils/slurm.py --config conf/slurm.conf ${*:2}" ;;
        *) die "backend '$1' is unknown: choose local or slurm" ;;
    esac
}

# Programs in Kaldi's calling form, `PROGRAM [options] [JOB=1:N] LOG COMMAND...`; your site's run.pl, slurm.pl or queue.pl
# fits as well. run.sh adds --num-threads, --gpu and --num-nodes.
prep_cmd=$(job_program "${prep_on}" --mem 8G --time 8:00:00)
train_cmd=$(job_program "${train_on}" --mem 16G --time 2-00:00:00)
decode_cmd=$(job_program "${decode_on}" --mem 4G --time 1-00:00:00)
