// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Reading the command line.
 */
#include "gpu_options.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_statistics.h"

/** Options that take a value, and what that must be. */
static const struct {
    const char *name;
    const char *must;
} values[] = {
    {"--json", "a file name"},
    {"--kit", "a file name"},
    {"--limits", "a file name"},
    {"--point", "B,H,Q,N in range"},
    {"--set", "table, long, sweep_n, sweep_q, sweep_h or sweep_budget"},
    {"--layout", "random or contiguous"},
    {"--mask", "packed or parents"},
    {"--row-bytes", "a multiple of 4 from 1152 to 65536"},
    {"--implementation", "flash, exact, naive or auto"},
    {"--samples", "a number from 1 to 1000"},
    {"--seed", "a number from 0 to 2147483647"},
};

/** Number of the name among some; -1 if it is none. */
static int32_t choose(const char *name, const char *const *names, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

/** A number in range; -1 if it is none. */
static int32_t whole(const char *text, int32_t low, int32_t high) {
    char *end;
    long value = strtol(text, &end, 10);
    int digits = *text >= '0' && *text <= '9'; /* strtol takes blanks and signs */
    return !digits || *end != '\0' || value < low || value > high ? -1 : (int32_t)value;
}

/** The set of a name; -1 if it is none. */
static int32_t set_of(const char *name) {
    for (int32_t set = 0; set < BENCH_SETS; set++) {
        if (strcmp(name, bench_set_name(set)) == 0) {
            return set;
        }
    }
    return -1;
}

/** Takes the implementation by its name. Returns a negative number for another one. */
static int32_t take_implementation(struct bench_selection *s, const char *value) {
    static const char *const names[] = {"auto", "naive", "flash", "exact"};
    static const int32_t numbers[] = {KDTR_IMPLEMENTATION_AUTO, KDTR_IMPLEMENTATION_NAIVE,
                                      KDTR_IMPLEMENTATION_FLASH, KDTR_IMPLEMENTATION_FLASH};
    int32_t got = choose(value, names, 4);
    if (got >= 0) {
        s->implementation = numbers[got];
        s->exact = got == 3;
    }
    return got;
}

/** Takes an option with its value. Returns a negative number if that is bad. */
static int32_t take(struct bench_options *o, const char *name, const char *value) {
    static const char *const layouts[] = {"random", "contiguous"};
    static const char *const masks[] = {"parents", "packed"};
    struct bench_selection *s = &o->selection;
    int32_t got = 0;
    if (strcmp(name, "--json") == 0) {
        o->json = value;
        return *value == '\0' ? -1 : 0;
    }
    if (strcmp(name, "--kit") == 0) {
        o->kit = value;
        return 0;
    }
    if (strcmp(name, "--limits") == 0) {
        o->limits = value;
        return 0;
    }
    o->partial = 1;
    if (strcmp(name, "--point") == 0) {
        return -bench_parse_point(value, &s->point);
    }
    if (strcmp(name, "--set") == 0) {
        got = set_of(value);
        s->sets |= got < 0 ? 0 : 1u << got;
        return got;
    }
    if (strcmp(name, "--layout") == 0) {
        return s->layout = choose(value, layouts, 2);
    }
    if (strcmp(name, "--mask") == 0) {
        got = choose(value, masks, 2);
        s->mask_mode = got + KDTR_MASK_PARENTS;
        return got;
    }
    if (strcmp(name, "--row-bytes") == 0) {
        got = whole(value, 2 * BENCH_ROW_ELEMENTS, 65536);
        s->stride = got / 2;
        return got % 4 == 0 ? got : -1;
    }
    if (strcmp(name, "--implementation") == 0) {
        return take_implementation(s, value);
    }
    if (strcmp(name, "--samples") == 0) {
        return o->samples = whole(value, 1, BENCH_MAX_SAMPLES);
    }
    o->seed = whole(value, 0, INT32_MAX); /* --seed */
    return o->seed < 0 ? -1 : 0;
}

/** Says what is wrong. Returns 2. */
static int complain(const char *name, const char *must, const char *value) {
    fprintf(stderr, "kdtr: bench: ");
    if (must == NULL) {
        fprintf(stderr, "there is no option '%s'", name);
    } else if (value == NULL) {
        fprintf(stderr, "%s takes %s", name, must);
    } else {
        fprintf(stderr, "%s takes %s, not '%s'", name, must, value);
    }
    fprintf(stderr, "; try 'kdtr help bench'\n");
    return 2;
}

/** An option without a value. Returns 0 if it is none. */
static int take_flag(struct bench_options *o, const char *name) {
    if (strcmp(name, "--quick") == 0) {
        o->samples = 5;
        o->quick = 1;
    } else if (strcmp(name, "--no-ceilings") == 0) {
        o->no_ceilings = 1;
        o->partial = 1;
    } else if (strcmp(name, "--wide") == 0) {
        o->wide = 1;
    } else if (strcmp(name, "--progress") == 0) {
        o->progress = 1;
    } else {
        return 0;
    }
    return 1;
}

int bench_parse_options(int argc, char **argv, struct bench_options *options) {
    *options = (struct bench_options){
        .selection = {.implementation = -1, .layout = -1, .mask_mode = -1}, .seed = 1};
    for (int i = 0; i < argc; i++) {
        const char *must = NULL;
        if (take_flag(options, argv[i])) {
            continue;
        }
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            must = strcmp(argv[i], values[k].name) == 0 ? values[k].must : must;
        }
        if (must == NULL || i + 1 == argc) {
            return complain(argv[i], must, NULL);
        }
        if (take(options, argv[i], argv[i + 1]) < 0) {
            return complain(argv[i], must, argv[i + 1]);
        }
        i++;
    }
    if (options->selection.point.batch > 0 && options->selection.sets != 0) {
        fprintf(stderr, "kdtr: bench: --point and --set exclude each other; "
                        "try 'kdtr help bench'\n");
        return 2;
    }
    return 0;
}
