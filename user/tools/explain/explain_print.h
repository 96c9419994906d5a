/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What was found, in sentences or as JSON: of one process after the other. */
#ifndef EXPLAIN_PRINT_H
#define EXPLAIN_PRINT_H

#include "explain.h"
#include "../json.h"

/* A process, the QPs of it that were looked at, and what is to be said of them. */
struct explained {
	const struct explain_port *port[2];
	u32 num_cases;
	const struct explain_case *cases; /* one a QP */
	const struct findings *findings;
	double seconds;
};

/* width: of a line. */
void explain_print(const struct explained *e, FILE *out, u32 width, bool is_coloured);
/* An object of the array that is open. */
void explain_json(const struct explained *e, struct json *j);

/* "broken", "slow", "note" */
const char *explain_severity_name(enum explain_severity severity);

#endif
