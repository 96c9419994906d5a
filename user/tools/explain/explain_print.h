/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prints the findings of one process at a time, as text or JSON. */
#ifndef EXPLAIN_PRINT_H
#define EXPLAIN_PRINT_H

#include "explain.h"
#include "../json.h"

/* A process, its QPs that were read, and their findings. */
struct explained {
	const struct explain_port *port[2];
	u32 num_cases;
	const struct explain_case *cases; /* one per QP */
	const struct findings *findings;
	double seconds;
};

/* width: columns of a line. */
void explain_print(const struct explained *e, FILE *out, u32 width, bool is_coloured);
/* Adds an object to the open array. */
void explain_json(const struct explained *e, struct json *j);

/* "broken", "slow", "note" */
const char *explain_severity_name(enum explain_severity severity);

#endif
