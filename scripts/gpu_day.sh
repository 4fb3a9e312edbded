#!/usr/bin/env bash
# What is to be seen on a day with a GPU, in at most eight minutes: tests, losses and resuming beside the CPU's, benchmarks, peers; a line for each step
# as it ends, and tables of ratios. A step that fails or takes too long loses no other.
#
#   scripts/gpu_day.sh --pack FILE.tar.xz --data data/multi30k [--wheels FOLDER]    packs build/cuda, its libraries, the corpus and wheels of adasplash and entmax
#   scripts/gpu_day.sh --packed FILE.tar.xz --out FOLDER                             on the machine with the GPU; its python3 has torch, transformers, sentencepiece
#   scripts/gpu_day.sh --out FOLDER --data FOLDER [--build build/cuda] [--python PYTHON] [--seconds 480] [--only STEP,STEP] [--no-peers]
#   scripts/gpu_day.sh --dry-run --out FOLDER --data FOLDER [--build build/cpu] ...  every step on the CPU with tiny sizes: proves this script, measures nothing
#
# FOLDER of --data has train.{de,en}.gz and test2016.{de,en}.gz. --out gets the JSON of each step, STEP.log, gpu_day.json with all of it, and tables.md.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
pack= packed= wheels= out= data= build= python=python3 seconds=480 only= device=cuda peers=yes
fail() { echo "scripts/gpu_day.sh: $1" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --dry-run) device=cpu; shift ;;
    --no-peers) peers=; shift ;;
    --pack | --packed | --wheels | --out | --data | --build | --python | --seconds | --only)
      [ $# -ge 2 ] || fail "$1 needs a value"
      declare "${1#--}=$2"
      shift 2 ;;
    *) fail "unknown argument \"$1\"; see --help" ;;
  esac
done
preset=cpu
[ "$device" = cpu ] || preset=cuda
build=${build:-$root/build/$preset}
programs=(lacuna lacuna-bench tests/contract/attention_contract_test tests/kernels/gpu_kernels_test tests/train/gpu_test tests/speed/speed_test)

require_data() {
  local file
  for file in {train,test2016}.{de,en}.gz; do
    [ -f "$data/$file" ] || fail "--data: $data/$file is missing; scripts/get_multi30k.sh --from FOLDER links the corpus"
  done
}

# pack_all: one archive of programs without symbols, the libraries that they find outside LibTorch and the C and C++ libraries, the corpus, and wheels.
pack_all() {
  local program library
  require_data
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$folder"/{lib,data,wheels}
  for program in "${programs[@]}"; do
    [ -x "$build/$program" ] || fail "$build/$program is not built; run scripts/build.sh $preset all, or name the build with --build"
    mkdir -p "$(dirname "$folder/$program")"
    strip -o "$folder/$program" "$build/$program"
    ldd "$build/$program" | awk '$3 ~ /^\// {print $3}' >> "$folder/libraries"
  done
  sort -u "$folder/libraries" | grep -vE '/(lib(torch|c10|cuda|cudart|cu|nv|nccl|gomp|shm)[^/]*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so[^/]*|ld-linux[^/]*)$' |
    while read -r library; do cp -L "$library" "$folder/lib/"; done
  rm "$folder/libraries"
  cp -L "$data"/{train,test2016}.{de,en}.gz "$folder/data/"
  [ -z "$wheels" ] || cp "$wheels"/*.whl "$folder/wheels/"
  XZ_OPT="-3 -T0" tar -C "$folder" -cJf "$pack" .
  (cd "$folder" && find . -type f -size +256k -exec du -k {} + | sort -rn)
  local bytes
  bytes=$(stat -c %s "$pack")
  echo "$pack: $((bytes >> 20)) MiB"
  [ "$bytes" -le $((56 << 20)) ] || fail "$pack is larger than 56 MiB; with the sources beside it, it may be more than can be carried (64 MiB)"
}

if [ -n "$pack" ]; then
  pack_all
  exit
fi
[ -n "$out" ] || fail "--out is missing: the folder for results"
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "$packed" ]; then
  mkdir "$work/packed"
  "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter="data")' "$packed" "$work/packed" || fail "--packed: $packed cannot be unpacked"
  build=$work/packed data=$work/packed/data
  if compgen -G "$build/wheels/*.whl" > /dev/null; then
    "$python" -m pip install -q --no-index --no-deps --target "$work/site" "$build"/wheels/*.whl && export PYTHONPATH=$work/site
  fi
  torch=$("$python" -c 'import os, torch; print(os.path.join(os.path.dirname(torch.__file__), "lib"))') || fail "$python has no torch"
  export LD_LIBRARY_PATH=$torch:$build/lib
fi
require_data
[ -x "$build/lacuna" ] || fail "$build/lacuna is not built; run scripts/build.sh $preset lacuna, or name the build with --build"
export PYTHONUNBUFFERED=1
tools=("$python" "$root/scripts/gpu_day.py")
deadline=$((SECONDS + seconds)) failed=0
: > "$out/steps.tsv"

# step NAME SECONDS COMMAND...: runs it with that limit, or what is left of the whole; stdout goes to NAME.json, stderr to NAME.log. Says how it ended.
# LACUNA_TEST_PATIENCE, a whole number, multiplies the limit: tests of slow programs (preset sanitize) set it.
step() {
  local name=$1 limit=$(($2 * ${LACUNA_TEST_PATIENCE:-1})) begin=$SECONDS code text
  shift 2
  case ",${only:-$name}," in *",$name,"*) ;; *) return 0 ;; esac
  [ "$limit" -le $((deadline - SECONDS)) ] || limit=$((deadline - SECONDS))
  if [ "$limit" -lt 5 ]; then
    code=124 text="not begun: no time is left"
  else
    timeout -k 5 "$limit" "$@" > "$out/$name.json" 2> "$out/$name.log" < /dev/null
    code=$?
    text=$(tail -n 1 "$out/$name.log" | cut -c 1-200)
    [ $code -ne 124 ] || text="stopped after $limit s"
  fi
  [ $code -eq 0 ] && text= || failed=$((failed + 1))
  printf '%s\t%s\t%s\t%s\n' "$name" "$code" "$((SECONDS - begin))" "$text" >> "$out/steps.tsv"
  printf '%-28s %-9s %3d s  %s\n' "$name" "$([ $code -eq 0 ] && echo ok || echo "FAILED $code")" $((SECONDS - begin)) "$text"
}

# Sizes: those of the day, or as small as can be.
if [ "$device" = cuda ]; then
  shapes=(base small) batches=(4096 16384) vocabulary=8000 steps=40 warmup=10 lengths=32,128,512,2048 rounds=5 limit=0 length=30 updates=40 lines=1000
  queued=(--queued) bf16=(--bf16) precision=bf16 batch=128 alone=60 
  kernels='*' training='*' contract='*' shards=6
else
  shapes=(tiny) batches=(256) vocabulary=300 steps=2 warmup=1 lengths=8 rounds=1 limit=4 length=5 updates=4 lines=4
  queued=() bf16=() precision=fp32 batch=4 alone=2 
  kernels='BestTokens.*' training='*DropsWhatTheCpuDrops*' contract='*AttentionKernels*softmax*' shards=2
fi
threads=(--threads "$([ "$device" = cuda ] && nproc || echo 1)")
cat > "$work/day.yaml" <<YAML
run: $work/run
seed: 1
data:
  train: [{src: $data/train.de.gz, tgt: $data/train.en.gz}]
  vocab_size: $vocabulary
  spm_type: bpe
  max_length: 128
model: {preset: ${shapes[0]}, norm: pre, tie_embeddings: all, dropout: 0.1, attention_dropout: 0.1, activation_dropout: 0.1}
train: {batch_tokens: ${batches[0]}, lr: 5.0e-4, warmup_steps: 10, schedule: inverse_sqrt, label_smoothing: 0.1, log_every: 1, save_every: 0, average_last: 0, max_steps: $updates}
YAML
lacuna=$build/lacuna
on_device=(--device "$device" "${threads[@]}")
bench_train=("$lacuna" bench train -c "$work/day.yaml" --folder "$work/bench" --json --quiet)
train=("$lacuna" train -c "$work/day.yaml" --quiet "${threads[@]}")

step machine 20 "${tools[@]}" machine "$lacuna" "$device"
step vocabulary 60 "${bench_train[@]}" --steps 1 --warmup 0 --model.preset tiny "${threads[@]}"

# --- is it right? ---
of_tests=("${tools[@]}" tests)
step tests.kernels 60 "${of_tests[@]}" "$build/tests/kernels/gpu_kernels_test" "$kernels" "$device"
step tests.speed 30 "${of_tests[@]}" "$build/tests/speed/speed_test" 'Traced*:GpuTrace*' "$device"
step tests.training 60 "${of_tests[@]}" "$build/tests/train/gpu_test" "$training" "$device"
step tests.contract 120 "${of_tests[@]}" "$build/tests/contract/attention_contract_test" "$contract" "$device" "$shards"
for each in cpu "$device"; do
  step "losses.$each" 60 "${train[@]}" --run "$work/$each" --device "$each" --train.precision fp32 --model.preset "${shapes[-1]}"
  [ "$device" != cpu ] || break
done
step losses.bf16 40 "${train[@]}" --run "$work/bf16" --device "$device" --train.precision "$precision" --model.preset "${shapes[-1]}"
step losses 10 "${tools[@]}" losses "$work/cpu" "$work/$device" "$work/bf16"
for stop in $((updates / 2)) "$updates"; do
  step "resume.$stop" 40 "${train[@]}" --run "$work/resumed" --device "$device" --train.precision "$precision" --model.preset "${shapes[-1]}" --train.max_steps "$stop"
done
step resume 10 "${tools[@]}" same "$work/bf16/last" "$work/resumed/last"

# --- how fast is it? ---
profile=()
[ "$device" = cpu ] || profile=(--profile)
for shape in "${shapes[@]}"; do
  for tokens in "${batches[@]}"; do
    step "train.$shape.$tokens" 40 "${bench_train[@]}" "${profile[@]}" --steps "$steps" --warmup "$warmup" --model.preset "$shape" --train.batch_tokens "$tokens" \
      --train.precision "$precision" "${on_device[@]}"
  done
done
for causal in full causal; do
  flags=(--lengths "$lengths" --rounds "$rounds" --dtype "$([ "$device" = cuda ] && echo bf16 || echo fp32)" "${queued[@]}")
  [ $causal = full ] || flags+=(--causal)
  step "attention.$causal" 60 "$build/lacuna-bench" attention --json "${on_device[@]}" "${flags[@]}"
  [ -z "$peers" ] || step "attention.$causal.peers" 90 "$python" "$root/scripts/bench_attention_peers.py" "${on_device[@]}" "${flags[@]}" \
    --types "softmax;topk-k=8;rela;sparsemax;entmax15"
done
step model 60 "${train[@]}" --run "$work/model" --device "$device" --model.preset "${shapes[0]}"
translate=("$lacuna" bench translate --json -m "$work/model/last" -i "$data/test2016.de.gz" "${on_device[@]}" --translate.min_length "$length"
  --translate.max_length "$length" --translate.beam_size 5)
step translate 60 "${translate[@]}" "${profile[@]}" --translate.batch_tokens 8192 --limit "$limit" --rounds 2
step translate.bf16 60 "${translate[@]}" --translate.batch_tokens 8192 --translate.precision bf16 --limit "$limit" --rounds 2
step translate.alone 30 "${translate[@]}" --translate.batch_tokens 1 --limit "$alone" --rounds 1
for each in cpu "$device"; do
  step "translations.$each" 60 "$lacuna" translate -m "$work/model/last" -i "$data/test2016.de.gz" -o "$work/translated.$each" --device "$each" --quiet "${threads[@]}" \
    --translate.precision fp32 --translate.max_length "$length"
  [ "$device" != cpu ] || break
done
step translations 10 "${tools[@]}" lines "$work/translated.cpu" "$work/translated.$device"

# --- and the peers beside it? ---
if [ -n "$peers" ]; then
  peer=("$python" "$root/scripts/peers/train.py" --spm "$work/bench/spm.model" --src "$data/train.de.gz" --tgt "$data/train.en.gz" "${on_device[@]}" "${bf16[@]}"
    --steps "$steps" --warmup "$warmup")
  for shape in "${shapes[@]}"; do
    for tokens in "${batches[@]}"; do
      step "train.$shape.$tokens.ragged" 40 "${peer[@]}" --peer ragged --shape "$shape" --batch-tokens "$tokens"
      step "train.$shape.$tokens.marian" 40 "${peer[@]}" --peer marian --shape "$shape" --batch-tokens "$tokens"
    done
  done
  step export 30 "$lacuna" export -m "$work/model/last" --to hf -o "$work/hf" --quiet
  step translate.peer 60 "$python" "$root/scripts/peers/translate_transformers.py" --model "$work/hf" --spm "$work/model/last/spm.model" --src "$data/test2016.de.gz" \
    "${on_device[@]}" "${bf16[@]}" --batch "$batch" --limit "$lines" --length "$length"
  [ "$device" = cpu ] || step "train.${shapes[0]}.${batches[0]}.compiled" 120 "${peer[@]}" --peer marian --compile --shape "${shapes[0]}" --batch-tokens "${batches[0]}"
fi

# --- last, because they are slow: races and wrong addresses in the kernels ---
if [ "$device" = cuda ] && command -v compute-sanitizer > /dev/null; then
  for tool in memcheck racecheck; do
    step "sanitizer.$tool" 60 compute-sanitizer --tool $tool --error-exitcode 9 "$build/tests/kernels/gpu_kernels_test" --gtest_filter='*/Gpu:BestTokensOnGpu.*' --gtest_brief=1
  done
fi

"${tools[@]}" tables "$out" | tee "$out/tables.md"
[ $failed -eq 0 ] || { echo "$failed steps failed" >&2; exit 1; }
