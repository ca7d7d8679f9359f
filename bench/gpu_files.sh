#!/usr/bin/env bash
# Sketches of files on the processors and on the GPU of a machine: seconds from the start of the command to its end, twice, and
# whether the bytes are the same. `bash bench/gpu_files.sh [ROWS [LANDMARKS …]]`; NYSKETCH names the command.
set -eu
rows=${1:-20000000}
shift || true
landmarks=${*:-400 4000}
command=$(command -v "${NYSKETCH:-nysketch}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for format in parquet npy; do
  "$command" generate gmm --rows "$rows" --dims 20 --clusters 50 -o "rows.$format" -q > out.txt
done
for m in $landmarks; do
  "$command" plan rows.npy -o "$m.nys" --landmarks "$m" -q --device cpu > out.txt
  for format in parquet npy; do
    for device in cpu cuda; do
      for _ in 1 2; do
        start=$(date +%s%N)
        "$command" sketch "rows.$format" --plan "$m.nys" -o "$device.nys" --device "$device" -q --force > out.txt
        echo "$rows rows, $m landmarks, $format, $device: $((($(date +%s%N) - start) / 1000000)) ms"
      done
    done
    cmp cpu.nys cuda.nys && echo "$rows rows, $m landmarks, $format: the same bytes"
  done
done
