/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loader of the golden captures: a reader of the one pcap flavour that they are in (little-endian,
 * microseconds, Ethernet).
 */
#include "golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCAP_MAGIC	  0xa1b2c3d4u
#define PCAP_ETHERNET	  1
#define PCAP_FILE_HEADER  24
#define PCAP_FRAME_HEADER 16

static uint32_t le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The whole file with a NUL after it, kept in g->store; NULL after a message. */
static uint8_t *load_file(struct golden *g, const char *name, size_t *len)
{
	char path[4096];
	uint8_t *bytes = NULL;
	FILE *f;
	long size;

	snprintf(path, sizeof(path), "%s/%s", XROCE_GOLDEN_DIR, name);
	f = fopen(path, "rb");
	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
		goto fail;
	bytes = malloc(size + 1);
	if (!bytes || fread(bytes, 1, size, f) != (size_t)size ||
	    g->stores == sizeof(g->store) / sizeof(g->store[0]))
		goto fail;
	fclose(f);
	bytes[size] = '\0';
	*len = size;
	g->store[g->stores++] = bytes;
	return bytes;
fail:
	perror(path);
	free(bytes);
	if (f)
		fclose(f);
	return NULL;
}

/* Where reading of one capture stands. */
struct pcap {
	const char *file;
	const uint8_t *next, *end;
	uint32_t index;
};

static int pcap_open(struct golden *g, struct pcap *pc, const char *file)
{
	size_t len;
	const uint8_t *b = load_file(g, file, &len);

	if (!b)
		return -1;
	if (len < PCAP_FILE_HEADER || le32(b) != PCAP_MAGIC || le32(b + 20) != PCAP_ETHERNET) {
		fprintf(stderr, "%s: not a little-endian Ethernet pcap\n", file);
		return -1;
	}
	*pc = (struct pcap){ .file = file, .next = b + PCAP_FILE_HEADER, .end = b + len };
	return 0;
}

static int pcap_next(struct pcap *pc, struct golden_packet *p)
{
	uint32_t captured, original;

	if (pc->end - pc->next < PCAP_FRAME_HEADER)
		return -1;
	captured = le32(pc->next + 8);
	original = le32(pc->next + 12);
	pc->next += PCAP_FRAME_HEADER;
	if (captured != original || captured > (size_t)(pc->end - pc->next))
		return -1;
	p->file = pc->file;
	p->index = pc->index++;
	p->frame = pc->next;
	p->len = captured;
	pc->next += captured;
	return 0;
}

/* Split "file index decode" in place. */
static int split_line(char *line, const char **file, uint32_t *index, const char **decode)
{
	char *number, *rest;

	number = line + strcspn(line, " ");
	if (!*number)
		return -1;
	*number++ = '\0';
	*index = strtoul(number, &rest, 10);
	if (rest == number || *rest != ' ')
		return -1;
	*file = line;
	*decode = rest + 1;
	return 0;
}

int golden_load(struct golden *g)
{
	struct pcap pc = { .file = "" };
	struct golden_packet *p;
	const char *file;
	char *text, *line, *end;
	size_t len, lines = 0;
	uint32_t index;

	memset(g, 0, sizeof(*g));
	text = (char *)load_file(g, "decode.txt", &len);
	if (!text)
		return -1;
	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	g->packets = calloc(lines + 1, sizeof(*g->packets));
	if (!g->packets)
		goto fail;
	for (line = text; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		p = &g->packets[g->count];
		if (split_line(line, &file, &index, &p->decode)) {
			fprintf(stderr, "decode.txt: line %zu is not 'file index fields'\n",
				g->count + 1);
			goto fail;
		}
		if (strcmp(file, pc.file) != 0 && (pc.next != pc.end || pcap_open(g, &pc, file)))
			goto mismatch;
		if (pcap_next(&pc, p) || p->index != index)
			goto mismatch;
		g->count++;
	}
	if (g->count && pc.next == pc.end)
		return 0;
mismatch:
	fprintf(stderr, "decode.txt and %s differ at decode.txt line %zu\n", pc.file, g->count + 1);
fail:
	golden_free(g);
	return -1;
}

void golden_free(struct golden *g)
{
	while (g->stores)
		free(g->store[--g->stores]);
	free(g->packets);
	memset(g, 0, sizeof(*g));
}

bool golden_field(const struct golden_packet *p, const char *name, int base, uint64_t *value)
{
	size_t n = strlen(name);

	for (const char *word = p->decode; *word; word += strcspn(word, " ")) {
		word += strspn(word, " ");
		if (strncmp(word, name, n) == 0 && word[n] == '=') {
			char *end;
			uint64_t v = strtoull(word + n + 1, &end, base);

			if (end == word + n + 1)
				return false;
			*value = v;
			return true;
		}
	}
	return false;
}

int golden_opcode(const struct golden_packet *p)
{
	static const char *const low[32] = {
		"SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM",
		"SEND_ONLY", "SEND_ONLY_IMM", "WRITE_FIRST", "WRITE_MIDDLE",
		"WRITE_LAST", "WRITE_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM",
		"READ_REQ", "READ_RESP_FIRST", "READ_RESP_MIDDLE", "READ_RESP_LAST",
		"READ_RESP_ONLY", "ACK", "ATOMIC_ACK", "CMP_SWAP",
		"FETCH_ADD", NULL, "SEND_LAST_INV", "SEND_ONLY_INV",
	};
	static const struct {
		const char *name;
		int high;
	} transport[] = { { "RC.", 0x00 }, { "UC.", 0x20 }, { "UD.", 0x60 } };
	const char *word = strchr(p->decode, '|');
	size_t n;

	if (!word)
		return -1;
	word += 1 + strspn(word + 1, " ");
	n = strcspn(word, " ");
	for (size_t t = 0; t < sizeof(transport) / sizeof(transport[0]); t++) {
		if (n < 3 || strncmp(word, transport[t].name, 3) != 0)
			continue;
		for (int i = 0; i < 32; i++)
			if (low[i] && strlen(low[i]) == n - 3 &&
			    strncmp(word + 3, low[i], n - 3) == 0)
				return transport[t].high | i;
	}
	return -1;
}

bool golden_is_ipv6(const struct golden_packet *p)
{
	return strncmp(p->decode + strspn(p->decode, " "), "v6 ", 3) == 0;
}
