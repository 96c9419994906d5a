/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending and receiving on a stream. Bytes are copied outside the lock: only the holder of
 * `sending` uses free room of the ring, and only the holder of `receiving` unread bytes of the
 * receive buffer.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rsocket_stream.h"

/* Message sizes of a long transfer: the first is small, to leave while the next is copied. */
enum { FIRST_BYTES = 4096, MOST_BYTES = 1 << 16 };

/* Position of a call in its list of buffers. */
struct cursor {
	const struct iovec *iov;
	int n;
	size_t at; /* offset in the first buffer */
};

static size_t cursor_total(const struct iovec *iov, int n)
{
	size_t total = 0;
	int i;

	for (i = 0; i < n; i++) {
		if (iov[i].iov_len > SSIZE_MAX - total)
			return SIZE_MAX;
		total += iov[i].iov_len;
	}
	return total;
}

bool iov_has_null(const struct iovec *iov, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!iov[i].iov_base && iov[i].iov_len)
			return true;
	return false;
}

void iov_gather(u8 *to, const struct iovec *iov, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* Returns contiguous bytes, at most `most`, and advances the cursor. */
static u8 *cursor_take(struct cursor *c, size_t most, size_t *got)
{
	u8 *from;

	while (c->at == c->iov->iov_len) {
		c->iov++;
		c->n--;
		c->at = 0;
	}
	from = (u8 *)c->iov->iov_base + c->at;
	*got = min_u64(most, c->iov->iov_len - c->at);
	c->at += *got;
	return from;
}

static void cursor_copy_out(struct cursor *c, u8 *to, size_t n)
{
	size_t got;

	for (; n; n -= got, to += got) {
		const u8 *from = cursor_take(c, n, &got);

		memcpy(to, from, got);
	}
}

static void cursor_copy_in(struct cursor *c, const u8 *from, size_t n)
{
	size_t got;

	for (; n; n -= got, from += got) {
		u8 *to = cursor_take(c, n, &got);

		memcpy(to, from, got);
	}
}

static bool transfer_is_open(struct rsocket *rs)
{
	return !stream_is_opening(stream_of(rs));
}

/* Waits for a stream that is being connected. Caller holds the lock. */
static int transfer_ready(struct stream *s, s64 deadline)
{
	int err;

	if (stream_is_opening(s)) {
		err = rsocket_wait(&s->rs, transfer_is_open, deadline);
		if (err)
			return err;
	}
	if (s->state == STREAM_FAILED)
		return stream_error(s, -ENOTCONN);
	return s->state == STREAM_CONNECTED || s->state == STREAM_ENDED ? 0 : -ENOTCONN;
}

/* After `some` bytes the call returns their number, and the next call reports the error. */
static int transfer_error(struct stream *s, bool some, int otherwise)
{
	return some ? otherwise : stream_error(s, otherwise);
}

/*
 * Begins a call that sends or receives: takes its turn and the lock, and sets its deadline. Returns
 * 0, or -EAGAIN without them.
 */
static int transfer_begin(struct stream *s, bool sends, int flags, s64 *deadline)
{
	struct rsocket *rs = &s->rs;
	int err;

	pthread_mutex_lock(&rs->lock);
	*deadline = rsocket_nonblocking(rs, flags) ? 0 :
		    rsocket_deadline(sends ? &rs->send_timeout : &rs->receive_timeout);
	pthread_mutex_unlock(&rs->lock);
	err = rsocket_take_turn(sends ? &rs->sending : &rs->receiving, *deadline);
	pthread_mutex_lock(&rs->lock);
	if (!err)
		return 0;
	rs->standin.refused |= sends;
	rsocket_unlock(rs);
	return err;
}

static void transfer_end(struct stream *s, bool sends)
{
	rsocket_unlock(&s->rs);
	rsocket_end_turn(sends ? &s->rs.sending : &s->rs.receiving);
}

/* ---- sending ---- */

static bool transfer_can_send(struct rsocket *rs)
{
	struct stream *s = stream_of(rs);

	return !s->writes || stream_credit_room(&s->credit, s->inlined);
}

/*
 * Waits for room for a message of at least one byte. Caller holds `sending` and the lock. some: the
 * call has sent bytes. Returns 0 or -errno.
 */
static int stream_wait_room(struct stream *s, bool some, s64 deadline)
{
	int err = 0;

	if (s->writes && !stream_credit_room(&s->credit, s->inlined))
		err = rsocket_wait(&s->rs, transfer_can_send, deadline);
	if (err)
		return err;
	if (s->writes)
		return 0;
	return s->shut_write ? -EPIPE : transfer_error(s, some, -ECONNRESET);
}

/* ---- mapped buffers ---- */

/*
 * riomap(), riounmap() and riowrite(): buffers of one side into which the other writes directly.
 *
 * A mapping is an entry that the next sending call writes into the peer's table. The peer's
 * mappings arrive in our table, after our list. The peer's message contains the index, and only
 * that entry is copied: the original can change at any time.
 */

/* ---- our mappings, in the peer's table ---- */

static int iomap_index(struct stream *s)
{
	u32 i;

	if (!s->peer_used)
		s->peer_used = calloc(s->peer_table_size + 1, sizeof(*s->peer_used));
	for (i = 0; s->peer_used && i < s->peer_table_size; i++)
		if (!s->peer_used[i])
			return (int)i;
	return -1;
}

int iomap_add(struct stream *s, void *buf, size_t n, int prot, off_t *offset)
{
	int access = IBV_ACCESS_LOCAL_WRITE, index = -1;
	struct mapping *m, **end;

	if (s->state != STREAM_CONNECTED || (prot & ~PROT_WRITE) || n > UINT32_MAX)
		return -EINVAL;
	if (prot & PROT_WRITE) {
		access |= IBV_ACCESS_REMOTE_WRITE;
		index = iomap_index(s);
		if (index < 0)
			return -ENOMEM;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->mr = ibv_reg_mr(s->id->pd, buf, n, access);
	if (!m->mr) {
		int err = -errno;

		free(m);
		return err;
	}
	m->index = index;
	if (*offset == -1)
		*offset = (off_t)(uintptr_t)buf;
	m->offset = (u64)*offset;
	if (index < 0) {
		m->next = s->mapped;
		s->mapped = m;
	} else {
		s->peer_used[index] = true;
		for (end = &s->unsent; *end; end = &(*end)->next)
			;
		*end = m;
	}
	return 0;
}

static bool iomap_take_away(struct stream *s, struct mapping **list, void *buf, size_t n)
{
	struct mapping **place, *m;

	for (place = list; *place; place = &(*place)->next) {
		m = *place;
		if (m->mr->addr != buf || m->mr->length != n)
			continue;
		*place = m->next;
		if (m->index >= 0)
			s->peer_used[m->index] = false;
		ibv_dereg_mr(m->mr);
		free(m);
		return true;
	}
	return false;
}

int iomap_remove(struct stream *s, void *buf, size_t n)
{
	return iomap_take_away(s, &s->mapped, buf, n) || iomap_take_away(s, &s->unsent, buf, n) ?
		       0 : -EINVAL;
}

void iomap_free(struct stream *s)
{
	struct mapping **lists[] = { &s->mapped, &s->unsent }, *m;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		while ((m = *lists[i])) {
			*lists[i] = m->next;
			ibv_dereg_mr(m->mr);
			free(m);
		}
	}
}

/*
 * Posts n bytes to an address of the peer, through the ring if they do not fit inline. Caller holds
 * the lock. Returns false if the connection is over.
 */
static bool iomap_post(struct stream *s, struct credit_write *w, const void *from, u32 n,
		       struct ibv_send_wr *wr)
{
	struct ibv_sge sges[2];
	const u8 *bytes = from;
	u32 i;

	wr->wr_id = stream_wr_id(STREAM_SEND, w->ring_bytes);
	wr->sg_list = sges;
	if (!w->ring_bytes) {
		sges[0] = (struct ibv_sge){ (uintptr_t)bytes, n, 0 };
		wr->num_sge = 1;
		wr->send_flags = IBV_SEND_INLINE;
		return stream_post(s, wr);
	}
	for (i = 0; i < 2 && w->pieces[i].bytes; i++) {
		u8 *at = s->send + w->pieces[i].offset;

		memcpy(at, bytes, w->pieces[i].bytes);
		bytes += w->pieces[i].bytes;
		sges[i] = (struct ibv_sge){ (uintptr_t)at, w->pieces[i].bytes, s->send_mr->lkey };
	}
	wr->num_sge = (int)i;
	return stream_post(s, wr);
}

static bool iomap_has_room(struct rsocket *rs)
{
	struct stream *s = stream_of(rs);

	return !s->writes || (stream_credit_room(&s->credit, s->inlined) &&
			      (s->inlined >= sizeof(struct wire_iomap) ||
			       s->credit.ring_free >= sizeof(struct wire_iomap)));
}

static int iomap_send(struct stream *s, s64 deadline)
{
	while (s->unsent) {
		struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };
		struct wire_iomap entry;
		struct credit_write w;
		struct mapping *m;
		int err = rsocket_wait(&s->rs, iomap_has_room, deadline);

		if (!err)
			err = stream_wait_room(s, false, deadline);
		if (err)
			return err;
		/* Another thread may have removed it meanwhile. */
		m = s->unsent;
		if (!m)
			break;
		entry = (struct wire_iomap){
			.offset = m->offset,
			.sge = { (uintptr_t)m->mr->addr, m->mr->rkey, (u32)m->mr->length },
		};
		if (s->credit.swap) {
			entry.offset = __builtin_bswap64(entry.offset);
			entry.sge = wire_swap_sge(entry.sge);
		}
		stream_credit_place(&s->credit, sizeof(entry), s->inlined, &w);
		stream_credit_count(&s->credit);
		wr.imm_data = htobe32(wire_message(WIRE_IOMAP, (u32)m->index));
		/* The table follows the peer's list. */
		wr.wr.rdma.remote_addr = s->credit.list.address +
					 (u64)s->credit.list.length * sizeof(struct wire_sge) +
					 (u64)m->index * sizeof(entry);
		wr.wr.rdma.rkey = s->credit.list.key;
		s->unsent = m->next;
		m->next = s->mapped;
		s->mapped = m;
		if (!iomap_post(s, &w, &entry, sizeof(entry), &wr))
			return stream_error(s, -ECONNRESET);
	}
	return 0;
}

/* ---- the peer's mappings, in our table ---- */

bool iomap_changed(struct stream *s, u32 index)
{
	const u8 *table = (u8 *)s->list + WIRE_SLOTS * sizeof(struct wire_sge);

	if (index >= s->table_size)
		return false;
	memcpy(&s->table[index], table + index * sizeof(s->table[0]), sizeof(s->table[0]));
	return true;
}

/* Returns the entry that contains this offset, and the number of bytes from there to its end. */
static const struct wire_iomap *iomap_find(const struct stream *s, u64 offset, u32 *bytes)
{
	u32 i;

	for (i = 0; i < s->table_size; i++) {
		const struct wire_iomap *entry = &s->table[i];

		if (offset < entry->offset || offset - entry->offset >= entry->sge.length)
			continue;
		*bytes = entry->sge.length - (u32)(offset - entry->offset);
		return entry;
	}
	return NULL;
}

ssize_t iomap_write(struct stream *s, const u8 *buf, size_t n, u64 offset, int flags)
{
	size_t left = n;
	s64 deadline;
	int err = transfer_begin(s, true, flags, &deadline);

	if (err)
		return err;
	if (s->state != STREAM_CONNECTED && s->state != STREAM_ENDED)
		err = -ENOTCONN;
	else
		stream_progress(s);
	if (!err && n && !buf)
		err = -EFAULT;
	if (!err)
		err = iomap_send(s, deadline);
	while (!err && left) {
		struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
		const struct wire_iomap *entry;
		struct credit_write w;
		u32 now, mapped;

		err = stream_wait_room(s, left < n, deadline);
		if (err)
			break;
		entry = iomap_find(s, offset, &mapped);
		if (!entry) {
			/* all mapped bytes were written */
			errno = EINVAL;
			break;
		}
		now = s->credit.ring_free > s->inlined ? s->credit.ring_free : s->inlined;
		now = (u32)min_u64(min_u32(min_u32(now, mapped), MOST_BYTES), left);
		stream_credit_place(&s->credit, now, s->inlined, &w);
		wr.wr.rdma.remote_addr = entry->sge.address + (offset - entry->offset);
		wr.wr.rdma.rkey = entry->sge.key;
		if (!iomap_post(s, &w, buf, now, &wr)) {
			err = transfer_error(s, left < n, -ECONNRESET);
			break;
		}
		left -= now;
		buf += now;
		offset += now;
	}
	transfer_end(s, true);
	return left == n && err ? err : (ssize_t)(n - left);
}

/* ---- data ---- */

/* Posts one message of n bytes. Returns false if the connection is over. */
static bool transfer_post(struct stream *s, struct cursor *c, u32 n)
{
	struct ibv_sge sges[2];
	struct credit_write w;
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.sg_list = sges,
		.num_sge = 1,
	};
	int i;

	stream_credit_write(&s->credit, n, s->inlined, &w);
	pthread_mutex_unlock(&s->rs.lock);
	wr.wr_id = stream_wr_id(STREAM_SEND, w.ring_bytes);
	wr.imm_data = htobe32(w.message);
	wr.wr.rdma.remote_addr = w.address;
	wr.wr.rdma.rkey = w.key;
	if (!w.ring_bytes) {
		u8 bytes[n];

		cursor_copy_out(c, bytes, n);
		sges[0] = (struct ibv_sge){ (uintptr_t)bytes, n, 0 };
		wr.send_flags = IBV_SEND_INLINE;
		pthread_mutex_lock(&s->rs.lock);
		return stream_post(s, &wr);
	}
	for (i = 0; i < 2 && w.pieces[i].bytes; i++) {
		u8 *at = s->send + w.pieces[i].offset;

		cursor_copy_out(c, at, w.pieces[i].bytes);
		sges[i] = (struct ibv_sge){ (uintptr_t)at, w.pieces[i].bytes, s->send_mr->lkey };
	}
	wr.num_sge = i;
	pthread_mutex_lock(&s->rs.lock);
	return stream_post(s, &wr);
}

ssize_t stream_send(struct stream *s, const struct iovec *iov, int n, int flags)
{
	struct cursor c = { .iov = iov, .n = n };
	size_t total = cursor_total(iov, n), left = total;
	bool null = iov_has_null(iov, (size_t)n);
	u32 most = FIRST_BYTES;
	s64 deadline;
	int err;

	if (total == SIZE_MAX)
		return -EINVAL;
	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	err = transfer_begin(s, true, flags, &deadline);
	if (err)
		return err;
	err = transfer_ready(s, deadline);
	if (!err && s->unsent)
		err = iomap_send(s, deadline);
	while (!err && left) {
		u32 now;

		err = stream_wait_room(s, left < total, deadline);
		if (!err && null)
			err = -EFAULT;
		if (err)
			break;
		now = stream_credit_room(&s->credit, s->inlined);
		now = (u32)min_u64(min_u32(now, most), left);
		if (!transfer_post(s, &c, now)) {
			err = transfer_error(s, left < total, -ECONNRESET);
			break;
		}
		if (left == total)
			cancel_hold(); /* the caller learns how many bytes were sent */
		left -= now;
		most = min_u32(2 * most, MOST_BYTES);
	}
	if (left < total)
		cancel_release();
	s->rs.standin.refused |= left > 0;
	transfer_end(s, true);
	return left == total && err ? err : (ssize_t)(total - left);
}

/* ---- receiving ---- */

static bool transfer_can_receive(struct rsocket *rs)
{
	struct stream *s = stream_of(rs);

	return s->credit.unread || !s->reads;
}

/*
 * Takes up to `left` bytes. MSG_PEEK: the bytes stay unread; MSG_TRUNC: they are not copied.
 * Returns their number.
 */
static size_t transfer_copy(struct stream *s, struct cursor *c, size_t left, int flags)
{
	u32 skip = 0, offset, n;
	size_t copied = 0;

	while (left && (n = stream_credit_unread(&s->credit, skip, &offset))) {
		n = (u32)min_u64(n, left);
		if (!(flags & MSG_TRUNC)) {
			pthread_mutex_unlock(&s->rs.lock);
			cursor_copy_in(c, s->receive + offset, n);
			pthread_mutex_lock(&s->rs.lock);
		}
		if (flags & MSG_PEEK)
			skip += n;
		else
			stream_credit_read(&s->credit, n);
		left -= n;
		copied += n;
	}
	return copied;
}

ssize_t stream_receive(struct stream *s, const struct iovec *iov, int n, int flags)
{
	struct cursor c = { .iov = iov, .n = n };
	size_t total = cursor_total(iov, n), got = 0;
	bool some = false, null = iov_has_null(iov, (size_t)n) && !(flags & MSG_TRUNC);
	s64 deadline;
	int err;

	if (total == SIZE_MAX)
		return -EINVAL;
	/* There are no queued errors and no urgent data. */
	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return flags & MSG_ERRQUEUE ? -EAGAIN : -EINVAL;
	err = transfer_begin(s, false, flags, &deadline);
	if (err)
		return err;
	err = transfer_ready(s, deadline);
	while (!err) {
		if (!s->credit.unread)
			err = rsocket_wait(&s->rs, transfer_can_receive, deadline);
		if (err)
			break;
		if (!s->credit.unread) {
			/* the end */
			err = transfer_error(s, got, 0);
			break;
		}
		if (null) {
			err = -EFAULT;
			break;
		}
		if (!some)
			cancel_hold(); /* the caller gets the bytes that were taken */
		some = true;
		got += transfer_copy(s, &c, total - got, flags);
		/* credits for the bytes read */
		stream_progress(s);
		if (got == total || !(flags & MSG_WAITALL) || (flags & MSG_PEEK))
			break;
	}
	transfer_end(s, false);
	if (some)
		cancel_release();
	return err && !got ? err : (ssize_t)got;
}
