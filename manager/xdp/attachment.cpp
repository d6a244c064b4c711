#include "manager/xdp/attachment.h"

#include <fcntl.h>
#include <linux/if_link.h>

#include <utility>

#include "manager/xdp/attached_mode.h"
#include "manager/xdp/bpf_calls.h"

namespace pando::manager {

namespace {

constexpr std::uint32_t kMaxQueues = 64;  // as many as server.xdp[].queues may name
constexpr std::uint32_t kMaxAddresses = 4096;
constexpr std::uint8_t kPresent = 1;

using Mode = config::XdpInterface::Mode;

struct Attached {
  Fd link;
  std::string mode;
};

Result<Attached> attach_anew(const Fd& program, int interface, Mode mode) {
  if (mode != Mode::kGeneric) {
    auto native = bpf::attach_xdp(program, interface, XDP_FLAGS_DRV_MODE);
    if (native) return Attached{std::move(*native), "native"};
    if (mode == Mode::kNative || native.error().code == Errc::kExists) return pass(native);
  }
  auto generic = bpf::attach_xdp(program, interface, XDP_FLAGS_SKB_MODE);
  if (!generic) return pass(generic);
  return Attached{std::move(*generic), "generic"};
}

bool is_mode(std::string_view attached, Mode wanted) {
  return wanted == Mode::kAuto || attached == (wanted == Mode::kNative ? "native" : "generic");
}

}  // namespace

Result<XdpAttachment> XdpAttachment::open(const config::XdpInterface& what,
                                          const InterfaceFacts& facts,
                                          const std::vector<Endpoint>& listen,
                                          const std::vector<Socket>& sockets, Fd& link) {
  XdpAttachment made;
  made.interface_ = facts.index;
  made.mac_ = facts.mac;
  auto map = bpf::create_map(BPF_MAP_TYPE_XSKMAP, 4, 4, kMaxQueues, "pando_queues");
  if (!map) return pass(map);
  made.sockets_ = std::move(*map);
  map = bpf::create_map(BPF_MAP_TYPE_HASH, sizeof(XdpAddressKey), 1, kMaxAddresses,
                        "pando_addresses");
  if (!map) return pass(map);
  made.addresses_ = std::move(*map);
  if (auto set = made.set_addresses(redirected_addresses(listen, facts)); !set) return pass(set);
  for (const Socket& socket : sockets) {
    const auto value = static_cast<std::uint32_t>(socket.descriptor);
    if (auto put = bpf::put(made.sockets_, &socket.queue, &value); !put) return pass(put);
  }
  const auto program =
      redirect_program({made.sockets_.get(), made.addresses_.get(), facts.mac});
  auto loaded = bpf::load_xdp(program, "pando");
  if (!loaded) return pass(loaded);
  made.program_ = std::move(*loaded);
  if (auto attached = made.attach(what.mode, link); !attached) return pass(attached);
  return made;
}

Status XdpAttachment::attach(Mode mode, Fd& link) {
  const auto linked = link ? bpf::interface_of(link) : Result<int>(0);
  if (linked && *linked == interface_) {
    mode_ = attached_xdp_mode(interface_);
    if (is_mode(mode_, mode) && bpf::replace(link, program_)) {
      link_ = std::move(link);
      return {};
    }
    static_cast<void>(bpf::detach(link));
  }
  auto attached = attach_anew(program_, interface_, mode);
  if (!attached) return pass(attached);
  link_ = std::move(attached->link);
  mode_ = std::move(attached->mode);
  return {};
}

Status XdpAttachment::put_socket(std::uint32_t queue, const Fd& socket) {
  const auto value = static_cast<std::uint32_t>(socket.get());
  return bpf::put(sockets_, &queue, &value);
}

void XdpAttachment::drop_socket(std::uint32_t queue) {
  static_cast<void>(bpf::remove(sockets_, &queue));
}

Status XdpAttachment::set_addresses(const std::vector<XdpAddressKey>& wanted) {
  const std::set<XdpAddressKey> keys(wanted.begin(), wanted.end());
  if (keys.size() > kMaxAddresses)
    return fail(Errc::kFull, "the interface has more than {} addresses", kMaxAddresses);
  for (auto key = keys_.begin(); key != keys_.end();) {
    if (!keys.contains(*key)) {
      if (auto removed = bpf::remove(addresses_, &*key); !removed) return removed;
      key = keys_.erase(key);
    } else {
      ++key;
    }
  }
  for (const XdpAddressKey& key : keys) {
    if (keys_.contains(key)) continue;
    if (auto put = bpf::put(addresses_, &key, &kPresent); !put) return put;
    keys_.insert(key);
  }
  return {};
}

Fd XdpAttachment::share_link() const { return Fd(::fcntl(link_.get(), F_DUPFD_CLOEXEC, 0)); }

void XdpAttachment::detach() { static_cast<void>(bpf::detach(link_)); }

}  // namespace pando::manager
