#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace pando::manager::systemd {

/// Tells the service manager; does nothing when there is none (NOTIFY_SOCKET is not set).
void ready(std::string_view status);
void status(std::string_view text);  ///< STATUS= alone
void reloading();
void stopping();
void alive();  ///< WATCHDOG=1
/// How often alive() must be called at least; nullopt: nobody watches.
std::optional<std::chrono::microseconds> watchdog_interval();

}  // namespace pando::manager::systemd
