#pragma once

#include <cstdint>

#include "ipc/log.h"

namespace pando::manager {

/// Limits log lines of one kind about single zones. After the first kMost lines, further ones are
/// at debug level: a million zones with one problem must not fill the disk.
class LogLimit {
 public:
  static constexpr std::uint64_t kMost = 1000;

  log::Level level_of_next(log::Level level) noexcept {
    return count_++ < kMost ? level : log::Level::kDebug;
  }
  [[nodiscard]] std::uint64_t left_out() const noexcept {
    return count_ > kMost ? count_ - kMost : 0;
  }

 private:
  std::uint64_t count_ = 0;
};

}  // namespace pando::manager
