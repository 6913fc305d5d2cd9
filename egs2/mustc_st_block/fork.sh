#!/usr/bin/env bash
# Makes a recipe for another language pair or corpus beside this one: its own settings as copies, the code as links.
# shellcheck disable=SC2154,SC2034 # variables go to and come from parse_options.sh
set -euo pipefail
original=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "${original}/utils/parse_options.sh"

src=en
tgt=
conf=conf
option_names="src tgt conf"
help_message="Usage: $0 NAME --tgt LANG [--src LANG] [--conf conf|conf/mini]

Makes egs2/NAME: run.sh, path.sh, local and utils are links to this recipe, db.sh, cmd.sh and conf are its own.

  --src LANG             language of the speech, ISO 639-1 [${src}]
  --tgt \"LANG ...\"       language of the translation, or several
  --conf conf|conf/mini  settings to start from: the paper's, or small models for a CPU [${conf}]"

# ISO 639-1
languages="aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en
 eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki
 kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv
 ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk
 tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu "

case "${1:-}" in
    "") die "name the new recipe (see --help)" ;;
    -*) name= ;;
    *) name=$1 && shift ;;
esac
parse_options "$@"
[ -n "${name}" ] || die "name the new recipe first, before the options (see --help)"
[[ "${name}" =~ ^[A-Za-z0-9][A-Za-z0-9_]*$ ]] || die "'${name}' is no name for a recipe: use letters, digits and _"
target=$(dirname "${original}")/${name}
[ ! -e "${target}" ] && [ ! -L "${target}" ] || die "${target} is there already: choose another name or remove it"
[[ "${tgt}" =~ [^\ ] ]] || die "--tgt is missing: give the language of the translation, for example --tgt ja"
[[ "${src}" =~ ^[^\ ]+$ ]] || die "--src '${src}': give one language, that of the speech"
for lang in ${src} ${tgt}; do
    [[ " ${languages//$'\n'/} " == *" ${lang} "* ]] || die "'${lang}' is no language: give its ISO 639-1 code, for example ja"
done
[[ " ${tgt} " != *" ${src} "* ]] || die "--src ${src} --tgt ${tgt}: a translation is into another language"
[ -f "${original}/${conf}/recipe.sh" ] || die "--conf ${conf}: no such settings: choose conf or conf/mini"

new=${target%/*}/.${name}.new
trap 'rm -rf "${new}"' EXIT
rm -rf "${new}"
mkdir -p "${new}/conf"
for shared in run.sh path.sh local utils; do ln -s "../${original##*/}/${shared}" "${new}/${shared}"; done
cp "${original}/cmd.sh" "${new}/"
cp "${original}/${conf}"/*.{sh,yaml} "${original}/conf/slurm.conf" "${new}/conf/"
cat >"${new}/db.sh" <<END
# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by run.sh: what is this recipe's own, the languages, the corpus and how stage 1 prepares it.
src_lang=${src}
tgt_lang="${tgt}"
corpora=${name}
corpus=${name}
CORPUS=\${CORPUS:-downloads/corpus}
END
cat >>"${new}/db.sh" <<'END'

# Run before stage 1: `die` with what is missing.
check_corpus() {
    local lang dir=${mustc_dir:-${CORPUS}}
    for lang in ${tgt_lang}; do
        [ -d "${dir}/${src_lang}-${lang}/data" ] || [ -f "${dir}" ] ||
            compgen -G "${dir}/*${src_lang}-${lang}.tar.gz" >/dev/null ||
            die "no corpus at ${dir}/${src_lang}-${lang}/data in ${PWD}: put it there in MuST-C's layout, give its" \
                "directory as --mustc_dir, or change db.sh (docs/forking.md)"
    done
}

# Stage 1: leaves data/{train,dev,tst-COMMON}.${src_lang}-${lang} for each target language, here from MuST-C's layout.
prepare_corpus() {
    local lang
    for lang in ${tgt_lang}; do
        ${prep_cmd} --num-threads "${nj}" "logs/prepare.${src_lang}-${lang}.log" \
            python local/prepare_mustc.py --mustc_dir "${mustc_dir:-${CORPUS}}" --src_lang "${src_lang}" \
            --tgt_lang "${lang}" --nj "${nj}"
    done
}
END
cat >"${new}/README.md" <<END
# ${name}: ${src} to ${tgt}

A fork of [${original##*/}](../${original##*/}/README.md), which has the stages and the code. Its own are \`db.sh\` (languages, corpus,
preparation), \`conf/\` (settings) and \`cmd.sh\` (scheduler).
END
mv "${new}" "${target}"
echo "made ${target}: say in db.sh where the corpus lies, look through conf/, then run ${target}/run.sh"
