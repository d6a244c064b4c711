#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/settings/settings.h"

namespace pando::config {

struct UnreadLists;

/// The key that names other files of the configuration (config/includes.h).
inline constexpr std::string_view kInclude = "include";

/// The opened files of a configuration, without the first one.
struct SourceFiles {
  std::vector<std::string> included;  ///< of `include`, in the order in which they were read
  std::vector<std::string> lists;    ///< of `zone-lists`
  std::vector<std::string> secrets;  ///< of `secret-file`
};

/// `settings` may be used only when there are no errors. Both lists hold lines of the form
/// `file:line: key.path: reason`, in the order of sections, at most kMaxProblems errors.
struct LoadResult {
  Settings settings;
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
  std::shared_ptr<UnreadLists> lists{};  ///< with `lists_later`; null without lists
  /// Distinguishes this configuration from others by its texts and by name, times, size and inode
  /// of each list, read or not, and of each secret's file. 0 = unknown.
  std::uint64_t fingerprint = 0;
  SourceFiles sources{};
  bool has_secrets = false;  ///< the first file's text itself has secrets
  bool added_list_failed = false;  ///< the list of added zones is missing, unreadable or damaged
  [[nodiscard]] bool ok() const noexcept { return errors.empty(); }
  [[nodiscard]] std::string error_text() const;  ///< all errors, one per line
};

inline constexpr std::size_t kMaxProblems = 200;

/// Texts by absolute path.
using FileTexts = std::map<std::string, std::string>;

struct LoadOptions {
  bool read_zone_lists = true;  ///< false: only the configuration file
  /// Lists are found and opened, but left to read_lists(): reading a million zones takes a second.
  bool lists_later = false;
  /// false: files of `keys[].secret-file` are not opened, and such keys have no use. For programs
  /// whose user may not read them.
  bool read_key_files = true;
  bool read_http_key_files = true;  ///< the same of `http.keys[].secret-file`
  /// If given, `include` finds files here and nowhere else.
  const FileTexts* included = nullptr;
};

/// Reads and checks the configuration: this file, its included files and its zone lists.
[[nodiscard]] LoadResult load(const std::string& path, const LoadOptions& options = {});

/// Loads text in memory as that of the first file; `path` is for messages and relative paths.
[[nodiscard]] LoadResult load_text(std::string_view text, const std::string& path,
                                   const LoadOptions& options = {});

/// Reads the lists that `lists_later` has left, if any, and clears `lists`. The zones go into the
/// settings, problems with the lists into `errors`. Only the list of added zones is opened here, so
/// later rights to the others do not matter.
void read_lists(LoadResult& result);

}  // namespace pando::config
