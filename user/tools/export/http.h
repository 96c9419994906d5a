/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The HTTP side, by libmicrohttpd, in the thread that calls: GET and HEAD of /metrics, and of / a
 * page that leads there, one request a connection. Nothing here waits for a client: one that has
 * not sent its request and taken its answer within HTTP_MOST_NS is cut off, and when there are
 * many, those first that have been slow for longest.
 *
 * All requests that come within HTTP_FRESH_NS get the same text, so the work does not grow with
 * the requests.
 */
#ifndef EXPORT_HTTP_H
#define EXPORT_HTTP_H

#include <stdbool.h>

#include "../../os/clock.h"
#include "text.h"

#define HTTP_MOST_NS	 (10 * NSEC_PER_SEC) /* for a request and its answer */
#define HTTP_FRESH_NS	 (100 * NSEC_PER_MSEC)
#define HTTP_CONNECTIONS 256 /* more wait to be accepted */
#define HTTP_HEADER	 16384 /* bytes of a request, and what libmicrohttpd notes beside it */

#define HTTP_CODES 5
extern const u32 http_codes[HTTP_CODES];

struct http_counts {
	u64 requests[HTTP_CODES]; /* answered, as http_codes; those that were none are not here */
	u32 connections;
	u64 cut;
};

/* Writes the metrics. Returns 0 or -errno: 503. */
typedef int http_page_fn(void *arg, struct text *t);

struct http_connection;

struct http {
	struct MHD_Daemon *daemon;
	http_page_fn *page;
	void *arg;
	struct http_connection *first;
	bool has_room; /* since libmicrohttpd looked last: http_run() */
	struct http_counts counts;
	struct http_answer {
		struct MHD_Response *response;
		u64 made_ns;
	} fresh[2]; /* of each format */
};

/* listen_fd is closed by http_close(), or here if that fails. Returns 0 or -errno. */
int http_open(struct http *h, int listen_fd, http_page_fn *page, void *arg);
void http_close(struct http *h);
/* Readable when http_run() has something to do. */
int http_fd(const struct http *h);
/* Does what there is, without waiting. Returns 0 or -errno. */
int http_run(struct http *h);
/* So many milliseconds may be waited; -1: for ever. */
int http_wait_ms(const struct http *h);

#endif
