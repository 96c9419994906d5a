/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guarded accesses of guard.h for x86-64. Between guard_begin and guard_end nothing is pushed,
 * and no callee-saved register is used: at each instruction the return address is on top of the
 * stack. So a thread that faulted anywhere in this range can be sent to guard_fail, which returns
 * false.
 *
 * A copy moves naturally aligned units of the application's memory, each once, in address order:
 * guard_read() loads and guard_write() stores aligned. The frame may have any alignment. A head of
 * 1, 2, 4 and 8 bytes leads to a multiple of 16. A loop moves 64 bytes per iteration. A tail has 1
 * to 64 bytes, in units of 16, 8, 4, 2 and 1.
 *
 * Processors keep the order of stores, and with AVX an aligned access of 16 bytes is atomic (Intel
 * SDM volume 3, 9.1.1; AMD APM volume 2, 7.3.2). The 32-byte accesses of the loop are not, but no
 * known processor splits an aligned word of 8 bytes. The last byte is always in the tail. `rep
 * movsb` is not used, as its stores are unordered.
 */
#ifdef __x86_64__

	.section .bss
	.globl	guard_has_avx
	.hidden	guard_has_avx
	.type	guard_has_avx, @object
	.size	guard_has_avx, 1
guard_has_avx:
	.zero	1

	.text
	.globl	guard_begin
	.hidden	guard_begin
	.globl	guard_end
	.hidden	guard_end
	.globl	guard_fail
	.hidden	guard_fail

.macro FUNCTION name
	.p2align 6
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.cfi_startproc
.endm

.macro END name
	.cfi_endproc
	.size	\name, . - \name
.endm

.macro SUCCESS
	movl	$1, %eax
	ret
.endm

/* Moves one unit through a register, named once for the load and once for the store. */
.macro MOVE load, to, store, from, bytes
	\load	(%rsi), \to
	\store	\from, (%rdi)
	addq	$\bytes, %rsi
	addq	$\bytes, %rdi
.endm

.macro MOVE_1
	MOVE	movzbl, %eax, movb, %al, 1
.endm
.macro MOVE_2
	MOVE	movzwl, %eax, movw, %ax, 2
.endm
.macro MOVE_4
	MOVE	movl, %eax, movl, %eax, 4
.endm
.macro MOVE_8
	MOVE	movq, %rax, movq, %rax, 8
.endm

/* Moves a unit if the application's address has this bit; if it is too long, jumps to the tail. */
.macro HEAD bytes, app, tail
	testl	$\bytes, \app
	jz	1f
	cmpq	$\bytes, %rdx
	jb	\tail
	MOVE_\bytes
	subq	$\bytes, %rdx
1:
.endm

/* Returns if the tail has no bits below this unit's, else continues with the smaller units. */
.macro NEXT bytes, below
	testl	$\bytes-1, %edx
	jnz	\below
	SUCCESS
.endm

/*
 * A copy with these loads and stores of 16 and 32 bytes; \app has the application's address. The
 * units of the tail are out of line: a copy of one unit takes one branch.
 */
.macro COPY name, load, store, load_32, store_32, app
	testl	$15, \app
	jnz	.Lhead_\name
.Lbody_\name:
	cmpq	$64, %rdx
	jae	.Llong_\name
.Ltail_\name:
	testl	$32, %edx
	jnz	.Ltail_32_\name
.Lbelow_32_\name:
	testl	$16, %edx
	jnz	.Ltail_16_\name
.Lbelow_16_\name:
	testl	$8, %edx
	jnz	.Ltail_8_\name
.Lbelow_8_\name:
	testl	$4, %edx
	jnz	.Ltail_4_\name
.Lbelow_4_\name:
	testl	$2, %edx
	jnz	.Ltail_2_\name
	testl	$1, %edx
	jz	1f
.Lbelow_2_\name:
	movzbl	(%rsi), %eax
	movb	%al, (%rdi)
1:	SUCCESS

.Ltail_32_\name:
	MOVE	\load, %xmm0, \store, %xmm0, 16
	MOVE	\load, %xmm0, \store, %xmm0, 16
	NEXT	32, .Lbelow_32_\name
.Ltail_16_\name:
	MOVE	\load, %xmm0, \store, %xmm0, 16
	NEXT	16, .Lbelow_16_\name
.Ltail_8_\name:
	MOVE_8
	NEXT	8, .Lbelow_8_\name
.Ltail_4_\name:
	MOVE_4
	NEXT	4, .Lbelow_4_\name
.Ltail_2_\name:
	MOVE_2
	NEXT	2, .Lbelow_2_\name

.Llong_\name:
	je	.Llong_16_\name
	cmpb	$0, guard_has_avx(%rip)
	je	.Llong_16_\name
	testl	$16, \app
	jz	1f
	MOVE	\load, %xmm0, \store, %xmm0, 16
	subq	$16, %rdx
	cmpq	$64, %rdx
	jbe	.Lbody_\name
	.p2align 5
1:	\load_32	(%rsi), %ymm0
	\load_32	32(%rsi), %ymm1
	\store_32 %ymm0, (%rdi)
	\store_32 %ymm1, 32(%rdi)
	addq	$64, %rsi
	addq	$64, %rdi
	subq	$64, %rdx
	cmpq	$64, %rdx
	ja	1b			/* 64 bytes are left for the tail */
	vzeroupper
	jb	.Ltail_\name
	/* 64 bytes, or a processor without AVX */
.Llong_16_\name:
	\load	(%rsi), %xmm0
	\load	16(%rsi), %xmm1
	\load	32(%rsi), %xmm2
	\load	48(%rsi), %xmm3
	\store	%xmm0, (%rdi)
	\store	%xmm1, 16(%rdi)
	\store	%xmm2, 32(%rdi)
	\store	%xmm3, 48(%rdi)
	addq	$64, %rsi
	addq	$64, %rdi
	subq	$64, %rdx
	jz	1f
	cmpq	$64, %rdx
	jae	.Llong_16_\name
	jmp	.Ltail_\name
1:	SUCCESS

.Lhead_\name:
	testl	$7, \app
	jz	2f
	HEAD	1, \app, .Ltail_\name
	HEAD	2, \app, .Ltail_\name
	HEAD	4, \app, .Ltail_\name
2:	HEAD	8, \app, .Ltail_\name
	jmp	.Lbody_\name
.endm

	.p2align 6
guard_begin:

/* bool guard_read(void *dst, const void *src, size_t len) */
FUNCTION guard_x86_read
	COPY	read, movaps, movups, vmovdqa, vmovdqu, %esi
END guard_x86_read

/* bool guard_write(void *dst, const void *src, size_t len) */
FUNCTION guard_x86_write
	COPY	write, movups, movaps, vmovdqu, vmovdqa, %edi
END guard_x86_write

/* bool guard_fetch_add(u64 *word, u64 add, u64 *original) */
FUNCTION guard_x86_fetch_add
	lock xaddq %rsi, (%rdi)
	movq	%rsi, (%rdx)
	SUCCESS
END guard_x86_fetch_add

/* bool guard_compare_swap(u64 *word, u64 compare, u64 swap, u64 *original) */
FUNCTION guard_x86_compare_swap
	movq	%rsi, %rax
	lock cmpxchgq %rdx, (%rdi)
	movq	%rax, (%rcx)
	SUCCESS
END guard_x86_compare_swap

/* bool guard_store(u64 *word, u64 value) */
FUNCTION guard_x86_store
	xchgq	%rsi, (%rdi)
	SUCCESS
END guard_x86_store

guard_end:

/*
 * Not an entry point: where a thread continues that faulted in the range. The upper halves of the
 * registers may be in use.
 */
FUNCTION guard_fail
	cmpb	$0, guard_has_avx(%rip)
	je	1f
	vzeroupper
1:	xorl	%eax, %eax
	ret
END guard_fail

#endif
	.section .note.GNU-stack, "", @progbits
