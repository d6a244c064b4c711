#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pando::ctl {

/// Verbs of rndc, knotc, nsd-control or pdnsutil, and what does the same here.
struct ForeignVerb {
  std::string_view verbs;  ///< with `|` between them: "delzone|zone delete"
  std::string_view ours;   ///< command line of pandoctl, without its name; empty = there is none
  std::string_view note;   ///< the rest of the answer; the reason where there is no command line
};

/// All rows. No verb stands in two of them.
[[nodiscard]] std::span<const ForeignVerb> foreign_verbs() noexcept;

/// The row of the verb with which the words begin: "zone", "list-all" or "addzone". Null: none of
/// the four tools has such a verb.
[[nodiscard]] const ForeignVerb* find_foreign_verb(const std::vector<std::string>& words);

/// "here it is 'pandoctl zone remove NAME'", or the reason why there is no such command.
[[nodiscard]] std::string hint_of(const ForeignVerb& row);

}  // namespace pando::ctl
