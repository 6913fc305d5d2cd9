# shellcheck shell=bash disable=SC2034
# Sourced by run.sh: a command that is put before every program of a stage. Empty runs it here; on a cluster this may
# be, for example, "srun --cpus-per-task=8" or "srun --gres=gpu:1 --cpus-per-task=8" (words split at blanks).
cpu_cmd=
train_cmd=
