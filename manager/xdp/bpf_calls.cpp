#include "manager/xdp/bpf_calls.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace pando::manager::bpf {

namespace {

long call(bpf_cmd command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

/// All octets are 0, as the kernel wants them: `{}` would do so with the first member alone.
bpf_attr no_attributes() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

template <std::size_t N>
void copy_name(char (&to)[N], const std::string& name) {
  std::memcpy(to, name.data(), std::min(name.size(), N - 1));
}

tl::unexpected<Error> fail_call(std::string_view name) {
  if (errno != EPERM) return fail_errno(name);
  return fail(Errc::kDenied,
              "{}: the manager lacks CAP_NET_ADMIN, CAP_NET_RAW or CAP_BPF; it keeps what it was "
              "started with only if server.xdp was configured then",
              name);
}

/// The last line of the verifier's log before its statistics: the reason of a refusal.
std::string_view last_words(std::string_view log) {
  std::string_view found = "no reason given";
  while (!log.empty()) {
    const auto end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    if (!line.empty() && !line.starts_with("processed ")) found = line;
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return found;
}

}  // namespace

Result<Fd> create_map(bpf_map_type type, std::uint32_t key_bytes, std::uint32_t value_bytes,
                      std::uint32_t entries, const std::string& name) {
  bpf_attr attributes = no_attributes();
  attributes.map_type = type;
  attributes.key_size = key_bytes;
  attributes.value_size = value_bytes;
  attributes.max_entries = entries;
  copy_name(attributes.map_name, name);
  Fd map(static_cast<int>(call(BPF_MAP_CREATE, attributes)));
  if (!map) return fail_call("bpf(BPF_MAP_CREATE)");
  return map;
}

Status put(const Fd& map, const void* key, const void* value) {
  bpf_attr attributes = no_attributes();
  attributes.map_fd = static_cast<std::uint32_t>(map.get());
  attributes.key = address_of(key);
  attributes.value = address_of(value);
  if (call(BPF_MAP_UPDATE_ELEM, attributes) != 0) return fail_errno("bpf(BPF_MAP_UPDATE_ELEM)");
  return {};
}

Status remove(const Fd& map, const void* key) {
  bpf_attr attributes = no_attributes();
  attributes.map_fd = static_cast<std::uint32_t>(map.get());
  attributes.key = address_of(key);
  if (call(BPF_MAP_DELETE_ELEM, attributes) != 0 && errno != ENOENT)
    return fail_errno("bpf(BPF_MAP_DELETE_ELEM)");
  return {};
}

Result<Fd> load_xdp(std::span<const bpf_insn> program, const std::string& name) {
  std::array<char, 16384> log{};
  bpf_attr attributes = no_attributes();
  attributes.prog_type = BPF_PROG_TYPE_XDP;
  attributes.expected_attach_type = BPF_XDP;
  attributes.insns = address_of(program.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(program.size());
  attributes.license = address_of("Apache-2.0");
  copy_name(attributes.prog_name, name);
  Fd loaded(static_cast<int>(call(BPF_PROG_LOAD, attributes)));
  if (loaded) return loaded;
  if (errno == EPERM) return fail_call("bpf(BPF_PROG_LOAD)");
  attributes.log_level = 1;
  attributes.log_buf = address_of(log.data());
  attributes.log_size = static_cast<std::uint32_t>(log.size());
  loaded = Fd(static_cast<int>(call(BPF_PROG_LOAD, attributes)));
  if (loaded) return loaded;
  auto failed = fail_errno("bpf(BPF_PROG_LOAD)");
  failed.value().text += fmt::format(": {}", last_words(log.data()));
  return failed;
}

Result<Fd> attach_xdp(const Fd& program, int interface, std::uint32_t flags) {
  bpf_attr attributes = no_attributes();
  attributes.link_create.prog_fd = static_cast<std::uint32_t>(program.get());
  attributes.link_create.target_ifindex = static_cast<std::uint32_t>(interface);
  attributes.link_create.attach_type = BPF_XDP;
  attributes.link_create.flags = flags;
  Fd link(static_cast<int>(call(BPF_LINK_CREATE, attributes)));
  if (link) return link;
  if (errno == EBUSY || errno == EEXIST)
    return fail(Errc::kExists, "another XDP program is attached to the interface");
  return fail_call("bpf(BPF_LINK_CREATE)");
}

Status replace(const Fd& link, const Fd& program) {
  bpf_attr attributes = no_attributes();
  attributes.link_update.link_fd = static_cast<std::uint32_t>(link.get());
  attributes.link_update.new_prog_fd = static_cast<std::uint32_t>(program.get());
  if (call(BPF_LINK_UPDATE, attributes) != 0) return fail_errno("bpf(BPF_LINK_UPDATE)");
  return {};
}

Status detach(const Fd& link) {
  bpf_attr attributes = no_attributes();
  attributes.link_detach.link_fd = static_cast<std::uint32_t>(link.get());
  if (call(BPF_LINK_DETACH, attributes) != 0) return fail_errno("bpf(BPF_LINK_DETACH)");
  return {};
}

Result<int> interface_of(const Fd& link) {
  bpf_link_info info{};
  bpf_attr attributes = no_attributes();
  attributes.info.bpf_fd = static_cast<std::uint32_t>(link.get());
  attributes.info.info_len = sizeof info;
  attributes.info.info = address_of(&info);
  if (call(BPF_OBJ_GET_INFO_BY_FD, attributes) != 0)
    return fail_errno("bpf(BPF_OBJ_GET_INFO_BY_FD)");
  // Other objects have other structs, so the kind is checked by the kernel's own name of the
  // file.
  std::array<char, 64> name{};
  const std::string path = fmt::format("/proc/self/fd/{}", link.get());
  const auto length = ::readlink(path.c_str(), name.data(), name.size() - 1);
  if (length <= 0 || std::string_view(name.data()) != "anon_inode:bpf_link" ||
      info.type != BPF_LINK_TYPE_XDP)
    return fail(Errc::kInvalid, "the descriptor is of no XDP program's link");
  return static_cast<int>(info.xdp.ifindex);
}

}  // namespace pando::manager::bpf
