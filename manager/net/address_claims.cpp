#include "manager/net/address_claims.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "ipc/packet_socket.h"

namespace pando::manager {

namespace {

std::string claim_name(const Endpoint& address) {
  return fmt::format("pando/serves/{}/{}", ::geteuid(), to_text(address));
}

struct AbstractAddress {
  sockaddr_un value{};
  socklen_t size = 0;
};

/// The longest name, of an IPv6 address and a large user number, has some 80 of 107 octets.
AbstractAddress abstract_address(const std::string& name) {
  AbstractAddress address;
  address.value.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.value.sun_path - 1);
  std::memcpy(address.value.sun_path + 1, name.data(), length);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

Fd claim_socket() {
  return Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool has_ended(int connection) {
  pollfd state{connection, POLLIN, 0};
  return ::poll(&state, 1, 0) != 0;
}

}  // namespace

Status AddressClaims::claim(const Endpoint& address) {
  const std::string name = claim_name(address);
  if (ours_.contains(name)) return {};
  const auto refused = [&](int pid) {
    return fail(Errc::kExists, "{}: another manager of this user serves it (process {})",
                to_text(address), pid);
  };
  // One connection for each rival, however often this is tried again: nobody accepts them.
  if (const auto other = others_.find(name); other != others_.end()) {
    if (!has_ended(other->second.connection.get())) return refused(other->second.pid);
    others_.erase(other);
  }
  const AbstractAddress place = abstract_address(name);
  const auto* at = reinterpret_cast<const sockaddr*>(&place.value);
  Fd own = claim_socket();
  if (own && ::bind(own.get(), at, place.size) == 0 && ::listen(own.get(), SOMAXCONN) == 0) {
    ours_.emplace(name, std::move(own));
    return {};
  }
  Fd connection = claim_socket();
  if (!connection || ::connect(connection.get(), at, place.size) != 0) return {};
  const auto rival = ipc::peer_credentials(connection.get());
  if (!rival || rival->uid != ::geteuid() || rival->pid == ::getpid()) return {};
  others_[name] = {std::move(connection), rival->pid};
  return refused(rival->pid);
}

void AddressClaims::release(const Endpoint& address) {
  ours_.erase(claim_name(address));
  others_.erase(claim_name(address));
}

void AddressClaims::release_all() {
  ours_.clear();
  others_.clear();
}

}  // namespace pando::manager
