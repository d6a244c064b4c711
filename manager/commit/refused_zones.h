#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "dns/name.h"

namespace pando::manager {

/// Counts zones that lacked space, with the name and reason of the first.
class RefusedZones {
 public:
  void add(dns::NameView zone, const std::string& why) {
    if (zones_ == 0) {
      first_ = dns::Name(zone);
      reason_ = why;
    }
    ++zones_;
  }
  void add(const RefusedZones& more) {
    if (zones_ == 0) {
      first_ = more.first_;
      reason_ = more.reason_;
    }
    zones_ += more.zones_;
  }

  [[nodiscard]] std::uint64_t zones() const noexcept { return zones_; }
  [[nodiscard]] const dns::Name& first() const noexcept { return first_; }
  /// Appends "<number> <what> (<name> first): <reason>" to a report; no effect without zones.
  void append_to(std::string& report, std::string_view what) const {
    if (zones_ == 0) return;
    fmt::format_to(std::back_inserter(report), "{}{} {} ({} first): {}", report.empty() ? "" : "; ",
                   zones_, what, to_text(first_), reason_);
  }

 private:
  std::uint64_t zones_ = 0;
  dns::Name first_;
  std::string reason_;
};

/// Outcome of a ZoneTableSync for the zones that lacked space.
struct SpaceRefusals {
  RefusedZones not_removed;  ///< zones that should have been removed
  RefusedZones left_out;     ///< zones that should have been added
  RefusedZones unfit;        ///< zones whose new settings do not fit
  std::string last_text;     ///< text of the last kFull

  /// Empty when no zone lacked space.
  [[nodiscard]] std::string report() const {
    std::string text;
    not_removed.append_to(text, "zones not removed");
    left_out.append_to(text, "new zones not added");
    unfit.append_to(text, "zones not brought in line");
    return text;
  }
};

}  // namespace pando::manager
