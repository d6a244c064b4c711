#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pando::manager::systemd {

/// Tells the service manager; does nothing when there is none (NOTIFY_SOCKET is not set).
void ready(std::string_view status);
void status(std::string_view text);  ///< STATUS= alone
void reloading();
void stopping();
void alive();  ///< WATCHDOG=1
/// How often alive() must be called at least; nullopt: nobody watches.
std::optional<std::chrono::microseconds> watchdog_interval();

/// Tells the service manager whether this process starts, serves, reloads or ends.
///
/// READY=1 comes first when there is a reason to be ready and an address is open. From then on it
/// ends each reload. Lives on the commit thread.
class Readiness {
 public:
  /// Addresses of the configuration, none of which could be opened.
  struct Closed {
    std::size_t addresses = 0;
    std::string error;  ///< of the first one
  };
  struct Hooks {
    std::function<std::optional<Closed>()> closed;         ///< nullopt: one is open
    std::function<std::string()> status;                   ///< one line for the operator
    std::function<void(const std::string& reason)> ready;  ///< the process became ready
  };

  explicit Readiness(Hooks hooks) : hooks_(std::move(hooks)) {}

  /// Zones are served, or cannot be; the first reason counts. Later ones renew the status line.
  void announce(std::string_view reason);
  /// Addresses may have opened meanwhile; to be called regularly.
  void check();
  /// A reload before the process is ready is not reported, because systemd would take its end for
  /// the start's.
  void reload_begins();
  void reload_ends();
  /// Tells that the process ends, and nothing after that.
  void stops();

 private:
  void tell_closed(const Closed& closed);

  Hooks hooks_;
  std::string reason_;
  bool told_ = false;         // READY=1 was sent once
  bool closed_told_ = false;  // the log has that no address is open
  bool reloading_ = false;
  bool stopping_ = false;
};

}  // namespace pando::manager::systemd
