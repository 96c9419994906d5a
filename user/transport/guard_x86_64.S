/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guarded accesses of guard.h for x86-64. Between guard_begin and guard_end nothing is pushed,
 * and no register is used that belongs to the caller: at each instruction the return address lies
 * on top of the stack. So a thread that faulted anywhere in there can be sent to guard_fail, which
 * returns false.
 *
 * The copy is the usual one: up to four registers from each end, which overlap; longer ones in a
 * loop of four registers a round on the destination's grid, with the ends' registers loaded before
 * and stored around it; and the longest, where the processor is good at it, by its own string
 * instruction.
 */
#ifdef __x86_64__

	.section .bss
	.globl	guard_has_avx
	.hidden	guard_has_avx
	.type	guard_has_avx, @object
	.size	guard_has_avx, 1
guard_has_avx:
	.zero	1
	.globl	guard_string_bytes
	.hidden	guard_string_bytes
	.type	guard_string_bytes, @object
	.size	guard_string_bytes, 8
	.p2align 3
guard_string_bytes:
	.zero	8

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

/*
 * A register of V bytes from each end, for V to 2 * V bytes; two from each end, for 2 * V to 4 * V.
 */
.macro ENDS_2 mov, first, last, V
	\mov	(%rsi), \first
	\mov	-\V(%rsi,%rdx), \last
	\mov	\first, (%rdi)
	\mov	\last, -\V(%rdi,%rdx)
.endm
.macro ENDS_4 mov, r, V
	\mov	(%rsi), %\r\()0
	\mov	\V(%rsi), %\r\()1
	\mov	-\V(%rsi,%rdx), %\r\()2
	\mov	-2*\V(%rsi,%rdx), %\r\()3
	\mov	%\r\()0, (%rdi)
	\mov	%\r\()1, \V(%rdi)
	\mov	%\r\()2, -\V(%rdi,%rdx)
	\mov	%\r\()3, -2*\V(%rdi,%rdx)
.endm

/* More than 4 * V bytes. */
.macro LONG mov, mova, r, V
	\mov	(%rsi), %\r\()4
	\mov	-\V(%rsi,%rdx), %\r\()5
	\mov	-2*\V(%rsi,%rdx), %\r\()6
	\mov	-3*\V(%rsi,%rdx), %\r\()7
	\mov	-4*\V(%rsi,%rdx), %\r\()8
	leaq	(%rdi,%rdx), %rcx		/* behind the last byte */
	leaq	\V(%rdi), %rax
	andq	$-\V, %rax			/* the grid's first place behind the first byte */
	subq	%rdi, %rsi			/* how far the source is from the destination */
	leaq	-4*\V(%rcx), %rdx		/* from here on the last registers do it */
	\mov	%\r\()4, (%rdi)
	cmpq	%rdx, %rax
	jae	2f
	.p2align 5
1:	\mov	(%rax,%rsi), %\r\()0
	\mov	\V(%rax,%rsi), %\r\()1
	\mov	2*\V(%rax,%rsi), %\r\()2
	\mov	3*\V(%rax,%rsi), %\r\()3
	\mova	%\r\()0, (%rax)
	\mova	%\r\()1, \V(%rax)
	\mova	%\r\()2, 2*\V(%rax)
	\mova	%\r\()3, 3*\V(%rax)
	addq	$4*\V, %rax
	cmpq	%rdx, %rax
	jb	1b
2:	\mov	%\r\()5, -\V(%rcx)
	\mov	%\r\()6, -2*\V(%rcx)
	\mov	%\r\()7, -3*\V(%rcx)
	\mov	%\r\()8, -4*\V(%rcx)
.endm

	.p2align 6
guard_begin:

/* bool guard_copy(void *dst, const void *src, size_t len) */
FUNCTION guard_x86_copy
	cmpq	$16, %rdx
	jb	.Lbelow_16
	cmpq	$32, %rdx
	ja	.Labove_32
	ENDS_2	movups, %xmm0, %xmm1, 16
	SUCCESS
.Labove_32:
	cmpq	$64, %rdx
	ja	.Labove_64
	ENDS_4	movups, xmm, 16
	SUCCESS
.Labove_64:
	cmpb	$0, guard_has_avx(%rip)
	je	.Lwithout_avx
	cmpq	$128, %rdx
	ja	.Labove_128
	ENDS_4	vmovdqu, ymm, 32
	vzeroupper
	SUCCESS
.Labove_128:
	cmpq	guard_string_bytes(%rip), %rdx
	jae	.Lstring
	LONG	vmovdqu, vmovdqa, ymm, 32
	vzeroupper
	SUCCESS
.Lstring:
	movq	%rdx, %rcx
	rep movsb
	SUCCESS
.Lwithout_avx:
	LONG	movups, movaps, xmm, 16
	SUCCESS
.Lbelow_16:
	cmpl	$8, %edx
	jb	.Lbelow_8
	ENDS_2	movq, %rax, %rcx, 8
	SUCCESS
.Lbelow_8:
	cmpl	$4, %edx
	jb	.Lbelow_4
	ENDS_2	movl, %eax, %ecx, 4
	SUCCESS
.Lbelow_4:
	testl	%edx, %edx
	jz	1f
	/* the first, the middle and the last byte: one, two or three */
	movzbl	(%rsi), %eax
	movl	%edx, %r8d
	shrl	%r8d
	movzbl	(%rsi,%r8), %ecx
	movzbl	-1(%rsi,%rdx), %esi
	movb	%al, (%rdi)
	movb	%cl, (%rdi,%r8)
	movb	%sil, -1(%rdi,%rdx)
1:	SUCCESS
END guard_x86_copy

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
 * Not an entry: where a thread goes on that faulted between the two. Upper halves of registers may
 * be in use.
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
