/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=7 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: a tracer's input from its ring (struct xroce_record), which a process may have
 * filled with anything, to the text, the JSON and the packets of `xroce trace` and `xroce capture`.
 * Looks for memory errors, and checks that the parts of a record lie in it, one after the other;
 * that packets are no longer than their source; that texts end, in printable characters; that JSON
 * closes all it opens.
 *
 * scripts/fuzz.sh BUILD record SECONDS runs it. An input is one record.
 */
#include "../../user/tools/trace/records.h"
#include "fuzz.h"
#include "golden.h"

/* ---- seeds ---- */

static u32 seed_told(u8 *at, struct xroce_trace_entry entry, const void *data)
{
	memcpy(at, &entry, sizeof(entry));
	if (entry.size)
		memcpy(at + sizeof(entry), data, entry.size);
	return (u32)(sizeof(entry) + entry.size + 7) & ~7u;
}

/* Each packet as received, and as reported, with an event after it. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static u8 tale[16384];
	struct golden golden;

	if (!fuzz_seed_dir())
		return 0;
	if (golden_load(&golden))
		exit(1);
	for (size_t i = 0; i < golden.count; i++) {
		const struct golden_packet *p = &golden.packets[i];
		struct xroce_record head = { .cqe = { .l3_offset = 14 }, .len = p->len,
					     .kind = XROCE_RECORD_RECEIVED };
		u32 n = sizeof(struct xroce_trace_record);

		fuzz_seed("received", i, &head, sizeof(head), p->frame, p->len);
		n += seed_told(tale + n,
			       (struct xroce_trace_entry){
				       .qpn = 7, .size = (u16)p->len, .kind = XROCE_RECORD_SENT },
			       p->frame);
		n += seed_told(tale + n,
			       (struct xroce_trace_entry){ .qpn = 7,
							   .kind = XROCE_RECORD_EVENT,
							   .event = (u8)(i % XROCE_EVENT_END),
							   .value = (u32)i,
							   .more = (u32)i },
			       NULL);
		head.kind = XROCE_RECORD_TRACE;
		head.len = n;
		fuzz_seed("told", i, &head, sizeof(head), tale, n);
	}
	golden_free(&golden);
	exit(0);
}

/* ---- one record ---- */

static void check_text(const char *text, size_t room)
{
	const size_t n = strnlen(text, room);

	REQUIRE(n < room);
	for (size_t i = 0; i < n; i++)
		REQUIRE(text[i] >= ' ' && text[i] <= '~');
}

static FILE *line_file;
static char *line_text;
static size_t line_bytes;

static void open_json(struct json *j)
{
	line_file = open_memstream(&line_text, &line_bytes);
	REQUIRE(line_file);
	json_begin(j, line_file);
	j->is_compact = true;
	json_open_object(j, NULL);
}

/* One line: braces and brackets outside of strings close, each once. */
static void close_json(struct json *j)
{
	bool quoted = false;
	int depth = 0;

	json_close(j);
	json_end(j);
	REQUIRE(!fclose(line_file));
	REQUIRE(line_bytes && line_text[line_bytes - 1] == '\n');
	for (size_t i = 0; i + 1 < line_bytes; i++) {
		const char c = line_text[i];

		REQUIRE(c >= ' ' && c <= '~');
		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted)
			depth += (c == '{' || c == '[') - (c == '}' || c == ']');
		REQUIRE(depth > 0 || i + 2 == line_bytes);
	}
	REQUIRE(!quoted && !depth);
	free(line_text);
}

static void read_event(const struct xroce_trace_entry *entry)
{
	char text[DECODE_TEXT];
	struct json j;

	decode_event(entry, text, sizeof(text));
	check_text(text, sizeof(text));
	decode_event_is_trouble(entry);
	open_json(&j);
	decode_event_json(entry, &j);
	close_json(&j);
}

static void read_packet(const u8 *data, u32 len)
{
	char text[DECODE_TEXT];
	struct packet p;
	struct json j;

	if (!decode_parse(data, len, &p))
		return;
	decode_text(&p, text, sizeof(text));
	check_text(text, sizeof(text));
	decode_is_trouble(&p);
	open_json(&j);
	decode_json(&p, &j);
	close_json(&j);
}

static void read_packets(struct xroce_record *r, u32 size)
{
	static struct packets packets;
	const u32 have = min_u32(size - (u32)sizeof(*r), r->len);
	struct one_packet one;
	const char *name;
	u32 n = 0;

	check_text(decode_drop(r->drop, &name), DECODE_TEXT);
	check_text(name, DECODE_TEXT);
	packets_begin(&packets, r, size, r->queue & 1);
	while (packets_next(&packets, &one)) {
		REQUIRE(one.nth == ++n && n <= packets.num);
		REQUIRE(one.have <= have);
		read_packet(one.data, one.have);
	}
	REQUIRE(n <= packets.num);
}

static void read_tale(const u8 *bytes, u32 size)
{
	u32 before = sizeof(struct xroce_trace_record);
	struct xroce_trace_entry entry;
	struct trace_record record;
	const u8 *data;

	trace_record_begin(&record, bytes, size);
	while (trace_record_next(&record, &entry, &data)) {
		const u32 at = (u32)(data - bytes);

		REQUIRE(at == before + sizeof(entry) && at + entry.size <= size);
		before = (at + entry.size + 7) & ~7u;
		if (entry.kind == XROCE_RECORD_EVENT) {
			REQUIRE(!entry.size);
			read_event(&entry);
			continue;
		}
		REQUIRE(entry.kind == XROCE_RECORD_SENT || entry.kind == XROCE_RECORD_LOOPED);
		REQUIRE(entry.size && entry.size <= PACKET_FRAME_MAX);
		read_packet(data, entry.size);
	}
	REQUIRE(!trace_record_next(&record, &entry, &data));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct xroce_record *r;

	if (size < sizeof(*r))
		return 0;
	/* a read beyond it is found */
	r = malloc(size);
	REQUIRE(r);
	memcpy(r, data, size);
	if (r->kind == XROCE_RECORD_TRACE)
		read_tale(r->data, min_u32((u32)(size - sizeof(*r)), r->len));
	else
		read_packets(r, (u32)size);
	free(r);
	return 0;
}
