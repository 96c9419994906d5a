/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The metrics of what was collected: xroce_device_* of an interface, xroce_process_* of a process
 * on one, xroce_qp_* of a queue pair; each level has names of its own, so that a sum counts nothing
 * twice. docs/exporter.md lists them.
 */
#ifndef EXPORT_METRICS_H
#define EXPORT_METRICS_H

#include "collect.h"
#include "http.h"
#include "text.h"

/* What is said of processes and queue pairs that have no series of their own. */
#define METRICS_REST "other"

/* http: NULL where nothing listens. */
void metrics_write(struct text *t, const struct collector *c, const struct http_counts *http);

/* metrics_shares.c: parts of it. */
void metrics_process(struct text *t, const struct collector *c);
void metrics_qp(struct text *t, const struct collector *c);

#endif
