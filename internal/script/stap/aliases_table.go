package stap

// aliasTable has the probe aliases of the library. A row begins with the alias, the value of the
// variable name in quotes, and the place: t:NAME is a tracepoint, f:NAME a function, r:NAME its
// return, any other word another alias. Of several places with | between them the first that exists
// is probed; with + all that exist are. The variables of the alias follow, with ; between them. If a
// variable has several sources, ?? stands between them, and the first that the kernel has is read.
// {NAME ARGUMENT} stands for a row of aliasGroups.
//
// stapprobes(3stap) and the pages that it names list the names and their meanings.
const aliasTable = `
scheduler.cpu_off "cpu_off" t:sched_switch | f:context_switch
	task_prev=$prev; task_next=$next; idle=tid() == 0
scheduler.cpu_on "cpu_on" f:finish_task_switch | f:finish_task_switch.isra.*
	task_prev=$prev; idle=tid() == 0
scheduler.tick "tick" f:scheduler_tick | f:sched_tick
	idle=tid() == 0
scheduler.balance "balance" f:newidle_balance | f:sched_balance_newidle | f:idle_balance
scheduler.ctxswitch "ctxswitch" t:sched_switch | f:context_switch
	prev_task=$prev; prev_pid=$prev->tgid; prev_tid=$prev->pid; prev_priority=$prev->prio; prev_task_name=task_execname($prev); prevtsk_state=task_state($prev)
	next_task=$next; next_pid=$next->tgid; next_tid=$next->pid; next_priority=$next->prio; next_task_name=task_execname($next); nexttsk_state=task_state($next)
scheduler.kthread_stop "kthread_stop" t:sched_kthread_stop | f:kthread_stop
	thread_pid=$t->tgid ?? $k->tgid; thread_priority=$t->prio ?? $k->prio
scheduler.kthread_stop.return "kthread_stop" t:sched_kthread_stop_ret | r:kthread_stop
	return_value=$ret ?? $return
scheduler.wait_task "wait_task" t:sched_wait_task | f:wait_task_inactive
	task_pid=$p->tgid; task_priority=$p->prio
scheduler.wakeup "wakeup" t:sched_wakeup | f:try_to_wake_up
	{wakened}
scheduler.wakeup_new "wakeup_new" t:sched_wakeup_new | f:wake_up_new_task
	{wakened}
scheduler.migrate "migrate" t:sched_migrate_task | f:set_task_cpu
	task=$p; pid=$p->tgid; priority=$p->prio; cpu_from=task_cpu($p); cpu_to=$dest_cpu ?? $new_cpu
scheduler.process_free "process_free" t:sched_process_free
	pid=$p->tgid; priority=$p->prio
scheduler.process_exit "process_exit" t:sched_process_exit | f:do_exit
	pid=$p->tgid ?? pid(); priority=$p->prio ?? @task(task_current())->prio
scheduler.process_wait "process_wait" t:sched_process_wait | f:do_wait
	pid=$pid ?? $wo->wo_pid
scheduler.process_fork "process_fork" t:sched_process_fork | r:kernel_clone | r:_do_fork
	parent_pid=$parent->tgid ?? pid(); child_pid=$child->tgid ?? $return
scheduler.signal_send "signal_send" t:sched_signal_send | f:__send_signal_locked | f:__send_signal | f:send_signal
	pid=$p->tgid ?? $t->tgid; signal_number=$sig

kprocess.create t:sched_process_fork
	task=$child; new_pid=task_pid($child); new_tid=task_tid($child)
kprocess.start f:schedule_tail
kprocess.exec syscall.execve
kprocess.exec_complete "execve" syscall.execve.return
	errno=retval; success=retval >= 0
kprocess.exit f:do_exit
	code=$code
kprocess.release f:release_task
	task=$p; released_pid=task_pid($p); released_tid=task_tid($p)

signal.send t:signal_generate | f:__send_signal_locked | f:__send_signal | f:send_signal
	name=probe_type() == "kernel_tracepoint" ? "signal_generate" : ppfunc(); sig=$sig; task=$task ?? $t; sinfo=$info
	shared=@choose_defined($group, $type) != 0; {signalled task}; si_code=__si_code(sinfo)
signal.checkperm "checkperm" f:check_kill_permission
	sig=$sig; task=$t; sinfo=$info; {signalled task}; si_code=__si_code(sinfo)
signal.checkperm.return "checkperm" r:check_kill_permission
	retstr=return_str(1, $return)
signal.wakeup "wakeup" f:signal_wake_up_state
	resume=$state != 0; state_mask=__wake_mask($state); sig_pid=$t->pid; pid_name=task_execname($t)
signal.check_ignored "check_ignored" f:sig_ignored
	sig=$sig; sig_name=__signal_name($sig); sig_pid=$t->pid; pid_name=task_execname($t)
signal.check_ignored.return "check_ignored" r:sig_ignored | r:prepare_signal
	retstr=return_str(1, ppfunc() == "sig_ignored" ? $return : !$return)
signal.force_segv "force_segv" f:force_sigsegv
	sig=$sig; sig_name=__signal_name($sig); sig_pid=$p->pid ?? pid(); pid_name=@defined($p) ? task_execname($p) : execname()
signal.syskill "syskill" syscall.kill
	sig_pid=pid; sig_name=__signal_name(sig)
signal.syskill.return "syskill" syscall.kill.return
signal.systkill "systkill" syscall.tkill
	sig_pid=pid; sig_name=__signal_name(sig)
signal.systkill.return "systkill" syscall.tkill.return
signal.systgkill "systgkill" syscall.tgkill
	sig_pid=pid; sig_name=__signal_name(sig)
signal.systgkill.return "systgkill" syscall.tgkill.return
signal.send_sig_queue "send_sig_queue" f:send_sigqueue
	sig=$sig ?? $q->info->si_signo; sig_name=__signal_name(sig); sig_pid=$t->pid ?? $p->pid; pid_name=kernel_string($t->comm) ?? kernel_string($p->comm); sigqueue_addr=$q
signal.send_sig_queue.return "send_sig_queue" r:send_sigqueue
	retstr=return_str(1, $return)
signal.pending "pending" f:do_sigpending
	sigset_add=$set; sigset_size=8
signal.pending.return "pending" r:do_sigpending
	retstr=return_str(1, @choose_defined($return, 0))
signal.handle "handle" t:signal_deliver
	sig=$sig; sig_name=__signal_name($sig); sinfo=$info; sig_code=$info->si_code; ka_addr=$ka
	sig_mode=$info == 0 && $info->si_code <= 0 ? "User Mode Signal" : "Kernel Mode Signal"
signal.do_action "do_action" f:do_sigaction
	sig=$sig; sig_name=__signal_name($sig); sigact_addr=$act; oldsigact_addr=$oact
	sa_handler=$act ? $act->sa->sa_handler : 0; sa_mask=$act ? $act->sa->sa_mask->sig[0] : 0
signal.do_action.return "do_action" r:do_sigaction
	retstr=return_str(1, $return)
signal.procmask "procmask" f:sigprocmask
	how=$how; sigset_addr=$set; oldsigset_addr=$oldset; sigset=$set->sig[0]
signal.procmask.return "procmask" r:sigprocmask
	retstr=return_str(1, $return)
signal.flush "flush" f:flush_signals
	task=$t; sig_pid=$t->pid; pid_name=task_execname($t)

vfs.open "vfs.open" f:vfs_open
	{opened}; argstr=sprintf("%s, %p", pathname, cred)
vfs.open.return "vfs.open" r:vfs_open
	{opened}; {result}
vfs.read "vfs.read" f:vfs_read
	{file $file}; pos=$pos; buf=$buf; bytes_to_read=$count; argstr=sprintf("%d, %d, %p", $count, $pos, $buf)
vfs.read.return "vfs.read" r:vfs_read
	{file $file}; pos=$pos; buf=$buf; bytes_to_read=$count; {result}; bytes_read=$return > 0 ? $return : 0
vfs.readv "vfs.readv" f:vfs_readv
	{file $file}; {vector}; bytes_to_read=__vector_size($vec, $vlen); argstr=sprintf("%d, %d, %p", bytes_to_read, $pos, $vec)
vfs.readv.return "vfs.readv" r:vfs_readv
	{file $file}; {vector}; bytes_to_read=__vector_size($vec, $vlen); {result}; bytes_read=$return > 0 ? $return : 0
vfs.write "vfs.write" f:vfs_write
	{file $file}; pos=$pos; buf=$buf; bytes_to_write=$count; argstr=sprintf("%d, %d, %p", $count, $pos, $buf)
vfs.write.return "vfs.write" r:vfs_write
	{file $file}; pos=$pos; buf=$buf; bytes_to_write=$count; {result}; bytes_written=$return > 0 ? $return : 0
vfs.writev "vfs.writev" f:vfs_writev
	{file $file}; {vector}; bytes_to_write=__vector_size($vec, $vlen); argstr=sprintf("%d, %d, %p", bytes_to_write, $pos, $vec)
vfs.writev.return "vfs.writev" r:vfs_writev
	{file $file}; {vector}; bytes_to_write=__vector_size($vec, $vlen); {result}; bytes_written=$return > 0 ? $return : 0
generic.fop.llseek "generic_file_llseek" f:generic_file_llseek
	{file $file}; offset=$offset; whence=$whence; whence_str=_seek_whence_str($whence); maxbyte=$file->f_inode->i_sb->s_maxbytes; argstr=sprintf("%d, %d", $offset, $whence)
generic.fop.llseek.return "generic_file_llseek" r:generic_file_llseek
	{named $file}; offset=$offset; whence=$whence; whence_str=_seek_whence_str($whence); {failed}
generic.fop.read_iter "generic_file_read_iter" f:generic_file_read_iter
	{file $iocb->ki_filp}; {iterator $iter}
generic.fop.read_iter.return "generic_file_read_iter" r:generic_file_read_iter
	{named $iocb->ki_filp}; nr_segs=$iter->nr_segs; {failed}; bytes_read=$return > 0 ? $return : 0; {moved}
generic.fop.write_iter "generic_file_write_iter" f:generic_file_write_iter
	{file $iocb->ki_filp}; {iterator $from}
generic.fop.write_iter.return "generic_file_write_iter" r:generic_file_write_iter
	{named $iocb->ki_filp}; retstr=sprintf("%d", $return); {moved}
generic.fop.mmap "generic_file_mmap" f:generic_file_mmap
	{file $file}; vm_start=$vma->vm_start; vm_end=$vma->vm_end; vm_flags=$vma->vm_flags; argstr=sprintf("0x%x, 0x%x, 0x%x", vm_start, vm_end, vm_flags)
generic.fop.mmap.return "generic_file_mmap" r:generic_file_mmap
	{named $file}; {failed}
generic.fop.open "generic_file_open" f:generic_file_open
	{file $filp}; filename=d_name($filp->f_path->dentry); flag=$filp->f_flags; size=$inode->i_size; argstr=sprintf("%d, %d, %s", ino, flag, filename)
generic.fop.open.return "generic_file_open" r:generic_file_open
	retstr=sprintf("%d", $return)

ioblock.request "ioblock.request" f:submit_bio_noacct | f:generic_make_request
	{bio}; {part}; hw_segments=$bio->bi_hw_segments ?? 0
ioblock.end "ioblock.end" f:bio_endio
	{bio}; bytes_done=size; error=$error ?? $bio->bi_error ?? $bio->bi_status; hw_segments=$bio->bi_hw_segments ?? 0
ioblock_trace.bounce "ioblock_trace.bounce" t:block_bio_bounce
	{bio}; {part}; bytes_done=size; q=$q ?? @cast(bdev, "block_device")->bd_disk->queue
ioblock_trace.request "ioblock_trace.request" t:block_bio_queue
	{bio}; {part}; bytes_done=size; q=$q ?? @cast(bdev, "block_device")->bd_disk->queue
ioblock_trace.end "ioblock_trace.end" t:block_bio_complete
	{bio}; {part}; bytes_done=size; q=$q ?? @cast(bdev, "block_device")->bd_disk->queue

vm.pagefault "pagefault" f:handle_mm_fault | f:__handle_mm_fault
	address=$address; write_access=$flags & 1
vm.pagefault.return "pagefault" r:handle_mm_fault | r:__handle_mm_fault
	fault_type=$return
vm.write_shared "write_shared" f:do_wp_page
	address=$vmf->address ?? $address
vm.mmap "mmap" f:vm_mmap | f:do_mmap
	address=$addr; length=$len
vm.munmap "munmap" f:do_munmap
	address=$start; length=$len
vm.brk "brk" f:do_brk_flags
	address=$addr; length=$len ?? $request
vm.oom_kill "oom_kill" f:oom_kill_process
	task=$oc->chosen
vm.kmalloc "kmalloc" t:kmalloc
	{allocated}
vm.kmalloc_node "kmalloc_node" t:kmalloc_node
	{allocated}
vm.kmem_cache_alloc "kmem_cache_alloc" t:kmem_cache_alloc
	{cached}
vm.kmem_cache_alloc_node "kmem_cache_alloc_node" t:kmem_cache_alloc_node | r:kmem_cache_alloc_node
	call_site=$call_site ?? 0; caller_function=symname($call_site) ?? "unknown"; bytes_req=$bytes_req ?? $s->size; bytes_alloc=$bytes_alloc ?? $s->size
	gfp_flags=$gfp_flags ?? $gfpflags; gfp_flag_name=sprintf("%#x", gfp_flags); ptr=$ptr ?? $return
vm.kfree "kfree" t:kfree
	{caller}; ptr=$ptr
vm.kmem_cache_free "kmem_cache_free" t:kmem_cache_free
	{caller}; ptr=$ptr

irq_handler.entry t:irq_handler_entry
	{action}
irq_handler.exit t:irq_handler_exit
	{action}; ret=$ret
softirq.entry t:softirq_entry
	h=0; vec=0; action=0; vec_nr=$vec_nr
softirq.exit t:softirq_exit
	h=0; vec=0; action=0; vec_nr=$vec_nr

netdev.receive t:netif_receive_skb | f:netif_receive_skb_internal | f:netif_receive_skb
	{skb $skb}
netdev.transmit f:__dev_queue_xmit | f:dev_queue_xmit
	{skb $skb}
netdev.hard_transmit f:dev_hard_start_xmit
	{skb @choose_defined($first, $skb)}
netdev.rx f:netif_rx
	netdev=$skb->dev; dev_name=get_netdev_name($skb->dev); protocol=$skb->protocol
netdev.change_mtu f:dev_set_mtu
	dev_name=get_netdev_name($dev); old_mtu=$dev->mtu; new_mtu=$new_mtu
netdev.open f:dev_open
	dev_name=get_netdev_name($dev)
netdev.close f:dev_close
	dev_name=get_netdev_name($dev)
netdev.set_promiscuity f:dev_set_promiscuity
	dev_name=get_netdev_name($dev); inc=$inc; enable=$inc != 0; disable=$inc == 0
netdev.change_rx_flag f:dev_change_rx_flags
	dev_name=get_netdev_name($dev); flags=$flags
netdev.ioctl f:dev_ioctl
	cmd=$cmd; arg=user_string_quoted($ifr) ?? user_string_quoted($arg)
netdev.register f:register_netdevice + f:register_netdev
	dev_name=get_netdev_name($dev)
netdev.unregister f:unregister_netdev
	dev_name=get_netdev_name($dev)
netdev.get_stats f:dev_get_stats
	dev_name=get_netdev_name($dev)

tcp.sendmsg "tcp.sendmsg" f:tcp_sendmsg
	sock=$sk; family=$sk->__sk_common->skc_family; size=$size
tcp.sendmsg.return "tcp.sendmsg" r:tcp_sendmsg
	size=$return
tcp.recvmsg "tcp.recvmsg" f:tcp_recvmsg
	sock=$sk; size=$len; {ends $sk}
tcp.recvmsg.return "tcp.recvmsg" r:tcp_recvmsg
	size=$return; {ends $sk}
tcp.disconnect "tcp.disconnect" f:tcp_disconnect
	sock=$sk; flags=$flags; {ends $sk}
tcp.disconnect.return "tcp.disconnect" r:tcp_disconnect
	ret=$return
udp.sendmsg "udp.sendmsg" f:udp_sendmsg
	sock=$sk; size=$len; {ends $sk}
udp.sendmsg.return "udp.sendmsg" r:udp_sendmsg
	size=$return; {ends $sk}
udp.recvmsg "udp.recvmsg" f:udp_recvmsg
	sock=$sk; size=$len; {ends $sk}
udp.recvmsg.return "udp.recvmsg" r:udp_recvmsg
	size=$return; {ends $sk}
udp.disconnect "udp.disconnect" f:udp_disconnect
	sock=$sk; flags=$flags; {ends $sk}
udp.disconnect.return "udp.disconnect" r:udp_disconnect
	ret=$return; {ends $sk}

syscall_any t:sys_enter
	syscall_nr=$id; name=syscall_name($id)
syscall_any.return t:sys_exit
	syscall_nr=$regs->orig_ax; name=syscall_name(syscall_nr); retval=$ret
`

// aliasGroups are variables that several aliases give; X after a space or a bracket stands for the argument.
var aliasGroups = map[string]string{
	"wakened":   `task=$p; task_pid=$p->tgid; task_tid=$p->pid; task_priority=$p->prio; task_cpu=task_cpu($p); task_state=task_state($p)`,
	"signalled": `sig_name=__signal_name(sig); sig_pid=task_pid(X); pid_name=task_execname(X)`,
	"opened":    `path=$path; cred=$file->f_cred ?? $cred; pathname=fullpath_struct_path($path)`,
	"failed":    `retstr=sprintf("%d", $return); error=$return < 0 ? $return : 0; error_str=$return < 0 ? errno_str($return) : ""`,
	"moved":     `size=$return > 0 ? $return : 0; units=$return > 0 ? "bytes" : ""`,
	"named":     `file=X; pathname=fullpath_struct_file(task_current(), X)`,
	"iterator": `pos=X->iov_offset; buf=X->iov->iov_base ?? X->__iov->iov_base ?? 0; count=X->count; size=count; units="bytes"; ` +
		`argstr=sprintf("%d, %d, %p", count, pos, buf)`,
	"result": `ret=$return; retstr=sprintf("%d", $return); error=$return < 0 ? $return : 0; error_str=$return < 0 ? errno_str($return) : ""`,
	"vector": `pos=$pos; vec=$vec; vlen=$vlen`,
	"file": `file=X; pathname=fullpath_struct_file(task_current(), X); dev=X->f_inode->i_sb->s_dev; ` +
		`devname=bdevname(X->f_inode->i_sb->s_bdev); ino=X->f_inode->i_ino`,
	"bio": `devname=bdevname(__bio_bdev($bio)); ino=__bio_ino($bio); sector=$bio->bi_iter->bi_sector; flags=$bio->bi_flags; ` +
		`rw=$bio->bi_opf & 0xff; opf=$bio->bi_opf; vcnt=$bio->bi_vcnt; idx=$bio->bi_iter->bi_idx; phys_segments=$bio->bi_phys_segments ?? 0; ` +
		`size=$bio->bi_iter->bi_size`,
	"part":      `bdev=__bio_bdev($bio); bdev_contains=$bio->bi_bdev->bd_contains ?? 0; p_start_sect=__bio_start($bio)`,
	"cached":    `{caller}; bytes_req=$bytes_req ?? $s->object_size; bytes_alloc=$bytes_alloc ?? $s->size; gfp_flags=$gfp_flags; gfp_flag_name=sprintf("%#x", $gfp_flags); ptr=$ptr`,
	"allocated": `{caller}; bytes_req=$bytes_req; bytes_alloc=$bytes_alloc; gfp_flags=$gfp_flags; gfp_flag_name=sprintf("%#x", $gfp_flags); ptr=$ptr`,
	"caller":    `call_site=$call_site; caller_function=symname($call_site)`,
	"action": `irq=$irq; action=$action; handler=$action->handler; flags=$action->flags; flags_str=irqflags_str($action->flags); dev_name=$action->name; dev_id=$action->dev_id; ` +
		`next_irqaction=$action->next; dir=$action->dir; thread_fn=$action->thread_fn; thread=$action->thread; thread_flags=$action->thread_flags`,
	"skb": `dev_name=get_netdev_name(@cast(X, "sk_buff")->dev); length=@cast(X, "sk_buff")->len; protocol=@cast(X, "sk_buff")->protocol; truesize=@cast(X, "sk_buff")->truesize`,
	"ends": `family=X->__sk_common->skc_family; saddr=__sock_end(X, 0); daddr=__sock_end(X, 1); ` +
		`sport=ntohs(@cast(X, "inet_sock")->inet_sport); dport=ntohs(X->__sk_common->skc_dport)`,
}
