/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The HTTP server of the exporter, by libmicrohttpd, in the caller's thread. Answers GET and HEAD
 * of /metrics, and of / with a link to /metrics; one request per connection. Never waits for a
 * client: a connection is closed HTTP_MOST_NS after it was accepted, and earlier if it is the
 * oldest of many.
 *
 * Requests within HTTP_FRESH_NS get the same text, so frequent requests cost no more readings.
 */
#ifndef EXPORT_HTTP_H
#define EXPORT_HTTP_H

#include <stdbool.h>

#include "../../os/clock.h"
#include "text.h"

#define HTTP_MOST_NS	 (10 * NSEC_PER_SEC) /* longest time of a connection */
#define HTTP_FRESH_NS	 (100 * NSEC_PER_MSEC) /* reuse of a text */
#define HTTP_CONNECTIONS 256 /* open at a time; others wait in the listen queue */
#define HTTP_HEADER	 16384 /* bytes of memory of a connection, for its request */

#define HTTP_CODES 5
extern const u32 http_codes[HTTP_CODES];

struct http_counts {
	u64 requests[HTTP_CODES]; /* answers by http_codes; malformed requests are not counted */
	u32 connections;	  /* open now */
	u64 cut;		  /* connections closed before their end */
};

/* Writes the metrics to t. Returns 0, or -errno: the client then gets 503. */
typedef int http_page_fn(void *arg, struct text *t);

struct http_connection;

struct http {
	struct MHD_Daemon *daemon;
	http_page_fn *page;
	void *arg;
	struct http_connection *first; /* the newest */
	/* one of HTTP_CONNECTIONS connections ended, and libmicrohttpd does not accept yet */
	bool has_room;
	struct http_counts counts;
	struct http_answer {
		struct MHD_Response *response; /* NULL: none */
		u64 made_ns;		       /* CLOCK_MONOTONIC */
	} fresh[2]; /* by enum text_format */
};

/* Takes ownership of listen_fd, also on failure. Returns 0 or -errno. */
int http_open(struct http *h, int listen_fd, http_page_fn *page, void *arg);
void http_close(struct http *h);
/* Returns a descriptor that is readable when http_run() is due. */
int http_fd(const struct http *h);
/* Handles pending requests and closes slow connections, without waiting. Returns 0 or -errno. */
int http_run(struct http *h);
/* Returns the longest wait before the next http_run(), in ms; -1: without a limit. */
int http_wait_ms(const struct http *h);

#endif
