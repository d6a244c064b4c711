#include "manager/systemd/readiness.h"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <cstdint>

#include "ipc/log.h"

namespace pando::manager::systemd {

namespace {

/// Of CLOCK_MONOTONIC.
auto monotonic_microseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::floor<std::chrono::microseconds>(now).count();
}

void tell(const std::string& state) { ::sd_notify(0, state.c_str()); }

}  // namespace

void ready(std::string_view status) { tell(fmt::format("READY=1\nSTATUS={}", status)); }
void status(std::string_view text) { tell(fmt::format("STATUS={}", text)); }
void reloading() { tell(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", monotonic_microseconds())); }
void stopping() { tell("STOPPING=1"); }
void alive() { tell("WATCHDOG=1"); }

std::optional<std::chrono::microseconds> watchdog_interval() {
  std::uint64_t microseconds = 0;
  if (::sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds);
}

void Readiness::announce(std::string_view reason) {
  if (reason_.empty()) reason_ = reason;
  if (told_ && !reloading_ && !stopping_) return status(hooks_.status());
  check();
}

/// Nobody can be answered before an address is open, whatever the reason.
void Readiness::check() {
  if (told_ || reloading_ || stopping_ || reason_.empty()) return;
  if (const auto closed = hooks_.closed()) return tell_closed(*closed);
  told_ = true;
  hooks_.ready(reason_);
  ready(hooks_.status());
}

void Readiness::tell_closed(const Closed& closed) {
  if (!std::exchange(closed_told_, true))
    log::error("no_address_open", "addresses", closed.addresses, "error", closed.error);
  status(fmt::format("no address is open: {}", closed.error));
}

void Readiness::reload_begins() {
  reloading_ = true;
  if (told_) reloading();
}

void Readiness::reload_ends() {
  reloading_ = false;
  if (stopping_) return;
  if (told_)
    ready(hooks_.status());
  else
    check();
}

void Readiness::stops() {
  stopping_ = true;
  stopping();
}

}  // namespace pando::manager::systemd
