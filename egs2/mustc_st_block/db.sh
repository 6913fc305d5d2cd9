# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by run.sh: what is this recipe's own, the languages, the corpora and how stage 1 prepares them.
src_lang=en
tgt_lang=de
corpora="mini mustc"
corpus=mini
# Holds en-de/data etc. or the archives MUSTC_*_en-de.tar.gz etc., which are unpacked into downloads/mustc; --mustc_dir
# goes before.
MUSTC=${MUSTC:-downloads/mustc}
MINI=downloads/mini

# Run before stage 1: `die` with what is missing.
check_corpus() {
    local lang dir=${mustc_dir:-${MUSTC}}
    [ "${corpus}" = mustc ] || return 0
    for lang in ${tgt_lang}; do
        [ -d "${dir}/en-${lang}/data" ] || [ -f "${dir}" ] || [[ "${dir%/}" == */en-${lang} && -d "${dir}/data" ]] ||
            compgen -G "${dir}/*en-${lang}.tar.gz" >/dev/null ||
            die "no MuST-C release at ${dir}/en-${lang}/data: download MUSTC_*_en-${lang}.tar.gz from" \
                "mt.fbk.eu/must-c (licence: CC BY-NC-ND 4.0) and give it, or the directory that holds it or the" \
                "unpacked en-${lang}, as --mustc_dir, or use --corpus mini"
    done
}

# Stage 1: leaves data/{train,dev,tst-COMMON}.en-${lang} for each target language.
prepare_corpus() {
    local lang dir=${mustc_dir:-${MUSTC}}
    if [ "${corpus}" = mini ]; then
        dir=${MINI}
        ${prep_cmd} --num-threads "${nj}" logs/make_mini_corpus.log \
            python local/make_mini_corpus.py --output_dir "${dir}" --tgt_lang "${tgt_lang}" --nj "${nj}"
    fi
    for lang in ${tgt_lang}; do
        ${prep_cmd} --num-threads "${nj}" "logs/prepare.en-${lang}.log" \
            python local/prepare_mustc.py --mustc_dir "${dir}" --tgt_lang "${lang}" --nj "${nj}"
    done
}
