// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * `kdtr report`: what the owner of a card attaches to an issue, in one file.
 *
 * The tool runs itself for each part, so that a part that crashes fails and no more. People post
 * the file: paths are taken out of what the parts say, and nothing else of it names a user or a
 * machine.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output_file.h"
#include "tool.h"

/** Most arguments of a part. */
#define MOST_ARGUMENTS 8

/** A command of the tool and what it gave. */
struct part {
    const char *arguments[MOST_ARGUMENTS]; /* then NULL */
    const char *title;                     /* how the report names it */
    char *text;                            /* what it printed, on both channels */
    size_t size;
    int exit;
};

/** What the report is made of. */
struct report {
    const char *path;
    int quick;
    char device[256];
    char program[4096]; /* folder of the tool, or "" */
    char current[4096]; /* current folder, or "" */
    struct part selftest[2];
    struct part bench;
    FILE *result; /* the result file of `kdtr bench`, which has no name */
};

static int parse_arguments(int argc, char **argv, struct report *r) {
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            r->quick = 1;
        } else if (strcmp(argv[i], "-o") == 0) {
            if (++i == argc || argv[i][0] == '\0') {
                return tool_usage("report", "-o needs a file name");
            }
            r->path = argv[i];
        } else {
            return tool_usage("report", "report does not take '%s'", argv[i]);
        }
    }
    return TOOL_AGREE;
}

/** In the child: becomes the tool with other arguments, both channels to the pipe. */
static void become(const struct part *part, const int channel[2]) {
    char *arguments[MOST_ARGUMENTS + 2] = {"kdtr"};
    for (int i = 0; i < MOST_ARGUMENTS && part->arguments[i] != NULL; i++) {
        memcpy(&arguments[i + 1], &part->arguments[i], sizeof(char *)); /* execv takes no const */
    }
    dup2(channel[1], STDOUT_FILENO);
    dup2(channel[1], STDERR_FILENO);
    close(channel[0]);
    close(channel[1]);
    execv("/proc/self/exe", arguments);
    perror("kdtr: report: /proc/self/exe");
    _exit(TOOL_BAD_INPUT);
}

/** Shows what a part prints as it comes, and keeps it. */
static void follow(int channel, FILE *kept) {
    char piece[4096];
    ssize_t got;
    while ((got = read(channel, piece, sizeof piece)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0) {
            fwrite(piece, 1, (size_t)got, stdout);
            fflush(stdout);
            fwrite(piece, 1, (size_t)got, kept);
        }
    }
}

/** Runs a part. Returns 0, or an errno where it could not be run at all. */
static int run_part(struct part *part) {
    int channel[2];
    int status = 0;
    fflush(stdout);
    if (pipe(channel) != 0) {
        return errno;
    }
    FILE *kept = open_memstream(&part->text, &part->size);
    pid_t child = kept != NULL ? fork() : -1;
    if (child < 0) {
        int cause = errno;
        close(channel[0]);
        close(channel[1]);
        if (kept != NULL) {
            fclose(kept);
        }
        return cause;
    }
    if (child == 0) {
        become(part, channel);
    }
    close(channel[1]);
    follow(channel[0], kept);
    close(channel[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    part->exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return fclose(kept) != 0 ? ENOMEM : 0;
}

/** Writes what was printed as a list of lines, without what a progress bar drew. */
static void write_lines(FILE *file, const struct part *part, const struct report *r) {
    static const char erased[] = "\033[K";
    const char *home = getenv("HOME");
    const char *const folders[] = {r->program, r->current, home != NULL ? home : ""};
    char *rest = NULL;
    int first = 1;
    fputs("[", file);
    for (char *line = strtok_r(part->text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        for (char *at = strstr(line, erased); at != NULL; at = strstr(line, erased)) {
            line = at + strlen(erased);
        }
        char *shown = tool_hide_paths(line, folders, 3);
        fputs(first ? "\n      " : ",\n      ", file);
        output_json_string(file, shown != NULL ? shown : "(no memory for this line)");
        free(shown);
        first = 0;
    }
    fputs(first ? "]" : "\n    ]", file);
}

static void write_part(FILE *file, const struct part *part, const struct report *r) {
    fprintf(file, "{\"arguments\": \"%s\", \"exit\": %d, \"lines\": ", part->title, part->exit);
    write_lines(file, part, r);
    fputs("}", file);
}

/** Copies the result file of `kdtr bench`. Returns 0 where it wrote none. */
static int write_bench(FILE *file, FILE *result) {
    long size = fseek(result, 0, SEEK_END) == 0 ? ftell(result) : 0;
    char *text = size > 0 ? malloc((size_t)size) : NULL;
    rewind(result);
    size_t got = text != NULL ? fread(text, 1, (size_t)size, result) : 0;
    while (got > 0 && text[got - 1] == '\n') {
        got--;
    }
    if (got > 0) {
        fwrite(text, 1, got, file);
    } else {
        fputs("null", file);
    }
    free(text);
    return got > 0;
}

/** Facts about the build, from the file beside the tool. */
static void write_build(FILE *file) {
    char line[256];
    FILE *kit = output_open_beside("kit.txt");
    fputs("  \"build\": {", file);
    for (int first = 1; kit != NULL && fgets(line, sizeof line, kit) != NULL;) {
        char *value = strchr(line, ' ');
        line[strcspn(line, "\n")] = '\0';
        if (value != NULL) {
            *value = '\0';
            fputs(first ? "" : ", ", file);
            output_json_string(file, line);
            fputs(": ", file);
            output_json_string(file, value + 1);
            first = 0;
        }
    }
    if (kit != NULL) {
        fclose(kit);
    }
    fputs("},\n", file);
}

/** Writes the report. Returns an exit code. */
static int write_report(struct report *r, const char *path) {
    char *text = NULL;
    size_t size = 0;
    char date[16];
    FILE *file = open_memstream(&text, &size);
    if (file == NULL) {
        perror("kdtr: report");
        return TOOL_BAD_INPUT;
    }
    fprintf(file, "{\"schema\": 1, \"kind\": \"kdtr-report\", \"date\": \"%s\", \"gpu\": ",
            output_date(date, sizeof date));
    output_json_string(file, r->device);
    fprintf(file, ",\n  \"version\": \"%d.%d.%d\", \"numerics\": %u,\n", KDTR_VERSION_MAJOR,
            KDTR_VERSION_MINOR, KDTR_VERSION_PATCH, kdtr_numerics_version());
    write_build(file);
    fputs("  \"selftest\": [\n    ", file);
    write_part(file, &r->selftest[0], r);
    fputs(",\n    ", file);
    write_part(file, &r->selftest[1], r);
    fputs("],\n  \"bench_output\": ", file);
    write_part(file, &r->bench, r);
    fputs(",\n  \"bench\": ", file);
    int measured = write_bench(file, r->result);
    fputs("}\n", file);
    int cause = fclose(file) != 0 ? ENOMEM : output_write(path, text, size);
    free(text);
    if (cause != 0) {
        fprintf(stderr, "kdtr: report: %s: %s\n", path, strerror(cause));
        return TOOL_BAD_INPUT;
    }
    const int passed =
        r->selftest[0].exit == 0 && r->selftest[1].exit == 0 && r->bench.exit == 0 && measured;
    printf("\nselftest %s, selftest --exact %s, bench %s: %s is written\n",
           r->selftest[0].exit == 0 ? "passed" : "FAILED",
           r->selftest[1].exit == 0 ? "passed" : "FAILED",
           r->bench.exit == 0 && measured ? "passed" : "FAILED", path);
    return passed ? TOOL_AGREE : TOOL_MISMATCH;
}

/** In the child: says the device's name. Returns an exit code. */
static int say_device(int channel) {
    struct tool_session s = {.naive = 1}; /* a CUDA context */
    kdtr_error error = {0};
    if (tool_open_context(&s, &error) != KDTR_OK) {
        return tool_fail("report", &error);
    }
    const char *name = kdtr_context_device_name(s.context);
    return write(channel, name, strlen(name)) > 0 ? TOOL_AGREE : TOOL_BAD_INPUT;
}

/**
 * Asks for the device's name, which is in the usual name of the file. In a child, since a process
 * keeps its place on the device: where only one may have it, the parts could not run.
 */
static int ask_device(struct report *r) {
    int channel[2];
    int status = 0;
    size_t used = 0;
    ssize_t got = 0;
    fflush(stdout);
    pid_t child = pipe(channel) == 0 ? fork() : -1;
    if (child < 0) {
        perror("kdtr: report");
        return TOOL_BAD_INPUT;
    }
    if (child == 0) {
        _exit(say_device(channel[1]));
    }
    close(channel[1]);
    do {
        used += (size_t)got;
        got = read(channel[0], r->device + used, sizeof r->device - 1 - used);
    } while (got > 0);
    close(channel[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "kdtr: report: the check for a device ended by signal %d\n",
                WTERMSIG(status));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : TOOL_BAD_INPUT;
}

/** Device, and the folders that the report must not name. Returns an exit code. */
static int find_device(struct report *r) {
    int code = ask_device(r);
    if (code != TOOL_AGREE) {
        return code;
    }
    ssize_t length = readlink("/proc/self/exe", r->program, sizeof r->program - 1);
    r->program[length > 0 ? length : 0] = '\0';
    char *folder_end = strrchr(r->program, '/');
    if (folder_end != NULL) {
        *folder_end = '\0';
    }
    if (getcwd(r->current, sizeof r->current) == NULL) {
        r->current[0] = '\0';
    }
    return TOOL_AGREE;
}

/** Runs the parts, one after the other, whatever they give. Returns an exit code. */
static int run_parts(struct report *r) {
    struct part *const parts[] = {&r->selftest[0], &r->selftest[1], &r->bench};
    for (int i = 0; i < 3; i++) {
        printf("%skdtr %s\n", i == 0 ? "" : "\n", parts[i]->title);
        int cause = run_part(parts[i]);
        if (cause != 0) {
            fprintf(stderr, "kdtr: report: %s: %s\n", parts[i]->title, strerror(cause));
            return TOOL_BAD_INPUT;
        }
    }
    return TOOL_AGREE;
}

int tool_report(int argc, char **argv) {
    char name[OUTPUT_NAME_SIZE];
    char result[64];
    struct report r = {
        .selftest = {{.arguments = {"selftest"}, .title = "selftest"},
                     {.arguments = {"selftest", "--exact"}, .title = "selftest --exact"}},
        .bench = {.arguments = {"bench", "--json", result}, .title = "bench"}};
    int code = parse_arguments(argc, argv, &r);
    code = code != TOOL_AGREE ? code : find_device(&r);
    if (code != TOOL_AGREE) {
        return code;
    }
    const char *path = r.path != NULL ? r.path : output_name(r.device, "report", name, sizeof name);
    int cause = output_check(path);
    r.result = cause == 0 ? tmpfile() : NULL;
    if (r.result == NULL) {
        fprintf(stderr, "kdtr: report: %s: %s\n", path, strerror(cause != 0 ? cause : errno));
        return TOOL_BAD_INPUT;
    }
    /* The child has the file open too. It has no name, so that nothing of it can be left over. */
    snprintf(result, sizeof result, "/dev/fd/%d", fileno(r.result));
    int count = 3;
    if (r.quick) {
        r.bench.arguments[count++] = "--quick";
        r.bench.title = "bench --quick";
    }
    if (isatty(STDOUT_FILENO)) {
        r.bench.arguments[count++] = "--progress"; /* its channel is a pipe */
    }
    code = run_parts(&r);
    code = code != TOOL_AGREE ? code : write_report(&r, path);
    free(r.selftest[0].text);
    free(r.selftest[1].text);
    free(r.bench.text);
    fclose(r.result);
    return code;
}
