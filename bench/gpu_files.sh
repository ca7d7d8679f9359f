#!/usr/bin/env bash
# Sketches of files on the processors and on the GPU of a machine: seconds from the start of the command to its end, twice, and
# whether the bytes are the same. Beside them reading alone: the cells of one landmark, on the processors.
# `bash bench/gpu_files.sh [ROWS [LANDMARKS …]]`; NYSKETCH names the command.
set -eu
rows=$((${1:-20000000} / 8 * 8))
shift || true
landmarks=${*:-400 4000}
command=$(command -v "${NYSKETCH:-nysketch}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# Eight parts of each, made side by side.
for format in parquet npy; do
  mkdir "$format"
  started=
  for part in 1 2 3 4 5 6 7 8; do
    "$command" generate gmm --rows $((rows / 8)) --dims 20 --clusters 50 --seed "$part" -o "$format/$part.$format" -q > "$part.txt" &
    started="$started $!"
  done
  for one in $started; do wait "$one"; done
  du -sh "$format"
done
timed() { # what it is, then the command
  what=$1
  shift
  for _ in 1 2; do
    start=$(date +%s%N)
    "$command" "$@" -q --force > out.txt
    echo "$rows rows, $what: $((($(date +%s%N) - start) / 1000000)) ms"
  done
}
"$command" plan npy -o reading.nys --landmarks 1 --collect cells -q --device cpu > out.txt
for format in parquet npy; do
  timed "$format, reading alone" sketch "$format" --plan reading.nys -o read.nys --device cpu
done
for m in $landmarks; do
  "$command" plan npy -o "$m.nys" --landmarks "$m" -q --device cpu > out.txt
  for format in parquet npy; do
    for device in cpu cuda; do
      timed "$m landmarks, $format, $device" sketch "$format" --plan "$m.nys" -o "$device.nys" --device "$device"
    done
    cmp cpu.nys cuda.nys && echo "$rows rows, $m landmarks, $format: the same bytes"
  done
done
