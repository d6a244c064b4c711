#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pando::manager::systemd {

/// Facts about a listening socket that the socket itself does not show. They are the name under
/// which the service manager keeps it (FDNAME in sd_notify(3)).
struct KeptSocket {
  std::uint32_t slot = 0;      ///< of the worker that serves it
  std::uint32_t position = 0;  ///< in its SO_REUSEPORT group
  std::uint64_t cookie = 0;    ///< SO_COOKIE: no two sockets have the same name
  bool operator==(const KeptSocket&) const = default;
};

/// "worker-SLOT-POSITION-COOKIE".
[[nodiscard]] std::string to_text(const KeptSocket& socket);
/// None for a name that to_text() does not give: the socket is of a socket unit.
[[nodiscard]] std::optional<KeptSocket> kept_socket_of(std::string_view name);

}  // namespace pando::manager::systemd
