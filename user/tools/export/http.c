/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "http.h"

#define HTTP_CROWD   128 /* above this number of connections, the oldest are closed early, */
#define HTTP_SLOW_NS (NSEC_PER_SEC) /* if they are older than this */
#define HTTP_IDLE_S  10 /* libmicrohttpd closes a connection without traffic after this time */

const u32 http_codes[HTTP_CODES] = { MHD_HTTP_OK, MHD_HTTP_NOT_FOUND, MHD_HTTP_METHOD_NOT_ALLOWED,
				     MHD_HTTP_NOT_ACCEPTABLE, MHD_HTTP_SERVICE_UNAVAILABLE };

/* ---- connections ---- */

struct http_connection {
	struct http_connection *next, **to;
	int fd;
	u64 since_ns; /* CLOCK_MONOTONIC of its start */
	bool is_cut;  /* shut down; libmicrohttpd has not removed it yet */
};

static void connection_cut(struct http *h, struct http_connection *c)
{
	if (c->is_cut)
		return;
	/* libmicrohttpd owns the descriptor and closes it when it reads the end of the stream */
	shutdown(c->fd, SHUT_RDWR);
	c->is_cut = true;
	h->counts.cut++;
}

/* Returns the oldest connection that is not cut if there are many, else NULL. */
static struct http_connection *connections_slowest(const struct http *h)
{
	struct http_connection *slowest = NULL;
	u32 uncut = 0;

	for (struct http_connection *c = h->first; c; c = c->next) {
		if (c->is_cut)
			continue;
		uncut++;
		if (!slowest || c->since_ns < slowest->since_ns)
			slowest = c;
	}
	return uncut > HTTP_CROWD ? slowest : NULL;
}

/* Closes the oldest connections while there are many and these are slow. */
static void connections_thin(struct http *h, u64 now_ns)
{
	struct http_connection *c;

	while ((c = connections_slowest(h)) && now_ns - c->since_ns > HTTP_SLOW_NS)
		connection_cut(h, c);
}

static void http_on_connection(void *arg, struct MHD_Connection *connection, void **context,
			       enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_connection *c = *context;
	struct http *h = arg;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		c = calloc(1, sizeof(*c));
		*context = c;
		if (!c || !info) {
			/* without an entry the connection would have no time limit */
			if (info)
				shutdown(info->connect_fd, SHUT_RDWR);
			free(c);
			*context = NULL;
			return;
		}
		c->fd = info->connect_fd;
		c->since_ns = clock_now_ns();
		c->next = h->first;
		c->to = &h->first;
		if (c->next)
			c->next->to = &c->next;
		h->first = c;
		h->counts.connections++;
	} else if (c) {
		*c->to = c->next;
		if (c->next)
			c->next->to = c->to;
		h->has_room |= h->counts.connections-- == HTTP_CONNECTIONS;
		free(c);
		*context = NULL;
	}
}

/* ---- answers ---- */

static void http_count(struct http *h, u32 code)
{
	for (u32 i = 0; i < HTTP_CODES; i++)
		h->counts.requests[i] += http_codes[i] == code;
}

static enum MHD_Result http_send(struct http *h, struct MHD_Connection *connection, u32 code,
				 struct MHD_Response *response)
{
	if (!response)
		return MHD_NO;
	http_count(h, code);
	return MHD_queue_response(connection, code, response);
}

static enum MHD_Result http_say(struct http *h, struct MHD_Connection *connection, u32 code,
				const char *type, const char *text)
{
	struct MHD_Response *r =
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result ret;

	if (r)
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (r && code == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	ret = http_send(h, connection, code, r);
	if (r)
		MHD_destroy_response(r);
	return ret;
}

/* Returns a response that is at most HTTP_FRESH_NS old, owned by h; NULL: out of memory. */
static struct MHD_Response *http_metrics(struct http *h, enum text_format format)
{
	struct http_answer *a = &h->fresh[format];
	const u64 now_ns = clock_now_ns();
	struct text t;

	if (a->response && now_ns - a->made_ns < HTTP_FRESH_NS)
		return a->response;
	if (a->response)
		MHD_destroy_response(a->response);
	a->response = NULL;
	text_begin(&t, format);
	if (h->page(h->arg, &t) || text_end(&t)) {
		free(t.at);
		return NULL;
	}
	a->response = MHD_create_response_from_buffer(t.len, t.at, MHD_RESPMEM_MUST_FREE);
	if (!a->response) {
		free(t.at);
		return NULL;
	}
	MHD_add_response_header(a->response, MHD_HTTP_HEADER_CONTENT_TYPE,
				text_content_type(format));
	MHD_add_response_header(a->response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT);
	/* the time of completion: making the text may take longer than HTTP_FRESH_NS */
	a->made_ns = clock_now_ns();
	return a->response;
}

static enum MHD_Result http_answer_metrics(struct http *h, struct MHD_Connection *connection)
{
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_ACCEPT);
	struct MHD_Response *r;
	enum text_format format;

	if (!text_accept(accept, &format))
		return http_say(h, connection, MHD_HTTP_NOT_ACCEPTABLE, "text/plain",
				"Available: application/openmetrics-text and text/plain.\n");
	r = http_metrics(h, format);
	if (!r)
		return http_say(h, connection, MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain",
				"out of memory\n");
	return http_send(h, connection, MHD_HTTP_OK, r);
}

static enum MHD_Result http_on_request(void *arg, struct MHD_Connection *connection,
				       const char *url, const char *method, const char *version,
				       const char *upload, size_t *upload_size, void **request)
{
	/* libmicrohttpd closes the connection after an answer that precedes the body */
	static const char page[] =
		"<!DOCTYPE html><title>xroce</title><p><a href=\"/metrics\">metrics</a></p>\n";
	struct http *h = arg;

	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return http_say(h, connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain",
				"only GET and HEAD are supported\n");
	if (!strcmp(url, "/metrics"))
		return http_answer_metrics(h, connection);
	if (!strcmp(url, "/"))
		return http_say(h, connection, MHD_HTTP_OK, "text/html; charset=utf-8", page);
	return http_say(h, connection, MHD_HTTP_NOT_FOUND, "text/plain", "see /metrics\n");
}

/* ---- running ---- */

int http_open(struct http *h, int listen_fd, http_page_fn *page, void *arg)
{
	*h = (struct http){ .page = page, .arg = arg };
	h->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, http_on_request, h,
				     MHD_OPTION_LISTEN_SOCKET, listen_fd,
				     MHD_OPTION_CONNECTION_LIMIT, (unsigned int)HTTP_CONNECTIONS,
				     MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)HTTP_IDLE_S,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEADER,
				     MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, h,
				     MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	if (h->daemon)
		return 0;
	close(listen_fd);
	return errno ? -errno : -EIO;
}

void http_close(struct http *h)
{
	MHD_stop_daemon(h->daemon);
	for (u32 i = 0; i < 2; i++)
		if (h->fresh[i].response)
			MHD_destroy_response(h->fresh[i].response);
}

int http_fd(const struct http *h)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);

	return info ? info->epoll_fd : -1;
}

/*
 * At HTTP_CONNECTIONS connections libmicrohttpd stops accepting, and resumes in the first
 * MHD_run() after one has ended. If none is left, no event leads to that call: http_wait_ms()
 * returns 0 while has_room is set.
 */
int http_run(struct http *h)
{
	const u64 now_ns = clock_now_ns();

	h->has_room = false;
	for (struct http_connection *c = h->first; c; c = c->next)
		if (now_ns - c->since_ns > HTTP_MOST_NS)
			connection_cut(h, c);
	connections_thin(h, now_ns);
	return MHD_run(h->daemon) == MHD_YES ? 0 : -EIO;
}

/* Returns the milliseconds until a time, rounded up. */
static u64 http_ms_until(u64 end_ns)
{
	const u64 now_ns = clock_now_ns();

	return end_ns > now_ns ? (end_ns - now_ns) / NSEC_PER_MSEC + 1 : 0;
}

int http_wait_ms(const struct http *h)
{
	const struct http_connection *slowest = connections_slowest(h);
	u64 wait_ms = INT_MAX;
	MHD_UNSIGNED_LONG_LONG theirs;

	if (h->has_room)
		return 0;
	if (slowest)
		wait_ms = http_ms_until(slowest->since_ns + HTTP_SLOW_NS);
	for (const struct http_connection *c = h->first; c; c = c->next)
		if (!c->is_cut)
			wait_ms = min_u64(wait_ms, http_ms_until(c->since_ns + HTTP_MOST_NS));
	if (MHD_get_timeout(h->daemon, &theirs) == MHD_YES && theirs < wait_ms)
		wait_ms = theirs;
	return wait_ms == INT_MAX ? -1 : (int)wait_ms;
}
