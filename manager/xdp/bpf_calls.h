#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"

/// The bpf() system call (bpf(2)), as far as server.xdp needs it. A library would be needed for
/// nothing else.
namespace pando::manager::bpf {

/// `name` is shown by bpftool; at most 15 bytes.
Result<Fd> create_map(bpf_map_type type, std::uint32_t key_bytes, std::uint32_t value_bytes,
                      std::uint32_t entries, const std::string& name);
/// Key and value have the map's lengths.
Status put(const Fd& map, const void* key, const void* value);
/// An absent key is no error.
Status remove(const Fd& map, const void* key);

/// An XDP program. The error has the last line of what the kernel's verifier said.
Result<Fd> load_xdp(std::span<const bpf_insn> program, const std::string& name);

/// Attaches the program until the last descriptor of the link is closed. `flags`:
/// XDP_FLAGS_DRV_MODE or XDP_FLAGS_SKB_MODE. kExists: a program is there already.
Result<Fd> attach_xdp(const Fd& program, int interface, std::uint32_t flags);
/// Puts another program in place of the link's, without a gap.
Status replace(const Fd& link, const Fd& program);
/// Ends the attachment, whoever has descriptors of the link.
Status detach(const Fd& link);
/// The index of the interface of an XDP link; an error if `link` is none. 0: it was detached.
Result<int> interface_of(const Fd& link);

}  // namespace pando::manager::bpf
