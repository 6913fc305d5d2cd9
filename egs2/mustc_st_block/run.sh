#!/usr/bin/env bash
# Simultaneous speech translation with contextual block Transformers: from audio to a quality-latency curve.
# shellcheck disable=SC2154,SC2034 # variables go to and come from the sourced files
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. utils/parse_options.sh

corpus=mini
mustc_dir=
stage=1
stop_stage=13
tgt_lang=de
block_sizes="20 40"
systems=block
nj=$(nproc)
ngpu=0
num_nodes=1
decode_nj=
backend=
option_names="corpus mustc_dir stage stop_stage tgt_lang block_sizes systems nj ngpu num_nodes decode_nj backend
 speed_perturb_factors audio_format max_duration nbpe_src nbpe_tgt average_last asr_init"
option_names=${option_names//$'\n'/}

help_message="Usage: $0 [--corpus mini|mustc] [options]

  --corpus mini|mustc       the synthetic mini corpus, made here, or MuST-C [${corpus}]
  --mustc_dir DIR           MuST-C: the directory that holds en-de/data etc.
  --stage N --stop_stage M  run stages N to M [${stage} to ${stop_stage}]
  --tgt_lang \"de es fr\"     target languages [${tgt_lang}]
  --block_sizes \"20 32 40\"  encoder block sizes in frames of 40 ms, one model each [${block_sizes}]
  --systems block           families of systems [${systems}]
  --nj N                    processes of one step, on one machine [${nj}]
  --decode_nj N             decoding jobs, which share the utterances [nj]
  --ngpu N                  GPUs of one training, on each node; 0 trains and decodes on the CPU [${ngpu}]
  --num_nodes N             nodes of one training, with slurm [${num_nodes}]
  --backend local|slurm     where the steps run: this machine or a cluster [as cmd.sh says]
Overriding conf/recipe.sh (MuST-C) and conf/mini/recipe.sh (mini):
  --speed_perturb_factors \"0.9 1.0 1.1\"  --audio_format flac|wav  --max_duration SECONDS
  --nbpe_src N  --nbpe_tgt N  --average_last N
  --asr_init \"SRC:DST[:EXCLUDE] ...\"  what the ST models take from the ASR model, as in ESPnet's --init_param

Stages: 1 data  2 speed perturbation  3 audio dump  4 length filter  5 token lists  6 ASR statistics
  7 ASR training  8 ST statistics  9 ST training  10 checkpoint averaging  11 decoding  12 scoring  13 report
Every stage can be run alone and again: it goes on where it was and says what is done already."
parse_options "$@"

case "${corpus}" in
    mini) conf=conf/mini ;;
    mustc) conf=conf ;;
    *) die "--corpus '${corpus}' is unknown: choose mini or mustc" ;;
esac
need_integer stage 1 13
need_integer stop_stage 1 13
((stage <= stop_stage)) || die "--stage ${stage} is behind --stop_stage ${stop_stage}"
need_integer nj 1 100000
need_integer ngpu 0 1000
need_integer num_nodes 1 1000
decode_nj=${decode_nj:-${nj}}
need_integer decode_nj 1 100000
[[ "${tgt_lang}" =~ [^\ ] ]] || die "--tgt_lang is empty: give one or more languages, for example de"
[[ "${block_sizes}" =~ [^\ ] ]] || die "--block_sizes is empty: give one or more of the sizes in ${conf}/train_st_block*.yaml"
for block in ${block_sizes}; do
    [ -f "${conf}/train_st_block${block}.yaml" ] || die "--block_sizes ${block}: no ${conf}/train_st_block${block}.yaml"
done
for system in ${systems:-none}; do
    [ -f "${conf}/grid_${system}.yaml" ] || die "--systems ${system}: not available; choose block"
done
. db.sh
. cmd.sh
. "${conf}/recipe.sh"
need_integer average_last 1 1000
if ((num_nodes > 1)); then
    [ "${train_on}" = slurm ] || die "--num_nodes ${num_nodes} needs --backend slurm"
    ((ngpu > 0)) || die "--num_nodes ${num_nodes} needs --ngpu 1 or more"
fi
if [ "${corpus}" = mustc ]; then
    corpus_dir=${mustc_dir:-${MUSTC}}
    for lang in ${tgt_lang}; do
        [ "${stage}" -gt 1 ] || [ -d "${corpus_dir}/en-${lang}/data" ] || die "no MuST-C release at" \
            "${corpus_dir}/en-${lang}/data: download it from mt.fbk.eu/must-c (licence: CC BY-NC-ND 4.0), unpack it and" \
            "give the directory that holds en-${lang} as --mustc_dir, or use --corpus mini"
    done
else
    corpus_dir=${MINI}
fi
if [ -f data/.corpus ] && [ "$(cat data/.corpus)" != "${corpus}" ]; then
    die "data, dump and exp here are of --corpus $(cat data/.corpus): move them away or use another copy of the recipe"
fi
. path.sh
mkdir -p data
echo "${corpus}" >data/.corpus

begin=${SECONDS}

# Usage: at_stage N TITLE; true when stage N is to be run.
at_stage() {
    (($1 >= stage && $1 <= stop_stage)) || return 1
    export STAGE=$1
    echo "== stage $1: $2 ($((SECONDS - begin)) s since the start)"
}

on_gpus=(--num-threads "${nj}" --gpu "${ngpu}" --num-nodes "${num_nodes}")
size=(--nj "${nj}" --ngpu "${ngpu}" --num_nodes "${num_nodes}")
train_set=train
[ -z "${speed_perturb_factors}" ] || train_set=train_sp

if at_stage 1 "data" && [ "${corpus}" = mini ]; then
    ${prep_cmd} --num-threads "${nj}" logs/make_mini_corpus.log \
        python local/make_mini_corpus.py --output_dir "${corpus_dir}" --tgt_lang "${tgt_lang}" --nj "${nj}"
fi

for lang in ${tgt_lang}; do
    pair=en-${lang}
    train=${train_set}.${pair}
    tokens=data/token_list.${pair}
    models=()
    for block in ${block_sizes}; do models+=("exp/st_block${block}.${pair}"); done
    training=(--tgt_lang "${lang}" --train_dir "dump/${train}" --dev_dir "dump/dev.${pair}" --token_dir "${tokens}")

    if ((stage <= 1)); then
        ${prep_cmd} "logs/prepare.${pair}.log" \
            python local/prepare_mustc.py --mustc_dir "${corpus_dir}" --tgt_lang "${lang}"
    fi
    if at_stage 2 "speed perturbation of ${pair}: ${speed_perturb_factors:-none}" && [ -n "${speed_perturb_factors}" ]; then
        # shellcheck disable=SC2086
        ${prep_cmd} "logs/perturb_speed.${pair}.log" \
            python local/perturb_speed.py --data "data/train.${pair}" --factors ${speed_perturb_factors} \
            --output_dir "data/${train}"
    fi
    if at_stage 3 "audio of ${pair} to dump"; then
        for name in "${train}" "dev.${pair}" "tst-COMMON.${pair}"; do
            ${prep_cmd} --num-threads "${nj}" "logs/dump_audio.${name}.log" \
                python local/dump_audio.py --data "data/${name}" --output_dir "dump/org/${name}" \
                --audio_format "${audio_format}" --nj "${nj}"
        done
    fi
    if at_stage 4 "length filter of ${pair}"; then
        for name in "${train}" "dev.${pair}"; do
            ${prep_cmd} "logs/filter_length.${name}.log" \
                python local/filter_length.py --dump "dump/org/${name}" --output_dir "dump/${name}" \
                --tgt_lang "${lang}" --max_s "${max_duration}"
        done
    fi
    if at_stage 5 "token lists of ${pair}"; then
        ${prep_cmd} "logs/train_bpe_src.${pair}.log" \
            python local/train_bpe.py --text "dump/${train}/text.lc.rm.en" --nbpe "${nbpe_src}" \
            --output_dir "${tokens}/src"
        ${prep_cmd} "logs/train_bpe_tgt.${pair}.log" \
            python local/train_bpe.py --text "dump/${train}/text.tc.${lang}" --nbpe "${nbpe_tgt}" \
            --output_dir "${tokens}/tgt"
    fi
    if at_stage 6 "ASR statistics of ${pair}"; then
        ${prep_cmd} --num-threads "${nj}" "logs/asr_stats.${pair}.log" \
            python local/collect_stats.py --task asr "${training[@]}" --config "${conf}/train_asr_block.yaml" \
            --output_dir "exp/asr_stats.${pair}" --nj "${nj}"
    fi
    if at_stage 7 "ASR training of ${pair}"; then
        ${train_cmd} "${on_gpus[@]}" "logs/asr_train.${pair}.log" \
            python local/train_models.py --task asr "${training[@]}" --stats_dir "exp/asr_stats.${pair}" \
            --model "${conf}/train_asr_block.yaml" "exp/asr.${pair}" "${size[@]}"
        ${prep_cmd} --num-threads "${nj}" "logs/asr_average.${pair}.log" \
            python local/average_asr.py --model_dir "exp/asr.${pair}" --last "${average_last}" \
            --dump "dump/dev.${pair}" --nj "${nj}"
    fi
    if at_stage 8 "ST statistics of ${pair}"; then
        ${prep_cmd} --num-threads "${nj}" "logs/st_stats.${pair}.log" \
            python local/collect_stats.py --task st "${training[@]}" \
            --config "${conf}/train_st_block${block_sizes%% *}.yaml" --output_dir "exp/st_stats.${pair}" --nj "${nj}"
    fi
    if at_stage 9 "ST training of ${pair}, blocks ${block_sizes}"; then
        models_of_job=()
        for block in ${block_sizes}; do
            models_of_job+=("--model ${conf}/train_st_block${block}.yaml exp/st_block${block}.${pair}")
        done
        [ "${train_on}" != local ] || models_of_job=("${models_of_job[*]}") # one job, which shares the machine's cores out
        init=()
        for part in ${asr_init}; do init+=("exp/asr.${pair}/model.pth:${part}"); done
        jobs=()
        for number in "${!models_of_job[@]}"; do
            # shellcheck disable=SC2086
            ${train_cmd} "${on_gpus[@]}" "logs/st_train.${pair}.$((number + 1)).log" \
                python local/train_models.py --task st "${training[@]}" --stats_dir "exp/st_stats.${pair}" \
                ${models_of_job[number]} --init_param "${init[@]}" "${size[@]}" &
            jobs+=($!)
        done
        code=0
        for job in "${jobs[@]}"; do wait "${job}" || code=$?; done
        ((code == 0)) || exit "${code}"
    fi
    if at_stage 10 "checkpoint averaging of ${pair}: last ${average_last}"; then
        ${prep_cmd} --num-threads "${nj}" "logs/st_average.${pair}.log" \
            python local/average_st.py --model_dirs "${models[@]}" --last "${average_last}" \
            --dump "dump/dev.${pair}" --tgt_lang "${lang}" --nj "${nj}"
    fi
    for system in ${systems}; do
        # shellcheck disable=SC2206
        grid=(--grid "${conf}/grid_${system}.yaml" --block_sizes ${block_sizes} --tgt_lang "${lang}")
        if at_stage 11 "simultaneous decoding of ${pair}, systems ${system}"; then
            python local/decode_grid.py "${grid[@]}" --nj "${decode_nj}" --ngpu $((ngpu > 0)) \
                --cmd "${decode_cmd} --gpu $((ngpu > 0))"
        fi
        if at_stage 12 "scoring of ${pair}, systems ${system}"; then
            ${prep_cmd} --num-threads "${nj}" "logs/score.${pair}.${system}.log" \
                python local/score_grid.py "${grid[@]}" --nj "${nj}"
        fi
    done
done

if at_stage 13 "report"; then
    ${prep_cmd} logs/report.log python -m espnet_ext.bin.report_simul --exp_dir exp --output_dir exp/report
fi
echo "== stages ${stage} to ${stop_stage} ended after $((SECONDS - begin)) s"
