// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Facts from the CUDA runtime, from nvidia-smi, and about the build.
 */
#include "gpu_facts.h"

#include <string.h>

#include "output_file.h"

/** A fact on the screen and in the file. */
static void fact(FILE *json, const char *name, const char *value) {
    printf("%-20s %s\n", name, value);
    output_json_string(json, name);
    fputs(": ", json);
    output_json_string(json, value);
    fputs(", ", json);
}

static void number(FILE *json, const char *name, double value) {
    printf("%-20s %.0f\n", name, value);
    fprintf(json, "\"%s\": %.0f, ", name, value);
}

/** A line of what nvidia-smi says of a device. Returns 0 where it says nothing. */
static int ask_driver(const char *id, char *line, int size) {
    char command[256];
    snprintf(command, sizeof command,
             "nvidia-smi --id=%s --format=csv,noheader --query-gpu=driver_version,clocks.max.sm,"
             "clocks.max.mem,clocks.sm,power.limit,temperature.gpu 2> /dev/null",
             id);
    FILE *smi = popen(command, "r");
    if (smi == NULL) {
        return 0;
    }
    int got = fgets(line, size, smi) != NULL;
    return pclose(smi) == 0 && got;
}

/** What nvidia-smi says, where there is one. Its numbers of devices are not the runtime's. */
static void report_driver(const struct bench_device *device, FILE *json) {
    static const char *const names[] = {"driver",         "sm_clock_max", "memory_clock_max",
                                        "sm_clock_start", "power_limit",  "temperature"};
    char line[256] = "";
    if (device->bus[0] == '\0' ||
        (!ask_driver(device->bus, line, sizeof line) && !ask_driver("0", line, sizeof line))) {
        return;
    }
    line[strcspn(line, "\n")] = '\0';
    char *at = line;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && at != NULL; i++) {
        char *end = strstr(at, ", ");
        if (end != NULL) {
            *end = '\0';
            end += 2;
        }
        fact(json, names[i], at);
        at = end;
    }
}

/** Lines "name value" about the build: commit, hash of the sources. */
static void report_kit(FILE *kit, FILE *json) {
    char line[256];
    int named = 0;
    while (kit != NULL && fgets(line, sizeof line, kit) != NULL) {
        char *value = strchr(line, ' ');
        line[strcspn(line, "\n")] = '\0';
        if (value != NULL) {
            *value = '\0';
            fact(json, line, value + 1);
            named |= strcmp(line, "commit") == 0;
        }
    }
    if (!named) {
        fact(json, "commit", "unknown");
    }
}

/** How it is measured, in words and with the numbers of this run; the last member. */
static void report_method(int32_t samples, FILE *json) {
    char count[64];
    char method[500];
    if (samples > 0) {
        snprintf(count, sizeof count, "%d samples", samples);
    } else {
        snprintf(count, sizeof count, "%d samples or of %d above %d ms", BENCH_SAMPLES,
                 BENCH_FEW_SAMPLES, BENCH_LONG_US / 1000);
    }
    snprintf(method, sizeof method,
             "events around kdtr_run behind %d us of a spinning kernel, L2 flushed by reading %g "
             "MiB before each sample, %d warm-ups, median and quartiles of %s, nothing subtracted; "
             "fresh data a row, o and lse checked against float64 before it is timed; trees of "
             "sweep_budget by kdtr_draft_tree_build_host, else any earlier node may be a parent",
             BENCH_SPIN_US, (double)BENCH_FLUSH_BYTES / 1048576, BENCH_WARM_UP, count);
    printf("%-20s %s\n", "method", method);
    fputs("\"method\": ", json);
    output_json_string(json, method);
}

void bench_report_facts(const struct bench_device *device, FILE *kit, int32_t samples, FILE *json) {
    int driver = 0;
    int runtime = 0;
    char text[32];
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    fact(json, "gpu", kdtr_context_device_name(device->context));
    snprintf(text, sizeof text, "%d.%d", device->capability / 10, device->capability % 10);
    fact(json, "compute_capability", text);
    number(json, "sms", device->sm_count);
    number(json, "l2_bytes", device->l2_bytes);
    number(json, "sm_clock_khz", device->sm_khz);
    number(json, "memory_clock_khz", device->memory_khz);
    number(json, "driver_cuda", driver);
    number(json, "runtime_cuda", runtime);
    report_driver(device, json);
    snprintf(text, sizeof text, "%d.%d.%d", KDTR_VERSION_MAJOR, KDTR_VERSION_MINOR,
             KDTR_VERSION_PATCH);
    fact(json, "version", text);
    number(json, "numerics", kdtr_numerics_version());
    report_kit(kit, json);
    fact(json, "date", output_date(text, sizeof text));
    report_method(samples, json);
}
