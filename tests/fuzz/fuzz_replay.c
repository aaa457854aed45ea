// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Replays the inputs of a folder through the fuzz target, without a fuzzer: fuzz_replay FOLDER...
 * Each input is also replayed with a checksum that fits, cut short, and with each byte of its
 * preamble and table changed.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_bundle.h"

/** A copy of the exact size, so that a sanitizer sees a read beyond it. */
static void replay(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void replay_variants(uint8_t *data, size_t size) {
    replay(data, size);
    fuzz_seal(data, size);
    replay(data, size);
    for (size_t cut = 0; cut < size; cut += cut < 256 ? 1 : 61) {
        replay(data, cut);
    }
    size_t table = size < 64 ? size : 64 + 128 * (size_t)(data[12] < 64 ? data[12] : 64);
    for (size_t at = 0; at < size && at < table; at++) {
        static const uint8_t flips[] = {0x01, 0x80, 0xff};
        for (size_t i = 0; i < sizeof flips; i++) {
            data[at] ^= flips[i];
            fuzz_seal(data, size);
            replay(data, size);
            data[at] ^= flips[i];
        }
    }
}

static int replay_file(const char *folder, const char *name) {
    static uint8_t data[FUZZ_MAX_BYTES];
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        printf("not ok P0-2 corpus replay: %s cannot be opened\n", path);
        return 0;
    }
    size_t size = fread(data, 1, sizeof data, stream);
    fclose(stream);
    printf("%s\n", path); /* the last line before a trap */
    fflush(stdout);
    replay_variants(data, size);
    return 1;
}

int main(int argc, char **argv) {
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder == NULL) {
            printf("not ok P0-2 corpus replay: there is no folder %s\n", argv[i]);
            return EXIT_FAILURE;
        }
        for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
            if (entry->d_name[0] != '.') {
                if (!replay_file(argv[i], entry->d_name)) {
                    return EXIT_FAILURE;
                }
                files++;
            }
        }
        closedir(folder);
    }
    const struct fuzz_reach *r = fuzz_reached();
    printf("%llu inputs: %llu bundles, %llu with a problem, %llu of them run, %llu drafts\n",
           r->inputs, r->parsed, r->bound, r->run, r->steps);
    int enough = files > 0 && r->run > 0 && r->steps > 0;
    printf("%s P0-2 corpus replay: %d files\n", enough ? "ok" : "not ok", files);
    return enough ? EXIT_SUCCESS : EXIT_FAILURE;
}
