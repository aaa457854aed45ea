// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The help texts.
 */
#include <stdio.h>
#include <string.h>

#include "tool.h"

static const char general[] =
    "kdtr - verify attention for tree speculative decoding of MLA models\n"
    "\n"
    "Usage:\n"
    "  kdtr gen CASE -o FILE      write a named problem with its expected result\n"
    "  kdtr gen --list            list the named problems\n"
    "  kdtr info FILE             say what a bundle holds\n"
    "  kdtr verify FILE [--backend reference|naive] [--threads N]\n"
    "                             run the problem of a bundle and compare\n"
    "  kdtr step FILE             the whole step: draft tree, verify, accept\n"
    "  kdtr selftest [--exact]    check the kernels on the first CUDA device\n"
    "  kdtr bench [OPTIONS]       measure the first CUDA device\n"
    "  kdtr report [-o FILE]      selftest and bench of a card in one file, for an issue\n"
    "  kdtr help [COMMAND]        this text, or the help of a command\n"
    "  kdtr --version             version of the tool and of its numerics\n"
    "\n"
    "A bundle is a file that holds one attention problem and what it must give. `kdtr COMMAND\n"
    "--help` prints the help of a command too. An error is one line on standard error that names\n"
    "the file, the field at fault and, in parentheses, the status of the library.\n"
    "\n"
    "Exit codes:\n"
    "  0  agreement, or the command did its work\n"
    "  1  a result differs from what was expected\n"
    "  2  bad input or usage\n"
    "\n"
    "Examples:\n"
    "  kdtr gen tree-small -o tree.kdtr && kdtr verify tree.kdtr\n"
    "  kdtr verify tests/data/module-deepseek-a.kdtr\n";

static const char gen[] =
    "kdtr gen - write a named problem\n"
    "\n"
    "Usage:\n"
    "  kdtr gen CASE -o FILE\n"
    "  kdtr gen --list\n"
    "\n"
    "Generates the problem CASE with the expected output of the float32 reference and writes\n"
    "it to FILE as a bundle. The bytes are the same on every machine. FILE is replaced whole or\n"
    "left as it was.\n"
    "\n"
    "Options:\n"
    "  -o FILE   file to write\n"
    "  --list    list the cases, one a line, with what each is for\n"
    "\n"
    "Exit codes:\n"
    "  0  FILE is written, or the cases are listed\n"
    "  2  no such case, FILE cannot be written, or wrong usage\n"
    "\n"
    "Examples:\n"
    "  kdtr gen --list\n"
    "  kdtr gen tree-small -o tree.kdtr\n";

static const char info[] =
    "kdtr info - say what a bundle holds\n"
    "\n"
    "Usage:\n"
    "  kdtr info FILE\n"
    "\n"
    "Checks FILE and prints its case, its tensors (name, dtype, shape, bytes) and the geometry\n"
    "of its problem: requests, rows, heads, dimensions, mask and addressing.\n"
    "\n"
    "Exit codes:\n"
    "  0  FILE is a bundle that holds a sound problem\n"
    "  2  it is not, or wrong usage\n"
    "\n"
    "Examples:\n"
    "  kdtr info tests/data/tree-tiny.kdtr\n";

static const char verify[] =
    "kdtr verify - run the problem of a bundle and compare\n"
    "\n"
    "Usage:\n"
    "  kdtr verify FILE [--backend NAME] [--threads N]\n"
    "\n"
    "Checks FILE, runs its problem, draws each request's tree with the log-sum-exp of each node\n"
    "(head 0), and compares with the expected tensors in FILE.\n"
    "\n"
    "A problem with o and lse must be met in every bit. A problem captured from a model's own\n"
    "attention module must be met within the bound of float32 arithmetic: its queries are\n"
    "absorbed first, and the output is expanded before it is compared. For each tensor the\n"
    "worst error is printed, where it is, and the bound there.\n"
    "\n"
    "Options:\n"
    "  --backend reference   the float32 C reference on the CPU (default)\n"
    "  --backend naive       the naive kernel on the first CUDA device\n"
    "  --threads N           threads of the reference, 1 to 256 (default 1)\n"
    "\n"
    "Exit codes:\n"
    "  0  agreement\n"
    "  1  mismatch\n"
    "  2  bad input or usage; also where there is no CUDA device\n"
    "\n"
    "Environment:\n"
    "  NO_COLOR  if set and not empty, no colours, also on a terminal\n"
    "\n"
    "Examples:\n"
    "  kdtr verify tests/data/tree-small.kdtr\n"
    "  kdtr verify --backend naive tests/data/module-deepseek-a.kdtr\n";

static const char step[] =
    "kdtr step - run the whole speculative step of a bundle\n"
    "\n"
    "Usage:\n"
    "  kdtr step FILE\n"
    "\n"
    "Builds each request's draft tree from its marginals and compares it with the tree in FILE,\n"
    "runs the attention and compares every bit, and walks the tree along the target's tokens.\n"
    "Draws each tree with token, score and log-sum-exp (head 0) of each node, the accepted path\n"
    "marked with *, and says which tokens were accepted and which is the bonus token.\n"
    "\n"
    "Exit codes:\n"
    "  0  agreement\n"
    "  1  a tree or a result differs\n"
    "  2  bad input, also a bundle without a draft, or wrong usage\n"
    "\n"
    "Examples:\n"
    "  kdtr step tests/data/step-small.kdtr\n";

static const char selftest[] =
    "kdtr selftest - check the kernels on the first CUDA device\n"
    "\n"
    "Usage:\n"
    "  kdtr selftest [--exact]\n"
    "\n"
    "Runs every kernel on named cases and compares with the float32 reference: naive in every\n"
    "bit, flash within what rounding its weights to bfloat16 may cost. Prints a line for each\n"
    "kernel and a verdict with the device's name.\n"
    "\n"
    "Options:\n"
    "  --exact   also check what exact mode rests on: that a row of a matrix product has the\n"
    "            same bits whatever the other rows hold; and flash in exact mode\n"
    "\n"
    "Exit codes:\n"
    "  0  every check passed\n"
    "  1  one failed, or, with --exact, the device cannot give exact mode\n"
    "  2  there is no CUDA device, or wrong usage\n"
    "\n"
    "Examples:\n"
    "  kdtr selftest --exact\n";

static const char bench[] =
    "kdtr bench - measure verify attention on the first CUDA device\n"
    "\n"
    "Usage:\n"
    "  kdtr bench [OPTIONS]\n"
    "\n"
    "Prints facts about device and build, the device's ceilings (copying, reading, gathering "
    "cache\n"
    "rows, products of matrices), and a table for each set of points: the median time of a call,\n"
    "its quartiles, the floor that the ceilings give, its share of the time, and the error. Every\n"
    "row has data of its own and is checked against float64 before it is timed. On an H200 the\n"
    "table shows phase 1's limits too; '!' marks a median above one.\n"
    "\n"
    "A run of all rows writes the result file DATE-GPU-bench.json to the current folder, with\n"
    "--quick DATE-GPU-bench-quick.json. It is replaced whole, at the end, or left as it was.\n"
    "\n"
    "Options:\n"
    "  --json FILE            the result file; the only one with options that change the rows\n"
    "  --quick                5 samples of each time\n"
    "  --set NAME             this set alone: table, long, sweep_n, sweep_q, sweep_h or\n"
    "                         sweep_budget; given twice, both\n"
    "  --point B,H,Q,N        requests, heads, nodes, prefix: this point alone\n"
    "  --layout NAME          random or contiguous slots instead of both\n"
    "  --mask NAME            packed or parents\n"
    "  --row-bytes N          bytes from cache row to cache row: 1152 or more\n"
    "  --implementation NAME  flash, exact (flash in exact mode), naive or auto; else both modes\n"
    "                         of flash, and naive at small points\n"
    "  --samples N            of each time, instead of 25, or 9 above 2 ms\n"
    "  --seed N               of the data\n"
    "  --no-ceilings          leaves the ceilings out, and so the floors\n"
    "  --limits FILE          limits for the table: lines B H Q N at_most aim\n"
    "  --kit FILE             facts about the build: lines \"name value\"\n"
    "  --wide                 more columns: rate, errors, how the kernel cuts the row\n"
    "  --progress             the progress bar also where standard error is no terminal\n"
    "\n"
    "Exit codes:\n"
    "  0  every row is measured\n"
    "  1  a row failed; it is in the table, and not in the result file\n"
    "  2  there is no CUDA device, the tool was built without the CUDA library, the file cannot\n"
    "     be written, or wrong usage\n"
    "\n"
    "Examples:\n"
    "  kdtr bench\n"
    "  kdtr bench --set sweep_n --json sweep.json\n"
    "  kdtr bench --point 1,8,8,200000 --implementation exact\n";

static const char report[] =
    "kdtr report - selftest and bench of a card in one file\n"
    "\n"
    "Usage:\n"
    "  kdtr report [-o FILE] [--quick]\n"
    "\n"
    "Runs `kdtr selftest`, `kdtr selftest --exact` and `kdtr bench`, shows what they print, and\n"
    "writes it to one JSON file with their exit codes and the result of the bench. Attach the "
    "file\n"
    "to an issue. It names the GPU, its driver, clocks and power limit, and the sources; no\n"
    "machine, no user, no path.\n"
    "\n"
    "Options:\n"
    "  -o FILE   file to write, instead of DATE-GPU-report.json in the current folder\n"
    "  --quick   5 samples of each time\n"
    "\n"
    "Exit codes:\n"
    "  0  everything passed, and FILE is written\n"
    "  1  something failed; FILE is written all the same\n"
    "  2  there is no CUDA device, FILE cannot be written, or wrong usage\n"
    "\n"
    "Examples:\n"
    "  kdtr report\n";

static const struct {
    const char *name;
    const char *text;
} texts[] = {{"gen", gen},           {"info", info},   {"verify", verify}, {"step", step},
             {"selftest", selftest}, {"bench", bench}, {"report", report}, {"help", general}};

int tool_print_help(const char *command) {
    if (command == NULL) {
        fputs(general, stdout);
        return TOOL_AGREE;
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(command, texts[i].name) == 0) {
            fputs(texts[i].text, stdout);
            return TOOL_AGREE;
        }
    }
    return tool_usage(NULL, "there is no command '%s'", command);
}

int tool_help(int argc, char **argv) {
    if (argc > 1) {
        return tool_usage(NULL, "help takes one command");
    }
    return tool_print_help(argc == 1 ? argv[0] : NULL);
}
