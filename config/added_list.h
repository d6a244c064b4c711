#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// The text of the list of added zones (docs/formats/added-zones.md). The list grows by changes:
///
///     NAME FILE TEMPLATE SETTINGS    the zone is added, or has these settings from now on
///     removed NAME                   the zone is gone
///     commit LINES CHECKSUM          ends a change; the change counts from here on
///
/// FILE or TEMPLATE "-" means none, and SETTINGS is a mapping of zone keys in JSON. `#` starts a
/// comment. A line "commit" alone ends a change that a person wrote.
namespace pando::config {

/// Path of the list of a server with this journal.
[[nodiscard]] std::string added_list_path(const std::string& journal);
/// A file beside the list, which tells that there has to be one: a list that is gone must not look
/// like a server without added zones.
[[nodiscard]] std::string added_mark_path(const std::string& journal);

/// The reason for people that a list is missing.
[[nodiscard]] Error missing_added_list(const std::string& path);

/// The commit line for the lines of one change, with its line end.
[[nodiscard]] std::string commit_line(std::string_view lines);

/// The first word of a line is taken off its front.
[[nodiscard]] std::string_view take_word(std::string_view& line) noexcept;

/// One zone of a list.
struct AddedLine {
  int number = 0;            ///< of the line, from 1
  std::string_view text{};   ///< the line itself, part of the list's text
};

struct AddedText {
  std::vector<AddedLine> zones;  ///< in the order in which they came
  std::size_t end = 0;           ///< bytes of all whole changes
  int unfinished = 0;            ///< number of the first line after them; 0: there is none
};

/// Reads the changes of a list. A last change that is not whole does not count: the process or the
/// host ended before it was acknowledged. kCorrupt: another change is damaged, or none is whole.
Result<AddedText> parse_added_list(std::string_view text);

}  // namespace pando::config
