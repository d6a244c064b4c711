#include "manager/systemd/readiness.h"

#include <fmt/format.h>

#include "ipc/log.h"
#include "manager/systemd/systemd.h"

namespace pando::manager::systemd {

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
