/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A guest that QEMU loads by its Multiboot header, in protected mode. It fills its memory from
 * 2 MiB to LAST (MiB, a symbol of the assembler), each word with its address times an odd number,
 * then writes `f` to the debug console (port 0xe9). From then on it counts in each page of the
 * third MiB, and writes `.` after each round.
 */
	.code32
	.globl	_start
	.balign	4
	.long	0x1badb002, 0, -0x1badb002
_start:
	movl	$0x200000, %edi
fill:
	imull	$0x9e3779b1, %edi, %eax
	movl	%eax, (%edi)
	addl	$4, %edi
	cmpl	$LAST * 0x100000, %edi
	jb	fill
	movb	$'f', %al
	outb	%al, $0xe9
round:
	movl	$0x200000, %edi
page:
	incl	8(%edi)
	addl	$0x1000, %edi
	cmpl	$0x300000, %edi
	jb	page
	movb	$'.', %al
	outb	%al, $0xe9
	movl	$0x40000, %ecx
wait:
	pause
	decl	%ecx
	jnz	wait
	jmp	round
