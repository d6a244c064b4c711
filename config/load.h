#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/settings/settings.h"

namespace pando::config {

struct UnreadLists;

/// `settings` may be used only when there are no errors. Both lists hold lines of the form
/// `file:line: key.path: reason`, in the order of sections, at most kMaxProblems errors.
struct LoadResult {
  Settings settings;
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
  std::shared_ptr<UnreadLists> lists{};  ///< with `lists_later`: null when there are none
  /// Tells this configuration from others, by the file's text and by name, time, size and inode of
  /// each list, be it read or not. 0 = not known.
  std::uint64_t fingerprint = 0;
  [[nodiscard]] bool ok() const noexcept { return errors.empty(); }
  [[nodiscard]] std::string error_text() const;  ///< all errors, one per line
};

inline constexpr std::size_t kMaxProblems = 200;

struct LoadOptions {
  bool read_zone_lists = true;  ///< false: only the file itself
  /// The lists are found and opened, and left to read_lists(): a million zones take a second.
  bool lists_later = false;
};

/// Reads and checks the configuration file and the zone lists it names.
[[nodiscard]] LoadResult load(const std::string& path, const LoadOptions& options = {});

/// The same for text in memory; `path` is what messages and relative paths refer to.
[[nodiscard]] LoadResult load_text(std::string_view text, const std::string& path,
                                   const LoadOptions& options = {});

/// Reads what `lists_later` has left, if anything, and takes `lists` away: the settings get the
/// zones, `errors` what is wrong with the lists. Nothing is opened, so it does not matter who may
/// read the lists by now.
void read_lists(LoadResult& result);

}  // namespace pando::config
