#!/usr/bin/env bash
# Simultaneous speech translation with contextual block Transformers: from audio to a quality-latency curve.
# shellcheck disable=SC2154,SC2034 # variables go to and come from the sourced files
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. utils/parse_options.sh
. ./db.sh

mustc_dir=
stage=1
stop_stage=
block_sizes="20 40"
systems=block
nj=$(nproc)
ngpu=0
hf_repo=
dry_run=false
option_names="corpus mustc_dir stage stop_stage tgt_lang block_sizes systems nj ngpu hf_repo dry_run
 speed_perturb_factors audio_format max_duration nbpe_src nbpe_tgt average_last asr_init"
option_names=${option_names//$'\n'/}

help_message="Usage: $0 [--corpus ${corpora// /|}] [options]

  --corpus ${corpora// /|}  what to train on [${corpus}]
  --mustc_dir DIR           MuST-C's layout: the directory that holds ${src_lang}-${tgt_lang}/data etc.
  --stage N --stop_stage M  run stages N to M [1 to 13; from 14 on that stage alone]
  --tgt_lang \"LANG ...\"     target languages [${tgt_lang}]
  --block_sizes \"20 32 40\"  encoder block sizes in frames of 40 ms, one model each [${block_sizes}]
  --systems block           families of systems [${systems}]
  --nj N                    parallel jobs [${nj}]
  --ngpu N                  GPUs for one training; 0 trains on the CPU [${ngpu}]
  --hf_repo OWNER/NAME      stage 15: where on the Hugging Face hub the model goes; without it nothing is uploaded
  --dry_run true|false      stage 15: only say what would go where [${dry_run}]
Overriding conf/recipe.sh, or conf/CORPUS/recipe.sh where there is one:
  --speed_perturb_factors \"0.9 1.0 1.1\"  --audio_format flac|wav  --max_duration SECONDS
  --nbpe_src N  --nbpe_tgt N  --average_last N
  --asr_init \"SRC:DST[:EXCLUDE] ...\"  what the ST models take from the ASR model, as in ESPnet's --init_param

Stages: 1 data  2 speed perturbation  3 audio dump  4 length filter  5 token lists  6 ASR statistics
  7 ASR training  8 ST statistics  9 ST training  10 checkpoint averaging  11 decoding  12 scoring  13 report
  14 one archive per model, for this project and for ESPnet  15 upload to the Hugging Face hub
Every stage can be run alone and again: it goes on where it was and says what is done already."
parse_options "$@"

[[ " ${corpora} " == *" ${corpus} "* ]] || die "--corpus '${corpus}' is unknown: choose ${corpora// / or }"
conf=conf
[ ! -d "conf/${corpus}" ] || conf=conf/${corpus}
need_integer stage 1 15
[ -n "${stop_stage}" ] || stop_stage=$((stage > 13 ? stage : 13)) # packing and uploading are asked for by number
need_integer stop_stage 1 15
((stage <= stop_stage)) || die "--stage ${stage} is behind --stop_stage ${stop_stage}"
need_integer nj 1 100000
need_integer ngpu 0 1000
[[ "${tgt_lang}" =~ [^\ ] ]] || die "--tgt_lang is empty: give one or more languages, for example de"
[[ "${block_sizes}" =~ [^\ ] ]] || die "--block_sizes is empty: give one or more of the sizes in ${conf}/train_st_block*.yaml"
for block in ${block_sizes}; do
    [ -f "${conf}/train_st_block${block}.yaml" ] || die "--block_sizes ${block}: no ${conf}/train_st_block${block}.yaml"
done
for system in ${systems:-none}; do
    [ -f "${conf}/grid_${system}.yaml" ] || die "--systems ${system}: not available; choose block"
done
. ./cmd.sh
. "${conf}/recipe.sh"
need_integer average_last 1 1000
((stage > 1)) || check_corpus
if [ -s data/.corpus ] && [ "$(cat data/.corpus)" != "${corpus}" ]; then
    die "data, dump and exp here are of --corpus $(cat data/.corpus): move them away or use another copy of the recipe"
fi
. ./path.sh
mkdir -p data
[ -s data/.corpus ] || echo "${corpus}" >data/.corpus

begin=${SECONDS}

# Usage: at_stage N TITLE; true when stage N is to be run.
at_stage() {
    (($1 >= stage && $1 <= stop_stage)) || return 1
    export STAGE=$1
    echo "== stage $1: $2 ($((SECONDS - begin)) s since the start)"
}

train_set=train
[ -z "${speed_perturb_factors}" ] || train_set=train_sp

if at_stage 1 "data"; then prepare_corpus; fi

all_models=()
for lang in ${tgt_lang}; do
    pair=${src_lang}-${lang}
    train=${train_set}.${pair}
    tokens=data/token_list.${pair}
    models=()
    for block in ${block_sizes}; do models+=("exp/st_block${block}.${pair}"); done
    all_models+=("${models[@]}")
    training=(--tgt_lang "${lang}" --train_dir "dump/${train}" --dev_dir "dump/dev.${pair}" --token_dir "${tokens}")

    if at_stage 2 "speed perturbation of ${pair}: ${speed_perturb_factors:-none}" && [ -n "${speed_perturb_factors}" ]; then
        # shellcheck disable=SC2086
        ${cpu_cmd} python local/perturb_speed.py --data "data/train.${pair}" --factors ${speed_perturb_factors} \
            --output_dir "data/${train}"
    fi
    if at_stage 3 "audio of ${pair} to dump"; then
        for name in "${train}" "dev.${pair}" "tst-COMMON.${pair}"; do
            ${cpu_cmd} python local/dump_audio.py --data "data/${name}" --output_dir "dump/org/${name}" \
                --audio_format "${audio_format}" --nj "${nj}"
        done
    fi
    if at_stage 4 "length filter of ${pair}"; then
        for name in "${train}" "dev.${pair}"; do
            ${cpu_cmd} python local/filter_length.py --dump "dump/org/${name}" --output_dir "dump/${name}" \
                --tgt_lang "${lang}" --max_s "${max_duration}"
        done
    fi
    if at_stage 5 "token lists of ${pair}"; then
        ${cpu_cmd} python local/train_bpe.py --text "dump/${train}/text.lc.rm.${src_lang}" --lang "${src_lang}" \
            --nbpe "${nbpe_src}" --output_dir "${tokens}/src"
        ${cpu_cmd} python local/train_bpe.py --text "dump/${train}/text.tc.${lang}" --lang "${lang}" \
            --nbpe "${nbpe_tgt}" --output_dir "${tokens}/tgt"
    fi
    if at_stage 6 "ASR statistics of ${pair}"; then
        ${cpu_cmd} python local/collect_stats.py --task asr "${training[@]}" --config "${conf}/train_asr_block.yaml" \
            --output_dir "exp/asr_stats.${pair}" --nj "${nj}"
    fi
    if at_stage 7 "ASR training of ${pair}"; then
        ${train_cmd} python local/train_models.py --task asr "${training[@]}" --stats_dir "exp/asr_stats.${pair}" \
            --model "${conf}/train_asr_block.yaml" "exp/asr.${pair}" --nj "${nj}" --ngpu "${ngpu}"
        ${cpu_cmd} python local/average_asr.py --model_dir "exp/asr.${pair}" --last "${average_last}" \
            --dump "dump/dev.${pair}" --nj "${nj}"
    fi
    if at_stage 8 "ST statistics of ${pair}"; then
        ${cpu_cmd} python local/collect_stats.py --task st "${training[@]}" \
            --config "${conf}/train_st_block${block_sizes%% *}.yaml" --output_dir "exp/st_stats.${pair}" --nj "${nj}"
    fi
    if at_stage 9 "ST training of ${pair}, blocks ${block_sizes}"; then
        options=()
        for block in ${block_sizes}; do
            options+=(--model "${conf}/train_st_block${block}.yaml" "exp/st_block${block}.${pair}")
        done
        options+=(--init_param)
        for part in ${asr_init}; do options+=("exp/asr.${pair}/model.pth:${part}"); done
        ${train_cmd} python local/train_models.py --task st "${training[@]}" --stats_dir "exp/st_stats.${pair}" \
            "${options[@]}" --nj "${nj}" --ngpu "${ngpu}"
    fi
    if at_stage 10 "checkpoint averaging of ${pair}: last ${average_last}"; then
        ${cpu_cmd} python local/average_st.py --model_dirs "${models[@]}" --last "${average_last}" \
            --dump "dump/dev.${pair}" --tgt_lang "${lang}" --nj "${nj}"
    fi
    for system in ${systems}; do
        # shellcheck disable=SC2206
        grid=(--grid "${conf}/grid_${system}.yaml" --block_sizes ${block_sizes} --src_lang "${src_lang}"
            --tgt_lang "${lang}" --nj "${nj}")
        if at_stage 11 "simultaneous decoding of ${pair}, systems ${system}"; then
            ${cpu_cmd} python local/decode_grid.py "${grid[@]}" --ngpu "${ngpu}"
        fi
        if at_stage 12 "scoring of ${pair}, systems ${system}"; then
            ${cpu_cmd} python local/score_grid.py "${grid[@]}"
        fi
    done
done

if at_stage 13 "report"; then
    python -m espnet_ext.bin.report_simul --exp_dir exp --output_dir exp/report
fi
if at_stage 14 "packed models"; then
    python local/pack_models.py --model_dirs "${all_models[@]}" --corpus "${corpus}" --output_dir exp/packed
fi
if at_stage 15 "upload"; then
    archives=("${all_models[@]/#exp/exp/packed}")
    archives=("${archives[@]/%/.zip}")
    python local/publish_models.py --archives "${archives[@]}" --hf_repo "${hf_repo}" --dry_run "${dry_run}"
fi
echo "== stages ${stage} to ${stop_stage} ended after $((SECONDS - begin)) s"
