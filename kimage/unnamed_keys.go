package kimage

import (
	"maps"
	"sort"

	"kprobelab/x86"
)

// keyUsers tells a static key that no symbol names by the functions that use it: it is the one key that all of
// these have in common, of the ones in the image.
type keyUsers struct {
	// asks are functions with a static branch of the key, names functions whose code has its address, others
	// functions that use the keys beside it.
	asks, names, others []string
	// off is its offset in the key's symbol.
	off int64
}

// namelessKeys are the users of the keys that boot turns, by the key's name, each key of the name by its own.
var namelessKeys = map[string][]keyUsers{
	"__use_tsc":                   {{asks: []string{"native_sched_clock", "tsc_save_sched_clock_state"}, names: []string{"tsc_enable_sched_clock"}}},
	"__sched_clock_stable":        {{asks: []string{"sched_clock_stable", "sched_clock_idle_wakeup_event", "sched_clock_tick_stable"}}},
	"sched_clock_running":         {{names: []string{"sched_clock_init"}}},
	"cr_pinning":                  {{asks: []string{"native_write_cr0", "native_write_cr4", "cr4_init"}}},
	"deferred_pages":              {{names: []string{"page_alloc_init_late"}}},
	"apic_use_ipi_shorthand":      {{asks: []string{"native_send_call_func_ipi"}, names: []string{"apic_smt_update"}}},
	"timers_migration_enabled":    {{names: []string{"timer_migration_handler"}}},
	"timers_nohz_active":          {{asks: []string{"enqueue_timer"}, names: []string{"timer_update_keys"}}},
	"crct10dif_fallback":          {{names: []string{"crc_t10dif_rehash"}}},
	"crc64_rocksoft_fallback":     {{names: []string{"crc64_rocksoft_rehash"}}},
	"crypto_boot_test_finished":   {{asks: []string{"crypto_larval_wait"}, names: []string{"crypto_algapi_init"}}},
	"__crypto_boot_test_finished": {{asks: []string{"crypto_larval_wait"}, names: []string{"crypto_algapi_init"}}},
	"crng_is_ready":               {{asks: []string{"get_random_u32", "random_poll"}, names: []string{"crng_set_ready"}}},
	"not_filled_random_ptr_key":   {{names: []string{"initialize_ptr_random"}}},
	"virt_spin_lock_key":          {{names: []string{"native_pv_lock_init"}}},
	"mds_user_clear":              {{asks: []string{"exc_nmi", "irqentry_exit_to_user_mode"}}, {asks: []string{"do_nmi", "prepare_exit_to_usermode"}}},
	"mds_idle_clear":              {{asks: []string{"mwait_idle", "native_halt", "stop_this_cpu"}}},
	"cpu_buf_idle_clear":          {{asks: []string{"mwait_idle", "native_halt", "stop_this_cpu"}}},
	"frontswap_enabled_key":       {{names: []string{"frontswap_register_ops"}}},
	"sk_dynamic_preempt_lazy":     {{asks: []string{"resched_curr_lazy"}, names: []string{"sched_dynamic_update"}}},
	"tmigr_exclude_isolated":      {{names: []string{"tmigr_init_isolation"}}},
	"hrtimer_highres_enabled_key": {{asks: []string{"clock_was_set"}, names: []string{"hrtimer_hres_workfn"}}},
	"clocksource_read_inlined":    {{asks: []string{"ktime_get_raw"}, names: []string{"timekeeping_notify"}}},
	"ipi_mask_inlined":            {{names: []string{"setup_nr_cpu_ids"}}},
	"check_pages_enabled":         {{asks: []string{"free_tail_page_prepare"}, names: []string{"mm_core_init"}}},
	"init_on_alloc":               {{asks: []string{"dma_pool_alloc", "sk_prot_alloc"}}},
	"nf_hooks_needed":             {{asks: []string{"ip_output", "ip_mc_output"}, off: netfilterKey(2)}},
	"have_pclmulqdq": {
		{asks: []string{"crc32_le"}}, {asks: []string{"crc32_le_arch"}}, {asks: []string{"crc64_be"}}, {asks: []string{"crc64_be_arch"}},
		{asks: []string{"crc_t10dif_update"}, others: []string{"crc_t10dif_rehash"}}, {asks: []string{"crc_t10dif_arch"}},
	},
	"have_crc32": {
		{asks: []string{"crc32c"}, names: []string{"crc32_optimizations"}, others: []string{"crc32_le"}},
		{asks: []string{"crc32c_arch"}, names: []string{"crc32_optimizations"}, others: []string{"crc32_le_arch"}},
	},
	"have_vpclmul_avx512": {
		{asks: []string{"crc32c"}, others: []string{"crc32_optimizations"}},
		{asks: []string{"crc32c_arch"}, others: []string{"crc32_optimizations"}},
	},
	"have_sha256_x86": {{asks: []string{"sha256_blocks_simd"}, names: []string{"sha256_x86_mod_init"}}},
	"have_sha_ni":     {{asks: []string{"sha256_finup_2x"}, names: []string{"sha256_mod_init"}}},
	"have_aes":        {{names: []string{"aes_mod_init"}}},
	"have_pclmul":     {{asks: []string{"ghash_update"}}},
	"have_pclmul_avx": {{asks: []string{"polyval_preparekey", "polyval_update"}}},
}

// staticKeys returns the addresses of the kernel's keys of a name, or of a structure that begins
// with a key: several files may have a key of the name.
func (img *Image) staticKeys(name string) (keys []x86.Addr) {
	for _, s := range img.Lookup(name) {
		if s.Module == "" {
			keys = append(keys, s.Addr)
		}
	}
	if keys != nil || !img.bounds.onlyText {
		return keys
	}
	for _, users := range namelessKeys[name] {
		if key, ok := img.keyOf(users); ok {
			keys = append(keys, key.Add(-users.off))
		}
	}
	return keys
}

// keyOf returns the key that these functions use; false if one of them is missing.
func (img *Image) keyOf(users keyUsers) (x86.Addr, bool) {
	var common map[x86.Addr]bool
	meet := func(functions []string, used func(Symbol) map[x86.Addr]bool) bool {
		for _, name := range functions {
			list := img.Lookup(name)
			if len(list) != 1 || list[0].Module != "" {
				return false
			}
			keys := used(list[0])
			if common == nil {
				common = keys
			}
			maps.DeleteFunc(common, func(a x86.Addr, _ bool) bool { return !keys[a] })
		}
		return true
	}
	if !meet(users.asks, img.keysAsked) || !meet(users.names, img.keysNamed) {
		return 0, false
	}
	for _, name := range users.others {
		for _, s := range img.Lookup(name) {
			for _, keys := range []map[x86.Addr]bool{img.keysAsked(s), img.keysNamed(s)} {
				maps.DeleteFunc(common, func(a x86.Addr, _ bool) bool { return keys[a] })
			}
		}
	}
	for key := range common {
		return key, len(common) == 1
	}
	return 0, false
}

// keysAsked are the keys of a function's static branches.
func (img *Image) keysAsked(s Symbol) map[x86.Addr]bool {
	list, keys := img.tables.jumpLabels, map[x86.Addr]bool{}
	i := sort.Search(len(list), func(i int) bool { return list[i].Addr >= s.Addr })
	for ; i < len(list) && list[i].Addr < s.Addr.Add(int64(s.Size)); i++ {
		keys[list[i].Key] = true
	}
	return keys
}

// isKey reports whether a static branch tests the key at this address.
func (img *Image) isKey(at x86.Addr) bool {
	if img.tables.allKeys == nil {
		img.tables.allKeys = make(map[x86.Addr]bool)
		for _, j := range img.tables.jumpLabels {
			img.tables.allKeys[j.Key] = true
		}
	}
	return img.tables.allKeys[at]
}

// keysNamed are the keys whose addresses stand in a function's code.
func (img *Image) keysNamed(s Symbol) map[x86.Addr]bool {
	keys := map[x86.Addr]bool{}
	for _, a := range (&unnamed{img: img}).operands(s) {
		if img.isKey(a) {
			keys[a] = true
		}
	}
	return keys
}
