#!/usr/bin/env bash
# Simultaneous speech translation with contextual block Transformers: from audio to a quality-latency curve.
# shellcheck disable=SC2154,SC2034 # variables go to and come from the sourced files
set -euo pipefail
called_from=${PWD}
cd "$(dirname "${BASH_SOURCE[0]}")"
. utils/parse_options.sh
. ./db.sh

mustc_dir=
stage=1
stop_stage=
block_sizes="20 40"
systems=block
nj=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
ngpu=0
num_nodes=1
decode_nj=
backend=
distill_model=
hf_repo=
dry_run=false
hard_vocab_limit=true
max_epoch=
option_names="corpus mustc_dir stage stop_stage tgt_lang block_sizes systems nj ngpu num_nodes decode_nj backend
 distill_model hf_repo dry_run hard_vocab_limit max_epoch
 speed_perturb_factors audio_format max_duration nbpe_src nbpe_tgt average_last average_around_best asr_init"
option_names=${option_names//$'\n'/}

help_message="Usage: $0 [--corpus ${corpora// /|}] [options]

  --corpus $(printf %-17s "${corpora// /|}")what to train on [${corpus}]
  --mustc_dir DIR           MuST-C's layout: the directory that holds ${src_lang}-${tgt_lang%% *}/data etc. or its archives [db.sh]
  --stage N --stop_stage M  run stages N to M [1 to 13; from 14 on that stage alone]
  --tgt_lang \"LANG ...\"     target languages [${tgt_lang}]
  --block_sizes \"20 32 40\"  encoder block sizes in frames of 40 ms, one model each [${block_sizes}]
  --systems \"block offline longform\"  families of systems: contextual block encoders, a full-context Conformer, whole
                            talks by these models, the block one of the largest block [${systems}]
  --nj N                    processes of one step, on one machine [${nj}]
  --decode_nj N             decoding jobs, which share the utterances [nj]
  --ngpu N                  GPUs of one training, on each node; 0 trains and decodes on the CPU [${ngpu}]
  --num_nodes N             nodes of one training, with slurm [${num_nodes}]
  --backend local|slurm     where the steps run: this machine or a cluster [as cmd.sh says]
  --distill_model NAME|DIR  train ST also on translations of the transcripts by this NLLB-type model [none]
  --max_epoch N             end each training after N epochs, for a dry run with --average_last N [the config's]
  --hard_vocab_limit true|false  false: where the text is too small for nbpe, as many tokens as it allows [${hard_vocab_limit}]
  --hf_repo OWNER/NAME      stage 15: where on the Hugging Face hub the model goes; without it nothing is uploaded
  --dry_run true|false      stage 15: only say what would go where [${dry_run}]
Overriding recipe.sh and, for each family of systems, recipe_*.sh in conf/, or in conf/CORPUS/ where there is one:
  --speed_perturb_factors \"0.9 1.0 1.1\"  --audio_format flac|wav|ark  --max_duration SECONDS
  --nbpe_src N  --nbpe_tgt N  --average_last N | --average_around_best N
  --asr_init \"SRC:DST[:EXCLUDE] ...\"  what the ST models take from the ASR model, as in ESPnet's --init_param

Stages: 1 data  2 speed perturbation  3 audio dump  4 length filter, distillation  5 token lists  6 ASR statistics
  7 ASR training  8 ST statistics  9 ST training  10 checkpoint averaging  11 decoding  12 scoring  13 report
  14 one archive per model, for this project and for ESPnet  15 upload to the Hugging Face hub
Every stage can be run alone and again: it goes on where it was and says what is done already."
parse_options "$@"
[[ "${mustc_dir:-/}" == /* ]] || mustc_dir=${called_from}/${mustc_dir}

[[ " ${corpora} " == *" ${corpus} "* ]] || die "--corpus '${corpus}' is unknown: choose ${corpora// / or }"
conf=conf
[ ! -d "conf/${corpus}" ] || conf=conf/${corpus}
need_integer stage 1 15
[ -n "${stop_stage}" ] || stop_stage=$((stage > 13 ? stage : 13)) # packing and uploading are asked for by number
need_integer stop_stage 1 15
((stage <= stop_stage)) || die "--stage ${stage} is behind --stop_stage ${stop_stage}"
need_integer nj 1 100000
need_integer ngpu 0 1000
need_integer num_nodes 1 1000
decode_nj=${decode_nj:-${nj}}
need_integer decode_nj 1 100000
[[ "${hard_vocab_limit}" =~ ^(true|false)$ ]] || die "--hard_vocab_limit '${hard_vocab_limit}': choose true or false"
[ -z "${max_epoch}" ] || need_integer max_epoch 1 100000
[[ "${tgt_lang}" =~ [^\ ] ]] || die "--tgt_lang is empty: give one or more languages, for example de"
[[ "${block_sizes}" =~ [^\ ] ]] || die "--block_sizes is empty: give one or more of the sizes in ${conf}/train_st_block*.yaml"
for block in ${block_sizes}; do
    [ -f "${conf}/train_st_block${block}.yaml" ] || die "--block_sizes ${block}: no ${conf}/train_st_block${block}.yaml"
done
for system in ${systems:-none}; do
    [[ " block offline longform " == *" ${system} "* ]] || die "--systems ${system}: choose block, offline, longform"
done
. ./cmd.sh
. "${conf}/recipe.sh"
[ -z "${average_last:-}" ] || need_integer average_last 1 1000
[ -z "${average_around_best:-}" ] || need_integer average_around_best 1 1000
[ -z "${average_last:-}" ] || [ -z "${average_around_best:-}" ] ||
    die "--average_last and --average_around_best exclude each other"
[[ "${audio_format}" =~ ^(flac|wav|ark)$ ]] || die "--audio_format '${audio_format}' is unknown: choose flac, wav or ark"
if ((num_nodes > 1)); then
    [ "${train_on}" = slurm ] || die "--num_nodes ${num_nodes} needs --backend slurm"
    ((ngpu > 0)) || die "--num_nodes ${num_nodes} needs --ngpu 1 or more"
fi
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

on_gpus=(--num-threads "${nj}" --gpu "${ngpu}" --num-nodes "${num_nodes}")
size=(--nj "${nj}" --ngpu "${ngpu}" --num_nodes "${num_nodes}")
[[ "${hard_vocab_limit}" =~ ^(true|false)$ ]] || die "--hard_vocab_limit '${hard_vocab_limit}': choose true or false"
[ -z "${max_epoch}" ] || size+=(--max_epoch "${max_epoch}")
train_set=train
[ -z "${speed_perturb_factors}" ] || train_set=train_sp
st_train_set=${train_set}
[ -z "${distill_model}" ] || st_train_set=${train_set}_kd

# Usage: models_of FAMILY; prints the names of its models.
models_of() {
    local block
    case $1 in
        block) for block in ${block_sizes}; do echo "block${block}"; done ;;
        offline) echo offline ;;
        longform) # the model of the largest block, and the full-context one if it is asked for
            echo "block$(tr ' ' '\n' <<<"${block_sizes}" | sort -n | tail -1)"
            [[ " ${systems} " != *" offline "* ]] || echo offline
            ;;
    esac
}

# Usage: train_family FAMILY; stages 5 to 10 of the variables lang, pair, train and st_train. The settings of a family
# hold in this subshell only.
train_family() (
    # shellcheck source=conf/recipe_block.sh
    . "${conf}/recipe_$1.sh"
    mapfile -t names < <(models_of "$1")
    suffix=
    [ "$1" = block ] || suffix=_$1
    average=(--last "${average_last:-}")
    [ -z "${average_around_best:-}" ] || average=(--around_best "${average_around_best}")
    not_needed=
    [ -n "${asr_init}" ] || not_needed=": none, as asr_init is empty"
    tokens=data/token_list${suffix}.${pair}
    asr=exp/asr${suffix}.${pair}
    models=()
    for name in "${names[@]}"; do models+=("exp/st_${name}.${pair}"); done
    data=(--tgt_lang "${lang}" --dev_dir "dump/dev.${pair}" --token_dir "${tokens}")

    if at_stage 5 "token lists of ${pair}, $1"; then
        ${prep_cmd} "logs/train_bpe_src${suffix}.${pair}.log" \
            python local/train_bpe.py --text "dump/${train}/text.lc.rm.${src_lang}" --lang "${src_lang}" \
            --nbpe "${nbpe_src}" --hard_vocab_limit "${hard_vocab_limit}" --output_dir "${tokens}/src"
        ${prep_cmd} "logs/train_bpe_tgt${suffix}.${pair}.log" \
            python local/train_bpe.py --text "dump/${st_train}/text.tc.${lang}" --lang "${lang}" \
            --nbpe "${nbpe_tgt}" --hard_vocab_limit "${hard_vocab_limit}" --output_dir "${tokens}/tgt"
    fi
    if at_stage 6 "ASR statistics of ${pair}, $1${not_needed}" && [ -n "${asr_init}" ]; then
        ${prep_cmd} --num-threads "${nj}" "logs/asr_stats${suffix}.${pair}.log" \
            python local/collect_stats.py --task asr "${data[@]}" --train_dir "dump/${train}" \
            --config "${conf}/train_asr_$1.yaml" --output_dir "exp/asr_stats${suffix}.${pair}" --nj "${nj}"
    fi
    if at_stage 7 "ASR training of ${pair}, $1${not_needed}" && [ -n "${asr_init}" ]; then
        ${train_cmd} "${on_gpus[@]}" "logs/asr_train${suffix}.${pair}.log" \
            python local/train_models.py --task asr "${data[@]}" --train_dir "dump/${train}" \
            --stats_dir "exp/asr_stats${suffix}.${pair}" --model "${conf}/train_asr_$1.yaml" "${asr}" "${size[@]}"
        ${prep_cmd} --num-threads "${nj}" "logs/asr_average${suffix}.${pair}.log" \
            python local/average_asr.py --model_dir "${asr}" "${average[@]}" --dump "dump/dev.${pair}" --nj "${nj}"
    fi
    if at_stage 8 "ST statistics of ${pair}, $1"; then
        ${prep_cmd} --num-threads "${nj}" "logs/st_stats${suffix}.${pair}.log" \
            python local/collect_stats.py --task st "${data[@]}" --train_dir "dump/${st_train}" \
            --config "${conf}/train_st_${names[0]}.yaml" --output_dir "exp/st_stats${suffix}.${pair}" --nj "${nj}"
    fi
    if at_stage 9 "ST training of ${pair}: ${names[*]}"; then
        models_of_job=()
        for name in "${names[@]}"; do
            models_of_job+=("--model ${conf}/train_st_${name}.yaml exp/st_${name}.${pair}")
        done
        [ "${train_on}" != local ] || models_of_job=("${models_of_job[*]}") # one job, which shares the machine's cores out
        init=()
        [ -z "${asr_init}" ] || init+=(--init_param)
        for part in ${asr_init}; do init+=("${asr}/model.pth:${part}"); done
        jobs=()
        for number in "${!models_of_job[@]}"; do
            # shellcheck disable=SC2086
            ${train_cmd} "${on_gpus[@]}" "logs/st_train${suffix}.${pair}.$((number + 1)).log" \
                python local/train_models.py --task st "${data[@]}" --train_dir "dump/${st_train}" \
                --stats_dir "exp/st_stats${suffix}.${pair}" ${models_of_job[number]} "${init[@]}" "${size[@]}" &
            jobs+=($!)
        done
        code=0
        for job in "${jobs[@]}"; do wait "${job}" || code=$?; done
        ((code == 0)) || exit "${code}"
    fi
    if at_stage 10 "checkpoint averaging of ${pair}: ${average[*]#--}"; then
        ${prep_cmd} --num-threads "${nj}" "logs/st_average${suffix}.${pair}.log" \
            python local/average_st.py --model_dirs "${models[@]}" "${average[@]}" --dump "dump/dev.${pair}" \
            --tgt_lang "${lang}" --nj "${nj}"
    fi
)

if at_stage 1 "data"; then prepare_corpus; fi

all_models=()
for lang in ${tgt_lang}; do
    pair=${src_lang}-${lang}
    train=${train_set}.${pair}
    st_train=${st_train_set}.${pair}

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
    if at_stage 4 "length filter of ${pair}${distill_model:+, distillation with ${distill_model}}"; then
        for name in "${train}" "dev.${pair}"; do
            ${prep_cmd} "logs/filter_length.${name}.log" \
                python local/filter_length.py --dump "dump/org/${name}" --output_dir "dump/${name}" \
                --tgt_lang "${lang}" --max_s "${max_duration}"
        done
        if [ -n "${distill_model}" ]; then
            distill=(python local/distill.py --dump "dump/${train}" --output_dir "dump/${st_train}"
                --work_dir "exp/distill.${pair}" --model "${distill_model}" --tgt_lang "${lang}")
            if [ "${train_on}" = slurm ]; then # one machine shares one copy of the model instead
                ${train_cmd} --gpu $((ngpu > 0)) "JOB=1:${decode_nj}" "logs/distill.${pair}.JOB.log" \
                    "${distill[@]}" --ngpu $((ngpu > 0)) --shard "JOB/${decode_nj}"
            fi
            ${train_cmd} --num-threads "${nj}" --gpu "${ngpu}" "logs/distill.${pair}.log" \
                "${distill[@]}" --nj "${nj}" --ngpu "${ngpu}"
        fi
    fi
    for system in ${systems//longform/}; do
        train_family "${system}"
    done
    for system in ${systems}; do
        mapfile -t names < <(models_of "${system}")
        for name in "${names[@]}"; do
            [[ " ${all_models[*]} " == *" exp/st_${name}.${pair} "* ]] || all_models+=("exp/st_${name}.${pair}")
        done
        grid=(--grid "${conf}/grid_${system}.yaml" --models "${names[@]}" --src_lang "${src_lang}" --tgt_lang "${lang}")
        if at_stage 11 "simultaneous decoding of ${pair}, systems ${system}"; then
            if [ "${system}" = longform ]; then # finds the decoder layer that the policy reads
                for name in "${names[@]}"; do
                    ${prep_cmd} "logs/check_attention.${name}.${pair}.log" \
                        python -m espnet_ext.bin.check_attention --st_train_config "exp/st_${name}.${pair}/config.yaml" \
                        --st_model_file "exp/st_${name}.${pair}/model.pth" --wav_scp "data/dev.${pair}/wav.scp" \
                        --segments "data/dev.${pair}/segments" --text "data/dev.${pair}/text.tc.${lang}"
                done
            fi
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
    mustc=$([ "${corpus}" = mustc ] && echo true || echo false)
    ${prep_cmd} logs/report.log \
        python -m espnet_ext.bin.report_simul --exp_dir exp --output_dir exp/report --mustc "${mustc}"
fi
if at_stage 14 "packed models"; then
    ${prep_cmd} logs/pack.log \
        python local/pack_models.py --model_dirs "${all_models[@]}" --corpus "${corpus}" --output_dir exp/packed
fi
if at_stage 15 "upload"; then
    archives=("${all_models[@]/#exp/exp/packed}")
    archives=("${archives[@]/%/.zip}")
    python local/publish_models.py --archives "${archives[@]}" --hf_repo "${hf_repo}" --dry_run "${dry_run}"
fi
echo "== stages ${stage} to ${stop_stage} ended after $((SECONDS - begin)) s"
