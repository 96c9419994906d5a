/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The metrics of a collection: xroce_device_* of an interface, xroce_process_* of a process on it,
 * xroce_qp_* of a queue pair. Each level has its own names, so that sums count nothing twice.
 * docs/exporter.md lists them.
 */
#ifndef EXPORT_METRICS_H
#define EXPORT_METRICS_H

#include "collect.h"
#include "http.h"
#include "text.h"

/* Label of processes and queue pairs without a separate series. */
#define METRICS_REST "other"

/* http: NULL without a listener. */
void metrics_write(struct text *t, const struct collector *c, const struct http_counts *http);

#endif
