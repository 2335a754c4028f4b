package stap

// toolLibrary is the part of the library about sockets, stopwatches, queues, output that is held back, and numbers.
const toolLibrary = `
private global __watch_from, __watch_sum, __held, __held_of, __held_last
private global __queue_waiting, __queue_running, __queue_wait_time, __queue_wait_sum, __queue_run_time, __queue_run_sum
private global __queue_done, __queue_seen, __queue_from

function AF_INET:long() { return 2 }
function AF_INET6:long() { return 10 }
function inet_get_dest_port:long(sock:long) { return ntohs(@cast(sock, "sock")->__sk_common->skc_dport) }
function inet_get_ip_dest:string(sock:long) { return __sock_end(sock, 0) }
function tcp_get_info_rto:long(sock:long) {
  return @cast(sock, "inet_connection_sock")->icsk_rto * (1000000 / HZ())
}
function tcp_get_info_snd_cwnd:long(sock:long) { return @cast(sock, "tcp_sock")->snd_cwnd }
function tcp_ts_get_info_state:long(sock:long) { return @cast(sock, "sock")->__sk_common->skc_state }
function tcp_ts_get_info_snd_ssthresh:long(sock:long) { return @cast(sock, "tcp_sock")->snd_ssthresh }
function tcp_ts_get_info_rcv_mss:long(sock:long) { return @cast(sock, "inet_connection_sock")->icsk_ack->rcv_mss }
function tcpmib_get_state:long(sk:long) { return @cast(sk, "sock")->__sk_common->skc_state }
function tcpmib_local_addr:long(sk:long) { return @cast(sk, "sock")->__sk_common->skc_rcv_saddr }
function tcpmib_remote_addr:long(sk:long) { return @cast(sk, "sock")->__sk_common->skc_daddr }
function tcpmib_local_port:long(sk:long) { return @cast(sk, "sock")->__sk_common->skc_num }
function tcpmib_remote_port:long(sk:long) { return ntohs(@cast(sk, "sock")->__sk_common->skc_dport) }
function bdev_partno:long(bdev:long) {
  return @choose_defined(@cast(bdev, "block_device")->bd_partno, kernel_char(&@cast(bdev, "block_device")->__bd_flags) & 0xff)
}
function bio_op:long(bio:long) { return @cast(bio, "bio")->bi_opf & 0xff }

function start_stopwatch(name:string) {
  __watch_sum[name] += 0
  if (!__watch_from[name]) __watch_from[name] = gettimeofday_ns()
}
function read_stopwatch_ns:long(name:string) {
  __watch_sum[name] += 0
  return __watch_sum[name] + (__watch_from[name] ? gettimeofday_ns() - __watch_from[name] : 0)
}
function read_stopwatch_us:long(name:string) { return read_stopwatch_ns(name) / 1000 }
function read_stopwatch_ms:long(name:string) { return read_stopwatch_ns(name) / 1000000 }
function read_stopwatch_s:long(name:string) { return read_stopwatch_ns(name) / 1000000000 }
function stop_stopwatch(name:string) {
  __watch_sum[name] = read_stopwatch_ns(name)
  __watch_from[name] = 0
}
function delete_stopwatch(name:string) {
  delete __watch_from[name]
  delete __watch_sum[name]
}

function qs_time:long() { return gettimeofday_us() }
function __queue_now:long(q:string) {
  now = qs_time()
  passed = __queue_seen[q] ? now - __queue_seen[q] : 0
  if (__queue_waiting[q]) __queue_wait_time[q] += passed
  if (__queue_running[q]) __queue_run_time[q] += passed
  __queue_wait_sum[q] += passed * __queue_waiting[q]
  __queue_run_sum[q] += passed * __queue_running[q]
  __queue_seen[q] = now
  return now - __queue_from[q]
}
function qs_wait(qname:string) { __queue_now(qname) __queue_waiting[qname]++ }
function qs_run(qname:string) {
  __queue_now(qname)
  if (__queue_waiting[qname] > 0) { __queue_waiting[qname]-- __queue_running[qname]++ }
}
function qs_done(qname:string) {
  __queue_now(qname)
  if (__queue_running[qname] > 0) { __queue_running[qname]-- __queue_done[qname]++ }
}
function qsq_start(qname:string) {
  __queue_waiting[qname] = __queue_running[qname] = 0
  delete __queue_wait_time[qname]
  delete __queue_wait_sum[qname]
  delete __queue_run_time[qname]
  delete __queue_run_sum[qname]
  delete __queue_done[qname]
  delete __queue_seen[qname]
  __queue_from[qname] = qs_time()
}
function qsq_utilization:long(qname:string, scale:long) { passed = __queue_now(qname) return scale * __queue_run_time[qname] / passed }
function qsq_blocked:long(qname:string, scale:long) { passed = __queue_now(qname) return scale * __queue_wait_time[qname] / passed }
function qsq_wait_queue_length:long(qname:string, scale:long) { passed = __queue_now(qname) return scale * __queue_wait_sum[qname] / passed }
function qsq_throughput:long(qname:string, scale:long) { passed = __queue_now(qname) return scale * __queue_done[qname] / passed }
function qsq_service_time:long(qname:string, scale:long) { __queue_now(qname) return scale * __queue_run_sum[qname] / __queue_done[qname] }
function qsq_wait_time:long(qname:string, scale:long) {
  __queue_now(qname)
  return scale * (__queue_run_sum[qname] + __queue_wait_sum[qname]) / __queue_done[qname]
}
function qsq_print(qname:string) {
  rate = qsq_throughput(qname, 1000000000)
  length = qsq_wait_queue_length(qname, 1000)
  printf("%s: %d.%03d ops/s, %d.%03d qlen, %d await, %d svctm, %d%% wait, %d%% util\n", qname, rate / 1000, rate % 1000,
    length / 1000, length % 1000, qsq_wait_time(qname, 1), qsq_service_time(qname, 1), qsq_blocked(qname, 100), qsq_utilization(qname, 100))
}

function speculation:long() { return ++__held_last }
function speculate(id:long, output:string) { __held[id, ++__held_of[id]] = output }
function commit(id:long) {
  for (i = 1; i <= __held_of[id]; i++) print(__held[id, i])
  discard(id)
}
function discard(id:long) {
  delete __held[id, *]
  delete __held_of[id]
}

function tz_gmtoff:long() { return 0 }
function tz_name:string() { return "UTC" }
function tz_ctime:string(epochsecs:long) { return ctime(epochsecs - tz_gmtoff()) . " " . tz_name() }
function uarch_bytes:long() { return 8 }
function arch_bytes:long() { return 8 }
function little_endian2:long(val:long) { return val & 0xffff }
function little_endian4:long(val:long) { return val & 0xffffffff }
function little_endian8:long(val:long) { return val }
function cpuid:long() { return cpu() }
function rcu_dereference:long(pointer:long) { return pointer }
function ppos_pos:long(ppos:long) { return kernel_long(ppos) }
`
