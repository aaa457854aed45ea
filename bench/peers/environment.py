# SPDX-License-Identifier: Apache-2.0
"""Facts of the machine, of the sources and of the peers, as the result file has them."""

import datetime
import glob
import json
import os
import platform
import subprocess

import torch
import triton

import timing
from points import InputError

_QUERY = {"driver": "driver_version", "sm_clock_max": "clocks.max.sm",
          "memory_clock_max": "clocks.max.mem", "sm_clock_start": "clocks.sm",
          "power_limit": "power.limit", "temperature": "temperature.gpu"}


def read_kit(path):
    """Lines "name value" of a kit: commit, sources_sha256 and how it was built."""
    facts = {}
    try:
        with open(path, encoding="utf-8") as file:
            for line in file.read().splitlines():
                name, _, value = line.partition(" ")
                facts[name] = value
    except (OSError, UnicodeDecodeError) as cause:
        raise InputError(f"cannot read {path}: {cause}") from cause
    missing = [name for name in ("commit", "sources_sha256") if not facts.get(name)]
    if missing:
        raise InputError(f"{path}: no line {missing[0]}")
    return facts


def read_ceilings(path, gpu):
    """The ceilings of a bench result file of the same kind of card."""
    try:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        made_on = result["environment"]["gpu"]
        ceilings = result["ceilings"]
        whole = all(entry["rows"] > 0 and entry["random_gbps"] > 0 and entry["contiguous_gbps"] > 0
                    for entry in ceilings["gather"]) and ceilings["mma_tflops"] > 0
    except (OSError, ValueError, KeyError, TypeError) as cause:
        raise InputError(f"{path}: no result file with ceilings: {cause!r}") from cause
    if made_on != gpu:
        raise InputError(f"{path}: ceilings of {made_on}, this is {gpu}")
    if not whole or not ceilings["gather"]:
        raise InputError(f"{path}: its ceilings were not measured")
    return ceilings


def package_version(site, name):
    """Version of a package by the name of its dist-info folder in `site`."""
    found = glob.glob(os.path.join(site, name + "-*.dist-info"))
    if len(found) != 1:
        raise InputError(f"{site}: {len(found)} folders {name}-*.dist-info, expected one")
    return os.path.basename(found[0])[len(name) + 1:-len(".dist-info")]


def driver_facts():
    """What nvidia-smi says, empty where there is none."""
    command = ["nvidia-smi", "--id=0", "--format=csv,noheader",
               "--query-gpu=" + ",".join(_QUERY.values())]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(_QUERY, done.stdout.strip().split(", ")))


def method(samples):
    """How it is measured, in words."""
    count = (f"{samples} samples" if samples else
             "25 samples, 9 above 2 ms, 5 above 15 ms, 3 above 500 ms")
    return (f"events around the call behind {timing.SPIN_US:g} us or more of a spinning kernel, so "
            "that all of it is enqueued before the device begins (asked for each sample); L2 "
            f"flushed by reading {timing.FLUSH_BYTES >> 20} MiB before each sample, "
            f"{timing.WARM_UP} warm-ups, median and quartiles of {count}, nothing subtracted; "
            "plans, metadata and gathered node rows outside of what is timed; the same fresh "
            "tensors for every implementation of a point; whole output, poisoned before, checked "
            "against float64 before and after it is timed. served: a captured graph of all layers, "
            "no flush, since the layers' caches exceed the L2, 25 replays after 12 where one takes "
            "less than 50 ms, fewer after 2 else; time of attention alone")


def environment(site, kit, library, samples):
    """The environment of the result file."""
    properties = torch.cuda.get_device_properties(0)
    facts = {"gpu": properties.name, "sms": properties.multi_processor_count,
             "l2_bytes": properties.L2_cache_size, **driver_facts(),
             "cuda": torch.version.cuda, "python": platform.python_version(),
             "kdtr": library.version(), **kit,
             "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")}
    versions = [f"flashinfer-python {package_version(site, 'flashinfer_python')}",
                f"sglang {package_version(site, 'sglang')}",
                f"apache-tvm-ffi {package_version(site, 'apache_tvm_ffi')}",
                f"torch {torch.__version__}", f"triton {triton.__version__}"]
    facts["peers"] = ", ".join(versions)
    facts["method"] = method(samples)
    return facts
