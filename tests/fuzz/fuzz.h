/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What fuzzers share: a requirement that ends the run, and the files of the first corpus. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* The directory for the first corpus. NULL: this run writes none. */
static inline const char *fuzz_seed_dir(void)
{
	return getenv("XROCE_SEED_DIR");
}

/* Writes the input NAME-NUMBER: a head, and the data after the head. */
static inline void fuzz_seed(const char *name, size_t number, const void *head, size_t head_bytes,
			     const void *data, size_t bytes)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s-%zu", fuzz_seed_dir(), name, number);
	f = fopen(path, "wb");
	if (!f || fwrite(head, 1, head_bytes, f) != head_bytes ||
	    fwrite(data, 1, bytes, f) != bytes || fclose(f)) {
		perror(path);
		exit(1);
	}
}

/*
 * Splits an input into its head and the frame after it, a copy for free() with its *len bytes.
 * NULL: the input has no frame, or one of more than most bytes.
 */
static inline unsigned char *fuzz_frame(const unsigned char *data, size_t size, void *head,
					size_t head_bytes, size_t most, unsigned int *len)
{
	unsigned char *frame;

	if (size <= head_bytes || size - head_bytes > most)
		return NULL;
	memcpy(head, data, head_bytes);
	*len = (unsigned int)(size - head_bytes);
	frame = malloc(*len);
	REQUIRE(frame);
	memcpy(frame, data + head_bytes, *len);
	return frame;
}

#endif
