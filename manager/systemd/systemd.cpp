#include "manager/systemd/systemd.h"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include <cstdint>

namespace pando::manager::systemd {

namespace {

std::uint64_t monotonic_microseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
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

}  // namespace pando::manager::systemd
