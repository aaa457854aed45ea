#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs one test and keeps its log: run_suite.sh LOG PLACE COMMAND [ARGUMENTS...]
# Always succeeds: the summary judges the logs, so that one failure does not hide the others.
# PLACE is cpu, emulated or gpu.
set -u
log=$1
place=$2
shift 2
mkdir -p "$(dirname "$log")"
start=$(date +%s)
{
    echo "COMMAND $*"
    echo "PLACE $place"
    CK_VERBOSITY=verbose LC_ALL=C "$@" 2>&1 < /dev/null
    echo "EXIT $?"
} > "$log.part"
echo "SECONDS $(($(date +%s) - start))" >> "$log.part"
mv "$log.part" "$log"
