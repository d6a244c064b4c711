#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "ipc/control_results.h"

namespace pando::manager {

/// Damage of journal, store and image that was found, for `status`: it is mended soon after, and
/// the log may be gone when the operator reads it. May be used by any thread.
class FoundDamage {
 public:
  /// A failing disk may damage thousands of records; the first ones show which disk.
  static constexpr std::size_t kMaxRows = 32;

  /// The same text counts once, since a part may be read again before it is mended.
  void add(std::string text);
  /// The first kMaxRows, oldest first.
  [[nodiscard]] std::vector<ipc::FoundDamageRow> rows() const;

 private:
  mutable std::mutex mutex_;
  std::vector<ipc::FoundDamageRow> rows_;
};

/// That of the process, as the log is: data are read by many parts and threads.
[[nodiscard]] FoundDamage& found_damage();

}  // namespace pando::manager
