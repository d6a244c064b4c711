#pragma once

#include <string>
#include <string_view>

namespace pando::config {

/// The lines of the top-level section `name` in the text of a configuration. The rest of the text,
/// which may have many zones, is not parsed. Empty where only a YAML parser can tell: the section is
/// not there, or twice, or it uses anchors, or does not end by itself.
[[nodiscard]] std::string section_text(std::string_view text, std::string_view name);

}  // namespace pando::config
