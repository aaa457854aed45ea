// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Files that `kdtr bench` and `kdtr report` write: whole or not at all. Without state, and apart
 * from the rest of the tool, since the library of `kdtr bench` has it too.
 */
#ifndef CAPI_TOOL_OUTPUT_FILE_H
#define CAPI_TOOL_OUTPUT_FILE_H

#include <stddef.h>
#include <stdio.h>

/** Bytes that hold any name of output_name. */
#define OUTPUT_NAME_SIZE 256

/**
 * Today's date.
 * @param text where to; 16 bytes hold it
 * @param size bytes of text
 * @return text, such as "2026-11-30" (UTC)
 */
const char *output_date(char *text, size_t size);

/**
 * The usual name of a result file, such as "2026-11-30-nvidia-h200-bench.json": the device's name
 * in lower case, blanks as hyphens, other signs left out.
 * @param device name of the device
 * @param what   what the file holds, such as "bench"
 * @param text   where to; OUTPUT_NAME_SIZE bytes hold it
 * @param size   bytes of text
 * @return text
 */
const char *output_name(const char *device, const char *what, char *text, size_t size);

/**
 * Whether a file can be written, by making one beside it and removing that. What is there stays.
 * @param path the file
 * @return 0, or an errno
 */
int output_check(const char *path);

/**
 * Writes a file: beside it under another name, then renamed over it, so that a regular file at
 * `path` is either as it was or whole. A link, a device or a pipe is written through.
 * @param path the file
 * @param data its bytes
 * @param size how many
 * @return 0, or an errno
 */
int output_write(const char *path, const void *data, size_t size);

/**
 * Writes a text as a JSON string with its quotes. Bytes that no UTF-8 text has become '?'.
 * @param file where to
 * @param text any bytes before a 0
 */
void output_json_string(FILE *file, const char *text);

/**
 * Opens a file that came with the program: in its folder or, once installed, in ../lib/kdtr.
 * @param name file name without folder
 * @return the file, to be closed by the caller; NULL where there is none
 */
FILE *output_open_beside(const char *name);

#endif
