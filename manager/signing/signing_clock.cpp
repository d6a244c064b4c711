#include "manager/signing/signing_clock.h"

#include <fmt/format.h>
#include <sys/timex.h>

#include <ctime>
#include <utility>

#include "ipc/log.h"

namespace pando::manager {

namespace {

constexpr const char* kRemedy = "'pandoctl dnssec clock-ok' says that it is right";

std::uint64_t boot_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec);
}

/// Reading needs no right. A host where it is not allowed counts as one without a time service.
bool kernel_is_synchronised() {
  timex state{};
  const int found = ::adjtimex(&state);
  return found >= 0 && found != TIME_ERROR;
}

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

}  // namespace

SigningClock::Sources SigningClock::sources_of_host(std::function<std::uint64_t()> host_time) {
  return {std::move(host_time), boot_seconds, kernel_is_synchronised};
}

SigningClock::SigningClock(Sources sources) : sources_(std::move(sources)) {
  follow();
  started_ = host_at_;
  is_believed_ = sources_.is_synchronised();
}

std::uint64_t SigningClock::own_time() const {
  return host_at_ + (sources_.steady_time() - steady_at_);
}

std::uint64_t SigningClock::now() const { return own_time(); }

void SigningClock::follow() {
  host_at_ = sources_.host_time();
  steady_at_ = sources_.steady_time();
}

bool SigningClock::check() {
  const std::uint64_t host = sources_.host_time(), own = own_time();
  const bool is_synchronised = sources_.is_synchronised();
  is_believed_ = is_believed_ || is_synchronised;
  const bool is_jump = distance(host, own) > kMaxStep;
  if (is_synchronised || !is_jump) {
    if (std::exchange(is_left_, false)) log::info("signing_clock_follows", "time", host);
    follow();
    return is_jump;
  }
  if (!std::exchange(is_left_, true))
    log::error("signing_clock_jumped", "time", own, "host", host, "effect",
               "signatures are made without the host's clock", "remedy", kRemedy);
  return false;
}

bool SigningClock::confirm() {
  const bool is_jump = distance(sources_.host_time(), own_time()) > kMaxStep;
  follow();
  is_believed_ = true;
  is_left_ = false;
  return is_jump;
}

std::string SigningClock::doubt(std::uint64_t last_signed, std::uint64_t last_end) const {
  if (is_believed_ || last_signed == 0) return {};
  const std::uint64_t time = now();
  if (time + kMaxStep < last_signed)
    return fmt::format("the host's clock lies {} s before the zone's newest signature; {}",
                       last_signed - time, kRemedy);
  if (started_ > last_end)
    return fmt::format(
        "no signature of the zone was valid by the host's clock at the start, and no time service "
        "keeps that clock right; {}",
        kRemedy);
  return {};
}

std::string SigningClock::problem() const {
  if (!is_left_) return {};
  return fmt::format("the host's clock jumped by {} s and is not followed; {}",
                     distance(sources_.host_time(), own_time()), kRemedy);
}

}  // namespace pando::manager
