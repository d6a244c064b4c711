#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pando::config {

/// The time when a changed value takes effect: the next reload or the next start of the manager.
enum class Apply : std::uint8_t { kLive, kRestart };

/// One key of the configuration: "server.log.level", "zones[].file".
struct KeyInfo {
  std::string path;
  Apply apply = Apply::kLive;
};

/// Every key that a file may contain, sections included. Rules of access lists are listed once, as
/// "rule.address" and so on. Keys of templates are listed as keys of zones.
[[nodiscard]] std::vector<KeyInfo> schema();

}  // namespace pando::config
